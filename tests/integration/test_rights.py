"""Who may do what, over the API: every route names its right, keys only narrow, users come and go (platform.md, Tenancy; F40 to F43)."""

from __future__ import annotations

import asyncio
import hashlib
import re
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx2
import pytest
import pytest_asyncio
from api_at_hand import NEW_ID, PANEL, RUNS, Served, problem_of, publish_panel, served, start_run, watching
from definitions_at_hand import other_tenant
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute, iter_route_contexts

from folkmoot.api import stream
from folkmoot.api.app import make_app
from folkmoot.api.doors import Permission
from folkmoot.domain.rights import RIGHTS, Right, Role, rights_of
from folkmoot.domain.tenancy import Caller, User
from folkmoot.kernel.errors import BadInput, Conflict, NotAllowed, NotFound, NotPermitted
from folkmoot.kernel.ids import NewId
from folkmoot.services import keys, users
from folkmoot.store import tenancy
from folkmoot.store import users as user_rows
from folkmoot.store.database import Database, Writer, migrations, upgrade

# what comes in over a channel proves itself by the channel's secrets
PUBLIC = {"/healthz", "/readyz", "/docs", "/openapi.json", "/channels/{channel_id}/inbound"}
_RUN = f"{RUNS}/by-id/{{run_id}}"
_KINDS = "agents|routers|ai-models|interactions|connectors|channels|credential-stacks(?!/default)"
# What each route asks for, said a second time: a right changed by mistake fails here, and so does a new route until it is listed.
ASKED: dict[Right, tuple[str, ...]] = {
    Right.READ: (
        rf"GET (/namespaces/{{namespace_name}})?/({_KINDS})(/.*)?",
        rf"GET {RUNS}(/.*)?",
        r"GET /approvals(/count|/events)?",
        r"GET /users(/by-id/{user_id}(/identities)?)?",
        r"GET /(usage|budget)",
        r"GET /apps/{app_name}/runs(/{app_run_id})?",
        r"GET /processes/{type}/{process_id}/tree",
        r"GET /agent-runs(/{agent_run_id}(/(conversation|payload|messages|events))?)?",
    ),
    Right.PUBLISH: (
        r"(POST|PUT|DELETE) (/namespaces/{namespace_name})?/(agents|routers|ai-models|interactions(?!/processes))(/.*)?(?<!/start)(?<!/runs)",
    ),
    Right.MANAGE_CONNECTORS: (r"(POST|PUT|DELETE) (/namespaces/{namespace_name})?/connectors(/.*)?",),
    Right.START: (
        r"PUT /.*/start",
        r"POST /apps/{app_name}/runs(/{app_run_id}/(ping|end))?",
        r"POST /agents/by-id/{definition_id}/runs",
    ),
    Right.STOP: (
        rf"POST {_RUN}/stop",
        r"POST /processes/{type}/{process_id}/stop",
        r"POST /agent-runs/{agent_run_id}/cancel",
    ),
    Right.TAKE_PART: (rf"POST {_RUN}/(messages|pass|votes/{{ballot_id}}|questions/{{question_id}})",),
    Right.APPROVE: (rf"POST {_RUN}/approvals/{{approval_id}}", r"POST /agent-runs/{agent_run_id}/consent"),
    Right.MANAGE_SECRETS: (
        r"\w+ (/namespaces/{namespace_name})?/secrets(/.*)?",
        r"\w+ /model-keys(/.*)?",
        r"\w+ (/namespaces/{namespace_name})?/credential-stacks/default",
        r"(POST|PUT|DELETE) (/namespaces/{namespace_name})?/credential-stacks(?!/default)(/.*)?",
    ),
    Right.MANAGE_OWN_KEYS: (r"\w+ /keys(/.*)?",),
    Right.MANAGE_USERS: (
        r"(POST|PUT|DELETE) /users(/.*)?",
        r"(POST|PUT|DELETE) (/namespaces/{namespace_name})?/channels(?!/{channel_id}/inbound)(/.*)?",
    ),
    Right.MANAGE_WEBHOOKS: (r"\w+ /webhooks(/.*)?",),
    Right.MANAGE_BUDGETS: (r"PUT /budget",),
    Right.READ_AUDIT: (r"GET /audit",),
}


