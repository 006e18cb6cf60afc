"""The server's pages over real HTTP (agent-runs.md, Consent; B14, B15, B16; F33, F35, F40, F43, F48, F64)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import agents_at_hand as agents
import httpx2
import panels
import pytest
import pytest_asyncio
from api_at_hand import Served, served, stranger_key
from crews import crew, until
from definitions_at_hand import shift_clock
from web_at_hand import CODE, Waiting, consent_row, forms_of, key_of, visiting, waiting_run

from folkmoot.console import app as console
from folkmoot.console import run_pages, shown
from folkmoot.console.app import PAGES
from folkmoot.console.pages import HEADERS
from folkmoot.console.visits import safe_next
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.errors import BudgetSpent, FolkmootError, NotFound, NotPermitted, RunEnded, Unreachable
from folkmoot.kernel.ids import NewId
from folkmoot.services import channel_answers, keys
from folkmoot.store import audit

HOSTILE = "</pre><script>alert(1)</script><img src=x onerror=alert(2)>\u202egnp.exe\u200b"
PUBLIC = {
    ("GET", "/sign-in"),
    ("POST", "/sign-in"),
    ("POST", "/sign-out"),
    ("GET", "/consent/{token}"),
    ("POST", "/consent/{token}/code"),
}


@pytest_asyncio.fixture
async def server(database_dsn: str, tmp_path: Path) -> AsyncIterator[Served]:
    async with served(database_dsn, data_dir=tmp_path) as server:
        yield server


@pytest_asyncio.fixture
async def owner(server: Served) -> Caller:
    return await keys.owner(server.installation.database)


async def waiting(server: Served, owner: Caller, new_id: NewId, **more: Any) -> Waiting:
    return await waiting_run(server.installation.database, owner, new_id, **more)


# signing in


async def test_a_key_signs_in_and_each_time_with_a_new_session(server: Served) -> None:
    """F48: no fixation; what the browser had before is no session any more. Cookies are the browser's alone."""
    async with visiting(server) as visitor:
        planted = "planted-by-somebody"
        visitor.client.cookies.set("folkmoot_session", planted, domain="127.0.0.1")
        assert (await visitor.get("/web/agent-runs")).status_code == 303
        first = await visitor.sign_in(server.key)
        cookie = next(c for c in first.headers.get_list("set-cookie") if c.startswith("folkmoot_session="))
        assert "HttpOnly" in cookie and "SameSite=strict" in cookie and "Path=/" in cookie and "Secure" not in cookie
        token = cookie.split(";")[0].partition("=")[2]
        assert token != planted and len(token) == 43
        assert (await visitor.get("/web/agent-runs")).status_code == 200
        rows = await panels.fetch(server.installation.database, "select s::text as row from web_session s")
        assert len(rows) == 1 and token not in rows[0]["row"]
        page = await visitor.get("/web/agent-runs")
        out = await visitor.send(page, "/web/sign-out")
        assert out.status_code == 303 and out.headers["location"] == "/web/sign-in"
        visitor.client.cookies.set("folkmoot_session", token, domain="127.0.0.1")
        assert (await visitor.get("/web/agent-runs")).status_code == 303, "it ended on the server, too"


async def test_every_wrong_key_is_told_the_same_and_gives_no_session(server: Served, owner: Caller) -> None:
    async with visiting(server) as visitor:
        made = (await server.client.post("/keys", json={"name": "old"})).json()
        await server.client.post(f"/keys/by-id/{made['id']}/revoke")
        texts = set()
        for key in ("", "fm_nothing", made["key"], "\u2603" * 50):
            answer = await visitor.sign_in(key)
            assert answer.status_code == 401 and "folkmoot_session=" not in str(answer.headers)
            texts.add(re.sub('value="[^"]*"', "", answer.text))
        assert len(texts) == 1 and "This key opens nothing here" in texts.pop()


async def test_over_https_cookies_are_secure_and_bound_to_the_host(database_dsn: str, tmp_path: Path) -> None:
    async with served(database_dsn, data_dir=tmp_path) as server, visiting(server) as visitor:
        answer = await visitor.get(
            "/web/sign-in", headers={"X-Forwarded-Proto": "https"}
        )  # from a proxy of this machine
        (cookie,) = answer.headers.get_list("set-cookie")
        assert cookie.startswith("__Host-folkmoot_form=") and "Secure" in cookie and "HttpOnly" in cookie


