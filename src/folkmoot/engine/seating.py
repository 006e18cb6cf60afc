"""A run's definition made ready for the engine, once per run: seats in order, validators, and the tools each is offered.

People have one seat together, under the reserved name; where they speak in every round it is the last one. A participant with a
router has a seat for each agent that may take its turns, beside the one before the first choice. A manager is seated alone in the
main conversation: the others work in threads.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from folkmoot.domain.calls import AskedCall, Tool
from folkmoot.domain.definitions import ChatMode, Participant, ResolvedInteraction
from folkmoot.domain.items import Author, AuthorKind
from folkmoot.domain.model_calls import ModelChoice, OfferedTool, Purpose
from folkmoot.domain.pending import PERSON
from folkmoot.domain.routers import PinnedRouter
from folkmoot.domain.schemas import Validator, canonical, compile_schema
from folkmoot.engine import tools_offered
from folkmoot.engine.estimates import tokens_of
from folkmoot.engine.seats import seat_key
from folkmoot.engine.step import AskModel
from folkmoot.kernel.errors import BadDefinition


class Seating:
    """What does not change while a run goes on. `answer_tools` and `ballot_tools` are offered alone and required.

    `participants`, `authors`, `tools` (what each may call beyond the protocol, by name) and `turn_tools` are by seat. Raises
    BadDefinition where a tool has a protocol tool's name: which one a model means could not be told.
    """

    def __init__(self, definition: ResolvedInteraction) -> None:
        self.definition = definition
        self.names = tuple(p.name for p in definition.participants)
        self.manager = definition.manager
        self.main_names = self.names if self.manager is None else (self.manager,)
        self.participants: dict[str, Participant] = {p.name: p for p in definition.participants}
        for participant in definition.participants:
            self.participants |= {seat_key(c.name, c.agent_id): c for c in participant.candidates}
        self.authors = {
            key: Author(AuthorKind.AGENT, seat.name, seat.agent_id) for key, seat in self.participants.items()
        }
        self.solution_schema = json.loads(definition.solution_schema) if definition.solution_schema else None
        self.solution_validator: Validator | None = (
            compile_schema(definition.solution_schema) if definition.solution_schema else None
        )
        self.people = definition.human_settings
        is_person_seated = self.people is not None and self.people.chat_mode is ChatMode.EVERY_ROUND
        self.seats = (*self.main_names, PERSON) if is_person_seated else self.main_names
        self.tools: dict[str, dict[str, Tool]] = {
            key: tools_offered.usable(definition, seat) for key, seat in self.participants.items()
        }
        self.protocol_names = tools_offered.protocol_names(definition)
        for key, tools in self.tools.items():
            for clash in sorted(self.protocol_names & tools.keys()):
                name = self.participants[key].name
                raise BadDefinition(
                    f"The tool '{clash}' of participant {name} has the name of a tool of the conversation; rename it."
                )
        self.loop = definition.loop
        self.turn_tools: dict[str, tuple[OfferedTool, ...]] = {
            key: tools_offered.for_turn(
                definition, seat.name, tools=self.tools[key], solution_schema=self.solution_schema
            )
            for key, seat in self.participants.items()
        }
        self._before_reading = {
            key: tuple(tool for tool in offered if tool.name != tools_offered.READ_RESULT.name)
            for key, offered in self.turn_tools.items()
        }
        self.ballot_tools = tools_offered.BALLOT
        self.answer_tools = tools_offered.ANSWER
        self._seats = {name: seat for seat, name in enumerate(self.seats)}
        self._reads_on = {
            name: any(
                tools_offered.READ_RESULT.name in tools
                for key, tools in self.tools.items()
                if self.participants[key].name == name
            )
            for name in self.names
        }
        self.are_seats_shared = any(p.candidates for p in definition.participants)
        self._tool_tokens: dict[tuple[str, ...], int] = {}
        self._validators: dict[tuple[str, str], tuple[dict[str, Any], Validator]] = {}

    def is_dispatch(self, name: str) -> bool:
        """Whether a call of this name sends work to an agent."""
        return self.manager is not None and name == tools_offered.DISPATCH

    @property
    def finishing_tool(self) -> str:
        """The tool with which an answer is given."""
        return tools_offered.PROPOSE if self.manager is None else tools_offered.FINISH

    @property
    def can_propose(self) -> bool:
        """Whether participants may give an answer at all."""
        return self.manager is not None or self.definition.is_solution_proposal_allowed

    def offered(self, seat: str, *, reads_on: bool) -> tuple[OfferedTool, ...]:
        """What is offered in a turn of its own. `reads_on`: one of its results was not shown whole."""
        return self.turn_tools[seat] if reads_on else self._before_reading[seat]

    def answering(self, seat: str) -> tuple[OfferedTool, ...]:
        """What of a seat's tools leads to an answer: all that it is offered in the last turn."""
        return tuple(tool for tool in self.turn_tools[seat] if tool.name == self.finishing_tool)

    def summariser(self, seat: str) -> ModelChoice:
        """What summarises a view: a model of its own, or the seat's."""
        found = self.participants[seat]
        return found.compaction_model or found.model

    def router(self, participant: str, router_id: UUID | None) -> PinnedRouter | None:
        return next((r for r in self.participants[participant].routers if r.router_id == router_id), None)

    def model_of(self, step: AskModel) -> ModelChoice:
        if step.purpose is Purpose.ROUTE:
            router = self.router(step.participant, step.subject)
            assert router is not None and router.model is not None
            return router.model
        return self.summariser(step.seat) if step.purpose is Purpose.COMPACTION else self.participants[step.seat].model

    def models_of(self, participant: str) -> Iterator[ModelChoice]:
        """All models that are ever asked for a participant."""
        seat = self.participants[participant]
        for each in (seat, *seat.candidates):
            yield each.model
            if each.compaction_model is not None:
                yield each.compaction_model
        yield from (router.model for router in seat.routers if router.model is not None)

    def tool_tokens(self, seat: str, offered: tuple[OfferedTool, ...]) -> int:
        """About what tools take of a prompt."""
        key = (seat, *(tool.name for tool in offered))
        found = self._tool_tokens.get(key)
        if found is None:
            texts = (f"{tool.name}{tool.description}{json.dumps(tool.parameters)}" for tool in offered)
            found = self._tool_tokens[key] = sum(tokens_of(text) for text in texts)
        return found

    def reads_on(self, seat: str) -> bool:
        """Whether there is the tool that reads on in results that are not shown whole, for any of those who share the seat: a result
        that is trimmed stays so, whoever comes next."""
        return self._reads_on[self.participants[seat].name]

    def is_polling(self, seat: str, call: AskedCall) -> bool:
        """Whether a call may be repeated until something has changed."""
        tool = self.tools[seat].get(call.name)
        return tool is not None and tool.is_polling

    @property
    def gated(self) -> dict[str, frozenset[str]]:
        """By participant, the tools whose calls wait for a person."""
        found: dict[str, frozenset[str]] = {}
        for key, tools in self.tools.items():
            name = self.participants[key].name
            found[name] = found.get(name, frozenset()) | {tool.name for tool in tools.values() if tool.may_be_gated}
        return found

    def seat_of(self, author: Author) -> str:
        """The seat of an item's author."""
        key = seat_key(author.name, author.id)
        return key if key in self.participants else author.name

    def seat_after(self, name: str) -> int:
        return self._seats[name] + 1

    def do_people_vote(self, *, is_solution: bool) -> bool:
        """Whether the vote of people is waited for and counted."""
        people = self.people
        return people is not None and (people.include_in_solutions if is_solution else people.include_in_votes)

    def voters(self, proposer: str) -> tuple[str, ...]:
        """Everybody who is asked: all but the proposer, who counts as agreeing. Whom a manager sends work to is not asked."""
        return tuple(name for name in self.main_names if name != proposer)

    def validator(self, seat: str, tool: OfferedTool) -> Validator:
        """The validator of an offered tool's arguments, compiled once per run, and again where a step offers the tool narrowed."""
        key = (seat, tool.name)
        compiled_from, found = self._validators.get(key, (None, None))
        if found is None or compiled_from is not tool.parameters:
            found = compile_schema(json.dumps(tool.parameters))
            self._validators[key] = tool.parameters, found
        return found

    def answer_key(self, solution: str) -> str:
        """Equal for solutions that are the same answer: under a schema, whatever the spelling of their JSON."""
        return solution if self.solution_schema is None else canonical(json.loads(solution))
