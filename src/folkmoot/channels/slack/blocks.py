"""What a message looks like in Slack: Block Kit, within its limits. Pure.

What a model wrote stands in a code block, escaped: there nothing of it is a link, a mention or a format, and a person sees the very
characters that are meant.
"""

from __future__ import annotations

from typing import Any

from slack_sdk.models.blocks import (
    ActionsBlock,
    Block,
    ButtonElement,
    ConfirmObject,
    ContextBlock,
    HeaderBlock,
    MarkdownTextObject,
    PlainTextObject,
    SectionBlock,
)

from folkmoot.domain.channels import OutgoingMessage

APPROVE_ACTION, DECLINE_ACTION = "folkmoot_approve", "folkmoot_decline"
MOST_SECTION = 3_000
_MOST_HEADER = 150
_FENCE = "```"
_INERT_FENCE = "\\u0060" * 3


def request_blocks(message: OutgoingMessage) -> list[dict[str, Any]]:
    """A consent request. A button carries the run's token and which request it is, and no secret: who clicks is proven by Slack."""
    value = f"{message.token}.{message.data['chatItemId']}"
    approve = ButtonElement(
        text=PlainTextObject(text="Approve"), action_id=APPROVE_ACTION, value=value, style="primary"
    )
    decline = ButtonElement(
        text=PlainTextObject(text="Decline"),
        action_id=DECLINE_ACTION,
        value=value,
        style="danger",
        confirm=ConfirmObject(
            title=PlainTextObject(text="Decline this?"),
            text=PlainTextObject(text="It will not be done, and the agent is told so."),
            confirm=PlainTextObject(text="Decline"),
            deny=PlainTextObject(text="Back"),
            style="danger",
        ),
    )
    return _rendered([*_shown(message), ActionsBlock(elements=[approve, decline])])


def notice_blocks(message: OutgoingMessage) -> list[dict[str, Any]]:
    """What is told and asks nothing; it also takes the place of a request that was decided."""
    return _rendered(_shown(message))


def escaped(text: str) -> str:
    """The three characters by which Slack's markup begins; without them it has no links and no mentions."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def fenced(text: str, *, limit: int = MOST_SECTION) -> str:
    """Text in a code block that it cannot close, cut to a limit with the cut said."""
    safe = text.replace(_FENCE, _INERT_FENCE)
    whole = f"{_FENCE}\n{escaped(safe)}\n{_FENCE}"
    if len(whole) <= limit:
        return whole
    note = f"\n{_FENCE}\n_Cut: {len(text):,} characters in all; read the rest on the run's page before you decide._"
    room = limit - len(_FENCE) - 1 - len(note)
    return f"{_FENCE}\n{_escaped_within(safe, room)}{note}"


def _escaped_within(text: str, room: int) -> str:
    """As many whole characters from the beginning as fit when they are escaped."""
    parts: list[str] = []
    for character in text:
        part = escaped(character)
        if len(part) > room:
            break
        parts.append(part)
        room -= len(part)
    return "".join(parts)


def header_text(title: str) -> str:
    flat = " ".join(title.split())
    return flat if len(flat) <= _MOST_HEADER else f"{flat[: _MOST_HEADER - 2]} …"


def _shown(message: OutgoingMessage) -> list[Block]:
    header = HeaderBlock(text=PlainTextObject(text=header_text(message.title) or "Folkmoot", emoji=False))
    section = SectionBlock(text=MarkdownTextObject(text=fenced(message.text), verbatim=True))
    if message.link is None:
        return [header, section]
    link = message.link.replace("|", "%7C")
    words = MarkdownTextObject(text=f"<{escaped(link)}|Open the run's page>", verbatim=True)
    return [header, section, ContextBlock(elements=[words])]


def _rendered(blocks: list[Block]) -> list[dict[str, Any]]:
    return [block.to_dict() for block in blocks]
