"""What must hold of an agent's settings for its own runs, and of channels, before they are saved (agent-runs.md, Consent, Delegation, Channels)."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from folkmoot.api.definition_files import faults_in, read_files
from folkmoot.api.mapping import agents
from folkmoot.domain.agent_settings import AgentBudget, AgentRunSettings, Comparison, ConsentRule
from folkmoot.domain.channel_checks import faults_of_channel
from folkmoot.domain.channels import AppShape, ChannelVersion
from folkmoot.domain.checking import faults_of_agent
from folkmoot.domain.definitions import AgentVersion, DefinitionKind, Reference
from folkmoot.domain.identities import normal_address, problem_of_address
from folkmoot.kernel.errors import BadInput
from folkmoot.services.apply import Document
from folkmoot.services.differences import differences
from folkmoot.store import database
from folkmoot.store.codecs import VERSIONS
from folkmoot.wire.definitions import AgentVersionRequest

AGENT = AgentVersion(model=Reference("small"), function_tools=("find_order", "pay_back"))
MAIL = AppShape(
    {
        "type": "object",
        "properties": {"host": {"type": "string"}, "port": {"type": "integer"}, "refreshToken": {"type": "string"}},
        "required": ["host"],
        "additionalProperties": False,
    },
    ("password",),
    ("inboundKey",),
)
APPS = {"email": MAIL, "webhook": AppShape({"type": "object"})}
CHANNEL = ChannelVersion("email", {"host": "mail.example.com"}, {"password": Reference("mail-password")})


def faults(**runs: Any) -> dict[str, str]:
    found = faults_of_agent(replace(AGENT, runs=AgentRunSettings(**runs)))
    return {fault.pointer: fault.message for fault in found}


class TestSettings:
    def test_an_agent_without_any_has_the_defaults(self) -> None:
        version = agents.version_of(AgentVersionRequest.model_validate({"model": "small"}))
        assert version.runs == AgentRunSettings()
        assert (version.runs.maximum_iterations, version.runs.consent_time) == (3, timedelta(days=3))

    def test_a_version_stored_before_is_still_read(self) -> None:
        """The migration writes the defaults into it, and they are what a version that says nothing is stored as."""
        text = json.loads(VERSIONS[DefinitionKind.AGENT].write(AGENT))
        defaults = text.pop("runs")
        assert VERSIONS[DefinitionKind.AGENT].read(json.dumps(text)) == AGENT
        (migration,) = Path(database.__file__).parent.glob("migrations/0013_*.sql")
        sql = migration.read_text(encoding="utf-8")
        written = sql[sql.index("'runs', '") + len("'runs', '") : sql.index("'::jsonb")]
        assert json.loads(written) == defaults

    def test_an_owner_is_an_id_or_a_name(self) -> None:
        some_id = "0190c5a2-0000-7000-8000-000000000001"
        by_id, by_name = (
            agents.version_of(AgentVersionRequest.model_validate({"model": "small", "owner": owner})).runs
            for owner in (some_id, "ann")
        )
        assert (by_id.owner, by_id.owner_name) == (UUID(some_id), None)
        assert (by_name.owner, by_name.owner_name) == (None, "ann")

    def test_one_sum_of_money_is_one_version(self) -> None:
        spellings = [
            agents.version_of(AgentVersionRequest.model_validate({"model": "small", "agentBudget": {"money": money}}))
            for money in (10, 10.0, Decimal("10.00"))
        ]
        assert {VERSIONS[DefinitionKind.AGENT].write(each) for each in spellings} == {
            VERSIONS[DefinitionKind.AGENT].write(spellings[0])
        }

    def test_a_specialist_that_is_no_reference_is_told_with_its_place(self) -> None:
        request = AgentVersionRequest.model_validate({"model": "small", "specialists": ["ok", "a@b"]})
        with pytest.raises(BadInput) as caught:
            agents.version_of(request)
        assert [fault.pointer for fault in caught.value.faults] == ["/specialists/1"]

    def test_differences_are_told_by_the_names_of_the_wire(self) -> None:
        after = replace(AGENT, runs=AgentRunSettings(budget=AgentBudget(calls=5), consent_time=None, channel="desk"))
        found = {each.pointer: (each.before, each.after) for each in differences(AGENT, after)}
        assert found == {"/agentBudget/modelCalls": (None, 5), "/consentTime": ("3d", None), "/channel": (None, "desk")}


class TestChecks:
    def test_a_good_version_has_no_faults(self) -> None:
        rules = (
            ConsentRule("find_order"),
            ConsentRule("pay_back", Comparison.ABOVE, "amount", 100),
            ConsentRule("pay_back", Comparison.EQUALS, "/order/note", None),
            ConsentRule("pay_back", Comparison.CONTAINS, "tags", "late"),
        )
        assert not faults(
            tool_whitelist=("find_order",), consent_rules=rules, specialists=(Reference("a"), Reference("b")),
            maximum_iterations=100, budget=AgentBudget(1, Decimal("0.01"), 1, 1, timedelta(seconds=1)), consent_time=None,
        )  # fmt: skip

    def test_only_the_agents_own_tools_are_let_through(self) -> None:
        found = faults(tool_whitelist=("find_order", "drop_all", "find_order"))
        assert list(found) == ["/toolWhitelist/1", "/toolWhitelist/2"]
        assert "its tools are: find_order, pay_back" in found["/toolWhitelist/1"]

    def test_two_specialists_of_one_name_are_refused(self) -> None:
        """Work is given to them by name."""
        found = faults(specialists=(Reference("ann", "a"), Reference("Ann", "b"), Reference("ann", "a"), Reference()))
        assert "'a/ann' and 'b/Ann'" in found["/specialists/1"]
        assert "named twice" in found["/specialists/2"]
        assert "refers to nothing" in found["/specialists/3"]

    def test_the_tools_of_agent_runs_themselves_are_taken(self) -> None:
        """It is said when the agent is saved, and not at each start; elsewhere a tool may have such a name."""
        agent = replace(AGENT, function_tools=("verdict", "make-plan", "verdicts"))
        assert faults_of_agent(agent) == ()
        let_through = replace(agent, runs=AgentRunSettings(tool_whitelist=agent.function_tools))
        found = {fault.pointer: fault.message for fault in faults_of_agent(let_through)}
        assert list(found) == ["/toolWhitelist/0", "/toolWhitelist/1"]
        assert (
            "'verdict' is a tool of agent runs" in found["/toolWhitelist/0"]
            and "'make_plan'" in found["/toolWhitelist/1"]
        )

    def test_the_tool_that_delegates_is_taken(self) -> None:
        agent = replace(AGENT, function_tools=("delegate",))
        assert faults_of_agent(agent) == ()
        (fault,) = faults_of_agent(replace(agent, runs=AgentRunSettings(specialists=(Reference("ann"),))))
        assert fault.pointer == "/functionTools/0"

    @pytest.mark.parametrize(
        ("rule", "pointer"),
        [
            (ConsentRule("drop_all"), "/tool"),
            (ConsentRule("pay_back", Comparison.ALWAYS, "amount"), "/argument"),
            (ConsentRule("pay_back", Comparison.ALWAYS, value=5), "/value"),
            (ConsentRule("pay_back", Comparison.ABOVE, value=5), "/argument"),
            (ConsentRule("pay_back", Comparison.ABOVE, "", 5), "/argument"),
            (ConsentRule("pay_back", Comparison.ABOVE, "/a~2", 5), "/argument"),
            (ConsentRule("pay_back", Comparison.ABOVE, "amount", "5"), "/value"),
            (ConsentRule("pay_back", Comparison.BELOW, "amount", True), "/value"),
            (ConsentRule("pay_back", Comparison.BELOW, "amount", float("nan")), "/value"),
            (ConsentRule("pay_back", Comparison.ABOVE, "amount"), "/value"),
            (ConsentRule("pay_back", Comparison.CONTAINS, "tags"), "/value"),
            (ConsentRule("pay_back", Comparison.CONTAINS, "tags", ["a"]), "/value"),
            (ConsentRule("pay_back", Comparison.EQUALS, "tags", "x" * 20_000), "/value"),
        ],
    )  # fmt: skip
    def test_a_rule_that_could_never_hold_is_refused(self, rule: ConsentRule, pointer: str) -> None:
        assert list(faults(consent_rules=(ConsentRule("pay_back"), rule))) == [f"/consentRules/1{pointer}"]

    def test_bounds(self) -> None:
        assert list(faults(maximum_iterations=0)) == list(faults(maximum_iterations=101)) == ["/maximumIterations"]
        assert list(faults(consent_time=timedelta(0))) == ["/consentTime"]
        budget = AgentBudget(0, Decimal(0), 0, 0, timedelta(0))
        names = ("tokens", "money", "modelCalls", "toolCalls", "workingTime")
        assert list(faults(budget=budget)) == [f"/agentBudget/{name}" for name in names]


class TestChannels:
    def test_a_good_channel_has_no_faults(self) -> None:
        assert faults_of_channel(CHANNEL, APPS) == ()
        assert faults_of_channel(replace(CHANNEL, settings={"host": "x", "refreshToken": "the app's own"}), APPS) == ()

    def test_where_nothing_is_known_of_apps_none_is_held_against_a_channel(self) -> None:
        assert faults_of_channel(ChannelVersion("pigeon", {"loft": 3})) == ()
        (fault,) = faults_of_channel(ChannelVersion("pigeon"), APPS)
        assert fault.pointer == "/app" and "there are: email, webhook" in fault.message

    @pytest.mark.parametrize("app", ["", "E mail", "x" * 65, "a/b"])
    def test_a_name_that_no_app_has(self, app: str) -> None:
        assert [fault.pointer for fault in faults_of_channel(ChannelVersion(app))] == ["/app"]

    @pytest.mark.parametrize(
        ("changes", "pointer", "words"),
        [
            ({"settings": {"host": "x", "hots": "y"}}, "/settings/hots", "no setting 'hots'; there are: host, port"),
            ({"settings": {"host": "x", "port": "y"}}, "/settings", "do not fit the app 'email'"),
            ({"settings": {}}, "/settings", "host"),
            ({"secrets": {}}, "/secrets", "needs the secret 'password'"),
            (
                {"secrets": {**CHANNEL.secrets, "pin": Reference("p")}},
                "/secrets/pin",
                "no secret 'pin'; there are: password, inboundKey",
            ),
        ],
    )
    def test_what_the_app_asks_for_is_held_against_it(self, changes: dict[str, Any], pointer: str, words: str) -> None:
        (fault,) = faults_of_channel(replace(CHANNEL, **changes), APPS)
        assert fault.pointer == pointer and words in fault.message

    @pytest.mark.parametrize("name", ["password", "API_Token", "clientSecret", "apiKey", "bot-token"])
    def test_a_secret_in_clear_is_refused_wherever_it_stands(self, name: str) -> None:
        for settings, pointer in (({name: "x"}, f"/settings/{name}"), ({"a": [{name: "x"}]}, f"/settings/a/0/{name}")):
            (fault,) = faults_of_channel(ChannelVersion("pigeon", settings))
            assert fault.pointer == pointer and "looks like a secret" in fault.message and "'x'" not in fault.message

    def test_settings_are_bounded(self) -> None:
        deep: Any = {}
        for _ in range(5_000):
            deep = {"a": deep}
        for settings in (deep, {"a": "x" * 70_000}):
            assert [fault.pointer for fault in faults_of_channel(ChannelVersion("pigeon", settings))] == ["/settings"]


class TestAddresses:
    def test_of_mail_case_means_nothing(self) -> None:
        assert normal_address("email", " Ann@Example.COM ") == "ann@example.com"
        assert normal_address("slack", " U0AB ") == "U0AB"

    @pytest.mark.parametrize(
        ("app", "address"), [("email", "ann"), ("email", "@x"), ("email", "Ann <a@x>"), ("slack", ""), ("slack", "a\u202eb"), ("slack", "x" * 321)]
    )  # fmt: skip
    def test_what_is_no_address(self, app: str, address: str) -> None:
        assert problem_of_address(app, address) is not None
        assert problem_of_address("email", "ann@example.com") is None


class TestFiles:
    FILE = """\
