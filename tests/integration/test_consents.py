"""Answers to what agent runs ask, by id and over channels (agent-runs.md, Consent; B01, B03 to B05, B14 to B17, B71; F30 to F37).

The channels' own apps are tested beside (`test_channel_*`); here a message is what such an app reads.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from functools import partial
from importlib.resources import files
from typing import Any
from uuid import UUID

import agents_at_hand as agents
import aiosql
import panels
import pytest
import pytest_asyncio
from agents_at_hand import Deeds, call, met, plan, script, step
from crews import crew, until

from folkmoot.domain.agent_runs import AgentRun, ChatItem
from folkmoot.domain.channels import Answer, AnswerOutcome, ChannelVersion, OutcomeKind, ReceivedAnswer
from folkmoot.domain.rights import Role
from folkmoot.domain.tenancy import Caller, User
from folkmoot.kernel.errors import AlreadyDecided, NotFound, NotPermitted, RunEnded, StaleApproval, TooLate, Unreachable
from folkmoot.kernel.ids import NewId
from folkmoot.services import agent_runs, apply, channel_answers, consent_secrets, consents, users
from folkmoot.services import identities as identity_service
from folkmoot.services.apply import Document
from folkmoot.services.closure import Workbench
from folkmoot.store import identities, pending, runs
from folkmoot.store.database import Database
from folkmoot.vault.keys import key_of
from folkmoot.vault.sealing import Vault

APP = "email"
TELLS = plan(step("Tell Bo.", "tell"))
TWICE: list[Any] = [
    "Nothing.",
    plan(step("Tell Bo.", "tell"), step("Tell Eve.", "tell")),
    [call("tell", who="Bo", what="42")],
    "Told.",
    [call("tell", who="Eve", what="ALL")],
    "Told.",
    met("Told."),
]
RULES = script(clerk=["Nothing.", TELLS, [call("tell", who="Bo", what="42")], "Told.", met("Told.")])
MAILS = {
    "from": "f@example.com",
    "smtpHost": "smtp.example.com",
    "smtpPort": 25,
    "smtpSecurity": "none",
    "replyAddress": "answers@example.com",
}


@dataclass
class Desk:
    """A run that waits for its owner's consent over a channel, with the secret of its request."""

    database: Database
    caller: Caller
    new_id: NewId
    deeds: Deeds
    bench: Workbench
    vault: Vault
    owner: User
    run: AgentRun
    secret: str
    channel_id: UUID

    async def answer(self, number: object = 1, **more: Any) -> AnswerOutcome:
        """An answer of the owner's, with what is `more` in place."""
        received = ReceivedAnswer(
            f"message-{number}", self.run.correlation_token, self.secret, "olga@example.com", False, Answer.APPROVE,
            about=(await self.item()).chat_item_id,
        )  # fmt: skip
        return await channel_answers.answer_over_channel(
            self.database, tenant_id=self.caller.tenant_id, channel_id=more.pop("channel_id", self.channel_id), app=APP,
            received=replace(received, **more), tell=lambda _: None,
        )  # fmt: skip

    async def item(self) -> ChatItem:
        return await agents.asked(self.database, self.caller, self.run)

    async def finish(self) -> None:
        """A worker goes on with it to its end."""
        async with crew(self.database, self.new_id, bench=self.bench, functions=self.deeds.functions):
            await until(agents.ended(self.database, self.caller, self.run))


@pytest_asyncio.fixture
async def desk(database: Database, caller: Caller, new_id: NewId) -> AsyncIterator[Desk]:
    owner = await users.add(database, caller, name="Olga", role=Role.OPERATOR, new_id=new_id)
    await identity_service.put(database, caller, user_id=owner.user_id, app=APP, address="Olga@Example.com")
    vault = Vault((key_of(b"k" * 32),), random_bytes=lambda n: b"n" * n)
    deeds = Deeds()
    bench = deeds.bench(RULES)
    await apply.apply(database, caller, [Document("default", "mail", ChannelVersion(APP, MAILS))], new_id=new_id)
    await agents.publish(
        database, caller, new_id, bench=bench, settings=agents.ruled(owner=owner.user_id, channel="mail")
    )
    run = await agents.start(database, caller, new_id, bench=bench, reply_params='{"thread": 7}')
    async with crew(database, new_id, bench=bench, functions=deeds.functions, vault=vault):
        await until(agents.awaits(database, caller, run))
    (message,) = await panels.fetch(database, "select message_id, channel_id, sealed_secret, kind from channel_message")
    secret = consent_secrets.opened(vault, caller.tenant_id, message["message_id"], message["sealed_secret"])
    yield Desk(database, caller, new_id, deeds, bench, vault, owner, run, secret, message["channel_id"])