def routes() -> Iterator[tuple[str, str, APIRoute]]:
    for context in iter_route_contexts(make_app().routes):
        if isinstance(context.original_route, APIRoute) and context.path not in PUBLIC:
            for method in context.methods or ():
                yield method, str(context.path), context.original_route


def rights_in(dependant: Dependant) -> set[Right]:
    """What a route's dependencies ask for."""
    owner = getattr(dependant.call, "__self__", None)
    own = {owner.right} if isinstance(owner, Permission) else set[Right]()
    return own.union(*(rights_in(below) for below in dependant.dependencies))


RIGHT_OF = {(method, path): rights_in(route.dependant) for method, path, route in routes()}


def test_every_route_names_one_right() -> None:
    """B66, F41: in its dependency. A route that names none fails here."""
    assert [route for route, rights in RIGHT_OF.items() if len(rights) != 1] == []
    assert len(RIGHT_OF) > 60


def test_every_route_names_the_right_that_is_listed() -> None:
    for (method, path), rights in RIGHT_OF.items():
        listed = {right for right, patterns in ASKED.items() for p in patterns if re.fullmatch(p, f"{method} {path}")}
        assert listed == rights, (method, path)


@pytest_asyncio.fixture
async def server(database_dsn: str, tmp_path: Path) -> AsyncIterator[Served]:
    async with served(database_dsn, data_dir=tmp_path) as server:
        yield server


async def user_of(database: Database, owner: Caller, role: Role, name: str | None = None) -> User:
    name = name or f"{role}-{secrets.token_hex(3)}"
    return await users.add(database, owner, name=name, role=role, new_id=NEW_ID)


async def key_of(
    database: Database, caller: Caller, user: User | None = None, *scopes: str, expires_at: Any = None
) -> tuple[UUID, str]:
    made, text = await keys.create(
        database, caller, name="k", expires_at=expires_at, new_id=NEW_ID, random_bytes=secrets.token_bytes,
        user_id=user.user_id if user is not None else None, scopes=scopes or None,
    )  # fmt: skip
    return made.key_id, text


def concrete(path: str) -> str:
    values = {
        "number": "1",
        "namespace_name": "examples",
        "name": "nothing",
        "type": "Interaction",
        "app_name": "nightly-import",
    }
    return re.sub(r"\{(\w+)\}", lambda found: values.get(found[1], str(NEW_ID())), path)


async def status_of(client: httpx2.AsyncClient, method: str, path: str) -> tuple[int, str]:
    """The status, and for a refusal its sentence; what would go on for ever is left at once."""
    headers = {"Content-Type": "application/json"}
    async with client.stream(method, path, content=b"{}" if method != "GET" else b"", headers=headers) as answer:
        if answer.status_code == 403:
            await answer.aread()
            return 403, problem_of(answer, 403, "not_permitted")["detail"]
        return answer.status_code, ""


