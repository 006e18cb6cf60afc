"""What must hold when a version is saved, and what a start cannot run yet (spec/interactions.md; issue 2, bad input)."""

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from folkmoot.domain.checking import (
    faults_of_agent,
    faults_of_inputs,
    faults_of_interaction,
    faults_of_model,
    faults_of_names,
    later_fields,
)
from folkmoot.domain.definitions import (
    AgentBinding,
    AgentVersion,
    AiModelVersion,
    ChatMode,
    DataType,
    HumanSettings,
    InteractionVersion,
    PromptInput,
    Reference,
)
from folkmoot.domain.model_calls import Sampling

SOME_ID = UUID("0190c5a2-0000-7000-8000-000000000001")
PANEL = InteractionVersion(
    agents=(AgentBinding(Reference("optimist"), "Ann"), AgentBinding(Reference("sceptic"), "Ben")),
    prompt="Decide: %%question%%",
    is_no_action_allowed=True,
    is_solution_proposal_allowed=True,
    maximum_no_action_loops=2,
    maximum_rounds=6,
    inputs_prompt=(PromptInput(DataType.STRING, "question", is_required=True),),
    solution_schema='{"type":"object"}',
    duration_auto_termination=timedelta(minutes=5),
)
AGENT = AgentVersion(model=Reference("small"), prompts=("You decide.",), function_tools=("look_up",))
MODEL = AiModelVersion(provider="openai-compatible", model_name="m", base_url="http://127.0.0.1:8080/v1")


def with_names(*names: str | None) -> InteractionVersion:
    return replace(PANEL, agents=tuple(AgentBinding(Reference(f"agent{n}"), name) for n, name in enumerate(names)))