async def test_the_owners_answer_over_the_channel_counts_and_is_recorded_with_the_way_it_came(desk: Desk) -> None:
    """Consent 2 and 3, B15: matched by token, checked against the chat item; the call runs once, as it was shown."""
    assert (desk.run.channel, desk.run.reply_params) == (APP, '{"thread": 7}')
    row = (await panels.fetch(desk.database, "select secret_hash from chat_item"))[0]
    assert re.fullmatch("[a-z2-7]{16}", desk.secret) and desk.secret.encode() not in bytes(row["secret_hash"])
    outcome = await desk.answer()
    assert outcome.kind is OutcomeKind.DONE, outcome.words
    item = await desk.item()
    assert item.consent is not None
    assert (item.consent.status, item.consent.decided_by_name, item.consent.decided_over) == ("approved", "Olga", APP)
    entries = await panels.fetch(
        desk.database, "select user_name, channel, detail from audit where action = 'approval.approved'"
    )
    assert [(each["user_name"], each["channel"]) for each in entries] == [("Olga", APP)]
    assert item.consent.arguments_hash.hex() in entries[0]["detail"], "with a hash of the arguments"
    await desk.finish()
    assert desk.deeds.done == [("tell", ("Bo", "42"))]


@pytest.mark.parametrize(
    ("more", "kind"),
    [
        pytest.param({"token": None}, OutcomeKind.NOT_FOUND, id="without a token"),
        pytest.param({"token": "aaaaaaaaaaaaaaaaaaaaaaaaaa"}, OutcomeKind.NOT_FOUND, id="with a wrong token"),
        pytest.param({"channel_id": UUID(int=7)}, OutcomeKind.NOT_FOUND, id="over another channel"),
        pytest.param({"secret": None}, OutcomeKind.NOT_YOURS, id="without the secret"),
        pytest.param({"secret": ""}, OutcomeKind.NOT_YOURS, id="with an empty secret"),
        pytest.param({"secret": "aaaaaaaaaaaaaaaa"}, OutcomeKind.NOT_YOURS, id="with a wrong secret"),
        pytest.param({"sender": "eve@example.com"}, OutcomeKind.NOT_YOURS, id="from somebody else, who has the secret"),
        pytest.param({"sender": "vic@example.com"}, OutcomeKind.NOT_YOURS, id="from a colleague who may not answer"),
        pytest.param({"answer": None, "unread": "maybe later"}, OutcomeKind.NOT_UNDERSTOOD, id="neither yes nor no"),
        pytest.param({"is_automatic": True}, OutcomeKind.IGNORED, id="a machine's own reply"),
    ],
)
async def test_what_does_not_count_leaves_the_run_waiting_and_is_told(
    desk: Desk, more: dict[str, Any], kind: OutcomeKind
) -> None:
    """B11, B16, F35, F37: every answer has a visible outcome; nothing but the owner's own, with the secret, decides."""
    colleague = await users.add(desk.database, desk.caller, name="Vic", role=Role.OPERATOR, new_id=desk.new_id)
    await identity_service.put(
        desk.database, desk.caller, user_id=colleague.user_id, app=APP, address="vic@example.com"
    )
    outcome = await desk.answer(**more)
    assert outcome.kind is kind and outcome.words
    now = await agents.now(desk.database, desk.caller, desk.run)
    assert now.status == "awaiting_consent" and (await desk.item()).consent.status == "pending"  # type: ignore[union-attr]
    assert (await desk.answer(2)).kind is OutcomeKind.DONE, "and the right one counts after it"


async def test_a_proven_sender_needs_no_secret_and_the_secret_alone_does_not_do_there(desk: Desk) -> None:
    """Consent 2: the request's secret does not suffice where the channel can prove who is speaking (F37: unmapped, another tenant's)."""
    assert (await desk.answer(1, is_proven=True, sender="T1:U404")).kind is OutcomeKind.NOT_YOURS
    other = await _other_tenant(desk)
    async with desk.database.writer() as writer:
        await identities.put(
            writer, other.tenant_id, user_id=other.user_id, app=APP, address="t2:u2", created_by=other.user_id
        )
    assert (await desk.answer(2, is_proven=True, sender="t2:u2")).kind is OutcomeKind.NOT_YOURS
    assert (await desk.answer(3, is_proven=True, secret=None)).kind is OutcomeKind.DONE


