"""`folkmoot users`: the users of the tenant `default`, and their roles."""

from __future__ import annotations

import asyncio
from uuid import UUID

import typer

from folkmoot.api.mapping import users as mapping
from folkmoot.cli import screen
from folkmoot.cli.opening import opened
from folkmoot.domain.rights import Role
from folkmoot.domain.tenancy import Caller, User
from folkmoot.services import users
from folkmoot.store.database import Database

app = typer.Typer(help="Users: list, add, change roles, remove.", no_args_is_help=True)
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
    """Remove a user and revoke their keys, for good. What they did stays."""
    asyncio.run(_remove(user, as_json=as_json))


async def _remove(user: str, *, as_json: bool) -> None:
    async with opened() as (installation, caller):
        user_id = await id_of(installation.database, caller, user)
        removed = await users.remove(installation.database, caller, user_id=user_id)
    _show(removed, "was removed", as_json=as_json)


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
