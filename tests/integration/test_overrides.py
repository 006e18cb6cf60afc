"""What one run has in place of its definitions: other models for participants, a model that compacts, a schema for the answer."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import panels
import pytest
from crews import crew, until
from definitions_at_hand import AGENT, MODEL, NAMESPACE, PANEL, bench, documents
from panels import Started

from folkmoot.api.mapping.runs import process
from folkmoot.domain import items
from folkmoot.domain.definitions import (
    AiModelVersion,
    DefinitionKind,
    ModelOverride,
    Participant,
    Reference,
)
from folkmoot.domain.model_calls import ModelChoice, ModelPurpose
from folkmoot.domain.rights import RIGHTS, Role
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.errors import BadInput, NotPermitted, NotYetBuilt
from folkmoot.kernel.ids import NewId
from folkmoot.services import apply, definitions, runs, starting
from folkmoot.services.apply import Document
from folkmoot.services.closure import StartFields, Workbench
from folkmoot.store.database import Database

REQUEST = StartFields(inputs=(("question", "cats?"),))
CUSTOM = AiModelVersion("openai-compatible", "mine", 4096, base_url="http://models.test/v1", prices={"input": 1.5})
DEDICATED = replace(PANEL, context_settings={"compactionType": "DedicatedModel"})


class Desk:
    def __init__(self, database: Database, caller: Caller, new_id: NewId) -> None:
        self.database, self.caller, self.new_id = database, caller, new_id

    async def publish(self, *more: Document, **changed: Any) -> None:
        other = Document(NAMESPACE, "other", replace(MODEL, model_name="other"))
        await apply.apply(self.database, self.caller, [*documents(**changed), other, *more], new_id=self.new_id)

    async def model_id(self, name: str) -> UUID:
        reference = Reference(name, NAMESPACE)
        found = await definitions.get(self.database, self.caller, kind=DefinitionKind.AI_MODEL, reference=reference)
        return found.definition.definition_id

    async def start(self, *overrides: ModelOverride, on: Workbench | None = None, **fields: Any) -> UUID:
        request = replace(REQUEST, ai_model_overrides=overrides, **fields)
        return await starting.start(
            self.database, self.caller, interaction=Reference("panel", NAMESPACE), request=request, bench=on or bench(),
            new_id=self.new_id, tell=lambda _: None,
        )  # fmt: skip

    async def seats(self, *overrides: ModelOverride, **fields: Any) -> tuple[Participant, ...]:
        run_id = await self.start(*overrides, **fields)
        return (await runs.get(self.database, self.caller, run_id=run_id)).resolved.participants

    async def refused(self, *overrides: ModelOverride, **fields: Any) -> dict[str, str]:
        """The faults of a start that is refused, by pointer; nothing was made."""
        with pytest.raises(BadInput) as caught:
            await self.start(*overrides, **fields)
        assert await panels.fetch(self.database, "select from process") == []
        return {fault.pointer: fault.message for fault in caught.value.faults}


@pytest.fixture
async def desk(database: Database, caller: Caller, new_id: NewId) -> Desk:
    made = Desk(database, caller, new_id)
    await made.publish()
    return made


async def test_an_override_replaces_the_model_of_one_participant(desk: Desk) -> None:
    """platform.md: `aiModelOverrides` replace a participant's model for one run; the run shows them as they were given."""
    by_id = ModelOverride("Ann", ModelPurpose.AGENT, await desk.model_id("other"))
    whole = ModelOverride("Ben", ModelPurpose.AGENT, custom_model=CUSTOM)
    run_id = await desk.start(by_id, whole)
    found = await runs.get(desk.database, desk.caller, run_id=run_id)
    ann, ben = (participant.model for participant in found.resolved.participants)
    assert (ann.model_name, ann.script) == ("other", {"rules": [{"reply": {"text": "Well."}}]})
    assert ben == ModelChoice(
        "openai-compatible", "mine", 4096, base_url="http://models.test/v1", prices={"input": 1.5}
    )
    assert [p.compaction_model for p in found.resolved.participants] == [None, None]
    shown = json.loads(process(found).model_dump_json(by_alias=True))["aiModelOverrides"]
    assert [(each["agentName"], each["aiModelId"], each["purpose"]) for each in shown] == [
        ("Ann", str(by_id.model_id), "Agent"), ("Ben", None, "Agent"),
    ]  # fmt: skip
    custom = shown[1]["customModel"]
    assert shown[0]["customModel"] is None
    assert (custom["modelName"], custom["baseUrl"], custom["contextWindow"]) == ("mine", "http://models.test/v1", 4096)
    assert custom["prices"]["input"] == 1.5 and custom["capabilities"]["tools"] is True


