"""People's answers: each counts once, to what was asked, as it was shown (conversation.md, Tools and approval; F30, F31, B01 to B17)."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator
from importlib.resources import files
from pathlib import Path
from typing import Any
from uuid import UUID

import aiosql
import asyncpg
import pytest
import pytest_asyncio
from api_at_hand import NEW_ID, RUNS, Served, problem_of, publish_panel, served, start_run
from waiting_at_hand import ask, copies, fetch, hash_of, row_of

from folkmoot.domain.pending import PendingKind, PendingOutcome
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.errors import AlreadyDecided, FolkmootError
from folkmoot.services import answers, keys, runs
from folkmoot.store import pending
from folkmoot.store import runs as run_store
from folkmoot.store.database import Database
from folkmoot.store.pending import Answer

APPROVAL, VOTE, QUESTION, TURN = PendingKind
HASH = hash_of('{"path": "a.txt"}').hex()
APPROVE = {"decision": "Approve", "argumentsHash": HASH}
REJECT = {"decision": "Reject", "argumentsHash": HASH, "reason": "Not that file."}
PEOPLE = {"chatMode": "EveryRound", "includeInVotes": True, "includeInSolutions": True}


@pytest_asyncio.fixture
async def server(database_dsn: str, tmp_path: Path) -> AsyncIterator[Served]:
    """Without a worker: what is woken stays where it is."""
    async with served(database_dsn, data_dir=tmp_path) as server:
        await publish_panel(server.client, tmp_path, humanSettings=PEOPLE)
        yield server


class Asked:
    """A run that waits, and the ways to answer it over HTTP."""

    def __init__(self, server: Served, run_id: str) -> None:
        self.server, self.run_id, self.path = server, run_id, f"{RUNS}/by-id/{run_id}"
        self.database = server.installation.database

    async def post(self, path: str, body: Any = None) -> Any:
        return await self.server.client.post(f"{self.path}/{path}", json=body)

    async def ask(self, kind: PendingKind, **options: Any) -> UUID:
        return await ask(self.database, self.run_id, kind, **options)

    async def items(self) -> list[Any]:
        items: list[Any] = (await self.server.client.get(f"{self.path}/items")).json()["items"]
        return items

    async def row(self) -> Any:
        return await row_of(self.database, self.run_id)

    async def audit(self) -> list[tuple[str, Any]]:
        rows = await fetch(
            self.database,
            "select action, detail from audit where subject_id = $1 order by at, audit_id",
            UUID(self.run_id),
        )
        return [(row["action"], json.loads(row["detail"])) for row in rows]


@pytest_asyncio.fixture
async def asked(server: Served) -> Asked:
    return Asked(server, (await start_run(server.client))["id"])


class TestEachKind:
    async def test_a_vote_is_an_item_and_wakes_the_run_once(self, asked: Asked) -> None:
        """B17: the status stays until a claim; the signal moves by one."""
        ballot = await asked.ask(VOTE)
        before = await asked.row()
        receipt = (await asked.post(f"votes/{ballot}", {"agree": False, "reason": "Too dear."})).json()
        assert (receipt["status"], receipt["agree"], receipt["reason"]) == ("Answered", False, "Too dear.")
        assert (receipt["answeredByName"], receipt["channel"], receipt["kind"]) == ("owner", "api", "Vote")
        (item,) = await asked.items()
        assert (item["kind"], item["associatedId"], item["reason"]) == ("disagree", str(ballot), "Too dear.")
        assert (item["author"]["kind"], item["author"]["name"]) == ("Human", "owner")
        after = await asked.row()
        assert after["status"] == "PendingHuman" and after["ready_at"] is not None
        assert after["signal_number"] == before["signal_number"] + 1
        (stored,) = await fetch(
            asked.database, "select turn_id, detail from item where run_id = $1", UUID(asked.run_id)
        )
        assert stored["turn_id"] == UUID(int=5)
        assert json.loads(stored["detail"]) == {"ballot": str(ballot), "attempt": 1, "type": "balloted"}
        assert (await asked.audit())[-1] == ("vote.cast", {"pendingId": str(ballot), "agree": False})

    async def test_an_answer_a_message_and_a_pass_end_their_turns(self, asked: Asked) -> None:
        question = await asked.ask(QUESTION)
        assert (await asked.post(f"questions/{question}", {"answer": "By\x00 Friday."})).json()[
            "text"
        ] == "By\u2400 Friday."
        turn = await asked.ask(TURN)
        assert (await asked.post("messages", {"message": "I think so."})).status_code == 201
        assert (await asked.post("messages", {"message": "One more thing."})).status_code == 201
        passed = await asked.ask(TURN)
        assert (await asked.post("pass")).json()["passed"] is True
        kinds = [item["kind"] for item in await asked.items()]
        assert kinds == ["directQuestionAnswer", "humanMessage", "humanMessage", "noAction"]
        rows = await fetch(
            asked.database,
            "select turn_id, detail ->> 'type' as detail from item where run_id = $1 order by sequence",
            UUID(asked.run_id),
        )
        assert [(row["turn_id"], row["detail"]) for row in rows] == [
            (None, "turn_end"), (turn, "turn_end"), (None, None), (passed, "turn_end"),
        ]  # fmt: skip

    async def test_a_message_is_a_turn_only_where_the_person_has_the_floor(self, asked: Asked) -> None:
        """conversation.md 9: and wakes nobody otherwise."""
        await asked.ask(QUESTION)
        assert (await asked.post("messages", {"message": "Wait."})).status_code == 201
        assert (await asked.row())["ready_at"] is None
        assert (await fetch(asked.database, "select outcome from pending"))[0]["outcome"] is None

    async def test_an_approval_is_bound_to_what_was_shown_and_leaves_its_item_to_the_engine(self, asked: Asked) -> None:
        """B04, B05, F32: a stale one is refused and noted."""
        call = await asked.ask(APPROVAL)
        other = APPROVE | {"argumentsHash": hash_of("{}").hex()}
        problem_of(await asked.post(f"approvals/{call}", other), 409, "stale_approval")
        receipt = (await asked.post(f"approvals/{call}", APPROVE)).json()
        assert (receipt["status"], receipt["argumentsHash"]) == ("Approved", HASH)
        assert await asked.items() == []
        (row,) = await fetch(asked.database, "select outcome, answer, answered_by_name, channel from pending")
        assert (row["outcome"], row["answered_by_name"], row["channel"]) == ("Approved", "owner", "api")
        actions = [
            (action, detail.get("code")) for action, detail in await asked.audit() if action.startswith("approval")
        ]
        assert actions == [("approval.refused", "stale_approval"), ("approval.approved", None)]


class TestSecondAnswers:
    @pytest.mark.parametrize(
        ("kind", "path", "first", "second", "words"),
        [
            (VOTE, "votes/{id}", {"agree": True}, {"agree": False, "reason": "No."}, "with a vote for it"),
            (QUESTION, "questions/{id}", {"answer": "Yes."}, {"answer": "No."}, "answered by owner at 20"),
            (TURN, "pass?turn={id}", None, None, ""),
            (APPROVAL, "approvals/{id}", APPROVE, REJECT, "approved by owner at 20"),
            (APPROVAL, "approvals/{id}", REJECT, REJECT | {"reason": "Other."}, "rejected by owner at 20"),
        ],
        ids=["vote", "question", "pass", "approved", "rejected"],
    )  # fmt: skip
    async def test_the_identical_one_gives_the_same_receipt_and_another_is_told_who_decided(
        self, asked: Asked, kind: PendingKind, path: str, first: Any, second: Any, words: str
    ) -> None:
        """B03: what, by whom and when; and the run is not woken again."""
        place = path.format(id=await asked.ask(kind))
        receipt = await asked.post(place, first)
        assert receipt.status_code == 200, receipt.text
        signal = (await asked.row())["signal_number"]
        again = await asked.post(place, first)
        assert (again.status_code, again.json()) == (200, receipt.json())
        if second is not None:
            assert words in problem_of(await asked.post(place, second), 409, "already_decided")["detail"]
        assert (await asked.row())["signal_number"] == signal
        assert len(await asked.items()) == (0 if kind is APPROVAL else 1)

    async def test_pending_ones_are_answered_in_any_order(self, asked: Asked) -> None:
        """B01, B02: each by its id; what was answered is not open any more."""
        ids = [await asked.ask(APPROVAL) for _ in range(3)]
        for number in (2, 0, 1):
            assert (await asked.post(f"approvals/{ids[number]}", APPROVE)).status_code == 200
        assert await fetch(asked.database, "select from pending where outcome is null") == []

    async def test_another_person_is_told_of_the_first_ones_answer(self, server: Served, asked: Asked) -> None:
        """B15: the approver is the authenticated one, whatever a body says."""
        call = await asked.ask(APPROVAL)
        await asked.post(f"approvals/{call}", APPROVE)
        problem_of(await asked.post(f"approvals/{call}", APPROVE | {"approver": "Dana"}), 422, "bad_input")
        database = server.installation.database
        owner = await keys.owner(database)
        (user_id,) = [NEW_ID()]
        async with database.writer() as writer:
            await writer.connection.execute(
                "insert into app_user (tenant_id, user_id, name, role, created_by, created_at, updated_at) values ($1, $2, 'Dana', 'approver', $2, now(), now())",
                owner.tenant_id, user_id,
            )  # fmt: skip
        dana = Caller(owner.tenant_id, user_id, "Dana")
        entry = await decide(database, dana, UUID(asked.run_id), call, approves=True)
        assert entry.settled is not None and entry.settled.by_name == "owner"
        with pytest.raises(AlreadyDecided, match="approved by owner"):
            await decide(database, dana, UUID(asked.run_id), call, approves=False)


async def decide(database: Database, caller: Caller, run_id: UUID, call_id: UUID, *, approves: bool) -> Any:
    return await answers.decide(
        database, caller, run_id=run_id, call_id=call_id, approves=approves, arguments_hash=HASH,
        reason=None if approves else "No.", tell=lambda _: None,
    )  # fmt: skip


class TestRefusals:
    PARTIAL: tuple[tuple[str, Any, str], ...] = (
        ("votes/{id}", {}, "/agree"),
        ("votes/{id}", {"agree": "yes"}, "/agree"),
        ("votes/{id}", {"agree": None}, "/agree"),
        ("votes/{id}", {"agree": False}, "/reason"),
        ("votes/{id}", {"agree": False, "reason": " \n"}, "/reason"),
        ("votes/{id}", {"agree": True, "reason": "Because."}, "/reason"),
        ("votes/{id}", {"agree": False, "reason": "x" * 10_001}, "/reason"),
        ("votes/{id}", {"agree": True, "abstain": True}, "/abstain"),
        ("questions/{id}", {}, "/answer"),
        ("questions/{id}", {"answer": ""}, "/answer"),
        ("questions/{id}", {"answer": "  "}, "/answer"),
        ("approvals/{id}", {}, "/decision"),
        ("approvals/{id}", {"decision": "Approve"}, "/argumentsHash"),
        ("approvals/{id}", {"decision": "approve", "argumentsHash": HASH}, "/decision"),
        ("approvals/{id}", APPROVE | {"reason": "Fine."}, "/reason"),
        ("approvals/{id}", REJECT | {"reason": " "}, "/reason"),
    )

    async def test_a_partial_or_unknown_answer_is_refused_and_nothing_is_recorded(self, asked: Asked) -> None:
        """B11: a 422, never a silent no."""
        kinds = {"votes": VOTE, "questions": QUESTION, "approvals": APPROVAL}
        for path, body, pointer in self.PARTIAL:
            id_ = await asked.ask(kinds[path.partition("/")[0]])
            problem = problem_of(await asked.post(path.format(id=id_), body), 422, "bad_input")
            assert [error["pointer"] for error in problem["errors"]][:1] == [pointer], (path, body)
            assert {row["outcome"] for row in await fetch(asked.database, "select outcome from pending")} == {None}
            assert await asked.items() == [], (path, body)
            await fetch(asked.database, "delete from pending returning pending_id")

    async def test_busy_and_waiting_for_an_approval_differ(self, asked: Asked) -> None:
        """B13, B04: and an id that never was is a 404 in both."""
        unknown, known = NEW_ID(), NEW_ID()
        async with asked.database.writer() as writer:
            body = json.dumps({"vote_id": str(known), "topic": "Shall we?"})
            await writer.connection.execute(
                """
                insert into item (tenant_id, run_id, sequence, created_at, item_id, author_kind, author_name, thread_id, kind, body)
                select tenant_id, run_id, 1, now(), $2, 'Agent', 'Ann', 'main', 'voteProposal', $3 from process where run_id = $1
                """,
                UUID(asked.run_id), NEW_ID(), body,
            )  # fmt: skip
            await writer.connection.execute(
                "update process set last_sequence = 1 where run_id = $1", UUID(asked.run_id)
            )
        problem_of(await asked.post(f"votes/{unknown}", {"agree": True}), 404, "not_found")
        problem_of(await asked.post(f"votes/{known}", {"agree": True}), 409, "not_waiting")
        problem_of(await asked.post("pass"), 409, "not_waiting")
        call = await asked.ask(APPROVAL)
        for place, answer in (
            (f"votes/{known}", {"agree": True}),
            (f"questions/{call}", {"answer": "a"}),
            ("pass", None),
        ):
            assert str(call) in problem_of(await asked.post(place, answer), 409, "waiting_for_approval")["detail"]
        problem_of(await asked.post(f"approvals/{unknown}", APPROVE), 404, "not_found")
        problem_of(await asked.server.client.post(f"{RUNS}/by-id/{unknown}/pass"), 404, "not_found")

    async def test_what_expired_or_was_stopped_is_too_late(self, asked: Asked) -> None:
        """F34, B12: also before the sweep has noticed; and nothing was decided."""
        due, call = await asked.ask(QUESTION, expires_in=-0.001), await asked.ask(APPROVAL)
        assert "expired" in problem_of(await asked.post(f"questions/{due}", {"answer": "a"}), 409, "too_late")["detail"]
        assert (await asked.post("stop")).status_code == 200
        assert (
            "owner stopped the run"
            in problem_of(await asked.post(f"approvals/{call}", APPROVE), 409, "too_late")["detail"]
        )
        assert {row["outcome"] for row in await fetch(asked.database, "select outcome from pending")} == {"Stopped"}

    async def test_what_an_ended_run_asked_takes_no_answer(self, asked: Asked) -> None:
        """Though its row was left open: by the service, and by the statement for whoever comes past it."""
        turn, ballot = await asked.ask(TURN), await asked.ask(VOTE)
        async with asked.database.writer() as writer:
            await writer.connection.execute("update process set status = 'Failed', ended_at = folkmoot_now()")
        for path, body in (("pass", None), (f"votes/{ballot}", {"agree": True})):
            problem_of(await asked.post(path, body), 409, "run_ended")
        tenant_id = (await asked.row())["tenant_id"]
        late = Answer(turn, PendingOutcome.ANSWERED, {"pass": True}, UUID(int=1), "owner", "api")
        async with asked.database.writer() as writer:
            assert await pending.settle(writer, tenant_id, run_id=UUID(asked.run_id), answer=late) is None
        assert {row["outcome"] for row in await fetch(asked.database, "select outcome from pending")} == {None}

    async def test_a_stop_closes_what_waits_and_wakes_the_run(self, asked: Asked) -> None:
        """B13: closed as Stopped, by whom, in the record; an ended run takes no answer."""
        call = await asked.ask(APPROVAL)
        await asked.post("stop")
        shown = (await asked.server.client.get(f"{asked.path}/approvals/{call}")).json()
        assert (shown["status"], shown["receipt"]["answeredByName"]) == ("Stopped", "owner")
        assert (await asked.row())["ready_at"] is not None
        assert ("run.stop_requested", {"closed": [str(call)]}) in await asked.audit()
        async with asked.database.writer() as writer:
            await writer.connection.execute(
                "update process set status = 'Stopped', ended_at = now(), ready_at = null where run_id = $1",
                UUID(asked.run_id),
            )
        problem_of(await asked.post("pass"), 409, "run_ended")

    async def test_reading_decides_nothing(self, asked: Asked) -> None:
        """B14: GET and HEAD of every place where something is decided."""
        call = await asked.ask(APPROVAL)
        for path in (f"approvals/{call}", f"votes/{call}", f"questions/{call}", "pass", "stop"):
            for method in ("GET", "HEAD"):
                answer = await asked.server.client.request(method, f"{asked.path}/{path}")
                assert answer.status_code in (200, 405), (method, path)
        assert (await fetch(asked.database, "select outcome from pending"))[0]["outcome"] is None


# races


@pytest_asyncio.fixture
async def second(database_dsn: str) -> AsyncIterator[Database]:
    """Another pool, as another server has."""
    opened = await Database.open(database_dsn)
    yield opened
    await opened.close()


def without_guards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the run's lock nor the look at whether it is open."""
    text = files("folkmoot.store").joinpath("sql/pending.sql").read_text(encoding="utf-8")
    bare = text.replace("for update;", ";").replace(
        " and num_nulls(w.outcome) = 1\n        and (w.expires_at is null or w.expires_at > t.now)", ""
    )
    assert bare.count(";") == text.count(";") and len(bare) < len(text) - 80
    monkeypatch.setattr(pending, "_sql", aiosql.from_str(bare, "asyncpg", kwargs_only=True, mandatory_parameters=False))


