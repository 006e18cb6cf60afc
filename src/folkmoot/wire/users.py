"""Users of a tenant. Deliberately absent: passwords; a user acts by keys."""

from typing import Annotated

from pydantic import Field

from folkmoot.wire.formats import Datetime, Name, Page, RequestShape, ResponseShape, Uuid
from folkmoot.wire.rights import Right, Role


class User(ResponseShape):
    """Somebody, or some program, that acts in the tenant. `rights` are those of the role."""

    id: Uuid
    tenant_id: Uuid
    user_created_by_id: Uuid
    date_created: Datetime
    date_updated: Datetime
    name: str
    role: Role
    rights: tuple[Right, ...]
    date_removed: Datetime | None


class UserPage(Page[User]):
    """A page of users."""


class UserRequest(RequestShape):
    """Adds a user."""

    name: Name
    role: Role


class UserRoleRequest(RequestShape):
    """Gives a user another role."""

    role: Role


class UserIdentity(ResponseShape):
    """A user's address in the app of a channel: what comes from there is theirs. Of mail it is in lower case."""

    user_id: Uuid
    app: str
    address: str
    user_created_by_id: Uuid
    date_created: Datetime


class UserIdentities(ResponseShape):
    """All addresses of a user, one in each app."""

    items: tuple[UserIdentity, ...]


class UserIdentityRequest(RequestShape):
    """Sets a user's address in an app, in place of another one."""

    address: Annotated[str, Field(min_length=1, max_length=1_000)]