class TestRoles:
    async def test_every_role_is_let_through_by_the_routes_of_its_rights_alone(self, server: Served) -> None:
        """platform.md: roles. Every route, as every role; and as a key of the owner's that is narrowed. One kind stands for all."""
        database = server.installation.database
        owner = await keys.owner(database)
        bearers = [(RIGHTS[role], await key_of(database, owner, await user_of(database, owner, role))) for role in Role]
        bearers.append((frozenset({Right.READ_AUDIT}), await key_of(database, owner, None, "read_audit")))
        asked_of = {
            route: asked
            for route, asked in RIGHT_OF.items()
            if not re.search(r"/(ai-models|interactions)(/by-|$)", route[1])
        }
        checked = {False: 0, True: 0}
        for rights, (_, key) in bearers:
            async with server.of(key) as client:
                for (method, path), asked in asked_of.items():
                    status, told = await status_of(client, method, concrete(path))
                    may = asked <= rights
                    assert (status not in (401, 403)) if may else (status == 403), (rights, method, path, status)
                    assert may or f"'{next(iter(asked))}'" in told, told
                    checked[may] += 1
        assert min(checked.values()) > 100

    async def test_a_change_of_role_holds_from_the_next_request_on(self, server: Served) -> None:
        database = server.installation.database
        owner = await keys.owner(database)
        user = await user_of(database, owner, Role.ADMIN)
        _, key = await key_of(database, owner, user)
        async with server.of(key) as client:
            assert (await client.get("/audit")).status_code == 200
            answer = await server.client.put(f"/users/by-id/{user.user_id}/role", json={"role": "viewer"})
            assert answer.json()["role"] == "viewer" and answer.json()["rights"] == ["read", "manage_own_keys"]
            detail = problem_of(await client.get("/audit"), 403, "not_permitted")["detail"]
            assert "viewer" in detail and "An owner or admin of the tenant can give you the role admin" in detail

    async def test_every_spelling_and_way_gets_the_same_decision(self, server: Served) -> None:
        """F41: whatever a path or a key looks like, a viewer adds no user."""
        database = server.installation.database
        owner = await keys.owner(database)
        _, key = await key_of(database, owner, await user_of(database, owner, Role.VIEWER))
        body = {"name": "Eve", "role": "owner"}
        paths = [
            "/users", "/users/", "//users", "/USERS", "/./users", "/keys/../users", "/%75sers", "/users%2f", "/users%00", "/users;x=1",
            "/users?x=1", "/users#x", "/docs/../users", "/healthz/..%2fusers", "/users/.", "/users\\", "/users%20",
        ]  # fmt: skip
        headers = [
            {"Authorization": f"Bearer {key}"}, {"authorization": f"bearer {key}"}, {"AUTHORIZATION": f"BEARER {key}"},
            {"Authorization": f"Bearer {key}", "X-Original-URL": "/healthz", "X-Rewrite-URL": "/docs", "X-HTTP-Method-Override": "GET"},
            {"Authorization": f"Bearer {key}", "X-User-Id": str(owner.user_id), "X-Forwarded-User": "owner"},
        ]  # fmt: skip
        async with server.of(None) as client:
            for path in paths:
                for number, head in enumerate(headers):
                    answer = await client.post(path, json=body, headers=head)
                    # a query that the route does not have is refused before anybody looks at the body
                    refusals = (403, 422) if path == "/users?x=1" else (403, 404, 405)
                    assert answer.status_code in refusals, (path, number, answer.text)
            for head in headers:
                problem_of(await client.post("/users", json=body, headers=head), 403, "not_permitted")
        async with database.reader() as reader:
            assert await user_rows.get_by_name(reader, owner.tenant_id, name="Eve") is None