class TestInteraction:
    def test_a_good_version_has_no_faults(self) -> None:
        assert faults_of_interaction(PANEL) == ()

    def test_one_participant_alone_is_a_conversation(self) -> None:
        """spec/conversation.md, Round-robin 9."""
        assert faults_of_interaction(with_names("Ann")) == ()

    def test_two_participants_may_share_one_agent(self) -> None:
        agents = (AgentBinding(Reference("sceptic"), "Ann"), AgentBinding(Reference("sceptic"), "Ben"))
        assert faults_of_interaction(replace(PANEL, agents=agents)) == ()

    def test_somebody_must_take_part(self) -> None:
        (fault,) = faults_of_interaction(replace(PANEL, agents=()))
        assert fault.pointer == "/agents"

    def test_a_binding_that_refers_to_nothing_is_refused(self) -> None:
        (fault,) = faults_of_interaction(replace(PANEL, agents=(AgentBinding(Reference(), "Ann"),)))
        assert fault.pointer == "/agents/0/agent"

    @pytest.mark.parametrize(
        ("changes", "pointer", "words"),
        [
            ({"prompt": "%%qestion%%"}, "/prompt", "'%%qestion%%' names no input"),
            ({"system_prompts": ("ok", "%%typo%%")}, "/systemPrompts/1", "'%%typo%%'"),
            ({"maximum_no_action_loops": 0}, "/maximumNoActionLoops", "1 to 2147483647"),
            ({"maximum_no_action_loops": 2**31}, "/maximumNoActionLoops", "1 to 2147483647"),
            ({"maximum_rounds": 0}, "/maximumRounds", "null"),
            ({"duration_auto_termination": timedelta(0)}, "/durationAutoTermination", "longer than none"),
            ({"duration_warning_to_ai": timedelta(seconds=-1)}, "/durationWarningToAi", "longer than none"),
            (
                {"duration_warning_to_ai": timedelta(minutes=5)},
                "/durationWarningToAi",
                "less than durationAutoTermination",
            ),
            (
                {"duration_warning_to_ai": timedelta(1), "duration_auto_termination": None},
                "/durationWarningToAi",
                "set durationAutoTermination",
            ),
            ({"compaction_model": Reference("small")}, "/contextSettings/compactionModel", "'DedicatedModel'"),
            ({"duration_human_timeout": timedelta(0)}, "/durationHumanTimeout", "longer than none"),
            ({"duration_auto_termination": timedelta(days=1_000_000)}, "/durationAutoTermination", "999,999 days"),
            ({"duration_human_timeout": timedelta(days=1_000_000)}, "/durationHumanTimeout", "999,999 days"),
            ({"solution_schema": "nope"}, "/solutionSchema", "not JSON"),
            ({"solution_schema": '{"$ref":"https://example.com/x"}'}, "/solutionSchema", "fetched from nowhere"),
            ({"solution_schema": '{"$ref":"#"}'}, "/solutionSchema", "leads back"),
            ({"context_settings": {"maxToolCallLoops": 0}}, "/contextSettings/maxToolCallLoops", "from 1"),
            ({"context_settings": {"maxToolCallLoops": True}}, "/contextSettings/maxToolCallLoops", "whole number"),
            ({"context_settings": {"targetUtilization": 101}}, "/contextSettings/targetUtilization", "to 100"),
            (
                {"context_settings": {"compactKeepRecentTokens": -1}},
                "/contextSettings/compactKeepRecentTokens",
                "from 0",
            ),
            ({"context_settings": {"mode": "Trim"}}, "/contextSettings/toolResultTrimmingMode", "OnPressure"),
            (
                {"context_settings": {"lowWaterUtilization": 60, "compactAtUtilization": 50}},
                "/contextSettings/lowWaterUtilization",
                "compactAtUtilization (50)",
            ),
            (
                {"context_settings": {"compactTargetTokens": 500, "compactMaxTokens": 400}},
                "/contextSettings/compactMaxTokens",
                "500 tokens",
            ),
        ],
    )
    def test_a_fault_says_where_and_what(self, changes: dict[str, Any], pointer: str, words: str) -> None:
        (fault,) = faults_of_interaction(replace(PANEL, **changes))
        assert fault.pointer == pointer
        assert words in fault.message

    def test_all_faults_are_found_at_once(self) -> None:
        version = replace(with_names("Ann", "ann"), prompt="%%x%%", maximum_rounds=0)
        pointers = [fault.pointer for fault in faults_of_interaction(version)]
        assert pointers == ["/agents/1/name", "/prompt", "/maximumRounds"]

    @pytest.mark.parametrize("name", ["", "a%b", "%%", " a", "a\nb", "x" * 129])
    def test_an_input_whose_name_no_prompt_could_use_is_refused(self, name: str) -> None:
        version = replace(PANEL, prompt="", inputs_prompt=(PromptInput(DataType.STRING, name),))
        (fault,) = faults_of_interaction(version)
        assert fault.pointer == "/inputsPrompt/0/name"

    def test_two_inputs_of_one_name_are_refused(self) -> None:
        version = replace(PANEL, inputs_prompt=(*PANEL.inputs_prompt, PromptInput(DataType.JSON, "question")))
        (fault,) = faults_of_interaction(version)
        assert fault.pointer == "/inputsPrompt/1/name"


class TestEndlessConversation:
    """spec/interactions.md: no proposals, no person, no bound on rounds, passes or time."""

    ENDLESS = replace(
        PANEL,
        is_no_action_allowed=False,
        is_solution_proposal_allowed=False,
        maximum_no_action_loops=None,
        maximum_rounds=None,
        duration_auto_termination=None,
    )

    @pytest.mark.parametrize(
        "changes",
        [
            {},
            {"maximum_no_action_loops": 2},
            {"is_no_action_allowed": True},
            {"is_voting_allowed": True},
            {"human_settings": HumanSettings(ChatMode.EXCLUDED, include_in_votes=True)},
        ],
    )
    def test_it_is_refused_with_what_to_set(self, changes: dict[str, Any]) -> None:
        (fault,) = faults_of_interaction(replace(self.ENDLESS, **changes))
        assert fault.pointer == ""
        for field in (
            "isSolutionProposalAllowed",
            "maximumRounds",
            "durationAutoTermination",
            "maximumNoActionLoops",
            "humanSettings",
        ):
            assert field in fault.message

    @pytest.mark.parametrize(
        "changes",
        [
            {"is_solution_proposal_allowed": True},
            {"maximum_rounds": 1},
            {"duration_auto_termination": timedelta(seconds=1)},
            {"is_no_action_allowed": True, "maximum_no_action_loops": 1},
            {"human_settings": HumanSettings(ChatMode.OBSERVING)},
        ],
    )
    def test_any_one_end_is_enough(self, changes: dict[str, Any]) -> None:
        assert faults_of_interaction(replace(self.ENDLESS, **changes)) == ()


