"""`folkmoot users`: the users of the tenant `default`, and their roles."""

from __future__ import annotations

import asyncio
from uuid import UUID

import typer

from folkmoot.api.mapping import users as mapping
from folkmoot.cli import screen
from folkmoot.cli.opening import opened
from folkmoot.domain.identities import Identity
from folkmoot.domain.rights import Role
from folkmoot.domain.tenancy import Caller, User
from folkmoot.kernel.errors import BadInput
from folkmoot.services import identities, users
from folkmoot.store.database import Database

app = typer.Typer(help="Users: list, add, change roles, set addresses, remove.", no_args_is_help=True)
AsJson = typer.Option(False, "--json", help="Print JSON.")
Who = typer.Argument(metavar="USER", help="The user's name or id, as `users list` shows it.")


@app.command("list")
def list_command(as_json: bool = typer.Option(False, "--json", help="Print JSON, an object for each user.")) -> None:
    """The tenant's users, with their roles."""
    asyncio.run(_list(as_json=as_json))


async def _list(*, as_json: bool) -> None:
    found: list[User] = []
    async with opened() as (installation, caller):
        while page := await users.page(
            installation.database, caller, after=found[-1].user_id if found else None, limit=200
        ):
            found += page
    if as_json:
        for user in found:
            screen.put(_json(user))
    else:
        screen.put_table(("id", "name", "role"), [(str(user.user_id), user.name, user.role.value) for user in found])


@app.command("add")
def add_command(
    name: str = typer.Argument(help="The user's name."),
    role: Role = typer.Option(Role.VIEWER, help="What the user is to be."),
    as_json: bool = AsJson,
) -> None:
    """Add a user. To act over the API they need a key: `folkmoot keys create --user NAME`."""
    asyncio.run(_add(name, role, as_json=as_json))


async def _add(name: str, role: Role, *, as_json: bool) -> None:
    async with opened() as (installation, caller):
        made = await users.add(installation.database, caller, name=name, role=role, new_id=installation.new_id)
    _show(made, "was added", as_json=as_json)


@app.command("role")
def role_command(
    user: str = Who, role: Role = typer.Argument(help="What the user is to be from now on."), as_json: bool = AsJson
) -> None:
    """Give a user another role. It holds from their next request on."""
    asyncio.run(_role(user, role, as_json=as_json))


async def _role(user: str, role: Role, *, as_json: bool) -> None:
    async with opened() as (installation, caller):
        user_id = await id_of(installation.database, caller, user)
        changed = await users.set_role(installation.database, caller, user_id=user_id, role=role)
    _show(changed, f"is {changed.role} now", as_json=as_json)


@app.command("remove")
def remove_command(user: str = Who, as_json: bool = AsJson) -> None:
    """Remove a user with their addresses and revoke their keys, for good. What they did stays."""
    asyncio.run(_remove(user, as_json=as_json))


async def _remove(user: str, *, as_json: bool) -> None:
    async with opened() as (installation, caller):
        user_id = await id_of(installation.database, caller, user)
        removed = await users.remove(installation.database, caller, user_id=user_id)
    _show(removed, "was removed", as_json=as_json)


@app.command("identity")
def identity_command(
    user: str = Who,
    channel_app: str | None = typer.Argument(None, metavar="[APP]", help="The app of a channel, such as email."),
    address: str | None = typer.Argument(
        None, metavar="[ADDRESS]", help="The user's address there; without it, what it is now."
    ),
    none: bool = typer.Option(False, "--none", help="No address in this app from now on."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON, an object for each address."),
) -> None:
    """A user's addresses in the apps of channels: whoever answers from there is that user, and approves what they may."""
    if none and (channel_app is None or address is not None):
        raise BadInput("--none takes the address in one app away: name the app, and no address.")
    asyncio.run(_identity(user, channel_app, address, is_deleted=none, as_json=as_json))


async def _identity(
    user: str, channel_app: str | None, address: str | None, *, is_deleted: bool, as_json: bool
) -> None:
    async with opened() as (installation, caller):
        database = installation.database
        user_id = await id_of(database, caller, user)
        if channel_app is not None and address is not None:
            await identities.put(
                database, caller, user_id=user_id, app=channel_app, address=address, channel_apps=installation.channel_apps
            )  # fmt: skip
        elif channel_app is not None and is_deleted:
            await identities.delete(database, caller, user_id=user_id, app=channel_app)
        found = await identities.of_user(database, caller, user_id=user_id)
    _show_identities([each for each in found if channel_app in (None, each.app)], as_json=as_json)


def _show_identities(found: list[Identity], *, as_json: bool) -> None:
    if as_json:
        for each in found:
            screen.put(mapping.identity(each).model_dump_json(by_alias=True))
    else:
        screen.put_table(("app", "address"), [(each.app, screen.printable(each.address)) for each in found])


async def id_of(database: Database, caller: Caller, user: str) -> UUID:
    """Of the user whose id or name this is. Raises NotFound."""
    try:
        return UUID(user)
    except ValueError:
        return (await users.named(database, caller, name=user)).user_id


def _show(user: User, what: str, *, as_json: bool) -> None:
    if as_json:
        screen.put(_json(user))
    else:
        screen.say(f"User {user.user_id} ({screen.printable(user.name)}, {user.role}) {what}.")


def _json(user: User) -> str:
    return mapping.user(user).model_dump_json(by_alias=True)


def add_to(root: typer.Typer) -> None:
    root.add_typer(app, name="users")
