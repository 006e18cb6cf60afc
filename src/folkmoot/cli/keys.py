"""`folkmoot keys`: the API keys of the tenant `default`."""

from __future__ import annotations

import asyncio
import secrets
from datetime import UTC, datetime, timedelta
from uuid import UUID

import typer

from folkmoot.api.mapping import keys as mapping
from folkmoot.cli import screen
from folkmoot.cli.opening import opened
from folkmoot.cli.users import id_of
from folkmoot.domain.rights import Right
from folkmoot.domain.tenancy import ApiKey
from folkmoot.kernel.errors import BadInput
from folkmoot.services import keys

app = typer.Typer(help="API keys: make, list, revoke.", no_args_is_help=True)


@app.command("create")
def create_command(
    name: str = typer.Option("command line", help="What the key is for, to tell it apart."),
    days: int | None = typer.Option(None, min=1, max=36500, help="After how many days it expires; never if left out."),
    scope: list[Right] = typer.Option(
        [], help="Narrows the key to this right. May be given several times; all that its user may if left out."
    ),
    user: str | None = typer.Option(None, help="Whose key it is to be, by name or id; the owner's if left out."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Make a key and print it, this once; only its hash is kept."""
    asyncio.run(_create(name, days, tuple(scope) or None, user, as_json=as_json))


async def _create(
    name: str, days: int | None, scopes: tuple[Right, ...] | None, user: str | None, *, as_json: bool
) -> None:
    expires_at = datetime.now(UTC) + timedelta(days=days) if days is not None else None
    async with opened() as (installation, caller):
        user_id = await id_of(installation.database, caller, user) if user is not None else None
        key, text = await keys.create(
            installation.database, caller, name=name, expires_at=expires_at, new_id=installation.new_id,
            random_bytes=secrets.token_bytes, user_id=user_id, scopes=scopes,
        )  # fmt: skip
    if as_json:
        screen.put(mapping.created_key(key, text).model_dump_json(by_alias=True))
    else:
        screen.say(f"Key {key.key_id} was made. It is shown this once:")
        screen.put(text)


@app.command("list")
def list_command(as_json: bool = typer.Option(False, "--json", help="Print JSON, an object for each key.")) -> None:
    """The tenant's keys, without their texts."""
    asyncio.run(_list(as_json=as_json))


async def _list(*, as_json: bool) -> None:
    async with opened() as (installation, caller):
        found: list[ApiKey] = []
        while page := await keys.page(
            installation.database, caller, after=found[-1].key_id if found else None, limit=200
        ):
            found += page
    if as_json:
        for key in found:
            screen.put(mapping.key(key).model_dump_json(by_alias=True))
    else:
        rows = [(str(k.key_id), k.name, k.prefix, _state(k), _scopes(k), _date(k.last_used_at)) for k in found]
        screen.put_table(("id", "name", "begins", "state", "scopes", "last used"), rows)


@app.command("revoke")
def revoke_command(
    key_id: str = typer.Argument(help="The key's id, as `keys list` shows it."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Revoke a key for good."""
    try:
        wanted = UUID(key_id)
    except ValueError:
        raise BadInput(f"'{key_id[:80]}' is no key's id; `folkmoot keys list` shows them.") from None
    asyncio.run(_revoke(wanted, as_json=as_json))


async def _revoke(key_id: UUID, *, as_json: bool) -> None:
    async with opened() as (installation, caller):
        key = await keys.revoke(installation.database, caller, key_id=key_id)
    if as_json:
        screen.put(mapping.key(key).model_dump_json(by_alias=True))
    else:
        screen.say(f"Key {key.key_id} ({screen.printable(key.name)}) is revoked.")


def _state(key: ApiKey) -> str:
    if key.revoked_at is not None:
        return "revoked"
    return "expired" if key.expires_at is not None and key.expires_at <= datetime.now(UTC) else "valid"


def _scopes(key: ApiKey) -> str:
    return " ".join(key.scopes) if key.scopes is not None else "all"


def _date(moment: datetime | None) -> str:
    return moment.isoformat(timespec="seconds") if moment is not None else ""


def add_to(root: typer.Typer) -> None:
    root.add_typer(app, name="keys")