class TestNames:
    @pytest.mark.parametrize("name", ["Ann", "Ännchen O'Hara-Smith", "Анна", "李", "R2-D2", "x" * 64, "Humanist"])
    def test_ordinary_names_of_any_script_are_good(self, name: str) -> None:
        assert faults_of_interaction(with_names(name)) == ()

    @pytest.mark.parametrize(
        "name",
        [
            "",
            " ",
            "Ann\n",
            "A\nnn",
            "A\x00n",
            "Ann\u202e",
            "A\u200bnn",
            "A\u00adnn",
            "Ann\U000e0041",
            "Ann\u2028x",
            "\ud800",
            " Ann",
            "Ann ",
            "x" * 65,
        ],
    )
    def test_blank_long_and_hidden_characters_are_refused(self, name: str) -> None:
        """F53: control characters and look-alike names."""
        (fault,) = faults_of_interaction(with_names("Ben", name))
        assert fault.pointer == "/agents/1/name"

    @pytest.mark.parametrize("other", ["Ann", "ANN", "ann", "\uff21nn", "Аnn", "A\u006e\u006e"])
    def test_names_that_read_alike_are_one_name(self, other: str) -> None:
        (fault,) = faults_of_interaction(with_names("Ann", "Ben", other))
        assert fault.pointer == "/agents/2/name"
        assert "'Ann'" in fault.message

    def test_composed_and_decomposed_letters_are_one_name(self) -> None:
        (fault,) = faults_of_interaction(with_names("J\u00fcrg", "Ju\u0308rg"))
        assert fault.pointer == "/agents/1/name"

    @pytest.mark.parametrize("name", ["Human", "human", "ORCHESTRATOR", "Orchestrаtor", "Нuman"])
    def test_reserved_names_are_refused(self, name: str) -> None:
        (fault,) = faults_of_interaction(with_names(name))
        assert "reserved" in fault.message

    def test_without_a_name_the_agents_own_counts(self) -> None:
        agents = (AgentBinding(Reference("sceptic")), AgentBinding(Reference("optimist"), "Sceptic"))
        (fault,) = faults_of_interaction(replace(PANEL, agents=agents))
        assert fault.pointer == "/agents/1/name"

    def test_a_name_known_only_at_the_start_is_checked_there(self) -> None:
        agents = (AgentBinding(Reference(definition_id=SOME_ID)), AgentBinding(Reference("b"), "Ben"))
        assert faults_of_interaction(replace(PANEL, agents=agents)) == ()
        (fault,) = faults_of_names([("/agents/0/name", "ben"), ("/agents/1/name", "Ben")])
        assert fault.pointer == "/agents/1/name"


class TestAgent:
    def test_a_good_version_has_no_faults(self) -> None:
        assert faults_of_agent(AGENT) == ()
        assert faults_of_agent(replace(AGENT, settings=Sampling(0.3, 0.9, 7, 100))) == ()

    @pytest.mark.parametrize(
        ("changes", "pointer"),
        [
            ({"model": Reference()}, "/model"),
            ({"model": Reference("small", version=-1)}, "/model"),
            ({"settings": Sampling(temperature=2.1)}, "/settings/temperature"),
            ({"settings": Sampling(temperature=float("nan"))}, "/settings/temperature"),
            ({"settings": Sampling(top_p=-0.1)}, "/settings/topP"),
            ({"settings": Sampling(seed=-1)}, "/settings/seed"),
            ({"settings": Sampling(max_tokens=0)}, "/settings/maxTokens"),
            ({"function_tools": ("a", "b c")}, "/functionTools/1"),
            ({"function_tools": ("a", "a")}, "/functionTools/1"),
            ({"function_tools": ("propose_solution",)}, "/functionTools/0"),
        ],
    )
    def test_a_fault_says_where(self, changes: dict[str, Any], pointer: str) -> None:
        (fault,) = faults_of_agent(replace(AGENT, **changes))
        assert fault.pointer == pointer