async def _other_tenant(desk: Desk) -> Caller:
    tenant_id, user_id = desk.new_id(), desk.new_id()
    await panels.execute(
        desk.database,
        "insert into tenant (tenant_id, name, created_at) values ($1, 'other', folkmoot_now())",
        tenant_id,
    )
    await panels.execute(
        desk.database,
        "insert into app_user (tenant_id, user_id, name, role, created_by, created_at, updated_at) "
        "values ($1, $2, 'Olga', 'owner', $2, folkmoot_now(), folkmoot_now())",
        tenant_id, user_id,
    )  # fmt: skip
    return replace(desk.caller, tenant_id=tenant_id, user_id=user_id)


async def test_a_token_of_another_tenant_finds_nothing(desk: Desk) -> None:
    other = await _other_tenant(desk)
    received = ReceivedAnswer("m", desk.run.correlation_token, desk.secret, "olga@example.com", False, Answer.APPROVE)
    outcome = await channel_answers.answer_over_channel(
        desk.database,
        tenant_id=other.tenant_id,
        channel_id=desk.channel_id,
        app=APP,
        received=received,
        tell=lambda _: None,
    )
    assert outcome.kind is OutcomeKind.NOT_FOUND
    with pytest.raises(NotFound):
        await agent_runs.get(desk.database, other, id_=desk.run.id)


async def test_twice_and_against_each_other_only_the_first_counts(desk: Desk) -> None:
    """B03, F31, B71: the same message again is told the same and does nothing; another is told what was decided, by whom and when."""
    declined = await desk.answer(1, answer=Answer.DECLINE, reason="Too much.")
    assert declined.kind is OutcomeKind.DONE
    resent = await desk.answer(1, answer=Answer.DECLINE, reason="Too much.")
    assert resent == declined
    late = await desk.answer(2)
    assert late.kind is OutcomeKind.ALREADY_DECIDED and "declined by Olga at 20" in late.words
    counted = await panels.fetch(
        desk.database, "select secret_tries, secret_used_at is not null as used from chat_item"
    )
    assert [(each["secret_tries"], each["used"]) for each in counted] == [(1, True)]
    await desk.finish()
    assert desk.deeds.done == []


async def test_ten_wrong_secrets_close_the_door_to_the_right_one(desk: Desk) -> None:
    """correlationToken: ten tries. The owner still answers where the server itself knows who they are."""
    for number in range(10):
        assert (await desk.answer(number, secret=f"wrong{number}")).kind is OutcomeKind.NOT_YOURS
    shut = await desk.answer("right")
    assert shut.kind is OutcomeKind.NOT_YOURS and "Too many" in shut.words
    assert (await desk.answer("proven", is_proven=True)).kind is OutcomeKind.DONE


async def test_after_expiry_an_answer_is_told_that_it_is_too_late(desk: Desk) -> None:
    """Consent 4, B12: also in the moment before the sweep has come by; the call is never made (F34)."""
    await panels.shift_clock(desk.database, 3 * 24 * 3600 + 1)
    early = await desk.answer(1)
    assert early.kind is OutcomeKind.TOO_LATE, early.words
    await desk.finish()
    done = await agents.now(desk.database, desk.caller, desk.run)
    assert done.status == "expired" and desk.deeds.done == []
    late = await desk.answer(2)
    assert late.kind is OutcomeKind.TOO_LATE and "expired" in late.words
    told = await panels.fetch(desk.database, "select kind from channel_message order by created_at, message_id")
    assert [each["kind"] for each in told] == ["consent.requested", "consent.expired"], "announced once"


async def test_by_id_only_the_owner_and_admins_answer_and_only_what_is_shown(desk: Desk) -> None:
    """The API's way: B05 (another hash), B03 (identical again), B16, F32, F37."""
    item = await desk.item()
    assert item.consent is not None
    hash_ = item.consent.arguments_hash.hex()
    stranger = replace(desk.caller, user_id=desk.new_id(), user_name="Eve", role=Role.OPERATOR)
    owner = replace(stranger, user_id=desk.owner.user_id, user_name="Olga")

    async def answer(
        caller: Caller, *, approves: bool = True, hash_: str = hash_, id_: UUID = item.chat_item_id
    ) -> ChatItem:
        return await consents.answer(
            desk.database, caller, id_=desk.run.id, chat_item_id=id_, approves=approves, arguments_hash=hash_, reason=None, tell=lambda _: None
        )  # fmt: skip

    with pytest.raises(NotPermitted):
        await answer(stranger)
    with pytest.raises(StaleApproval):
        await answer(owner, hash_="00" * 32)
    with pytest.raises(NotFound):
        await answer(owner, id_=desk.new_id())
    first = await answer(owner)
    assert await answer(owner) == first
    with pytest.raises(AlreadyDecided, match="Olga"):
        await answer(owner, approves=False)
    refused = await panels.fetch(
        desk.database, "select user_name from audit where action = 'approval.refused' order by at"
    )
    assert [each["user_name"] for each in refused] == ["Eve", "Olga", "Olga"], "attempts stay in the audit log"
    await desk.finish()
    with pytest.raises((TooLate, AlreadyDecided)):
        await answer(owner, approves=False)