async def test_an_overridden_model_need_not_be_there(desk: Desk) -> None:
    """One that is disabled hinders no run that does not use it."""
    small = Reference("small", NAMESPACE, version=1)
    await definitions.set_disabled(
        desk.database, desk.caller, kind=DefinitionKind.AI_MODEL, reference=small, is_disabled=True
    )
    given = [ModelOverride(name, ModelPurpose.AGENT, custom_model=CUSTOM) for name in ("Ann", "Ben")]
    compacting = ModelOverride("Ben", ModelPurpose.COMPACTION, custom_model=CUSTOM)
    faults = await desk.refused(given[0], compacting)
    assert list(faults) == [""] and "'examples/small' is disabled" in faults[""]
    assert {participant.model.model_name for participant in await desk.seats(*given)} == {"mine"}


async def test_what_is_wrong_with_overrides_is_told_with_its_place(desk: Desk) -> None:
    """interactions.md, Starting: unknown agent names in overrides; everything is checked before the run exists."""
    ann, other = ModelPurpose.AGENT, await desk.model_id("other")
    faults = await desk.refused(
        ModelOverride("Nobody", ann, other),
        ModelOverride("Ann", ann),
        ModelOverride("Ann", ann, other),
        ModelOverride("Ben", ann, other, CUSTOM),
        ModelOverride("Ben", ModelPurpose.COMPACTION, custom_model=replace(CUSTOM, base_url=None, context_window=0)),
        ModelOverride("Ann", ModelPurpose.COMPACTION, uuid4()),
    )
    at = "/aiModelOverrides"
    assert set(faults) == {
        f"{at}/0/agentName", f"{at}/1", f"{at}/2", f"{at}/3", f"{at}/4/customModel/baseUrl", f"{at}/4/customModel/contextWindow",
        f"{at}/5/aiModelId",
    }  # fmt: skip
    assert "'Nobody'. The participants: Ann, Ben" in faults[f"{at}/0/agentName"]
    assert "two overrides of purpose 'Agent'" in faults[f"{at}/2"]


async def test_a_model_that_this_machine_cannot_ask_is_told(desk: Desk) -> None:
    def unreadable(_: str) -> Any:
        raise FileNotFoundError(2, "No such file or directory")

    script = ModelOverride("Ann", ModelPurpose.AGENT, custom_model=AiModelVersion("scripted", "s", path="/gone.yaml"))
    faults = await desk.refused(script, on=Workbench(lambda _: None, unreadable), model=ModelChoice("scripted", "m"))
    assert (
        list(faults) == ["/aiModelOverrides/0/customModel"]
        and "/gone.yaml" in faults["/aiModelOverrides/0/customModel"]
    )
    compacting = ModelOverride("Ann", ModelPurpose.COMPACTION, custom_model=CUSTOM)
    lacking = replace(bench(), lack_of=lambda choice: "There is no key." if choice.model_name == "mine" else None)
    assert await desk.refused(compacting, on=lacking) == {
        "": "The model that compacts for 'Ann' cannot be asked. There is no key."
    }


async def test_a_whole_model_takes_the_right_to_publish(desk: Desk) -> None:
    """B66: it names a URL and a key of the server's to send there, and a file to read; who may only start gives none."""
    desk.caller = replace(desk.caller, role=Role.OPERATOR, rights=RIGHTS[Role.OPERATOR])
    for purpose in (ModelPurpose.AGENT, ModelPurpose.COMPACTION):
        with pytest.raises(NotPermitted, match="'publish'"):
            await desk.start(ModelOverride("Ann", purpose, custom_model=CUSTOM))
    assert await panels.fetch(desk.database, "select from process") == []
    await desk.start(ModelOverride("Ann", ModelPurpose.AGENT, await desk.model_id("other")))


@pytest.mark.parametrize("purpose", [ModelPurpose.WEAVER, ModelPurpose.VET])
async def test_a_purpose_of_a_later_part_is_refused_by_name(desk: Desk, purpose: ModelPurpose) -> None:
    with pytest.raises(NotYetBuilt) as caught:
        await desk.start(ModelOverride("Ann", purpose, custom_model=CUSTOM))
    (fault,) = caught.value.faults
    assert fault.pointer == "/aiModelOverrides/0/purpose" and f"'{purpose}'" in fault.message


async def test_a_commands_model_is_for_all_whom_the_start_gives_none(desk: Desk) -> None:
    """`folkmoot run --model` is in place of what the definitions name, not of what the start names."""
    given = ModelOverride("Ann", ModelPurpose.AGENT, custom_model=CUSTOM)
    seats = await desk.seats(given, model=ModelChoice("local", "m"))
    assert [participant.model.model_name for participant in seats] == ["mine", "m"]


