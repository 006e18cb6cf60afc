"""Channels as definitions, and what agents' own runs are defined by, from the wire to the store (agent-runs.md, Channels, Delegation, Consent)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from api_at_hand import NAMESPACE, Served, problem_of, publish_panel, put, served
from crews import until
from definitions_at_hand import AGENT, MODEL
from waiting_at_hand import waits_for_a_lock

from folkmoot import store
from folkmoot.domain.agent_settings import AgentRunSettings
from folkmoot.domain.channels import AppShape, ChannelVersion
from folkmoot.domain.definitions import AgentVersion, DefinitionKind, Reference
from folkmoot.domain.rights import RIGHTS, Role
from folkmoot.domain.tenancy import Caller, User
from folkmoot.kernel.errors import BadDefinition
from folkmoot.kernel.ids import NewId
from folkmoot.services import apply, definitions, users
from folkmoot.services.apply import Document
from folkmoot.services.specialist_links import MOST_AGENTS
from folkmoot.store import specialists as rows
from folkmoot.store.database import Database
from folkmoot.store.definitions import Outcome

BASE = f"/namespaces/{NAMESPACE}"
HOOK = ChannelVersion("webhook", {"url": "https://hooks.example.com"})


def agent(*specialists: str, **runs: Any) -> AgentVersion:
    links = tuple(Reference(name) for name in specialists)
    return replace(AGENT, function_tools=("pay",), runs=AgentRunSettings(specialists=links, **runs))


class Desk:
    def __init__(self, database: Database, caller: Caller, new_id: NewId) -> None:
        self.database, self.caller, self.new_id = database, caller, new_id

    async def publish(self, *, by: Caller | None = None, at: str = NAMESPACE, **versions: Any) -> None:
        """Each by the name of the argument, one after the other."""
        for name, version in versions.items():
            await definitions.publish(
                self.database, by or self.caller, namespace=at, name=name, version=version, new_id=self.new_id
            )

    async def refused(self, *, by: Caller | None = None, **versions: Any) -> dict[str, str]:
        with pytest.raises(BadDefinition) as caught:
            await self.publish(by=by, **versions)
        return {fault.pointer: fault.message for fault in caught.value.faults}

    async def runs_of(self, name: str) -> AgentRunSettings:
        found = await definitions.get(
            self.database, self.caller, kind=DefinitionKind.AGENT, reference=Reference(name, NAMESPACE)
        )
        assert isinstance(found.body, AgentVersion)
        return found.body.runs

    async def user(self, role: Role, name: str) -> User:
        return await users.add(self.database, self.caller, name=name, role=role, new_id=self.new_id)


def as_user(user: User) -> Caller:
    return Caller(user.tenant_id, user.user_id, user.name, role=user.role, rights=RIGHTS[user.role])


@pytest_asyncio.fixture
async def desk(database: Database, caller: Caller, new_id: NewId) -> Desk:
    made = Desk(database, caller, new_id)
    await made.publish(small=MODEL)
    await made.publish(at="shared", small=MODEL)
    return made


class TestSpecialists:
    async def test_links_are_settled_to_ids(self, desk: Desk) -> None:
        await desk.publish(ann=agent(), boss=agent("ann"))
        (link,) = (await desk.runs_of("boss")).specialists
        assert (link.name, link.namespace) == ("ann", NAMESPACE) and link.definition_id is not None

    async def test_one_that_is_not_there_or_the_agent_itself_is_refused(self, desk: Desk) -> None:
        found = await desk.refused(boss=agent("nobody", "boss"))
        assert "no agent 'examples/nobody'" in found["/specialists/0"]
        assert "of its own" in found["/specialists/1"]
        await desk.publish(boss=agent())
        assert "of its own" in (await desk.refused(boss=agent("boss")))["/specialists/0"]

    async def test_two_of_one_name_from_two_namespaces_are_refused(self, desk: Desk) -> None:
        """Work is given to them by name."""
        await desk.publish(ann=agent())
        await desk.publish(at="shared", ann=agent())
        links = (Reference("ann"), Reference("ann", "shared"))
        found = await desk.refused(boss=replace(AGENT, runs=AgentRunSettings(specialists=links)))
        assert "'examples/ann' and 'shared/ann'" in found["/specialists/1"]
        twice = await desk.refused(boss=agent("ann", "ann"))
        assert "named twice" in twice["/specialists/1"]

    async def test_a_circle_is_refused_from_either_end(self, desk: Desk) -> None:
        await desk.publish(a=agent(), b=agent("a"), c=agent("b"))
        found = await desk.refused(a=agent("c"))
        assert "examples/a -> examples/c -> examples/b -> examples/a" in found["/specialists"]

    async def test_a_chain_is_bounded_from_whichever_end_it_grows(self, desk: Desk) -> None:
        """agent-runs.md, Delegation: depth at most 4."""
        names = [f"a{number}" for number in range(MOST_AGENTS)]
        await desk.publish(**{names[0]: agent()})
        await desk.publish(**{name: agent(below) for below, name in pairwise(names)})
        above = await desk.refused(top=agent(names[-1]))
        assert "at most 4 deep" in above["/specialists"]
        await desk.publish(last=agent())
        below = await desk.refused(**{names[0]: agent("last")})
        assert below["/specialists"].count("->") == MOST_AGENTS

    async def test_one_that_is_deleted_or_disabled_is_as_every_link(self, desk: Desk) -> None:
        await desk.publish(ann=agent(), boss=agent("ann"))
        kind, ann = DefinitionKind.AGENT, Reference("ann", NAMESPACE)
        await definitions.set_disabled(desk.database, desk.caller, kind=kind, reference=ann, is_disabled=True)
        assert "is disabled" in (await desk.refused(boss=agent("ann", maximum_iterations=4)))["/specialists/0"]
        await definitions.delete(desk.database, desk.caller, kind=kind, reference=ann)
        assert "There is no agent" in (await desk.refused(boss=agent("ann", maximum_iterations=4)))["/specialists/0"]

    async def test_a_set_is_saved_in_the_order_of_its_links(self, desk: Desk) -> None:
        documents = [
            Document(NAMESPACE, "a", agent("z")),
            Document(NAMESPACE, "z", agent(channel="hook")),
            Document(NAMESPACE, "hook", HOOK),
        ]
        changes = await apply.apply(desk.database, desk.caller, documents, new_id=desk.new_id)
        assert {change.outcome for change in changes} == {Outcome.CREATED}
        changes = await apply.apply(desk.database, desk.caller, documents, new_id=desk.new_id)
        assert {change.outcome for change in changes} == {Outcome.UNCHANGED}

    async def closes_a_circle_at_once(self, desk: Desk) -> bool:
        """Two people make two agents each other's specialists; whether the second one gets that far before the first is done."""
        await desk.publish(a=agent(), b=agent())
        async with desk.database.writer() as writer:
            await definitions.publish_in(
                writer, desk.caller, namespace=NAMESPACE, name="a", version=agent("b"), new_id=desk.new_id
            )
            second = asyncio.create_task(desk.publish(b=agent("a")))

            async def is_done_or_waits() -> bool:
                return second.done() or await waits_for_a_lock(desk.database)

            await until(is_done_or_waits)
            was_done = second.done()
        result = (await asyncio.gather(second, return_exceptions=True))[0]
        assert was_done or isinstance(result, BadDefinition)
        return result is None

    async def test_two_that_close_a_circle_at_once_are_not_both_saved(self, desk: Desk) -> None:
        assert not await self.closes_a_circle_at_once(desk)

    async def test_without_the_lock_both_would_be_saved(self, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
        """The negative control."""

        async def no_lock(*_: object) -> None:
            return None

        monkeypatch.setattr(rows, "lock", no_lock)
        assert await self.closes_a_circle_at_once(desk)


async def test_an_agent_of_an_earlier_release_is_the_same_when_it_is_saved_again(desk: Desk) -> None:
    """interactions.md: a version that says the same adds none."""
    await desk.publish(a=AGENT, b=agent(maximum_iterations=5))
    (migration,) = Path(store.__file__).parent.glob("migrations/0013_*.sql")
    filling = migration.read_text(encoding="utf-8").partition("update definition_version")
    async with desk.database.writer() as writer:
        await writer.connection.execute(
            "update definition_version v set body = v.body - 'runs' from definition d where d.definition_id = v.definition_id and d.name = 'a'"
        )
        await writer.connection.execute("".join(filling[1:]))
    for name, version in (("a", AGENT), ("b", agent(maximum_iterations=5))):
        made = await definitions.publish(
            desk.database, desk.caller, namespace=NAMESPACE, name=name, version=version, new_id=desk.new_id
        )
        assert made.outcome is Outcome.UNCHANGED


class TestOwners:
    """Nobody makes an agent act with more rights than they have themselves (platform.md, Tenancy; F41)."""

    async def test_an_owner_is_named_or_whoever_made_the_agent(self, desk: Desk) -> None:
        ann = await desk.user(Role.VIEWER, "Ann")
        await desk.publish(a=agent(owner_name="Ann"), b=agent(owner=ann.user_id), c=agent())
        assert [(await desk.runs_of(name)).owner for name in "abc"] == [ann.user_id, ann.user_id, None]
        assert (await desk.runs_of("a")).owner_name is None

    async def test_an_owner_that_is_unknown_or_removed_is_refused(self, desk: Desk) -> None:
        ann = await desk.user(Role.VIEWER, "Ann")
        assert "no user 'Eve'" in (await desk.refused(a=agent(owner_name="Eve")))["/owner"]
        assert "no user with the id" in (await desk.refused(a=agent(owner=desk.new_id())))["/owner"]
        await users.remove(desk.database, desk.caller, user_id=ann.user_id)
        assert "was removed" in (await desk.refused(a=agent(owner=ann.user_id)))["/owner"]

    async def test_nobody_names_an_owner_above_them(self, desk: Desk) -> None:
        developer, admin = await desk.user(Role.DEVELOPER, "Dan"), await desk.user(Role.ADMIN, "Ada")
        for by, name in ((developer, "Ada"), (admin, desk.caller.user_name)):
            assert "above your role" in (await desk.refused(by=as_user(by), a=agent(owner_name=name)))["/owner"]
        await desk.publish(by=as_user(developer), a=agent(owner_name="Dan", tool_whitelist=("pay",)))

    async def test_to_name_another_takes_the_right_to_manage_users(self, desk: Desk) -> None:
        developer, admin = await desk.user(Role.DEVELOPER, "Dan"), await desk.user(Role.ADMIN, "Ada")
        await desk.user(Role.VIEWER, "Vic")
        assert "manage_users" in (await desk.refused(by=as_user(developer), a=agent(owner_name="Vic")))["/owner"]
        await desk.publish(by=as_user(admin), a=agent(owner_name="Vic"))
        # what the owner is already, whoever changes the agent may leave as it is
        await desk.publish(by=as_user(developer), a=agent(owner_name="Vic", maximum_iterations=5))

    async def test_an_agent_of_somebody_above_is_not_let_loose_by_who_leaves_the_owner_out(self, desk: Desk) -> None:
        """It would act with its maker's rights."""
        developer = as_user(await desk.user(Role.DEVELOPER, "Dan"))
        await desk.publish(a=agent())
        await desk.publish(by=developer, a=replace(agent(), prompts=("Another.",)))  # its runs can do nothing
        found = await desk.refused(by=developer, a=agent(tool_whitelist=("pay",)))
        assert f"'{desk.caller.user_name}', who is owner, above your role developer" in found["/owner"]
        await desk.publish(by=developer, a=agent(owner_name="Dan", tool_whitelist=("pay",)))

    async def test_a_key_that_rests_on_somebody_of_less_rights_names_not_even_its_own_user(self, desk: Desk) -> None:
        admin = await desk.user(Role.ADMIN, "Ada")
        resting = replace(as_user(admin), role=Role.DEVELOPER, rights=RIGHTS[Role.DEVELOPER], own_role=Role.ADMIN)
        assert (
            "above your role developer" in (await desk.refused(by=resting, a=agent(tool_whitelist=("pay",))))["/owner"]
        )


class TestChannelOfAnAgent:
    async def test_it_stays_a_name_and_must_be_one_of_something(self, desk: Desk) -> None:
        await desk.publish(
            hook=HOOK, a=agent(channel="hook"), b=agent(channel=f"{NAMESPACE}/hook"), c=agent(channel="web")
        )
        assert [(await desk.runs_of(name)).channel for name in "abc"] == ["hook", f"{NAMESPACE}/hook", "web"]
        for channel, words in (("nothing", "no channel"), ("a/b/c", "is no reference"), ("hook@1", "after '@'")):
            assert words in (await desk.refused(d=agent(channel=channel)))["/channel"]

    async def test_a_channel_is_not_called_web(self, desk: Desk) -> None:
        assert "own pages" in (await desk.refused(web=HOOK))["/name"]

    async def test_what_is_known_of_apps_is_held_against_it(self, desk: Desk) -> None:
        apps = {"webhook": AppShape({"type": "object"}, ("key",))}
        with pytest.raises(BadDefinition) as caught:
            await definitions.publish(
                desk.database, desk.caller, namespace=NAMESPACE, name="hook", version=HOOK, new_id=desk.new_id, channel_apps=apps
            )  # fmt: skip
        assert [fault.pointer for fault in caught.value.faults] == ["/secrets"]
        with pytest.raises(BadDefinition):
            await apply.diff(
                desk.database, desk.caller, [Document(NAMESPACE, "hook", HOOK)], new_id=desk.new_id, channel_apps=apps
            )


@pytest_asyncio.fixture
async def server(database_dsn: str, tmp_path: Path) -> AsyncIterator[Served]:
    async with served(database_dsn, data_dir=tmp_path) as server:
        await publish_panel(server.client, tmp_path)
        yield server


async def test_channels_over_the_api(server: Served) -> None:
    client = server.client
    secret = await put(client, f"{BASE}/secrets/by-name/key", {"value": "a value"})
    body = {
        "app": "webhook",
        "settings": {"url": "https://x.example"},
        "secrets": {"signing": "key"},
    }
    made = await put(client, f"{BASE}/channels/by-name/hook", body)
    latest = made["latestVersion"]
    assert {name: latest[name] for name in body} == {**body, "secrets": {"signing": secret["id"]}}
    assert latest["version"] == 1 and latest["isDisabled"] is False
    # what is shown may be sent again, and changes nothing
    again = {name: latest[name] for name in body}
    assert (await put(client, f"{BASE}/channels/by-name/hook", again))["latestVersion"]["version"] == 1
    by_id = f"/channels/by-id/{made['id']}"
    assert (await client.get(by_id)).json() == made
    assert [item["name"] for item in (await client.get(f"{BASE}/channels")).json()["items"]] == ["hook"]
    assert (await client.post(f"{by_id}/versions/1/disable")).json()["latestVersion"]["isDisabled"] is True
    wrong = {
        "app": "webhook",
        "settings": {"url": "https://x.example", "apiToken": "t"},
        "secrets": {"signing": "key", "a": "nothing", "b": "key@1"},
    }
    told = problem_of(await client.put(f"{BASE}/channels/by-name/hook", json=wrong), 422)
    assert [error["pointer"] for error in told["errors"]] == ["/secrets/b"]
    del wrong["secrets"]["b"]  # type: ignore[attr-defined]
    told = problem_of(await client.put(f"{BASE}/channels/by-name/hook", json=wrong), 422, "bad_definition")
    assert {error["pointer"] for error in told["errors"]} == {"/secrets/a", "/settings/apiToken"}
    assert (await client.delete(by_id)).status_code == 204
    problem_of(await client.get(by_id), 404, "not_found")


async def test_an_agents_settings_over_the_api(server: Served) -> None:
    client = server.client
    path = f"{BASE}/agents/by-name/clerk"
    shown = (await put(client, path, {"model": "small"}))["latestVersion"]
    nothing = dict.fromkeys(("tokens", "money", "modelCalls", "toolCalls", "workingTime"))
    assert {name: shown[name] for name in ("owner", "toolWhitelist", "specialists", "consentRules")} == {
        "owner": None, "toolWhitelist": [], "specialists": [], "consentRules": [],
    }  # fmt: skip
    assert (shown["maximumIterations"], shown["channel"], shown["consentTime"]) == (3, None, "3.00:00:00")
    assert shown["agentBudget"] == nothing
    user = (await client.post("/users", json={"name": "Ann", "role": "owner"})).json()["id"]
    optimist = (await client.get(f"{BASE}/agents/by-name/optimist")).json()["id"]
    rules = [{"tool": "pay", "argument": "amount", "comparison": "Above", "value": 100}, {"tool": "pay"}]
    body = {
        "model": "small", "functionTools": ["pay"], "owner": "Ann", "toolWhitelist": ["pay"], "specialists": ["optimist"], "consentRules": rules,
        "maximumIterations": 7, "agentBudget": {"money": 2, "workingTime": "00:30:00"}, "channel": "web", "consentTime": None,
    }  # fmt: skip
    shown = (await put(client, path, body))["latestVersion"]
    assert shown["owner"] == user and shown["specialists"] == [{"id": optimist, "version": 0}]
    assert shown["consentRules"] == [
        rules[0], {"tool": "pay", "argument": None, "comparison": "Always", "value": None},
    ]  # fmt: skip
    assert shown["agentBudget"] == {**nothing, "money": 2, "workingTime": "00:30:00"}
    assert (shown["maximumIterations"], shown["channel"], shown["consentTime"]) == (7, "web", None)
    # what is shown may be sent again, and changes nothing
    again = {name: shown[name] for name in body} | {"model": "small"}
    assert (await put(client, path, again))["latestVersion"]["version"] == 2
    wrong = {
        **body,
        "owner": "Eve",
        "toolWhitelist": ["x"],
        "specialists": ["nobody"],
        "maximumIterations": 0,
        "channel": "none",
    }
    told = problem_of(await client.put(path, json=wrong), 422, "bad_definition")
    pointers = {error["pointer"] for error in told["errors"]}
    assert pointers == {"/owner", "/toolWhitelist/0", "/specialists/0", "/maximumIterations", "/channel"}
