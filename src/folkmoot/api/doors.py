"""What every route may use: the installation's parts, the authenticated caller, and the right that the route asks for.

Identity comes from the `Authorization` header alone. A route names its right in its signature, `caller: Annotated[Caller,
may(Right.START)]`; one that names none is public, and a test lists those. Deliberately absent: any look at a path.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any
from uuid import UUID

from fastapi import Depends, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from folkmoot.domain.channels import NO_APPS, AppShape, InboundRequest
from folkmoot.domain.rights import Right
from folkmoot.domain.tenancy import Caller as DomainCaller
from folkmoot.kernel.errors import NotAllowed, NotFound
from folkmoot.kernel.ids import NewId
from folkmoot.services import keys
from folkmoot.services.closure import Workbench
from folkmoot.services.events import Hub
from folkmoot.services.inbound import Taken
from folkmoot.services.reach import NOWHERE, Reach
from folkmoot.store.database import Database
from folkmoot.store.walls import walled
from folkmoot.vault.sealing import Vault

Inbound = Callable[[UUID, Callable[[], Awaitable[InboundRequest]]], Awaitable[Taken]]


async def _no_channels(channel_id: UUID, _: Callable[[], Awaitable[InboundRequest]]) -> Taken:
    raise NotFound(f"There is no channel {channel_id} that takes anything in.")


@dataclass(frozen=True, slots=True)
class Doors:
    """`tell` sends a notification to all processes. `bench`: what this machine adds to a start. `vault` seals secrets.

    `database` is of no tenant, for the look-up of keys alone: routes take `of`. `reach`: the way to connectors' servers. `channel_apps`:
    what is known of the apps of channels. `inbound`: takes in what comes for a channel, which is read once the channel is found; raises NotFound.
    """

    database: Database
    hub: Hub
    tell: Callable[[dict[str, Any]], None]
    new_id: NewId
    bench: Workbench
    random_bytes: Callable[[int], bytes]
    vault: Vault
    readiness: Callable[[], Mapping[str, str | None]]
    reach: Reach = NOWHERE
    channel_apps: Mapping[str, AppShape] = field(default_factory=lambda: NO_APPS)
    inbound: Inbound = _no_channels

    def of(self, who: DomainCaller) -> Database:
        """The database behind the wall of the caller's tenant: what every route works on."""
        return walled(self.database, who.tenant_id)


def doors(request: Request) -> Doors:
    found: Doors = request.app.state.doors
    return found


async def doorway(request: Request) -> Doors:
    """The same as a dependency: what is not a coroutine would be called in a thread, at each request."""
    return doors(request)


_bearer = HTTPBearer(auto_error=False, description="A key, as `folkmoot keys create` makes it.", scheme_name="key")


async def authenticated(request: Request) -> DomainCaller:
    """Whose key came with the request, looked up once. Raises NotAllowed for none, an unknown, a revoked or an expired one."""
    found: DomainCaller | None = getattr(request.state, "caller", None)
    if found is None:
        credentials = await _bearer(request)
        if credentials is None or not credentials.credentials:
            raise NotAllowed(
                "A key is needed: send it as `Authorization: Bearer KEY`. `folkmoot keys create` makes one."
            )
        found = await keys.authenticate(doors(request).database, key=credentials.credentials)
        request.state.caller = found
    return found


async def caller(
    request: Request, _: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)]
) -> DomainCaller:
    """The same as a dependency; the second parameter tells the document of it."""
    return await authenticated(request)


Caller = Annotated[DomainCaller, Depends(caller)]


@dataclass(frozen=True, slots=True)
class Permission:
    """A route's dependency that lets nobody through without `right`."""

    right: Right

    async def check(self, who: Caller) -> DomainCaller:
        """Raises NotPermitted."""
        who.require(self.right)
        return who


def still_may(doors: Doors, who: DomainCaller, right: Right) -> Callable[[], Awaitable[bool]]:
    """Whether the caller has the right at the moment of asking: for answers that go on for long, such as streams (F43)."""

    async def is_welcome() -> bool:
        return right in await keys.rights_now(doors.of(who), who)

    return is_welcome


def may(right: Right) -> Any:
    """In a route's signature: `caller: Annotated[Caller, may(Right.START)]`."""
    return Depends(Permission(right).check)


Reader = Annotated[Caller, may(Right.READ)]
Doorway = Annotated[Doors, Depends(doorway)]