kind: AiModel
namespace: n
name: small
version: {provider: scripted, modelName: s, path: s.script.yaml}
---
kind: Agent
namespace: n
name: clerk
version:
  model: small
  functionTools: [find_order]
  toolWhitelist: [find_order]
  owner: ann
  specialists: [SPECIALIST]
  consentRules: [{tool: find_order, argument: amount, comparison: Above, value: 100}]
  agentBudget: {workingTime: 30m}
  consentTime: 1d
  channel: CHANNEL
---
kind: Agent
namespace: n
name: other
version: {model: small, specialists: [BELOW]}
---
kind: Channel
namespace: n
name: mail
version: {app: email, settings: {host: mail.example.com}, secrets: {password: mail-password}}
"""

    def read(self, tmp_path: Path, **words: str) -> list[Document]:
        text = self.FILE.replace("SPECIALIST", words.get("specialist", "other")).replace(
            "CHANNEL", words.get("channel", "mail")
        )
        (tmp_path / "set.yaml").write_text(text.replace("[BELOW]", f"[{words.get('below', '')}]"))
        return read_files([tmp_path / "set.yaml"])

    def faults(self, tmp_path: Path, **words: str) -> dict[str, str]:
        return {fault.pointer: fault.message for fault in faults_in(self.read(tmp_path, **words), channel_apps=APPS)}

    def test_a_set_is_read_with_short_times(self, tmp_path: Path) -> None:
        assert self.faults(tmp_path) == {}
        clerk = next(each.version for each in self.read(tmp_path) if each.name == "clerk")
        assert isinstance(clerk, AgentVersion)
        assert (clerk.runs.budget.working_time, clerk.runs.consent_time) == (timedelta(minutes=30), timedelta(days=1))

    def test_links_of_runs_lead_to_something_in_the_set(self, tmp_path: Path) -> None:
        found = self.faults(tmp_path, specialist="nobody", channel="pigeon")
        assert "no agent 'n/nobody'" in found["/specialists/0"] and "no channel 'n/pigeon'" in found["/channel"]
        assert self.faults(tmp_path, channel="web") == {}

    def test_a_circle_of_specialists_is_found_without_a_server(self, tmp_path: Path) -> None:
        assert "n/other -> n/clerk -> n/other" in self.faults(tmp_path, below="clerk")["/specialists"]
        assert "n/clerk -> n/clerk" in self.faults(tmp_path, specialist="clerk")["/specialists"]

    def test_a_time_that_is_none_is_told_with_its_place(self, tmp_path: Path) -> None:
        self.FILE = self.FILE.replace("workingTime: 30m", "workingTime: soon")
        with pytest.raises(BadInput) as caught:
            self.read(tmp_path)
        assert [(fault.pointer, fault.line) for fault in caught.value.faults] == [("/agentBudget/workingTime", 16)]

    def test_no_channel_is_called_as_the_servers_own_pages(self, tmp_path: Path) -> None:
        self.FILE = self.FILE.replace("name: mail\n", "name: web\n")
        assert "own pages" in self.faults(tmp_path, channel="web")["/name"]