class TestKeys:
    async def test_a_narrower_key_makes_no_wider_one(self, server: Served) -> None:
        """F42: in rights, in time, and for others."""
        database = server.installation.database
        owner = await keys.owner(database)
        admin = await user_of(database, owner, Role.ADMIN, "admin")
        other = await user_of(database, owner, Role.OWNER, "other")
        viewer = await user_of(database, owner, Role.VIEWER, "viewer")
        _, narrow = await key_of(database, owner, None, "read", "manage_own_keys", "manage_keys")
        _, whole = await key_of(database, owner, admin)
        end = "2090-01-01T00:00:00Z"
        ending = (await server.client.post("/keys", json={"name": "x", "dateExpires": end})).json()["key"]
        later = "2090-01-01T00:00:01Z"
        cases: list[tuple[str, dict[str, Any], int, str]] = [
            (narrow, {}, 403, "more than you may give"),
            (narrow, {"scopes": ["read", "start"]}, 403, "more than you may give: start"),
            (narrow, {"scopes": ["read"]}, 201, ""),
            (narrow, {"userId": str(viewer.user_id)}, 403, "as narrow"),
            (narrow, {"userId": str(viewer.user_id), "scopes": ["read"]}, 201, ""),
            (narrow, {"userId": str(viewer.user_id), "scopes": ["read", "start"]}, 403, "as narrow"),
            (whole, {}, 201, ""),
            (whole, {"userId": str(viewer.user_id)}, 201, ""),
            (whole, {"userId": str(other.user_id)}, 403, "above your role admin"),
            (whole, {"userId": str(other.user_id), "scopes": ["read"]}, 403, "above your role admin"),
            (ending, {}, 403, "lasts longer"),
            (ending, {"dateExpires": later}, 403, "lasts longer"),
            (ending, {"dateExpires": end}, 201, ""),
        ]
        for key, body, status, words in cases:
            async with server.of(key) as client:
                answer = await client.post("/keys", json={"name": "new", **body})
                assert answer.status_code == status, (body, answer.text)
                assert words in answer.text
                if status == 201:
                    made = answer.json()
                    assert made["scopes"] == body.get("scopes")
                    assert made["userId"] == body.get("userId", made["userCreatedById"])

    async def test_a_narrowed_key_stays_narrow_when_its_user_rises(self, database: Database, caller: Caller) -> None:
        user = await user_of(database, caller, Role.VIEWER)
        _, narrowed = await key_of(database, caller, user, "read")
        _, whole = await key_of(database, caller, user)
        await users.set_role(database, caller, user_id=user.user_id, role=Role.ADMIN)
        assert (await keys.authenticate(database, key=narrowed)).rights == {Right.READ}
        assert (await keys.authenticate(database, key=whole)).rights == RIGHTS[Role.ADMIN]

    @pytest.mark.parametrize("scopes", [(), ("read", "manage_own_keys", "manage_users", "publish")])
    async def test_a_key_for_another_may_no_more_than_its_maker(
        self, database: Database, caller: Caller, scopes: tuple[str, ...]
    ) -> None:
        """F42, F43: whatever becomes of its user and of its maker, from the next request on; and so a key that was made with it."""
        admin, viewer = await user_of(database, caller, Role.ADMIN), await user_of(database, caller, Role.VIEWER)
        _, text = await key_of(database, caller, admin)
        making = await keys.authenticate(database, key=text)
        key_id, first = await key_of(database, making, viewer, *scopes[:2])
        _, second = await key_of(database, await keys.authenticate(database, key=first), None, *scopes[:2])
        own_id, own = await key_of(database, replace(caller, user_id=viewer.user_id, key_id=None), None, *scopes)
        for user, role, least in (
            (viewer, Role.VIEWER, Role.VIEWER),
            (viewer, Role.OWNER, Role.ADMIN),
            (admin, Role.APPROVER, Role.APPROVER),
            (admin, Role.OWNER, Role.OWNER),
            (viewer, Role.OPERATOR, Role.OPERATOR),
            (viewer, Role.OWNER, Role.OWNER),
            (admin, Role.VIEWER, Role.VIEWER),
        ):
            await users.set_role(database, caller, user_id=user.user_id, role=role)
            for each in (first, second):
                acting = await keys.authenticate(database, key=each)
                assert (acting.role, acting.rights) == (least, rights_of(least, scopes[:2] or None)), (user.role, role)
                assert await keys.rights_now(database, acting) == acting.rights
        # its user is an owner, its maker a viewer
        with pytest.raises(NotPermitted, match=r"somebody who is viewer now .* which your role owner has"):
            acting.require(Right.START)
        with pytest.raises(NotPermitted):
            await keys.create(
                database, replace(acting, rights=acting.rights | {Right.MANAGE_KEYS}), name="x", expires_at=None, new_id=NEW_ID,
                random_bytes=secrets.token_bytes, user_id=caller.user_id, scopes=("read",),
            )  # fmt: skip
        await users.remove(database, caller, user_id=admin.user_id)
        for each in (first, second):
            with pytest.raises(NotAllowed, match=r"was revoked: somebody who made it.* was removed"):
                await keys.authenticate(database, key=each)
        assert await keys.rights_now(database, acting) == frozenset()
        shown = {key.key_id: key for key in await keys.page(database, caller, after=None, limit=9)}
        assert shown[key_id].revoked_at is not None and shown[own_id].revoked_at is None
        assert (await keys.authenticate(database, key=own)).rights == rights_of(Role.OWNER, scopes or None)

    async def test_a_key_made_while_its_maker_is_removed_opens_nothing(
        self, database: Database, caller: Caller
    ) -> None:
        """F43: the maker's request was let in before."""
        admin, viewer = await user_of(database, caller, Role.ADMIN), await user_of(database, caller, Role.VIEWER)
        _, text = await key_of(database, caller, admin)
        making = await keys.authenticate(database, key=text)
        await users.remove(database, caller, user_id=admin.user_id)
        key_id, late = await key_of(database, making, viewer)
        with pytest.raises(NotAllowed, match="was removed"):
            await keys.authenticate(database, key=late)
        assert await keys.rights_now(database, replace(making, key_id=key_id)) == frozenset()

    async def test_others_keys_take_the_right_to_manage_them(self, server: Served) -> None:
        database = server.installation.database
        owner = await keys.owner(database)
        viewer, admin = await user_of(database, owner, Role.VIEWER), await user_of(database, owner, Role.ADMIN)
        theirs, key = await key_of(database, owner, viewer)
        others, managing = await key_of(database, owner, admin)
        owners, _ = await key_of(database, owner)
        async with server.of(key) as client:
            assert [shown["id"] for shown in (await client.get("/keys")).json()["items"]] == [str(theirs)]
            problem_of(await client.post(f"/keys/by-id/{others}/revoke"), 403, "not_permitted")
            body = {"name": "x", "userId": str(admin.user_id)}
            problem_of(await client.post("/keys", json=body), 403, "not_permitted")
        async with server.of(managing) as client:
            assert len((await client.get("/keys")).json()["items"]) == 4
            assert "above your role admin" in (await client.post(f"/keys/by-id/{owners}/revoke")).text
            assert (await client.post(f"/keys/by-id/{theirs}/revoke")).status_code == 200
        async with server.of(key) as client:
            assert "was revoked" in problem_of(await client.get("/keys"), 401, "not_allowed")["detail"]

    @pytest.mark.parametrize("scopes", [(), ("read", "all"), ("READ",)])
    async def test_a_scope_is_the_name_of_a_right(
        self, database: Database, caller: Caller, scopes: tuple[str, ...]
    ) -> None:
        with pytest.raises(BadInput, match=r"name some|There is no scope"):
            await keys.create(
                database, caller, name="x", expires_at=None, new_id=NEW_ID, random_bytes=secrets.token_bytes, scopes=scopes
            )  # fmt: skip

    async def test_another_tenants_user_is_as_none(self, database: Database, caller: Caller, new_id: NewId) -> None:
        """F40, B66: an id in a body is looked up in the caller's own tenant."""
        stranger = await other_tenant(database, new_id)
        for user_id in (stranger.user_id, new_id()):
            with pytest.raises(NotFound, match=str(user_id)):
                await keys.create(
                    database, caller, name="x", expires_at=None, new_id=new_id, random_bytes=secrets.token_bytes, user_id=user_id
                )  # fmt: skip