# compaction


async def test_an_override_gives_the_model_that_compacts_for_one_participant(desk: Desk) -> None:
    ann, ben = await desk.seats(ModelOverride("Ann", ModelPurpose.COMPACTION, await desk.model_id("other")))
    assert ann.compaction_model is not None and ann.compaction_model.model_name == "other"
    assert (ann.model.model_name, ben.compaction_model) == ("script", None)


async def test_a_dedicated_model_compacts_for_all_whom_no_override_gives_one(desk: Desk) -> None:
    """(ours) `contextSettings.compactionModel`; what a command gives for all is in its place, too."""
    await desk.publish(panel=replace(DEDICATED, compaction_model=Reference("other")))
    given = ModelOverride("Ben", ModelPurpose.COMPACTION, custom_model=CUSTOM)

    def compacting(seats: tuple[Participant, ...]) -> list[str | None]:
        return [seat.compaction_model and seat.compaction_model.model_name for seat in seats]

    changed = documents(panel=replace(DEDICATED, compaction_model=Reference("small")))
    (panel, *_) = await apply.diff(desk.database, desk.caller, changed, new_id=desk.new_id)
    ((pointer, before, after),) = [(d.pointer, d.before, d.after) for d in panel.differences]
    assert (pointer, before, after) == ("/contextSettings/compactionModel", "examples/other", "examples/small")
    assert compacting(await desk.seats()) == ["other", "other"]
    assert compacting(await desk.seats(given)) == ["other", "mine"]
    assert compacting(await desk.seats(given, model=ModelChoice("local", "m"))) == ["m", "mine"]
    other = Reference("other", NAMESPACE, version=1)
    await definitions.set_disabled(
        desk.database, desk.caller, kind=DefinitionKind.AI_MODEL, reference=other, is_disabled=True
    )
    with pytest.raises(BadInput, match="'examples/other' is disabled"):
        await desk.start(given)


async def test_a_dedicated_model_that_nobody_names_is_asked_for(desk: Desk) -> None:
    await desk.publish(panel=DEDICATED)
    given = [ModelOverride(name, ModelPurpose.COMPACTION, custom_model=CUSTOM) for name in ("Ann", "Ben")]
    (message,) = (await desk.refused(given[0])).values()
    assert "Set contextSettings.compactionModel" in message and message.endswith("for: Ben.")
    assert len(await desk.seats(*given)) == 2


async def test_the_dedicated_model_must_be_there_when_it_is_named(desk: Desk) -> None:
    with pytest.raises(BadInput) as caught:
        await desk.publish(panel=replace(DEDICATED, compaction_model=Reference("nobody")))
    assert [fault.pointer for fault in caught.value.faults] == ["/contextSettings/compactionModel"]


# the answer's schema

SCHEMA = '{"type": "object", "properties": {"choice": {"enum": ["keep", "drop"]}}, "required": ["choice"]}'
RULES = {
    "rules": [
        {"when": {"offered": "agree"}, "reply": {"calls": [{"name": "agree"}]}},
        {"when": {"participant": "Ann", "call": 1}, "reply": {"calls": [{"name": "propose_solution", "arguments": {"solution": 7}}]}},
        {"when": {"participant": "Ann"}, "reply": {"calls": [{"name": "propose_solution", "arguments": {"solution": {"choice": "keep"}}}]}},
        {"reply": {"text": "Hm."}},
    ]
}  # fmt: skip


async def test_the_starts_schema_holds_for_proposals_and_for_the_answer(desk: Desk) -> None:
    """interactions.md, Starting: `responseJsonSchema` in place of the definition's; conversation.md: `output` is the solution."""
    await desk.publish(panel=replace(PANEL, solution_schema='{"type": "integer"}'), agent=replace(AGENT, prompts=()))
    on = Workbench(lambda _: None, lambda _: RULES)
    run_id = await desk.start(on=on, response_json_schema=SCHEMA)
    started = Started(desk.caller.tenant_id, run_id)
    async with crew(desk.database, desk.new_id) as made:
        await until(lambda: panels.has_ended(desk.database, started))
    (offered,) = [tool for tool in made.model.requests[0].offered if tool.name == "propose_solution"]
    assert offered.parameters["properties"]["solution"]["required"] == ["choice"]
    conversation = [stored.item for stored in await panels.items_of(desk.database, started)]
    assert [type(item.detail) for item in conversation if isinstance(item.body, items.ToolResult)] == [
        items.InvalidSolution
    ]
    shown = process(await runs.get(desk.database, desk.caller, run_id=run_id))
    assert (shown.status, shown.output, shown.response_json_schema) == ("Completed", '{"choice":"keep"}', SCHEMA)
