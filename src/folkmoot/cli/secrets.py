"""`folkmoot secrets`: the secrets of the tenant `default`. A value is read from a prompt or a pipe, and never shown.

Deliberately absent: a value as an argument, where every user of the machine could read it.
"""

from __future__ import annotations

import asyncio
import getpass
import sys

import typer

from folkmoot.api.mapping import secrets as mapping
from folkmoot.cli import screen
from folkmoot.cli.opening import opened
from folkmoot.domain.definition_names import parse_reference
from folkmoot.domain.secrets import Secret
from folkmoot.domain.tenancy import DEFAULT_NAMESPACE
from folkmoot.kernel.errors import BadInput
from folkmoot.services import secrets
from folkmoot.vault.texts import SecretText

app = typer.Typer(help="Secrets: set, list, delete, seal under another key.", no_args_is_help=True)
AsJson = typer.Option(False, "--json", help="Print JSON.")
Which = typer.Argument(metavar="NAME", help="The secret's name, as name or namespace/name.")


@app.command("set")
def set_command(name: str = Which, as_json: bool = AsJson) -> None:
    """Create a secret or replace its value, which is asked for, or read from a pipe (a line break at its end is left out)."""
    namespace, bare = _split(name)
    asyncio.run(_set(namespace, bare, _read_value(), as_json=as_json))


async def _set(namespace: str, name: str, value: SecretText, *, as_json: bool) -> None:
    async with opened() as (installation, caller):
        made, is_new = await secrets.put(
            installation.database, installation.vault, caller, namespace=namespace, name=name, value=value, new_id=installation.new_id
        )  # fmt: skip
    if as_json:
        screen.put(_json(made))
    else:
        screen.say(
            f"Secret {screen.printable(f'{made.namespace}/{made.name}')} {'was made' if is_new else 'was replaced'}."
        )


@app.command("list")
def list_command(
    namespace: str = typer.Option(DEFAULT_NAMESPACE, help="Whose secrets to list."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON, an object for each secret."),
) -> None:
    """A namespace's secrets, without their values: id, name, when the value was last set."""
    asyncio.run(_list(namespace, as_json=as_json))


async def _list(namespace: str, *, as_json: bool) -> None:
    found: list[Secret] = []
    async with opened() as (installation, caller):
        while page := await secrets.page(
            installation.database, caller, namespace=namespace, after=found[-1].name if found else "", limit=200
        ):
            found += page
    if as_json:
        for secret in found:
            screen.put(_json(secret))
    else:
        rows = [(str(s.secret_id), s.name, s.updated_at.isoformat(timespec="seconds")) for s in found]
        screen.put_table(("id", "name", "last set"), rows)


@app.command("delete")
def delete_command(name: str = Which) -> None:
    """Delete a secret for good. What uses it fails from its next call on."""
    asyncio.run(_delete(*_split(name)))


async def _delete(namespace: str, name: str) -> None:
    async with opened() as (installation, caller):
        await secrets.delete(installation.database, caller, namespace=namespace, name=name)
    screen.say(f"Secret {screen.printable(f'{namespace}/{name}')} is gone.")


@app.command("rotate")
def rotate_command(as_json: bool = AsJson) -> None:
    """Seal every secret under the first key that is set, while runs go on; the keys behind it are then no longer needed."""
    asyncio.run(_rotate(as_json=as_json))


async def _rotate(*, as_json: bool) -> None:
    async with opened() as (installation, caller):
        count = await secrets.rotate(installation.database, installation.vault, caller)
    if as_json:
        screen.put_json({"sealed": count})
    else:
        screen.say(f"{count} secrets were sealed anew; all are under the first key now.")


def _split(text: str) -> tuple[str, str]:
    reference = parse_reference(text)
    if reference.name is None or reference.version is not None:
        raise BadInput(f"'{text[:80]}' is no secret's name; write it as name or namespace/name.")
    return reference.namespace or DEFAULT_NAMESPACE, reference.name


def _read_value() -> SecretText:
    if sys.stdin.isatty():
        return SecretText(getpass.getpass("Value: ", stream=sys.stderr))
    # One more than any value may have: a pipe without an end is not read to its end.
    data = sys.stdin.buffer.read(secrets.MOST_BYTES + 2)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise BadInput("The value is not UTF-8. Encode it, such as in base64, and set that.") from None
    return SecretText(text.removesuffix("\n").removesuffix("\r"))


def _json(secret: Secret) -> str:
    return mapping.secret(secret).model_dump_json(by_alias=True)


def add_to(root: typer.Typer) -> None:
    root.add_typer(app, name="secrets")
