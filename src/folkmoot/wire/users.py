"""Users of a tenant. Deliberately absent: passwords; a user acts by keys."""

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