def test_no_way_on_leads_to_another_host() -> None:
    for wanted in (
        "https://evil.example/", "//evil.example/web/", "/\\evil.example", "/web/../../evil", "/web//evil.example\n", "javascript:alert(1)", "/keys",
        "/web/sign-in", "/web/x?next=//evil.example", "", None,
    ):  # fmt: skip
        assert safe_next(wanted) == "/web/agent-runs"
    assert safe_next("/web/consent/abc") == "/web/consent/abc", "the negative control"


async def test_signing_in_goes_on_to_the_page_that_was_asked_for_and_nowhere_else(server: Served) -> None:
    async with visiting(server) as visitor:
        answer = await visitor.get("/web/agent-runs?whose=all")
        assert answer.headers["location"] == "/web/sign-in?next=%2Fweb%2Fagent-runs%3Fwhose%3Dall"
        there = await visitor.sign_in(server.key, "/web/agent-runs?whose=all")
        assert there.headers["location"] == "/web/agent-runs?whose=all"
        for wanted in ("https://evil.example/", "//evil.example"):
            answer = await visitor.get("/web/sign-in", params={"next": wanted})
            assert answer.headers["location"] == "/web/agent-runs"


async def test_a_session_ends_with_its_key_its_user_and_its_time(server: Served, owner: Caller, new_id: NewId) -> None:
    """F43: at the next request, and with a form that was open before."""
    database = server.installation.database
    names = ("Ann", "Bea", "Cleo")
    made = [await key_of(database, owner, new_id, name=name) for name in names]
    async with (
        visiting(server, key=made[0]) as ann,
        visiting(server, key=made[1]) as bea,
        visiting(server, key=made[2]) as cleo,
    ):
        pages = [await each.get("/web/agent-runs") for each in (ann, bea, cleo)]
        (key,) = await panels.fetch(database, "select key_id from api_key where name = 'Ann''s'")
        await server.client.post(f"/keys/by-id/{key['key_id']}/revoke")
        (user,) = await panels.fetch(database, "select user_id from app_user where name = 'Bea'")
        await server.client.delete(f"/users/by-id/{user['user_id']}")
        assert [(await each.get("/web/agent-runs")).status_code for each in (ann, bea, cleo)] == [303, 303, 200]
        await shift_clock(database, timedelta(hours=12, seconds=1))
        assert (await cleo.get("/web/agent-runs")).status_code == 303
        for each, page in zip((ann, bea, cleo), pages, strict=True):
            assert (await each.send(page, "/web/sign-out")).status_code == 403


async def test_the_sweep_removes_sessions_whose_time_is_over(server: Served, new_id: NewId) -> None:
    database = server.installation.database

    async def are_left(number: int) -> bool:
        return len(await panels.fetch(database, "select from web_session")) == number

    async with visiting(server, key=server.key):
        await shift_clock(database, timedelta(hours=12, seconds=1))
        async with visiting(server, key=server.key) as visitor:
            assert await are_left(2)
            async with crew(database, new_id):
                await until(lambda: are_left(1))
            assert (await visitor.get("/web/agent-runs")).status_code == 200


# forms and headers


async def test_a_form_that_is_not_ours_does_nothing(server: Served, owner: Caller, new_id: NewId) -> None:
    """F48: without its token, with another browser's, or from another site."""
    asked = await waiting(server, owner, new_id, code=CODE)
    async with visiting(server, key=server.key) as visitor, visiting(server, key=server.key) as other:
        fields = forms_of((await visitor.get(asked.path)).text)[asked.path].fields | {"decision": "approve"}
        others = forms_of((await other.get(asked.path)).text)[asked.path].fields
        foreign: list[tuple[dict[str, str], dict[str, str]]] = [
            ({**fields, "formToken": ""}, {}),
            ({name: value for name, value in fields.items() if name != "formToken"}, {}),
            ({**fields, "formToken": others["formToken"]}, {}),
            (fields, {"Origin": "https://evil.example"}),
            (fields, {"Sec-Fetch-Site": "cross-site"}),
            (fields, {"Sec-Fetch-Site": "same-site", "Origin": "null"}),
        ]
        for sent, headers in foreign:
            answer = await visitor.post(asked.path, sent, headers=headers)
            assert answer.status_code == 403 and "was not sent by a page of this server" in answer.text
        assert (await visitor.client.post(asked.path, json=fields)).status_code == 422
        too_much = await visitor.post(asked.path, {**fields, "reason": "x" * 300_000})
        assert too_much.status_code == 413
        assert (await consent_row(server.installation.database, asked))["status"] == "pending"
        ours = await visitor.post(asked.path, fields, headers={"Origin": server.url, "Sec-Fetch-Site": "same-origin"})
        assert ours.status_code == 200, "the negative control"
    async with visiting(server) as nobody:
        answer = await nobody.post(f"{asked.path}/code", {"code": CODE, "decision": "approve"})
        assert answer.status_code == 403
        answer = await nobody.post("/web/sign-in", {"key": server.key})
        assert answer.status_code == 403 and "folkmoot_session" not in nobody.client.cookies