async def test_of_a_hundred_answers_at_once_one_decides_and_the_run_is_woken_once(desk: Desk) -> None:
    """B17, F30: by the API and over the channel, approving and declining, from two servers' worth of connections."""
    item = await desk.item()
    assert item.consent is not None
    owner = replace(desk.caller, user_id=desk.owner.user_id, user_name="Olga", role=Role.OPERATOR)

    async def by_id(n: int) -> str:
        try:
            found = await consents.answer(
                desk.database, owner, id_=desk.run.id, chat_item_id=item.chat_item_id, approves=n % 2 == 0,
                arguments_hash=item.consent.arguments_hash.hex(), reason=None, tell=lambda _: None,  # type: ignore[union-attr]
            )  # fmt: skip
        except AlreadyDecided:
            return "told"
        return found.consent.status.value  # type: ignore[union-attr]

    async def by_mail(n: int) -> str:
        answer = Answer.APPROVE if n % 2 == 0 else Answer.DECLINE
        return (await desk.answer(n, answer=answer, is_proven=n % 3 == 0)).kind.value

    outcomes = await asyncio.gather(*(by_id(n) if n % 4 else by_mail(n) for n in range(100)))
    decided = (await desk.item()).consent
    assert decided is not None and decided.status in ("approved", "declined")
    others = {"approved": "declined", "declined": "approved"}[decided.status.value]
    assert others not in outcomes, "nobody was told of another decision than the one there is"
    row = await panels.row_of(desk.database, agents.kernel_run(desk.run))
    assert row["signal_number"] == 1 and row["ready_at"] is not None
    await desk.finish()
    assert len(desk.deeds.done) == (1 if decided.status == "approved" else 0)


