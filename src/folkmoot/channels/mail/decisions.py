"""A yes or a no out of a mail's text: the first line decides, and only what stands above anything quoted is read.

Words are matched as a whole line, so that nothing is guessed: 'Yes, but …' is neither, and neither is a 'Yes' with more below it than
a greeting and a name, which may take it back. What is quoted was written by others, by a model in the end. Deliberately absent: mails and their parts (`reading`).
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from folkmoot.domain.channels import Answer
from folkmoot.domain.shown_text import shown

_APPROVE = frozenset(
    [
        "approve",
        "approved",
        "yes",
        "y",
        "ok",
        "okay",
        "agree",
        "agreed",
        "ja",
        "genehmigt",
        "genehmigen",
        "einverstanden",
        "oui",
        "approuvé",
        "approuver",
        "sí",
        "si",
        "aprobar",
        "aprobado",
        "sim",
        "aprovar",
        "aprovado",
        "sì",
        "approvo",
        "approvato",
        "akkoord",
        "tak",
        "はい",
        "承認",
        "同意",
        "批准",
    ]
)
_DECLINE = frozenset(
    [
        "decline",
        "declined",
        "no",
        "n",
        "reject",
        "rejected",
        "deny",
        "denied",
        "nein",
        "abgelehnt",
        "ablehnen",
        "non",
        "refuser",
        "refusé",
        "rechazar",
        "rechazado",
        "não",
        "nao",
        "recusar",
        "recusado",
        "rifiuto",
        "rifiutato",
        "nee",
        "afgewezen",
        "nie",
        "nej",
        "いいえ",
        "却下",
        "拒绝",
        "拒絕",
    ]
)
_AROUND = " \t\u00a0\ufeff.,;:!*_\"'()[]«»„“”‘’。！"
# what may stand below an approval: 'Thank you,', 'Ada', 'Head of sales'
_CLOSING_LINES = 3
_LONGEST_CLOSING = 40
_RESERVATION = re.compile(r"\b(?:not|but|only|except|nicht|aber|nur)\b|n['’]t\b", re.IGNORECASE)
_LONGEST_REASON = 2_000
_LONGEST_UNREAD = 200

# 'On Monday, … wrote:' as mail programs have it, on one line or broken into up to three
_WROTE = r"(?:wrote|schrieb(?: .{0,120})?|a écrit|escribió|ha scritto|schreef(?: .{0,120})?|escreveu|skrev(?: .{0,120})?|napisał(?:\(a\))?)\s*:"
_ATTRIBUTION = re.compile(
    rf"(?:On|Am|Le|El|Il|Op|Em|Den|Dnia|W dniu|Il giorno)\b.{{0,400}}{_WROTE}",
    re.IGNORECASE,
)
_ATTRIBUTION_LINES = 3
# 'Ada <ada@example.org> wrote:', which begins with nothing of its own, and so is looked for on one line alone
_UNDATED_ATTRIBUTION = re.compile(rf"[^<>]{{0,100}}<[^<>\s@]+@[^<>\s@]+>\s*{_WROTE}", re.IGNORECASE)
_RULE = re.compile(
    r"-{2,}\s*(?:Original Message|Original Appointment|Forwarded message|Ursprüngliche Nachricht|Weitergeleitete Nachricht|"
    r"Message d'origine|Message original|Mensaje original|Messaggio originale|Oorspronkelijk bericht|Mensagem original)\s*-{2,}"
    r"|_{10,}|-{10,}|Begin forwarded message:",
    re.IGNORECASE,
)
_HEADER = re.compile(r"\*?(?:From|Von|De|Da|Van|Fra|Från|Od)\s*:\*?\s*\S", re.IGNORECASE)
_NEXT_HEADER = re.compile(
    r"\*?(?:Sent|Date|To|Subject|Gesendet|Datum|An|Betreff|Envoyé|À|Objet|Enviado|Para|Asunto|Inviato|A|Oggetto|Verzonden|Aan|Onderwerp)"
    r"\s*:\*?\s*\S",
    re.IGNORECASE,
)
_SIGNATURE = re.compile(
    r"--\s?|(?:Sent|Get) (?:from|Outlook for) .{1,60}|(?:Von|Gesendet von) mein(?:em)? .{1,60} gesendet"
)


@dataclass(frozen=True, slots=True)
class Decision:
    """`reason`: of a decline. `unread`: what stood where the decision should be, if it is none."""

    answer: Answer | None
    reason: str | None = None
    unread: str | None = None


def read_decision(text: str) -> Decision:
    lines = own_lines(text)
    if not lines:
        return Decision(None, unread="nothing above what is quoted")
    answer = _word(lines[0])
    if answer is None:
        return Decision(None, unread=shown(lines[0].strip(), limit=_LONGEST_UNREAD).text)
    if answer is Answer.APPROVE:
        below = [kept for line in lines[1:] if (kept := _kept(line))]
        if _is_closing(below):
            return Decision(answer)
        return Decision(None, unread=shown(" / ".join([_kept(lines[0]), *below]), limit=_LONGEST_UNREAD).text)
    reason = "\n".join(lines[1:]).strip()
    return Decision(answer, shown(reason, limit=_LONGEST_REASON).text if reason else None)


def own_lines(text: str) -> list[str]:
    """The sender's own lines: those above a quotation, an attribution, a forwarded head or a signature; none blank at either end."""
    lines = [line.rstrip() for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")]
    end = next((at for at in range(len(lines)) if _ends(lines, at)), len(lines))
    return (
        "\n".join(lines[:end]).strip("\n\ufeff\u00a0 \t").split("\n")
        if any(_kept(line) for line in lines[:end])
        else []
    )


def _kept(line: str) -> str:
    return line.strip(" \t\u00a0\ufeff")


def _is_closing(lines: list[str]) -> bool:
    return len(lines) <= _CLOSING_LINES and all(
        len(line) <= _LONGEST_CLOSING and not _RESERVATION.search(line) for line in lines
    )


def _ends(lines: list[str], at: int) -> bool:
    """Whether what stands from this line on is no longer the sender's own."""
    line = _kept(lines[at])
    if line.startswith((">", "|>", "&gt;")) or _RULE.fullmatch(line) or _SIGNATURE.fullmatch(line):
        return True
    if _UNDATED_ATTRIBUTION.fullmatch(line) and not _RESERVATION.search(line):
        return True
    if _HEADER.match(line):
        following = [_kept(other) for other in lines[at + 1 : at + 5]]
        return any(_NEXT_HEADER.match(other) for other in following)
    return any(
        _ATTRIBUTION.fullmatch(" ".join(_kept(other) for other in lines[at : at + count]))
        for count in range(1, _ATTRIBUTION_LINES + 1)
    )


def _word(line: str) -> Answer | None:
    word = unicodedata.normalize("NFC", line).strip(_AROUND).casefold()
    if word in _APPROVE:
        return Answer.APPROVE
    return Answer.DECLINE if word in _DECLINE else None