async def test_every_answer_has_the_headers_that_keep_pages_to_themselves(
    server: Served, owner: Caller, new_id: NewId
) -> None:
    """F48, F64: no framing, no script, nothing from elsewhere, nothing kept, no address told."""
    asked = await waiting(server, owner, new_id)
    async with visiting(server, key=server.key) as visitor:
        run = f"/web/agent-runs/{asked.run.id}"
        paths = [
            "/web/sign-in",
            "/web/agent-runs",
            run,
            asked.path,
            "/web/new",
            "/web/nothing",
            "/web/style.css",
            "/web/",
        ]
        answers = [await visitor.get(path) for path in paths]
        answers.append(await visitor.post(asked.path, {"x": "y"}))
        answers.append(await visitor.client.request("PUT", "/web/new"))
        for answer in answers:
            headers = answer.headers
            assert headers["content-security-policy"] == (
                "default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
            ), answer.url
            assert (headers["x-frame-options"], headers["referrer-policy"]) == ("DENY", "no-referrer")
            assert (headers["cache-control"], headers["x-content-type-options"]) == ("no-store", "nosniff")
            assert "access-control-allow-origin" not in headers
            assert "<script" not in answer.text and "style=" not in answer.text
        assert [answer.status_code for answer in answers[-5:]] == [404, 200, 303, 403, 405]
        for typed in ("/", "/web"):
            assert (await visitor.get(typed)).headers["location"] == "/web/agent-runs"