async def test_without_the_lock_and_the_look_both_of_two_answers_decide(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control of the test above: both have read that nobody has decided before either does."""
    text = files("folkmoot.store").joinpath("sql/pending.sql").read_text(encoding="utf-8")
    bare = text.replace("for update;", ";").replace(
        " and num_nulls(w.outcome) = 1\n        and (w.expires_at", " and (w.expires_at"
    )
    assert len(bare) < len(text) - 30
    monkeypatch.setattr(pending, "_sql", aiosql.from_str(bare, "asyncpg", kwargs_only=True, mandatory_parameters=False))
    find, met = pending.find, asyncio.Barrier(2)

    async def found(*arguments: Any, **named: Any) -> Any:
        entry = await find(*arguments, **named)
        await met.wait()
        return entry

    monkeypatch.setattr(pending, "find", found)
    outcomes = await asyncio.gather(
        desk.answer(1, is_proven=True), desk.answer(2, is_proven=True, answer=Answer.DECLINE)
    )
    assert [outcome.kind for outcome in outcomes] == [OutcomeKind.DONE] * 2
    assert (await panels.row_of(desk.database, agents.kernel_run(desk.run)))["signal_number"] == 2


async def test_a_secret_is_used_once_also_by_two_at_the_same_moment(desk: Desk) -> None:
    """F35, single use; without the guard of its own (`use_secret`) a second use would count."""
    item = await desk.item()
    digest = channel_answers._digest(desk.secret)
    async with desk.database.writer() as writer:
        uses = [
            await channel_answers.chats.use_secret(
                writer, desk.caller.tenant_id, chat_item_id=item.chat_item_id, secret_hash=digest
            )
            for _ in range(2)
        ]
    assert uses == [True, False]
    assert (await desk.answer()).kind is OutcomeKind.ALREADY_DECIDED


async def test_nobody_learns_of_a_run_by_its_token_alone(desk: Desk) -> None:
    """correlationToken: it finds the run, and that is all it does."""
    outcome = await desk.answer(sender="eve@example.com")
    assert "tell" not in outcome.words and "Bo" not in outcome.words and "clerk" not in outcome.words


async def test_a_second_click_on_an_old_card_decides_nothing_new(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    """B05, F32: a proven answer is about the request that it names: one that was decided, whatever is asked now."""
    await identity_service.put(database, caller, user_id=caller.user_id, app="slack", address="T1:U1")
    deeds = Deeds()
    bench = deeds.bench(script(clerk=TWICE))
    await apply.apply(database, caller, [Document("default", "slk", ChannelVersion("slack"))], new_id=new_id)
    await agents.publish(database, caller, new_id, bench=bench, settings=agents.ruled(channel="slk"))
    run = await agents.start(database, caller, new_id, bench=bench)
    (row,) = await panels.fetch(database, "select channel_id from agent_run")

    async def click(number: int, about: UUID | None) -> AnswerOutcome:
        received = ReceivedAnswer(f"t{number}", run.correlation_token, None, "T1:U1", True, Answer.APPROVE, about=about)
        return await channel_answers.answer_over_channel(
            database,
            tenant_id=caller.tenant_id,
            channel_id=row["channel_id"],
            app="slack",
            received=received,
            tell=lambda _: None,
        )

    async with crew(database, new_id, bench=bench, functions=deeds.functions) as made:
        await until(agents.awaits(database, caller, run))
        first = (await agents.asked(database, caller, run)).chat_item_id
        assert (await click(1, first)).kind is OutcomeKind.DONE
        made.tell({"to": "workers"})

        await until(partial(_asks_another, database, caller, run, first))
        assert (await click(2, first)).kind is OutcomeKind.ALREADY_DECIDED
        assert (await click(3, None)).kind is OutcomeKind.NOT_FOUND
        assert (await click(4, new_id())).kind is OutcomeKind.NOT_FOUND
    assert deeds.done == [("tell", ("Bo", "42"))]


async def test_a_late_reply_to_an_earlier_request_is_told_what_was_decided_and_is_no_try_of_the_next(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    """B16, B71: a secret tells which request is answered, in a mail and on the page."""
    await identity_service.put(database, caller, user_id=caller.user_id, app=APP, address="olga@example.com")
    vault = Vault((key_of(b"k" * 32),), random_bytes=lambda n: b"n" * n)
    deeds = Deeds()
    bench = deeds.bench(script(clerk=TWICE))
    await apply.apply(database, caller, [Document("default", "mail", ChannelVersion(APP, MAILS))], new_id=new_id)
    await agents.publish(database, caller, new_id, bench=bench, settings=agents.ruled(channel="mail"))
    run = await agents.start(database, caller, new_id, bench=bench)
    async with crew(database, new_id, bench=bench, functions=deeds.functions, vault=vault) as made:
        await until(agents.awaits(database, caller, run))
        (sent,) = await panels.fetch(database, "select message_id, channel_id, sealed_secret from channel_message")
        secret = consent_secrets.opened(vault, caller.tenant_id, sent["message_id"], sent["sealed_secret"])
        first = await agents.consent(database, caller, run, tell=made.tell)
        await until(partial(_asks_another, database, caller, run, first.chat_item_id))
    for number in range(11):
        received = ReceivedAnswer(
            f"m{number}", run.correlation_token, secret, "olga@example.com", False, Answer.APPROVE
        )
        late = await channel_answers.answer_over_channel(
            database, tenant_id=caller.tenant_id, channel_id=sent["channel_id"], app=APP, received=received, tell=lambda _: None
        )  # fmt: skip
        assert late.kind is OutcomeKind.ALREADY_DECIDED and f"approved by {caller.user_name}" in late.words
    by_code = await channel_answers.answer_by_code(
        database, token=run.correlation_token, code=secret, approves=True, reason=None, tell=lambda _: None
    )
    assert by_code.kind is OutcomeKind.ALREADY_DECIDED
    rows = await panels.fetch(
        database, "select status, secret_tries from chat_item where kind = 'consent' order by number"
    )
    assert [(row["status"], row["secret_tries"]) for row in rows][1] == ("pending", 0)
    assert deeds.done == [("tell", ("Bo", "42"))]


async def _asks_another(database: Database, caller: Caller, run: AgentRun, first: UUID) -> bool:
    now = await agents.now(database, caller, run)
    return now.status == "awaiting_consent" and now.chat_item_id != first


async def test_a_sender_who_cannot_be_made_out_is_nobody(desk: Desk) -> None:
    """B15, F37: a mail with several addresses in From, or with none, is not the owner's; the code alone does not do."""
    assert (await desk.answer(1, sender="")).kind is OutcomeKind.NOT_YOURS
    assert (await desk.item()).consent.status == "pending"  # type: ignore[union-attr]


async def test_of_a_cancel_and_an_expiry_at_once_the_first_holds(desk: Desk) -> None:
    """F31: whoever waits for the other's transaction sees what came of it. lastError is null unless a run failed."""
    await panels.shift_clock(desk.database, 8 * 24 * 3600)
    async with desk.database.writer() as writer:
        assert await runs.expire(writer, desk.caller.tenant_id)
        cancelling = asyncio.create_task(
            agent_runs.cancel(desk.database, desk.caller, id_=desk.run.id, tell=lambda _: None)
        )
        await until(partial(panels.is_waited_for, desk.database))
    with pytest.raises(RunEnded, match="expired"):
        await cancelling
    await desk.finish()
    ended = await agents.now(desk.database, desk.caller, desk.run)
    assert (ended.status, ended.last_error) == ("expired", None)
    assert (await desk.item()).consent.status == "expired"  # type: ignore[union-attr]


async def test_whoever_starts_a_run_does_not_choose_where_its_owner_is_asked(desk: Desk) -> None:
    """B15: else they would be sent the request with its secret, and answer in the owner's name."""
    eve = replace(desk.caller, user_id=desk.new_id(), user_name="Eve", role=Role.OPERATOR)
    await apply.apply(
        desk.database, desk.caller, [Document("default", "eves", ChannelVersion(APP, MAILS))], new_id=desk.new_id
    )
    for channel in ("eves", "web"):  # the second would have them told of nothing
        with pytest.raises(NotPermitted, match="theirs to say"):
            await agents.start(desk.database, eve, desk.new_id, bench=desk.bench, channel=channel)
    assert (
        await agents.start(desk.database, eve, desk.new_id, bench=desk.bench, channel="default/mail")
    ).channel == APP
    owner = replace(eve, user_id=desk.owner.user_id, user_name="Olga")
    assert (await agents.start(desk.database, owner, desk.new_id, bench=desk.bench, channel="eves")).channel == APP


async def test_an_answer_in_an_outage_may_come_again(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """F20, B67: what was not looked at has no outcome, and nobody is told where the database is."""

    async def down(*_: Any, **__: Any) -> Any:
        raise Unreachable("The database at db.internal:5432 cannot be reached.")

    with monkeypatch.context() as patched:
        patched.setattr(channel_answers.consents, "decide", down)
        with pytest.raises(Unreachable):
            await desk.answer()
    assert (await desk.answer()).kind is OutcomeKind.DONE


async def test_what_was_refused_over_a_channel_is_in_the_audit_log(desk: Desk) -> None:
    """F31, F37: with the channel, what it was about, and the sender that was claimed; by nobody where nobody is known."""
    await desk.answer(1, secret="wrong")
    await desk.answer(2, sender="eve@example.com", answer=Answer.DECLINE)
    await desk.answer(3)
    await desk.answer(4, answer=Answer.DECLINE)
    rows = await panels.fetch(
        desk.database, "select user_name, channel, detail::jsonb ->> 'code' as code, detail::jsonb ->> 'sender' as sender from audit "
        "where action = 'approval.refused' order by at"
    )  # fmt: skip
    assert [(each["user_name"], each["channel"], each["code"], each["sender"]) for each in rows] == [
        ("Olga", APP, "not_yours", "olga@example.com"),
        ("somebody", APP, "not_yours", "eve@example.com"),
        ("Olga", APP, "already_decided", "olga@example.com"),
    ]


async def test_an_app_that_proves_nobody_in_particular_decides_nothing(desk: Desk) -> None:
    assert (await desk.answer(1, is_proven=True, sender=None)).kind is OutcomeKind.NOT_YOURS


async def test_an_unproven_id_cannot_be_taken_before_its_owner_comes(desk: Desk) -> None:
    """B71: whoever knows the id of the owner's mail neither answers in its place nor learns what it was answered."""
    assert (await desk.answer(1, sender="eve@example.com", secret="x")).kind is OutcomeKind.NOT_YOURS
    assert (await desk.answer(1)).kind is OutcomeKind.DONE
    assert (await desk.answer(1, sender="eve@example.com", secret="y")).kind is OutcomeKind.NOT_YOURS
