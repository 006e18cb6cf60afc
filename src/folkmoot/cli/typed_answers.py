"""What a typed line means while a run waits for a person: an answer to what is shown, or something to be said.

A decision is a word of its own, never read out of a sentence. Deliberately absent: cards (`cards`) and waiting (`watching`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from folkmoot.bootstrap.installation import Installation
from folkmoot.cli import cards
from folkmoot.domain.inbox import PendingEntry
from folkmoot.domain.pending import PendingKind
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.errors import BadInput
from folkmoot.services import answers, runs

SAY = "/say"
PASS = "/pass"
_AGREE = ("y", "yes", "agree")
_DISAGREE = ("n", "no", "disagree")


@dataclass(frozen=True, slots=True)
class Person:
    """Whoever types, and the run it is typed to."""

    installation: Installation
    caller: Caller
    run_id: UUID

    def _common(self, asked: PendingEntry) -> dict[str, Any]:
        """The run that asks, which may be one below that which is watched."""
        return {"run_id": asked.run_id, "tell": self.installation.notifier.tell}

    async def say(self, text: str, *, run_id: UUID | None = None) -> None:
        """A message, to the run that is watched if no other is named; where the person has the floor there, it is the turn."""
        await runs.post_message(
            self.installation.database, self.caller, run_id=run_id or self.run_id, message=text, new_id=self.installation.new_id,
            tell=self.installation.notifier.tell,
        )  # fmt: skip

    async def answer(self, asked: PendingEntry, line: str) -> bool:
        """Take the line as the answer to what was shown, or say it where it begins with /say; whether it was an answer.

        Raises BadInput for a line that is neither, and what `services.answers` raises.
        """
        word, _, rest = line.partition(" ")
        if word == SAY:
            await self.say(rest.strip())
            return False
        match asked.pending.kind:
            case PendingKind.APPROVAL:
                await self._decide(asked, word.lower(), rest.strip())
            case PendingKind.VOTE:
                await self._vote(asked, word.lower(), rest.strip())
            case PendingKind.QUESTION:
                await self._answer_question(asked, line)
            case PendingKind.TURN:
                await (self._pass(asked) if line == PASS else self.say(line, run_id=asked.run_id))
        return True

    async def _decide(self, asked: PendingEntry, word: str, reason: str) -> None:
        if word not in ("approve", "reject") or (word == "approve" and reason):
            raise _no_answer("decision", asked)
        await answers.decide(
            self.installation.database, self.caller, call_id=asked.pending.pending_id, approves=word == "approve",
            arguments_hash=(asked.pending.binding_hash or b"").hex(), reason=reason or None, **self._common(asked),
        )  # fmt: skip

    async def _vote(self, asked: PendingEntry, word: str, reason: str) -> None:
        agrees = word in _AGREE
        if word not in (*_AGREE, *_DISAGREE) or agrees == bool(reason):
            raise _no_answer("vote", asked)
        await answers.vote(
            self.installation.database, self.caller, ballot_id=asked.pending.pending_id, agrees=agrees, reason=reason or None,
            new_id=self.installation.new_id, **self._common(asked),
        )  # fmt: skip

    async def _answer_question(self, asked: PendingEntry, text: str) -> None:
        await answers.answer(
            self.installation.database, self.caller, question_id=asked.pending.pending_id, text=text,
            new_id=self.installation.new_id, **self._common(asked),
        )  # fmt: skip

    async def _pass(self, asked: PendingEntry) -> None:
        await answers.pass_turn(
            self.installation.database, self.caller, turn_id=asked.pending.pending_id, new_id=self.installation.new_id, **self._common(asked)
        )  # fmt: skip


def _no_answer(what: str, asked: PendingEntry) -> BadInput:
    return BadInput(f"That is no {what}. {cards.TYPED[asked.pending.kind]} {SAY} and a text says something else.")
