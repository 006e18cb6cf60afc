"""Links to external operations and to secrets, by id or by name. Deliberately absent: whether they lead anywhere."""

from typing import Annotated, Literal

from pydantic import Field, Strict

from folkmoot.wire.formats import Name, RequestShape, Uuid

ApprovalMode = Literal["Never", "Always", "Destructive"]
LinkText = Annotated[str, Field(min_length=1, max_length=420)]
OperationName = Annotated[str, Field(min_length=1, max_length=500)]
Seconds = Annotated[float, Strict(), Field(gt=0, le=3600, allow_inf_nan=False)]
Bytes = Annotated[int, Strict(), Field(ge=1, le=100_000_000)]
Scheme = Name


class OperationLinkRequest(RequestShape):
    """An operation by its id; or, as files have it, by `connector` (`name` or `namespace/name`) and `operation`, its own name."""

    external_operation_id: Uuid | None = None
    connector: LinkText | None = None
    operation: OperationName | None = None