class TestStreams:
    @pytest.mark.parametrize("how", ["the key is revoked", "the user is removed"])
    async def test_a_stream_closes_when_its_reader_may_no_more(
        self, server: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
    ) -> None:
        """F43. It ends without `end`, and asking again is a 401."""
        monkeypatch.setattr(stream, "RECHECK_SECONDS", 0.05)
        await publish_panel(server.client, tmp_path)
        run_id = (await start_run(server.client))["id"]
        database = server.installation.database
        owner = await keys.owner(database)
        user = await user_of(database, owner, Role.VIEWER)
        key_id, key = await key_of(database, owner, user)
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(server.of(key))
            theirs = await stack.enter_async_context(watching(client, run_id))
            inbox = await stack.enter_async_context(client.stream("GET", "/approvals/events", timeout=None))
            stays = await stack.enter_async_context(watching(server.client, run_id))
            assert (await anext(theirs)).name == (await anext(stays)).name == "status"
            if how == "the key is revoked":
                await keys.revoke(database, owner, key_id=key_id)
            else:
                await users.remove(database, owner, user_id=user.user_id)
            async with asyncio.timeout(20):
                assert "end" not in [event.name async for event in theirs]
                await inbox.aread()
            problem_of(await client.get(f"{RUNS}/by-id/{run_id}"), 401, "not_allowed")
            assert (await server.client.post(f"{RUNS}/by-id/{run_id}/stop")).status_code == 200
            async with asyncio.timeout(20):
                assert [event.name async for event in stays][-1] == "end"


