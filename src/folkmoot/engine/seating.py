"""A run's definition made ready for the engine, once per run: seats in order, validators, and the tools each is offered.

People have one seat together, under the reserved name; where they speak in every round it is the last one.
"""

from __future__ import annotations

import json

from folkmoot.domain.calls import AskedCall, Tool
from folkmoot.domain.definitions import ChatMode, Participant, ResolvedInteraction
from folkmoot.domain.items import Author, AuthorKind
from folkmoot.domain.model_calls import ModelChoice, OfferedTool, Purpose
from folkmoot.domain.pending import PERSON
from folkmoot.domain.schemas import Validator, canonical, compile_schema
from folkmoot.engine import tools_offered
from folkmoot.engine.estimates import tokens_of
from folkmoot.kernel.errors import BadDefinition


class Seating:
    """What does not change while a run goes on. `answer_tools` and `ballot_tools` are offered alone and required.

    `tools`: what each may call beyond the protocol, by name. Raises BadDefinition where one has a protocol tool's name: which
    one a model means could not be told.
    """

    def __init__(self, definition: ResolvedInteraction) -> None:
        self.definition = definition
        self.names = tuple(p.name for p in definition.participants)
        self.participants: dict[str, Participant] = {p.name: p for p in definition.participants}
        self.authors = {p.name: Author(AuthorKind.AGENT, p.name, p.agent_id) for p in definition.participants}
        self.solution_schema = json.loads(definition.solution_schema) if definition.solution_schema else None
        self.solution_validator: Validator | None = (
            compile_schema(definition.solution_schema) if definition.solution_schema else None
        )
        self.people = definition.human_settings
        is_person_seated = self.people is not None and self.people.chat_mode is ChatMode.EVERY_ROUND
        self.seats = (*self.names, PERSON) if is_person_seated else self.names
        self.tools: dict[str, dict[str, Tool]] = {
            p.name: tools_offered.usable(definition, p) for p in definition.participants
        }
        for name in self.names:
            for clash in sorted(tools_offered.PROTOCOL & self.tools[name].keys()):
                raise BadDefinition(
                    f"The tool '{clash}' of participant {name} has the name of a tool of the conversation; rename it."
                )
        self.turn_tools: dict[str, tuple[OfferedTool, ...]] = {
            name: tools_offered.for_turn(definition, name, tools=self.tools[name], solution_schema=self.solution_schema)
            for name in self.names
        }
        self._before_reading = {
            name: tuple(tool for tool in offered if tool.name != tools_offered.READ_RESULT.name)
            for name, offered in self.turn_tools.items()
        }
        self.ballot_tools = tools_offered.BALLOT
        self.answer_tools = tools_offered.ANSWER
        self._seats = {name: seat for seat, name in enumerate(self.seats)}
        self._tool_tokens: dict[tuple[str, ...], int] = {}
        self._validators: dict[tuple[str, str], Validator] = {}

    def offered(self, participant: str, *, reads_on: bool) -> tuple[OfferedTool, ...]:
        """What a participant is offered in a turn of its own. `reads_on`: one of its results was not shown whole."""
        return self.turn_tools[participant] if reads_on else self._before_reading[participant]

    def answering(self, participant: str) -> tuple[OfferedTool, ...]:
        """What of a participant's tools leads to an answer: all that it is offered in the last turn."""
        return tuple(tool for tool in self.turn_tools[participant] if tool.name == tools_offered.PROPOSE)

    def summariser(self, participant: str) -> ModelChoice:
        """What summarises a participant's view: a model of its own, or the participant's."""
        seat = self.participants[participant]
        return seat.compaction_model or seat.model

    def model_of(self, participant: str, purpose: Purpose) -> ModelChoice:
        return self.summariser(participant) if purpose is Purpose.COMPACTION else self.participants[participant].model

    def tool_tokens(self, participant: str, offered: tuple[OfferedTool, ...]) -> int:
        """About what tools take of a participant's prompts."""
        key = (participant, *(tool.name for tool in offered))
        found = self._tool_tokens.get(key)
        if found is None:
            texts = (f"{tool.name}{tool.description}{json.dumps(tool.parameters)}" for tool in offered)
            found = self._tool_tokens[key] = sum(tokens_of(text) for text in texts)
        return found

    def reads_on(self, participant: str) -> bool:
        """Whether a participant has the tool that reads on in results that are not shown whole."""
        return tools_offered.READ_RESULT.name in self.tools[participant]

    def is_polling(self, call: AskedCall) -> bool:
        """Whether a call may be repeated until something has changed."""
        tool = self.tools[call.participant].get(call.name)
        return tool is not None and tool.is_polling

    @property
    def gated(self) -> dict[str, frozenset[str]]:
        """By participant, the tools whose calls wait for a person."""
        return {name: frozenset(t.name for t in tools.values() if t.is_gated) for name, tools in self.tools.items()}

    def seat_after(self, name: str) -> int:
        return self._seats[name] + 1

    def do_people_vote(self, *, is_solution: bool) -> bool:
        """Whether the vote of people is waited for and counted."""
        people = self.people
        return people is not None and (people.include_in_solutions if is_solution else people.include_in_votes)

    def voters(self, proposer: str) -> tuple[str, ...]:
        """Everybody who is asked: all but the proposer, who counts as agreeing."""
        return tuple(name for name in self.names if name != proposer)

    def validator(self, participant: str, tool: OfferedTool) -> Validator:
        """The validator of an offered tool's arguments, compiled once per run."""
        key = (participant, tool.name)
        found = self._validators.get(key)
        if found is None:
            found = self._validators[key] = compile_schema(json.dumps(tool.parameters))
        return found

    def answer_key(self, solution: str) -> str:
        """Equal for solutions that are the same answer: under a schema, whatever the spelling of their JSON."""
        return solution if self.solution_schema is None else canonical(json.loads(solution))