async def test_the_page_for_an_unexpected_error_has_those_headers_too(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F48: the framework answers such an error outside of its own middleware."""

    async def fail(*_: Any) -> None:
        raise RuntimeError("unexpected")

    monkeypatch.setattr(console, "arrive", fail)
    async with visiting(server) as visitor:
        answer = await visitor.get("/web/sign-in")
    assert answer.status_code == 500 and "The server failed" in answer.text
    assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS


async def test_what_a_model_wrote_is_inert_and_hides_nothing(server: Served, owner: Caller, new_id: NewId) -> None:
    """F33, F64."""
    asked = await waiting(server, owner, new_id, what=HOSTILE)
    async with visiting(server, key=server.key) as visitor:
        for path in (asked.path, f"/web/agent-runs/{asked.run.id}", f"/web/conversations/{asked.run.conversation_id}"):
            html = (await visitor.get(path)).text
            assert "<script" not in html and "<img" not in html, path
            assert "\u202e" not in html and "\u200b" not in html, path
            assert "&lt;script&gt;alert(1)" in html and r"\u202e" in html and r"\u200b" in html, path


def test_arguments_are_laid_out_token_by_token() -> None:
    """F33: what is shown is what runs; numbers, doubled keys and escapes stay as they are written."""
    text = '{"a":1.0,"a":1e400,"b":[{"c":"x, {y}: \\"z\\""},[],{}],"d":12345678901234567890}'
    made = shown.laid_out(text)
    assert re.sub(r"\n *|(?<=\"): ", lambda m: ":" if m[0] == ": " else "", made) == text
    assert made.splitlines()[1:3] == ['  "a": 1.0,', '  "a": 1e400,']
    for broken in ('{"a" : "b', "{} … [3 of 9 characters are not shown here] … }", ""):
        assert shown.laid_out(broken) == broken


# consent


async def test_who_is_signed_in_sees_the_card_and_decides_with_a_button(
    server: Served, owner: Caller, new_id: NewId
) -> None:
    """B14, B15, F35: GET and HEAD decide nothing; the approver is who is signed in, over the web; a second press is told the same."""
    database = server.installation.database
    asked = await waiting(server, owner, new_id)
    async with visiting(server, key=server.key) as visitor:
        before = await consent_row(database, asked)
        for method in ("GET", "HEAD"):
            for query in ("", "?decision=approve", "?decision=approve&chatItemId=" + str(asked.run.chat_item_id)):
                assert (await visitor.client.request(method, asked.path + query)).status_code == 200
            assert (await visitor.client.request(method, f"{asked.path}/code?decision=approve")).status_code == 405
        assert await consent_row(database, asked) == before
        listed = (await visitor.get("/web/agent-runs")).text
        assert "Waiting for consent" in listed and f"/web/agent-runs/{asked.run.id}" in listed
        shown_run = (await visitor.get(f"/web/agent-runs/{asked.run.id}")).text
        assert asked.path in shown_run and f"The task: {agents.GOAL}" in shown_run
        page = await visitor.get(asked.path)
        for words in (
            "clerk",
            f"The task: {agents.GOAL}",
            "Calls <code>tell</code>",
            "&#34;who&#34;: &#34;Bo&#34;",
            "Waits for consent until",
        ):
            assert words in page.text, words
        nothing = await visitor.send(page, asked.path)
        assert nothing.status_code == 422 and "Choose one of the two buttons" in nothing.text
        reasoned = await visitor.send(page, asked.path, decision="approve", reason="Go on.")
        assert (
            reasoned.status_code == 422 and "An approval has no reason" in reasoned.text and "Go on." in reasoned.text
        )
        assert (await consent_row(database, asked))["status"] == "pending"
        for _ in range(2):
            done = await visitor.send(page, asked.path, decision="approve")
            assert done.status_code == 200 and "<h1>Done</h1>" in done.text and "You approved it" in done.text
        other = await visitor.send(page, asked.path, decision="decline")
        assert other.status_code == 409 and "approved by owner" in other.text
        settled = (await visitor.get(asked.path)).text
        assert "Approved by owner" in settled and "Decline" not in settled
    row = await consent_row(database, asked)
    assert (row["status"], row["decided_by_name"], row["decided_over"]) == ("approved", "owner", "web")
    noted = await panels.fetch(database, "select user_name, channel from audit where action = 'approval.approved'")
    assert [(entry["user_name"], entry["channel"]) for entry in noted] == [("owner", "web")]


async def test_every_answer_has_a_visible_outcome(server: Served, owner: Caller, new_id: NewId) -> None:
    """B16: already decided by somebody, not yours, not found, changed since it was shown."""
    database = server.installation.database
    asked = await waiting(server, owner, new_id)
    # who may be the agent's owner is neither of these
    admin, viewer = (
        await key_of(database, owner, new_id, role="admin", name="Ada"),
        await key_of(database, owner, new_id, role="approver"),
    )
    async with (
        visiting(server, key=server.key) as visitor,
        visiting(server, key=admin) as ada,
        visiting(server, key=viewer) as ann,
    ):
        page, shown_to_ada = await visitor.get(asked.path), await ada.get(asked.path)
        not_hers = await ann.get(asked.path)
        assert not_hers.status_code == 403 and "Bo" not in not_hers.text
        run_page = await ann.get(f"/web/agent-runs/{asked.run.id}")
        assert (
            run_page.status_code == 200
            and asked.path not in run_page.text
            and "Plan and verification" not in run_page.text
        )
        own = forms_of(run_page.text)["/web/sign-out"].fields["formToken"]
        fields = forms_of(page.text)[asked.path].fields | {"decision": "approve"}
        assert (await ann.post(asked.path, {**fields, "formToken": own})).status_code == 403
        changed = await visitor.send(page, asked.path, decision="approve", argumentsHash="00" * 32)
        assert changed.status_code == 409 and "not what you were shown" in changed.text
        assert fields["argumentsHash"] in changed.text, "it is shown anew"
        lost = await visitor.send(page, asked.path, decision="approve", chatItemId=str(new_id()))
        assert lost.status_code == 404
        odd = await visitor.send(page, asked.path, decision="approve", chatItemId="x")
        assert odd.status_code == 422
        nowhere = "/web/consent/" + "a" * 26
        assert (await visitor.get(nowhere)).status_code == 404
        assert (await visitor.post(nowhere, fields)).status_code == 404
        declined = await ada.send(shown_to_ada, asked.path, decision="decline", reason="Too early <b>now</b>.")
        assert declined.status_code == 200 and "You declined it" in declined.text
        for decision in ("approve", "decline"):
            late = await visitor.send(page, asked.path, decision=decision)
            assert late.status_code == 409 and "declined by Ada" in late.text.replace("rejected", "declined")
        told = (await visitor.get(asked.path)).text
        assert "Too early &lt;b&gt;now&lt;/b&gt;." in told and "Declined by Ada" in told


async def test_a_specialist_is_named_beside_the_agent_that_it_works_for(
    server: Served, owner: Caller, new_id: NewId
) -> None:
    """agent-runs.md, Delegation: the request is the root's, and names the specialist."""
    database = server.installation.database
    asked = await waiting(server, owner, new_id)
    async with database.writer() as writer:
        await writer.connection.execute("update chat_item set asked_by = 'scout' where kind = 'consent'")
    async with visiting(server, key=server.key) as visitor:
        words = " ".join(re.sub("<[^>]+>", "", (await visitor.get(asked.path)).text).split())
        assert f"scout, a specialist at work for clerk, asks for your consent in agent run {asked.run.id}." in words


async def test_an_answer_after_its_time_is_told_so(server: Served, owner: Caller, new_id: NewId) -> None:
    """B16."""
    asked = await waiting(server, owner, new_id, code=CODE)
    await shift_clock(server.installation.database, timedelta(days=4))
    async with visiting(server, key=server.key) as visitor:  # signed in now: the other session would be over
        page = await visitor.get(asked.path)
        late = await visitor.send(page, asked.path, decision="approve")
        assert late.status_code == 409 and "Too late" in late.text and "expired" in late.text
    async with visiting(server) as nobody:
        page = await nobody.get(asked.path)
        late = await nobody.send(page, f"{asked.path}/code", code=CODE, decision="approve")
        assert late.status_code == 409 and "Too late" in late.text
    assert (await consent_row(server.installation.database, asked))["decided_by"] is None


# by the request's own code


def without_token(answer: httpx2.Response, token: str) -> str:
    return re.sub(r'(name="formToken" value=)"\w+"', r"\1", answer.text.replace(token, "TOKEN"))


async def test_without_signing_in_nothing_tells_whether_there_is_such_a_run(
    server: Served, owner: Caller, new_id: NewId
) -> None:
    """F35, F40."""
    asked = await waiting(server, owner, new_id, code=CODE)
    real, none = asked.run.correlation_token, "z" * 26
    async with visiting(server) as nobody:
        pages = [await nobody.get(f"/web/consent/{token}") for token in (real, none)]
        assert without_token(pages[0], real) == without_token(pages[1], none) and "Bo" not in pages[0].text
        for code in ("wrong", "", " ", "\u2603"):
            told = [
                await nobody.send(page, f"/web/consent/{token}/code", code=code, decision="approve")
                for page, token in zip(pages, (real, none), strict=True)
            ]
            assert [answer.status_code for answer in told] == [403, 403]
            assert without_token(told[0], real) == without_token(told[1], none), code


async def test_a_code_counts_once_and_answers_for_the_owner(server: Served, owner: Caller, new_id: NewId) -> None:
    """F35: typed in any case; a second use is told what was decided."""
    database = server.installation.database
    asked = await waiting(server, owner, new_id, code=CODE)
    async with visiting(server) as nobody:
        page = await nobody.get(asked.path)
        unclear = await nobody.send(page, f"{asked.path}/code", code=CODE, decision="approve", reason="Yes.")
        assert unclear.status_code == 422
        done = await nobody.send(
            page, f"{asked.path}/code", code=f" {CODE.upper()} ", decision="decline", reason="Not now."
        )
        assert done.status_code == 200 and "Done: you declined" in done.text
        again = await nobody.send(page, f"{asked.path}/code", code=CODE, decision="approve")
        assert again.status_code == 409 and "declined by owner" in again.text
        wrong = await nobody.send(page, f"{asked.path}/code", code="wrong", decision="approve")
        assert wrong.status_code == 403 and "owner at" not in wrong.text
    row = await consent_row(database, asked)
    assert (row["status"], row["decided_over"], row["reason"], row["decided_by"]) == (
        "declined",
        "web",
        "Not now.",
        owner.user_id,
    )
    assert row["secret_used_at"] is not None


async def test_after_ten_wrong_codes_the_right_one_is_refused(server: Served, owner: Caller, new_id: NewId) -> None:
    """F35. After nine it counts: the negative control."""
    database = server.installation.database
    asked = await waiting(server, owner, new_id, code=CODE)
    async with visiting(server) as nobody:
        page = await nobody.get(asked.path)
        for number in range(10):
            answer = await nobody.send(page, f"{asked.path}/code", code=f"wrong{number}", decision="approve")
            assert answer.status_code == 403
        last = await nobody.send(page, f"{asked.path}/code", code=CODE, decision="approve")
        assert last.status_code == 403
        row = await consent_row(database, asked)
        assert (row["status"], row["secret_tries"]) == ("pending", 10)
        async with database.writer() as writer:
            await writer.connection.execute("update chat_item set secret_tries = 9 where secret_tries = 10")
        tenth = await nobody.send(page, f"{asked.path}/code", code=CODE, decision="approve")
        assert tenth.status_code == 200


async def test_a_code_is_of_no_use_once_the_owner_is_gone(server: Served, owner: Caller, new_id: NewId) -> None:
    """F43: whoever has the code answers for the owner, and may no more than they."""
    database = server.installation.database
    asked = await waiting(server, owner, new_id, code=CODE)
    async with database.writer() as writer:
        await writer.connection.execute("update app_user set role = 'viewer' where user_id = $1", owner.user_id)
    told = await channel_answers.answer_by_code(
        database, token=asked.run.correlation_token, code=CODE, approves=True, reason=None, tell=lambda _: None
    )
    assert told.kind == "not_yours" and (await consent_row(database, asked))["status"] == "pending"


# tenants and rights


def filled(path: str, asked: Waiting) -> str:
    run = asked.run
    return (
        path.replace("{id}", str(run.id))
        .replace("{token}", run.correlation_token)
        .replace("{conversation_id:uuid}", str(run.conversation_id))
    )


async def test_every_page_asks_for_a_right_or_is_listed_as_public(server: Served, owner: Caller, new_id: NewId) -> None:
    """F40: a page that names no right fails until it is listed; one that does leads who is not signed in to the sign-in."""
    assert {(each.method, each.path) for each in PAGES if each.right is None} == PUBLIC
    asked = await waiting(server, owner, new_id)
    async with visiting(server) as nobody:
        token = forms_of((await nobody.get("/web/sign-in")).text)["/web/sign-in"].fields["formToken"]
        for each in PAGES:
            if each.right is not None:
                answer = await nobody.client.request(
                    each.method,
                    "/web" + filled(each.path, asked),
                    data={"formToken": token} if each.method == "POST" else None,
                )
                assert answer.status_code == 303 and answer.headers["location"].startswith("/web/sign-in"), each


async def test_what_is_another_tenants_is_as_if_it_never_was(server: Served, owner: Caller, new_id: NewId) -> None:
    """F40: by every page that takes an id or a token; a conversation is begun in one's own tenant, whatever its id is elsewhere."""
    database = server.installation.database
    asked = await waiting(server, owner, new_id)
    _, key = await stranger_key(database)
    named = [each for each in PAGES if "{" in each.path and not each.path.endswith("/code")]
    assert {each.path for each in named} == {
        "/agent-runs/{id}", "/conversations/{conversation_id:uuid}", "/conversations/{conversation_id:uuid}/runs", "/consent/{token}"
    }  # fmt: skip
    async with visiting(server, key=key) as stranger, visiting(server, key=server.key) as own:
        page = await stranger.get("/web/agent-runs")
        assert f"/web/agent-runs/{asked.run.id}" not in page.text
        token = forms_of(page.text)["/web/sign-out"].fields["formToken"]
        for each in named:
            path = "/web" + filled(each.path, asked)
            if each.method == "GET":
                assert (await stranger.get(path)).status_code == 404, path
                assert (await own.get(path)).status_code == 200, "the negative control"
                continue
            fields = forms_of((await own.get(asked.path)).text)[asked.path].fields
            answer = await stranger.post(
                path,
                {
                    **fields,
                    "formToken": token,
                    "decision": "approve",
                    "goal": "x",
                    "agent": str(asked.run.agent_id),
                    "once": str(new_id()),
                },
            )
            assert answer.status_code == 404, (path, answer.text)
    assert (await consent_row(database, asked))["status"] == "pending"
    assert (await panels.fetch(database, "select count(*) as n from conversation"))[0]["n"] == 1


async def test_a_key_that_is_narrowed_decides_nothing(server: Served, owner: Caller, new_id: NewId) -> None:
    """rights.md: its bearer is the agent's owner, and the key may but read."""
    asked = await waiting(server, owner, new_id)
    narrow = (await server.client.post("/keys", json={"name": "reads", "scopes": ["read"]})).json()["key"]
    async with visiting(server, key=narrow) as visitor, visiting(server, key=server.key) as own:
        assert (await visitor.get(asked.path)).status_code == 403
        fields = forms_of((await own.get(asked.path)).text)[asked.path].fields
        token = forms_of((await visitor.get("/web/agent-runs")).text)["/web/sign-out"].fields["formToken"]
        answer = await visitor.post(asked.path, {**fields, "formToken": token, "decision": "approve"})
        assert answer.status_code == 403 and "lacks the scope" in answer.text
    assert (await consent_row(server.installation.database, asked))["status"] == "pending"


async def test_whoever_may_not_start_runs_is_told_so(server: Served, owner: Caller, new_id: NewId) -> None:
    key = await key_of(server.installation.database, owner, new_id, role="viewer")
    async with visiting(server, key=key) as visitor:
        answer = await visitor.get("/web/new")
        assert answer.status_code == 403 and "lacks the right" in answer.text
        for odd in ("x", "9" * 30, "9" * 5000, "0"):
            assert (await visitor.get(f"/web/agent-runs/{odd}")).status_code == 404
        assert (await visitor.get("/web/agent-runs?after=" + "9" * 5000)).status_code == 200


async def test_all_that_wait_are_listed_the_longest_waiting_first(
    server: Served, owner: Caller, new_id: NewId, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Consent: none of them stands where nobody sees it before it expires."""
    monkeypatch.setattr(run_pages, "_WAITING", 2)
    runs = [(await waiting(server, owner, new_id)).run for _ in range(5)]
    first_of_all = runs[3].id  # begun later, and asked earlier
    await panels.execute(
        server.installation.database, "update agent_run set awaiting_since = awaiting_since - interval '1 day' where id = $1", first_of_all
    )  # fmt: skip
    await panels.execute(  # and two of them at the same moment, from one page to the next
        server.installation.database,
        "update agent_run set awaiting_since = (select awaiting_since from agent_run where id = $1) where id = $2",
        runs[0].id,
        runs[1].id,
    )
    expected = [first_of_all, *(run.id for run in runs if run.id != first_of_all)]
    async with visiting(server, key=server.key) as visitor:
        for whose in ("", "whose=all"):
            found: list[int] = []
            there: str | None = f"/web/agent-runs?{whose}"
            while there is not None:
                text = (await visitor.get(there)).text
                assert ("Newest" in text or "Others" in text) is (not found), "the others stand on the first page alone"
                found += [int(number) for number in re.findall(r'href="/web/agent-runs/(\d+)"', text)]
                more = re.search(r'href="(/web/agent-runs\?waiting=[^"]*)">More that wait', text)
                there = more[1].replace("&amp;", "&") if more else None
            assert found == expected
        for odd in ("x", "1-", "-1", "9" * 18 + "-1", "1-" + "9" * 5000):
            assert (await visitor.get(f"/web/agent-runs?waiting={odd}")).status_code == 200


# starting


async def test_a_run_is_started_in_a_conversation_and_once_however_often_the_form_is_sent(
    server: Served, owner: Caller, new_id: NewId, tmp_path: Path
) -> None:
    """agent-runs.md: the conversation begins with its first run; what is wrong is told, and what was written stays."""
    database = server.installation.database
    await publish_with_a_script(database, owner, new_id, tmp_path)
    async with visiting(server, key=server.key) as visitor:
        page = await visitor.get("/web/new")
        (action,) = [action for action in forms_of(page.text) if action.endswith("/runs")]
        empty = await visitor.send(page, action, goal="  ")
        assert empty.status_code == 422 and "Write what the agent is to do" in empty.text
        for agent in ("", "x", str(new_id())):
            assert (await visitor.send(page, action, goal="<b>Tell Bo</b>", agent=agent)).status_code in (404, 422)
        places = {(await visitor.send(page, action, goal="<b>Tell Bo</b>")).headers["location"] for _ in range(3)}
        assert len(places) == 1
        run_page = await visitor.get(places.pop())
        assert "&lt;b&gt;Tell Bo&lt;/b&gt;" in run_page.text and run_page.status_code == 200
        assert action in forms_of(run_page.text), "and the next one in the same conversation"
        second = await visitor.send(run_page, action, goal="Again.")
        assert second.status_code == 303
        whole = await visitor.get(action.removesuffix("/runs"))
        assert whole.text.index("Tell Bo") < whole.text.index("Again.")
        listed = (await visitor.get("/web/agent-runs")).text
        assert listed.index(second.headers["location"]) < listed.index("run 1<")


async def test_what_was_written_stays_whatever_the_start_is_refused_for(
    server: Served, owner: Caller, new_id: NewId, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B67: an agent that is gone, a form that was sent with other words, a right that its owner lacks, a database that is away."""
    await publish_with_a_script(server.installation.database, owner, new_id, tmp_path)
    refusals: tuple[tuple[FolkmootError, int], ...] = (
        (NotFound("It is gone."), 404),
        (NotPermitted("It may not."), 403),
        (BudgetSpent("It is spent."), 429),
        (RunEnded("It is over."), 409),
        (Unreachable("pg.internal:5432 does not answer"), 503),
    )
    async with visiting(server, key=server.key) as visitor:
        page = await visitor.get("/web/new")
        (action,) = [action for action in forms_of(page.text) if action.endswith("/runs")]
        chosen = forms_of(page.text)[action].fields["agent"]
        assert (await visitor.send(page, action, goal="First.")).status_code == 303
        again = await visitor.send(page, action, goal="Tell <Bo>")
        assert again.status_code == 422 and "Tell &lt;Bo&gt;</textarea>" in again.text
        assert (await visitor.send(again, action, goal="Tell <Bo>")).status_code == 303, "and it can be sent from there"
        page = await visitor.get("/web/new")
        (action,) = [action for action in forms_of(page.text) if action.endswith("/runs")]
        gone = await visitor.send(page, action, goal="Tell <Bo>", agent=str(new_id()))
        assert gone.status_code == 404 and "Tell &lt;Bo&gt;</textarea>" in gone.text
        for refusal, status in refusals:

            async def refuses(*_: Any, error: FolkmootError = refusal, **__: Any) -> None:
                raise error

            monkeypatch.setattr(run_pages.agent_runs, "start", refuses)
            answer = await visitor.send(page, action, goal="Tell <Bo>")
            assert answer.status_code == status and "Tell &lt;Bo&gt;</textarea>" in answer.text
            assert "pg.internal" not in answer.text and forms_of(answer.text)[action].fields["agent"] == chosen
            if status != 503:
                assert str(refusal) in answer.text and f'value="{chosen}" selected' in answer.text


async def test_a_form_that_is_sent_twice_at_once_starts_one_run(
    server: Served, owner: Caller, new_id: NewId, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F36: who clicked twice sees the answer to the second click; sent from there it is still the same form."""
    await publish_with_a_script(server.installation.database, owner, new_id, tmp_path)
    is_inside, may_go_on, note = asyncio.Event(), asyncio.Event(), audit.note

    async def held(*arguments: Any, **named: Any) -> None:
        await note(*arguments, **named)
        if named["action"] == "run.started":
            is_inside.set()
            await may_go_on.wait()

    monkeypatch.setattr(audit, "note", held)
    async with visiting(server, key=server.key) as visitor:
        page = await visitor.get("/web/new")
        (action,) = [action for action in forms_of(page.text) if action.endswith("/runs")]
        first = asyncio.create_task(visitor.send(page, action, goal="Pay Bo."))
        await is_inside.wait()
        second = await visitor.send(page, action, goal="Pay Bo.")
        assert second.status_code == 409 and "The run is being started" in second.text
        assert "not started" not in second.text and "Idempotency" not in second.text
        may_go_on.set()
        place = (await first).headers["location"]
        assert (await visitor.send(second, action, goal="Pay Bo.")).headers["location"] == place


async def test_a_start_whose_answer_was_lost_is_not_made_again(
    server: Served, owner: Caller, new_id: NewId, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F20: whether it was committed nobody knows; the page says so, and its form finds the run that there is."""
    await publish_with_a_script(server.installation.database, owner, new_id, tmp_path)
    start = run_pages.agent_runs.start

    async def lost(*arguments: Any, **named: Any) -> None:
        await start(*arguments, **named)
        raise Unreachable("The connection was cut.")

    async with visiting(server, key=server.key) as visitor:
        page = await visitor.get("/web/new")
        (action,) = [action for action in forms_of(page.text) if action.endswith("/runs")]
        with monkeypatch.context() as cut:
            cut.setattr(run_pages.agent_runs, "start", lost)
            answer = await visitor.send(page, action, goal="Pay Bo.")
        assert answer.status_code == 503 and "It is not known whether the run was started" in answer.text
        assert (await visitor.send(answer, action, goal="Pay Bo.")).headers["location"] == "/web/agent-runs/1"
    assert len(await panels.fetch(server.installation.database, "select from agent_run")) == 1


async def publish_with_a_script(database: Any, owner: Caller, new_id: NewId, folder: Path) -> None:
    await agents.publish(
        database,
        owner,
        new_id,
        bench=agents.Deeds().bench({"rules": []}),
        functions=(),
        script_path=folder / "rules.yaml",
    )
    (folder / "rules.yaml").write_text("rules:\n  - reply: {text: Well.}\n", encoding="utf-8")
