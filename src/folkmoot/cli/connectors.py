"""`folkmoot connectors`: the connectors of a namespace, what they offer, and another look at their servers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import typer

from folkmoot.api.mapping import connectors as mapping
from folkmoot.bootstrap.installation import Installation
from folkmoot.bootstrap.outside import open_outside
from folkmoot.bootstrap.reaching import reach_of
from folkmoot.cli import screen
from folkmoot.cli.opening import opened
from folkmoot.domain.definition_names import parse_reference
from folkmoot.domain.definitions import DefinitionKind, Reference, StoredVersion
from folkmoot.domain.operations import Http, is_gated
from folkmoot.domain.tenancy import DEFAULT_NAMESPACE, Caller
from folkmoot.kernel.errors import BadInput, NotFound
from folkmoot.services import connectors, definitions, operations
from folkmoot.services.apply import everything
from folkmoot.services.operation_links import CONNECTORS
from folkmoot.services.operations import OperationFilter, ShownOperation
from folkmoot.services.tool_headers import server_of

app = typer.Typer(help="Connectors: list them and their operations, look at their servers again.", no_args_is_help=True)
Which = typer.Argument(metavar="NAME", help="The connector's name, as name or namespace/name.")
_PAGE = 200


@app.command("list")
def list_command(
    namespace: str = typer.Option(DEFAULT_NAMESPACE, help="Whose connectors to list."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON, an object for each connector."),
) -> None:
    """A namespace's connectors: kind, name, version, and where their servers are."""
    asyncio.run(_list(namespace, as_json=as_json))


async def _list(namespace: str, *, as_json: bool) -> None:
    found: list[StoredVersion] = []
    async with opened() as (installation, caller), installation.database.reader() as reader:
        for kind in CONNECTORS:
            found += await everything(reader, caller, kind=kind, namespace=namespace)
    if as_json:
        for stored in found:
            is_mcp = stored.definition.kind is DefinitionKind.MCP_CONNECTOR
            shown = (mapping.mcp_connector if is_mcp else mapping.open_api_connector)(stored, caller.tenant_id)
            screen.put(shown.model_dump_json(by_alias=True))
        return
    rows = [
        (stored.definition.kind.value, stored.definition.name, str(stored.number), _where(stored)) for stored in found
    ]
    screen.put_table(("kind", "name", "version", "server"), rows)


def _where(stored: StoredVersion) -> str:
    server = server_of(stored)
    return server.url if isinstance(server, Http) else " ".join((server.command, *server.arguments))


@app.command("operations")
def operations_command(
    name: str = Which,
    text: str | None = typer.Option(None, help="Only operations with this in their name."),
    as_json: bool = typer.Option(
        False, "--json", help="Print JSON, an object for each operation, as the API gives it."
    ),
) -> None:
    """What a connector's server offers: name, version, whether calls wait for approval, what it says it does."""
    asyncio.run(_operations(name, text, as_json=as_json))


async def _operations(name: str, text: str | None, *, as_json: bool) -> None:
    found: list[ShownOperation] = []
    async with opened() as (installation, caller):
        kind, reference = await _meant(installation, caller, name)
        while True:
            page = await operations.page(
                installation.database, caller, kind=kind, reference=reference, wanted=OperationFilter(text),
                after=found[-1].stored.operation.name if found else "", limit=_PAGE,
            )  # fmt: skip
            found += page
            if len(page) < _PAGE:
                break
    if as_json:
        for each in found:
            screen.put(mapping.operation(each, caller.tenant_id).model_dump_json(by_alias=True))
    else:
        screen.put_table(("operation", "version", "state", "calls", "says"), [_row(each) for each in found])


def _row(shown: ShownOperation) -> tuple[str, ...]:
    stored = shown.stored
    version = stored.version
    state = "gone" if stored.operation.gone_at is not None else "disabled" if stored.is_disabled else ""
    gate = "wait for approval" if is_gated(version.approval_mode, version.descriptor) else "go at once"
    says = screen.shortened(screen.printable(version.descriptor.description), 60)
    return stored.operation.name, str(version.number), state, gate, says


@app.command("refresh")
def refresh_command(
    name: str = Which, as_json: bool = typer.Option(False, "--json", help="Print what changed as JSON.")
) -> None:
    """Look at a connector's server again: what changed is a new version, what is offered no more is marked."""
    asyncio.run(_refresh(name, as_json=as_json))


async def _refresh(name: str, *, as_json: bool) -> None:
    async with opened() as (installation, caller), open_outside(installation.settings) as outside:
        kind, reference = await _meant(installation, caller, name)
        refreshed = await connectors.refresh(
            installation.database, caller, reach_of(installation, outside), kind=kind, reference=reference,
            new_id=installation.new_id,
        )  # fmt: skip
    if as_json:
        screen.put(mapping.changes(refreshed).model_dump_json(by_alias=True))
        return
    _say("+", refreshed.added)
    _say("~", refreshed.changed)
    _say("-", refreshed.gone)
    _say("+", refreshed.back)
    for left_out, reason in refreshed.left_out:
        screen.say(f"left out: {screen.printable(left_out)}: {screen.printable(reason)}")
    if refreshed.server_url is not None:
        screen.say(
            f"The document now names the server {screen.printable(refreshed.server_url)}; calls go where they went."
        )
    changed = len(refreshed.added) + len(refreshed.changed) + len(refreshed.gone) + len(refreshed.back)
    screen.say(f"{changed} operations changed.")


def _say(mark: str, names: Sequence[str]) -> None:
    for name in names:
        screen.put(f"{mark} {screen.printable(name)}")


async def _meant(installation: Installation, caller: Caller, text: str) -> tuple[DefinitionKind, Reference]:
    """The connector of this name, whichever kind it is. Raises NotFound; BadInput where there are two."""
    parsed = parse_reference(text)
    reference = Reference(parsed.name, parsed.namespace or DEFAULT_NAMESPACE, parsed.definition_id)
    kinds = []
    for kind in CONNECTORS:
        try:
            await definitions.get(installation.database, caller, kind=kind, reference=reference)
            kinds.append(kind)
        except NotFound:
            continue
    if not kinds:
        raise NotFound(f"There is no connector '{text[:200]}'. `folkmoot connectors list` shows those there are.")
    if len(kinds) > 1:
        raise BadInput(f"'{text[:200]}' is an MCP and an OpenAPI connector. Name it by its id.")
    return kinds[0], reference


def add_to(root: typer.Typer) -> None:
    root.add_typer(app, name="connectors")