def have_them_meet(monkeypatch: pytest.MonkeyPatch, parties: int) -> asyncio.Barrier:
    """So many have read what is asked before any of them answers it; where the run is locked, they would wait for ever."""
    met = asyncio.Barrier(parties)
    find = pending.find

    async def found(*arguments: Any, **named: Any) -> Any:
        entry = await find(*arguments, **named)
        await met.wait()
        return entry

    monkeypatch.setattr(pending, "find", found)
    return met


async def outcome_of(work: Any) -> Any:
    """What came of an attempt: its value, or the error's class."""
    try:
        return await work
    except FolkmootError as error:
        return type(error)


class TestRaces:
    async def decisions(self, asked: Asked, second: Database, rounds: int) -> tuple[list[int], int]:
        """Two clicks, a retry, two servers at once: how many decisions each round had, and how often runs were woken in all."""
        first = asked.database
        caller = await keys.owner(first)
        counted: list[int] = []
        for number, run_id in enumerate(await copies(first, asked.run_id, rounds)):
            call = await ask(first, run_id, APPROVAL)
            clicks = [
                outcome_of(decide(database, caller, run_id, call, approves=approves))
                for database, approves in ((first, True), (second, False), (second, True), (first, number % 2 == 0))
            ]
            made = await asyncio.gather(*clicks)
            assert all(entry is AlreadyDecided for entry in made if isinstance(entry, type))
            counted.append(len({repr(entry.settled) for entry in made if not isinstance(entry, type)}))
        (woken,) = await fetch(
            first, "select sum(signal_number)::int as signals from process where status = 'PendingApproval'"
        )
        return counted, int(woken["signals"])

    async def test_of_clicks_at_once_one_counts(self, asked: Asked, second: Database) -> None:
        """F30: 100 rounds: one decision each, the same receipt for all who say the same, and one wake (B17)."""
        assert await self.decisions(asked, second, 100) == ([1] * 100, 100)

    async def test_without_the_guards_more_than_one_counts(
        self, asked: Asked, second: Database, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The negative control of the test above: all four read before any decides."""
        without_guards(monkeypatch)
        have_them_meet(monkeypatch, 4)
        assert await self.decisions(asked, second, 3) == ([4] * 3, 12)

    async def contest(self, asked: Asked, second: Database, rounds: int, *, seconds: float = 0.02) -> None:
        """Approve, reject, stop and expiry at once, so many rounds: one of them counts, and the audit log has every attempt.

        The expiry is within `seconds`, and looked for within 20 ms.
        """
        database = asked.database
        caller = await keys.owner(database)
        for run_id in await copies(database, asked.run_id, rounds):
            call = await ask(database, run_id, APPROVAL, expires_in=random.uniform(seconds / 10, seconds))
            await asyncio.gather(
                self.expire(second, after=random.uniform(0, 0.02)),
                outcome_of(decide(database, caller, run_id, call, approves=True)),
                outcome_of(decide(second, caller, run_id, call, approves=False)),
                outcome_of(runs.request_stop(second, caller, run_id=run_id, tell=lambda _: None)),
            )
            await self.expire(second, after=0.0)
            (row,) = await fetch(database, "select outcome from pending where run_id = $1", run_id)
            noted = await fetch(database, "select action, detail from audit where subject_id = $1", run_id)
            actions = [entry["action"] for entry in noted]
            decided = [action for action in actions if action in ("approval.approved", "approval.rejected")]
            has_stopped = any(e["action"] == "run.stop_requested" and str(call) in e["detail"] for e in noted)
            assert len(decided) + actions.count("approval.refused") == 2
            assert actions.count("run.stop_requested") == 1
            winners = [
                *decided,
                *(["stop"] if has_stopped else []),
                *(["expiry"] if row["outcome"] == "Expired" else []),
            ]
            told = {
                "approval.approved": "Approved",
                "approval.rejected": "Rejected",
                "stop": "Stopped",
                "expiry": "Expired",
            }
            assert [told[winner] for winner in winners] == [row["outcome"]]

    async def expire(self, database: Database, *, after: float) -> None:
        await asyncio.sleep(after)
        async with database.writer() as writer:
            for tenant_id in await run_store.tenants_due(writer):
                await run_store.expire(writer, tenant_id)

    async def test_approve_reject_stop_and_expiry_at_once(self, asked: Asked, second: Database) -> None:
        """F31."""
        await self.contest(asked, second, 60)

    async def test_without_the_guards_several_win(
        self, asked: Asked, second: Database, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The negative control of the test above: both decisions count, since both read before either decides or the run is stopped."""
        without_guards(monkeypatch)
        met = have_them_meet(monkeypatch, 3)
        request_stop = runs.request_stop

        async def stopped(*arguments: Any, **named: Any) -> Any:
            await met.wait()
            return await request_stop(*arguments, **named)

        monkeypatch.setattr(runs, "request_stop", stopped)
        with pytest.raises((AssertionError, asyncpg.DeadlockDetectedError)):
            await self.contest(asked, second, 1, seconds=1000)

    async def test_answers_to_several_things_at_once_leave_no_gap(self, asked: Asked, second: Database) -> None:
        """B17: the last answers at the same moment, and a message: sequences without a gap, and the run is ready."""
        ballots = [await asked.ask(VOTE) for _ in range(6)]
        caller = await keys.owner(asked.database)
        run_id = UUID(asked.run_id)

        async def vote(database: Database, ballot: UUID) -> Any:
            return await answers.vote(
                database,
                caller,
                run_id=run_id,
                ballot_id=ballot,
                agrees=True,
                reason=None,
                new_id=NEW_ID,
                tell=lambda _: None,
            )

        await asyncio.gather(
            *(vote(second if n % 2 else asked.database, ballot) for n, ballot in enumerate(ballots)),
            runs.post_message(second, caller, run_id=run_id, message="Well.", new_id=NEW_ID, tell=lambda _: None),
        )
        assert [item["sequence"] for item in await asked.items()] == list(range(1, 8))
        row = await asked.row()
        assert (row["last_sequence"], row["signal_number"]) == (7, 7) and row["ready_at"] is not None


class TestRights:
    async def test_who_may_not_approve_decides_nothing(self, server: Served, asked: Asked) -> None:
        """F34, F37: a viewer's key is refused by the routes, each by its right."""
        call, ballot = await asked.ask(APPROVAL), await asked.ask(VOTE)
        made = (await server.client.post("/keys", json={"name": "viewer", "scopes": ["read"]})).json()
        async with server.of(made["key"]) as viewer:
            for path, body in ((f"approvals/{call}", APPROVE), (f"votes/{ballot}", {"agree": True}), ("pass", None)):
                problem_of(await viewer.post(f"{asked.path}/{path}", json=body), 403, "not_permitted")
            assert (await viewer.get(f"{asked.path}/approvals/{call}")).status_code == 200
        assert {row["outcome"] for row in await fetch(asked.database, "select outcome from pending")} == {None}