class TestModel:
    @pytest.mark.parametrize(
        "model",
        [
            MODEL,
            AiModelVersion("openai", "gpt", api_key_variable="OTHER_API_KEY"),
            AiModelVersion("local", "smollm2-135m-instruct"),
            AiModelVersion("local", "mine", path="/models/mine.gguf"),
            AiModelVersion("scripted", "scripted", path="panel.script.yaml"),
            replace(MODEL, base_url="https://[::1]:8443"),
            replace(MODEL, prices={"input": 0.0}),
        ],
    )
    def test_a_good_version_has_no_faults(self, model: AiModelVersion) -> None:
        assert faults_of_model(model) == ()

    @pytest.mark.parametrize(
        ("changes", "pointer", "words"),
        [
            ({"provider": "opanai"}, "/provider", "openai-compatible, anthropic, google, local, scripted"),
            ({"provider": "azure", "base_url": None}, "/baseUrl", "needs the server's URL"),
            ({"provider": "anthropic", "path": "x"}, "/path", "no file"),
            ({"base_url": None}, "/baseUrl", "needs the server's URL"),
            ({"base_url": ""}, "/baseUrl", "empty"),
            ({"base_url": "ftp://x/v1"}, "/baseUrl", "http"),
            ({"base_url": "127.0.0.1:8080"}, "/baseUrl", "http"),
            ({"base_url": "http:///v1"}, "/baseUrl", "host"),
            ({"base_url": "http://x:99999/v1"}, "/baseUrl", "port"),
            ({"base_url": "http://[::1/v1"}, "/baseUrl", "host"),
            ({"base_url": "http://user:hunter2@x/v1"}, "/baseUrl", "password"),
            ({"base_url": "http://x/v1?key=hunter2"}, "/baseUrl", "'?'"),
            ({"base_url": "http://x/v1\r\nHost: y"}, "/baseUrl", "control"),
            ({"provider": "local"}, "/baseUrl", "no URL"),
            ({"provider": "scripted", "base_url": None}, "/path", "script"),
            ({"provider": "scripted", "base_url": None, "path": " "}, "/path", "visible"),
            ({"provider": "local", "base_url": None, "path": "a\x00b"}, "/path", "visible"),
            ({"path": "x.gguf"}, "/path", "no file"),
            ({"model_name": " "}, "/modelName", "visible"),
            ({"context_window": 0}, "/contextWindow", "at least 1"),
            ({"largest_response": 0}, "/largestResponse", "at least 1"),
            ({"prices": {"input": -1.0}}, "/prices/input", "0 or more"),
            ({"prices": {"output": float("inf")}}, "/prices/output", "0 or more"),
            ({"api_key_variable": "sk-123"}, "/apiKeyVariable", "Never put the key itself"),
            ({"api_key_variable": "FOLKMOOT_SECRET_KEY"}, "/apiKeyVariable", "Folkmoot's own"),
            ({"api_key_variable": "DATABASE_URL"}, "/apiKeyVariable", "KEY or TOKEN"),
        ],
    )
    def test_a_fault_says_where_and_what(self, changes: dict[str, Any], pointer: str, words: str) -> None:
        (fault,) = faults_of_model(replace(MODEL, **changes))
        assert fault.pointer == pointer
        assert words in fault.message
        assert "hunter2" not in fault.message
        assert "sk-123" not in fault.message