class TestUsers:
    async def test_users_are_added_listed_changed_and_removed(self, server: Served) -> None:
        client = server.client
        made = (await client.post("/users", json={"name": "Ann", "role": "operator"})).json()
        assert (made["role"], made["dateRemoved"], "start" in made["rights"]) == ("operator", None, True)
        problem_of(await client.post("/users", json={"name": "Ann", "role": "viewer"}), 409, "conflict")
        one = (await client.get("/users?limit=1")).json()
        rest = (await client.get(f"/users?after={one['next']}")).json()
        assert [user["name"] for user in one["items"] + rest["items"]] == ["owner", "Ann"] and rest["next"] is None
        key = (await client.post("/keys", json={"name": "k", "userId": made["id"]})).json()["key"]
        assert (await client.delete(f"/users/by-id/{made['id']}")).status_code == 204
        problem_of(await client.delete(f"/users/by-id/{made['id']}"), 404, "not_found")
        async with server.of(key) as theirs:
            assert "user of this key was removed" in problem_of(await theirs.get("/keys"), 401)["detail"]
        assert (await client.get(f"/users/by-id/{made['id']}")).json()["dateRemoved"] is not None
        assert [user["name"] for user in (await client.get("/users")).json()["items"]] == ["owner"]
        again = (await client.post("/users", json={"name": "Ann", "role": "viewer"})).json()
        assert again["id"] != made["id"]

    async def test_nobody_gives_more_than_they_have_or_acts_on_somebody_above(
        self, database: Database, caller: Caller
    ) -> None:
        """F42, of roles."""
        admin = await user_of(database, caller, Role.ADMIN)
        _, text = await key_of(database, caller, admin)
        acting = await keys.authenticate(database, key=text)
        _, narrow_text = await key_of(database, caller, None, "manage_users", "read", "manage_own_keys")
        narrow = await keys.authenticate(database, key=narrow_text)
        peer = await user_of(database, acting, Role.ADMIN)
        for act in (
            users.add(database, acting, name="x", role=Role.OWNER, new_id=NEW_ID),
            users.set_role(database, acting, user_id=peer.user_id, role=Role.OWNER),
            users.set_role(database, acting, user_id=acting.user_id, role=Role.OWNER),
            users.set_role(database, acting, user_id=caller.user_id, role=Role.VIEWER),
            users.remove(database, acting, user_id=caller.user_id),
            users.add(database, narrow, name="x", role=Role.OPERATOR, new_id=NEW_ID),
            users.set_role(database, narrow, user_id=peer.user_id, role=Role.OPERATOR),
            users.remove(database, narrow, user_id=caller.user_id),
        ):
            with pytest.raises(NotPermitted):
                await act
        assert (await users.add(database, narrow, name="x", role=Role.VIEWER, new_id=NEW_ID)).role is Role.VIEWER
        await users.set_role(database, acting, user_id=peer.user_id, role=Role.VIEWER)
        await users.remove(database, acting, user_id=peer.user_id)

    @pytest.mark.parametrize("name", ["", " ", " Ann", "x" * 201, "An\u202en", "A\x00nn"])
    async def test_a_user_needs_a_name(self, database: Database, caller: Caller, name: str) -> None:
        with pytest.raises(BadInput) as caught:
            await users.add(database, caller, name=name, role=Role.VIEWER, new_id=NEW_ID)
        assert [fault.pointer for fault in caught.value.faults] == ["/name"]

    @staticmethod
    async def part(database: Database, caller: Caller) -> list[Any]:
        """Of two owners each removes the other, or steps down, at the same moment."""
        second = await user_of(database, caller, Role.OWNER)
        return await asyncio.gather(
            users.remove(database, caller, user_id=second.user_id),
            users.set_role(database, caller, user_id=caller.user_id, role=Role.VIEWER),
            return_exceptions=True,
        )

    async def owners(self, database: Database) -> int:
        async with database.reader() as reader:
            query = "select count(*) from app_user where role = 'owner' and removed_at is null"
            return int(await reader.connection.fetchval(query))

    async def test_the_last_owner_stays(self, database: Database, caller: Caller) -> None:
        with pytest.raises(Conflict, match="last owner"):
            await users.remove(database, caller, user_id=caller.user_id)
        with pytest.raises(Conflict, match="last owner"):
            await users.set_role(database, caller, user_id=caller.user_id, role=Role.ADMIN)
        told = await self.part(database, caller)
        assert [type(one) for one in told].count(Conflict) == 1
        assert await self.owners(database) == 1

    async def test_without_the_lock_the_last_owner_goes(
        self, database: Database, caller: Caller, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The negative control of the test above: both look before either acts."""
        both = asyncio.Barrier(2)

        async def look(writer: Writer, tenant_id: UUID) -> set[UUID]:
            query = "select user_id from app_user where tenant_id = $1 and role = 'owner' and removed_at is null"
            found = {row["user_id"] for row in await writer.connection.fetch(query, tenant_id)}
            await both.wait()
            return found

        monkeypatch.setattr(user_rows, "lock_owners", look)
        await self.part(database, caller)
        assert await self.owners(database) == 0

    async def test_a_removed_user_gets_no_key(self, database: Database, caller: Caller) -> None:
        user = await user_of(database, caller, Role.VIEWER)
        _, text = await key_of(database, caller, user)
        await users.remove(database, caller, user_id=user.user_id)
        with pytest.raises(NotFound):
            await key_of(database, caller, user)
        with pytest.raises(NotAllowed, match="was removed"):
            await keys.authenticate(database, key=text)
        async with database.reader() as reader:
            (shown,) = await tenancy.keys(reader, caller.tenant_id, after=None, limit=9, user_id=user.user_id)
        assert shown.revoked_at is not None


class TestAudit:
    async def test_who_did_what_is_written_down(self, server: Served, tmp_path: Path) -> None:
        """platform.md: an audit log records who did what."""
        client = server.client
        await publish_panel(client, tmp_path)
        await publish_panel(client, tmp_path)
        run = (await start_run(client))["id"]
        assert (
            await client.post(f"{RUNS}/by-id/{run}/messages", json={"message": "a private word"})
        ).status_code == 201
        assert (await client.post(f"{RUNS}/by-id/{run}/stop")).status_code == 200
        for word in ("disable", "enable"):
            assert (await client.post(f"{PANEL}/versions/1/{word}")).status_code == 200
        assert (await client.delete(PANEL)).status_code == 204
        user = (await client.post("/users", json={"name": "Ann", "role": "viewer"})).json()["id"]
        key = (await client.post("/keys", json={"name": "k", "userId": user, "scopes": ["read"]})).json()
        await client.post(f"/keys/by-id/{key['id']}/revoke")
        await client.put(f"/users/by-id/{user}/role", json={"role": "operator"})
        await client.delete(f"/users/by-id/{user}")
        for value in ("a private value", "another private value"):
            await client.put("/namespaces/team/secrets/by-name/api", json={"value": value})
        await client.delete("/namespaces/team/secrets/by-name/api")
        entries = (await client.get("/audit?limit=200")).json()["items"]
        actions = [entry["action"] for entry in reversed(entries)]
        assert [a for a in actions if not a.startswith("definition.saved")] == [
            "run.started", "run.message", "run.stop_requested", "definition.disabled", "definition.enabled", "definition.deleted",
            "user.added", "key.made", "key.revoked", "user.role_changed", "user.removed", "secret.created", "secret.replaced",
            "secret.deleted",
        ]  # fmt: skip
        # the second publishing said the same but for the model's script
        assert actions.count("definition.saved") == 4
        assert "private" not in (await client.get("/audit?limit=200")).text
        owner = await keys.owner(server.installation.database)
        assert {(e["userCreatedById"], e["userName"], e["channel"]) for e in entries} == {
            (str(owner.user_id), "owner", "api")
        }
        assert len({entry["keyId"] for entry in entries}) == 1 and entries[0]["keyId"] is not None
        assert key["key"] not in str(entries)

    async def test_the_log_is_filtered_and_paged(self, server: Served) -> None:
        client = server.client
        for number in range(5):
            await client.put(f"/namespaces/team/secrets/by-name/s{number}", json={"value": "x" * 8})
        user = (await client.post("/users", json={"name": "Ann", "role": "admin"})).json()["id"]
        key = (await client.post("/keys", json={"name": "k", "userId": user})).json()["key"]
        async with server.of(key) as theirs:
            secret = (await theirs.put("/namespaces/team/secrets/by-name/s0", json={"value": "y" * 8})).json()["id"]

        async def found(query: str) -> list[tuple[str, str]]:
            entries: list[Any] = []
            after = ""
            while after is not None:
                page = (await client.get(f"/audit?limit=2&{query}{after and f'&after={after}'}")).json()
                entries += page["items"]
                assert len(page["items"]) <= 2
                after = page["next"]
            assert [e["id"] for e in entries] == [
                e["id"] for e in sorted(entries, key=lambda e: (e["dateCreated"], e["id"]), reverse=True)
            ]
            return [(entry["userName"], entry["action"]) for entry in entries]

        assert len(await found("")) == 8
        assert await found(f"user={user}") == [("Ann", "secret.replaced")]
        assert await found(f"subject={secret}") == [("Ann", "secret.replaced"), ("owner", "secret.created")]
        assert await found("action=key.made") == [("owner", "key.made")]
        assert await found("subjectKind=user") == [("owner", "user.added")]
        moment = (await client.get(f"/audit?subject={secret}&limit=1")).json()["items"][0]["dateCreated"]
        assert len(await found(f"createdBefore={moment}")) == 7
        assert await found(f"createdFrom={moment}") == [("Ann", "secret.replaced")]
        problem_of(await client.get("/audit?after=nonsense"), 422, "bad_input")

    async def test_what_did_not_happen_is_not_written_down(self, database: Database, caller: Caller) -> None:
        """The entry is in the transaction of the deed."""
        with pytest.raises(Conflict):
            await users.remove(database, caller, user_id=caller.user_id)
        async with database.reader() as reader:
            assert await reader.connection.fetchval("select count(*) from audit") == 0


async def test_users_and_keys_from_before_there_were_roles_keep_what_they_could(empty_dsn: str) -> None:
    """The owner flag becomes the role; a key without scopes may all that its user may."""
    database = await Database.open(empty_dsn)
    try:
        ground = dict(migrations())["0001_ground_pre.sql"]
        tenant, owner, other, key = NEW_ID(), NEW_ID(), NEW_ID(), NEW_ID()
        async with database.writer() as writer:
            execute = writer.connection.execute
            await execute("create table schema_migration (name text primary key, applied_at timestamptz not null)")
            await execute(ground)
            await execute("insert into schema_migration values ('0001_ground_pre.sql', now())")
            await execute("insert into tenant values ($1, 'default', now())", tenant)
            users_of_old = "insert into app_user values ($1, $2, $3, $4, now())"
            await execute(users_of_old, tenant, owner, "owner", True)
            await execute(users_of_old, tenant, other, "other", False)
            keys_of_old = "insert into api_key values ($1, $2, $3, 'k', 'fm_x', $4, now())"
            await execute(keys_of_old, tenant, key, owner, hashlib.sha256(b"fm_x").digest())
        assert "0002_rights_pre.sql" in await upgrade(database)
        acting = await keys.owner(database)
        assert (acting.user_id, (await users.get(database, acting, user_id=other)).role) == (owner, Role.VIEWER)
        bearer = await keys.authenticate(database, key="fm_x")
        assert (bearer.user_id, bearer.role, bearer.rights) == (owner, Role.OWNER, frozenset(Right))
        (shown,) = await keys.page(database, acting, after=None, limit=9)
        assert (shown.scopes, shown.created_by) == (None, owner)
    finally:
        await database.close()
