"""What must hold when a connector is saved. Pointers are into the version, by the wire's names.

Deliberately absent: where an address leads (the guard sees to that at every connection), and whether anybody answers there.
"""

from __future__ import annotations

from collections.abc import Iterator

from folkmoot.domain.binding_checks import VARIABLE, faults_of_header, faults_of_variable
from folkmoot.domain.connectors import ConnectorHeader, McpConnectorVersion, OpenApiConnectorVersion
from folkmoot.domain.operations import Http, Stdio
from folkmoot.domain.web_addresses import web_address
from folkmoot.kernel.errors import Fault


def faults_of_mcp_connector(version: McpConnectorVersion) -> tuple[Fault, ...]:
    """What keeps the version from being saved; () if nothing does."""
    match version.server:
        case Http():
            return (*_url_faults("/url", version.server.url), *_header_faults(version.headers))
        case Stdio():
            return (*_command_faults(version.server), *_header_faults(version.headers, version.server))


def faults_of_open_api_connector(version: OpenApiConnectorVersion) -> tuple[Fault, ...]:
    """The same of an OpenAPI service."""
    faults = list(_header_faults(version.headers))
    if (version.document_url is None) == (version.document_hash is None):
        faults.append(
            Fault("/document", "A connector has one document: give its 'documentUrl', or upload it as 'document'.")
        )
    if version.document_url is not None:
        faults += _url_faults("/documentUrl", version.document_url)
    if version.base_url is not None:
        faults += _url_faults("/baseUrl", version.base_url)
    return tuple(faults)


def _url_faults(pointer: str, url: str) -> Iterator[Fault]:
    parts = web_address(url)
    if parts is None or " " in url:
        yield Fault(pointer, "This is no address; write one such as https://tools.example.com/mcp.")
    elif parts.username is not None or parts.password is not None:
        yield Fault(
            pointer, "An address holds no user or password: put them into a secret, and name it under 'headers'."
        )
    elif parts.fragment:
        yield Fault(pointer, "An address has no part after '#' here; leave it out.")


def _command_faults(server: Stdio) -> Iterator[Fault]:
    if not server.command.strip() or "\0" in server.command:
        yield Fault("/command", "This is no command; name a program.")
    for index, argument in enumerate(server.arguments):
        if "\0" in argument:
            yield Fault(f"/arguments/{index}", "An argument holds no NUL; correct it.")
    for name, value in server.environment.items():
        if not VARIABLE.fullmatch(name) or "\0" in value:
            yield Fault("/environment", f"'{name[:60]}' is no variable of an environment; use letters, digits and '_'.")


def _header_faults(headers: tuple[ConnectorHeader, ...], command: Stdio | None = None) -> Iterator[Fault]:
    """`command`: whose variables they are, which another case makes another one."""
    seen: set[str] = set()
    for index, header in enumerate(headers):
        pointer, name = f"/headers/{index}", header.header_name
        if command is None:
            name = name.lower()
            yield from faults_of_header(pointer, header.header_name, header.scheme)
        else:
            yield from faults_of_variable(pointer, header.header_name, header.scheme, command.environment)
        if name in seen:
            yield Fault(f"{pointer}/headerName", f"'{header.header_name}' is there twice; leave one out.")
        seen.add(name)
