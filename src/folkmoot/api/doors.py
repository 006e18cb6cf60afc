"""What every route may use: the installation's parts, and the authenticated caller.

Identity comes from the `Authorization` header alone; a route without `Caller` in its signature is public, and a test lists those.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from folkmoot.domain.tenancy import Caller as DomainCaller
from folkmoot.kernel.errors import NotAllowed
from folkmoot.kernel.ids import NewId
from folkmoot.services import keys
from folkmoot.services.closure import Workbench
from folkmoot.services.events import Hub
from folkmoot.store.database import Database


@dataclass(frozen=True, slots=True)
class Doors:
    """`tell` sends a notification to all processes. `bench`: what this machine adds to a start."""

    database: Database
    hub: Hub
    tell: Callable[[dict[str, Any]], None]
    new_id: NewId
    bench: Workbench
    random_bytes: Callable[[int], bytes]
    readiness: Callable[[], Mapping[str, str | None]]


def doors(request: Request) -> Doors:
    found: Doors = request.app.state.doors
    return found


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
Doorway = Annotated[Doors, Depends(doors)]
