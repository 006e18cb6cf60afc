"""`folkmoot audit`: who did what in the tenant `default`, the newest first."""

from __future__ import annotations

import asyncio
from uuid import UUID

import typer

from folkmoot.api.mapping import audit as mapping
from folkmoot.cli import screen
from folkmoot.cli.opening import opened
from folkmoot.cli.users import id_of
from folkmoot.domain.audit import AuditEntry, AuditFilter
from folkmoot.domain.json_text import canonical
from folkmoot.kernel.errors import BadInput
from folkmoot.services import audit


def add_to(app: typer.Typer) -> None:
    app.command("audit")(audit_command)


def audit_command(
    user: str | None = typer.Option(None, help="Only what this user did: a name or an id."),
    action: str | None = typer.Option(None, help="Only this action, such as run.started."),
    subject: str | None = typer.Option(None, help="Only what was done to the thing with this id."),
    limit: int = typer.Option(50, min=1, max=200, help="How many entries."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON, an object for each entry."),
) -> None:
    """Who did what: the newest entries of the audit log."""
    try:
        subject_id = UUID(subject) if subject is not None else None
    except ValueError:
        raise BadInput(f"'{(subject or '')[:80]}' is no id; `folkmoot audit --json` shows them.") from None
    asyncio.run(_audit(user, AuditFilter(action=action, subject_id=subject_id), limit=limit, as_json=as_json))


async def _audit(user: str | None, wanted: AuditFilter, *, limit: int, as_json: bool) -> None:
    async with opened() as (installation, caller):
        user_id = await id_of(installation.database, caller, user) if user is not None else None
        wanted = AuditFilter(user_id, wanted.action, subject_id=wanted.subject_id)
        found = await audit.page(installation.database, caller, wanted=wanted, after=None, limit=limit)
    if as_json:
        for entry in found:
            screen.put(mapping.entry(entry).model_dump_json(by_alias=True))
    else:
        screen.put_table(("time", "who", "by", "action", "subject", "detail"), [_row(entry) for entry in found])


def _row(entry: AuditEntry) -> tuple[str, ...]:
    subject = f"{entry.subject_kind} {entry.subject_id}" if entry.subject_id is not None else entry.subject_kind
    when = entry.at.isoformat(timespec="seconds")
    return when, entry.user_name, entry.channel, entry.action, subject, canonical(dict(entry.detail))
