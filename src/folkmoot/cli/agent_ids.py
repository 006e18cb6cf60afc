"""How commands name an agent run: by its number."""

from __future__ import annotations

from uuid import UUID

import typer

from folkmoot.kernel.errors import BadInput

_MOST = 2**63

AgentRunId = typer.Argument(metavar="ID", help="The agent run's id, as `agent list` shows it.")


def id_of(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20 and 0 < int(text) < _MOST):
        raise BadInput(f"'{text[:80]}' is no agent run's id, which is a number; `folkmoot agent list` shows them.")
    return int(text)


def conversation_of(text: str | None) -> UUID | None:
    try:
        return UUID(text) if text is not None else None
    except ValueError:
        raise BadInput(f"'{text[:80] if text else ''}' is no conversation's id, which is a UUID.") from None


def hint_of(text: str) -> str:
    """For whoever gives an agent run's number where another id is meant; nothing for other texts."""
    return " If it is an agent run's number, `folkmoot agent` takes it." if text.isascii() and text.isdigit() else ""
