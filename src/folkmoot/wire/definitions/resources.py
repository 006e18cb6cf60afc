"""What every definition and every version carries. Deliberately absent: what a kind of definition adds."""

from folkmoot.wire.formats import Datetime, ResponseShape, Uuid


class DefinitionResource(ResponseShape):
    """A definition: named, in a namespace, with versions 1, 2, 3 and so on."""

    id: Uuid
    tenant_id: Uuid
    user_created_by_id: Uuid
    date_created: Datetime
    date_updated: Datetime
    namespace_name: str
    name: str


class DefinitionVersion(ResponseShape):
    """What the server adds to a version. A disabled one is used for nothing new."""

    version: int
    date: Datetime
    is_disabled: bool