class TestInputs:
    INPUTS = (
        PromptInput(DataType.STRING, "question", "What to decide", is_required=True),
        PromptInput(DataType.NUMBER, "budget"),
    )

    def test_what_is_not_required_may_be_missing(self) -> None:
        assert faults_of_inputs(self.INPUTS, {"question": ""}) == ()

    def test_a_missing_required_input_is_named(self) -> None:
        (fault,) = faults_of_inputs(self.INPUTS, {"budget": "1"})
        assert fault.pointer == "/inputs"
        assert "'question' (What to decide) is missing" in fault.message

    def test_an_unknown_input_is_named_with_those_that_are(self) -> None:
        (fault,) = faults_of_inputs(self.INPUTS, {"question": "x", "Budget/a": "1"})
        assert fault.pointer == "/inputs/Budget~1a"
        assert "'question', 'budget'" in fault.message

    @pytest.mark.parametrize(
        ("data_type", "value"),
        [
            (DataType.STRING, "\x00 anything {"),
            (DataType.NUMBER, "-1.5e3"),
            (DataType.NUMBER, "7"),
            (DataType.INTEGER, "-12345678901234567890"),
            (DataType.BOOLEAN, "true"),
            (DataType.BOOLEAN, "false"),
            (DataType.JSON, '{"a":[null]}'),
            (DataType.JSON, '"text"'),
            (DataType.DATE, "2028-02-29"),
            (DataType.DATE, "2026-10-26T12:00:00Z"),
            (DataType.DATE, "2026-10-26t12:00:00.1234567+02:00"),
        ],
    )
    def test_a_value_of_its_type_is_good(self, data_type: DataType, value: str) -> None:
        assert faults_of_inputs((PromptInput(data_type, "x"),), {"x": value}) == ()

    @pytest.mark.parametrize(
        ("data_type", "value"),
        [
            (DataType.NUMBER, ""),
            (DataType.NUMBER, "1,5"),
            (DataType.NUMBER, "NaN"),
            (DataType.NUMBER, "true"),
            (DataType.NUMBER, '"1"'),
            (DataType.NUMBER, "9" * 5000),
            (DataType.NUMBER, "1e999"),
            (DataType.INTEGER, "1.5"),
            (DataType.INTEGER, "0x10"),
            (DataType.BOOLEAN, "True"),
            (DataType.BOOLEAN, "1"),
            (DataType.JSON, "{a:1}"),
            (DataType.JSON, "[" * 100_000),
            (DataType.STRING, "x" * 1_048_577),
            (DataType.DATE, "2026-02-29"),
            (DataType.DATE, "26.10.2026"),
            (DataType.DATE, "2026-10-26T12:00:00"),
            (DataType.DATE, "2026-10-26T25:00:00Z"),
            (DataType.DATE, "20261026"),
            (DataType.DATE, "٢٠٢٦-10-26"),
        ],
    )
    def test_a_value_of_another_type_is_refused(self, data_type: DataType, value: str) -> None:
        """F25: never an exception."""
        (fault,) = faults_of_inputs((PromptInput(data_type, "x"),), {"x": value})
        assert fault.pointer == "/inputs/x"
        assert data_type == DataType.STRING or f"of type {data_type}" in fault.message
        assert len(fault.message) < 400


class TestLaterFields:
    def test_what_is_built_needs_no_later_part(self) -> None:
        version = replace(
            PANEL,
            human_settings=HumanSettings(ChatMode.OBSERVING),
            context_settings={
                "mode": "None",
                "toolResultTrimmingMode": "Never",
                "targetUtilization": None,
                "maxToolCallLoops": 4,
                "effectiveMaxToolCallLoops": 4,
                "responseMaxTokens": 100,
                "effectiveCompactionType": "SameAgent",
            },
            later={
                "loom": None,
                "credentialStack": "",
            },
        )
        assert later_fields(version) == ()
        assert (
            later_fields(
                replace(
                    AGENT,
                    later={
                        "webAccess": {"search": False, "fetch": False},
                        "loom": {"enabled": False, "scope": "Agent"},
                    },
                )
            )
            == ()
        )
        assert later_fields(MODEL) == ()

    @pytest.mark.parametrize(
        ("changes", "pointer", "part"),
        [
            ({"later": {"loom": {"enabled": True}}}, "/loom", "memory"),
            ({"later": {"somethingNew": 1}}, "/somethingNew", "later part"),
            (
                {"agents": (AgentBinding(Reference("a"), later={"webAccess": {"search": True}}),)},
                "/agents/0/webAccess",
                "web",
            ),
            ({"agents": (AgentBinding(Reference("a"), later={"loomId": str(SOME_ID)}),)}, "/agents/0/loomId", "memory"),
        ],
    )
    def test_a_field_of_a_later_part_is_named_with_it(self, changes: dict[str, Any], pointer: str, part: str) -> None:
        """issue 2: a start that sets such a field is refused with an error that says so: never ignored."""
        (fault,) = later_fields(replace(PANEL, **changes))
        assert fault.pointer == pointer
        assert part in fault.message

    def test_an_agents_later_fields_are_named_too(self) -> None:
        faults = later_fields(replace(AGENT, later={"webAccess": {"search": True}, "loomId": str(SOME_ID)}))
        assert [fault.pointer for fault in faults] == ["/webAccess", "/loomId"]
