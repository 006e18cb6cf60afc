"""How dataclasses become JSON columns and come back: the one storage edge, where text from outside is made safe.

PostgreSQL's jsonb and text cannot hold NUL or lone surrogates: NUL is stored as the visible U+2400, a lone surrogate as its
escape (`\\ud83d`). Deliberately absent: a third set of classes; these are TypeAdapters over the domain's.
"""

from __future__ import annotations

import json
from datetime import timedelta
from functools import cached_property
from typing import Annotated, Any, Generic, TypeVar, get_args

from pydantic import Field, TypeAdapter
from pydantic_core import PydanticSerializationError

from folkmoot.domain import items
from folkmoot.domain.channels import ChannelVersion
from folkmoot.domain.connectors import McpConnectorVersion, OpenApiConnectorVersion
from folkmoot.domain.credentials import CredentialStackVersion
from folkmoot.domain.definitions import (
    AgentVersion,
    AiModelVersion,
    DefinitionKind,
    InteractionVersion,
    ModelOverride,
    ResolvedInteraction,
)
from folkmoot.domain.json_text import visible
from folkmoot.domain.model_calls import Usage
from folkmoot.domain.operations import Descriptor, OperationVersion
from folkmoot.domain.routers import RouterVersion

T = TypeVar("T")


safe = visible  # one normal form for what PostgreSQL cannot hold, here and in what a model is shown (B25)


def safe_json(value: Any) -> Any:
    """The same for every string inside a JSON value, keys included."""
    if isinstance(value, str):
        return safe(value)
    if isinstance(value, dict):
        return {safe(str(k)): safe_json(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [safe_json(v) for v in value]
    return value


def json_text(value: Any) -> str:
    """Compact JSON that jsonb accepts; NaN and infinities become null."""
    try:
        text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        text.encode()
    except (UnicodeEncodeError, ValueError):
        text = json.dumps(_finite(safe_json(value)), separators=(",", ":"), ensure_ascii=False)
    return (
        json.dumps(safe_json(json.loads(text)), separators=(",", ":"), ensure_ascii=False)
        if "\\u0000" in text
        else text
    )


def _finite(value: Any) -> Any:
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    return [_finite(v) for v in value] if isinstance(value, list | tuple) else value


class Codec(Generic[T]):
    """Writes a value as JSON text for a jsonb column, and reads it back. Made when it is first used: most commands use few."""

    def __init__(self, of: Any) -> None:
        self._of = of

    @cached_property
    def _adapter(self) -> TypeAdapter[T]:
        return TypeAdapter(self._of)

    def write(self, value: T) -> str:
        try:
            text = self._adapter.dump_json(value).decode()
        except (PydanticSerializationError, UnicodeEncodeError):
            return json_text(safe_json(self._adapter.dump_python(value, mode="json")))
        return json_text(json.loads(text)) if "\\u0000" in text else text

    def read(self, text: str) -> T:
        return self._adapter.validate_json(text)


BODIES: dict[str, Codec[Any]] = {body.kind: Codec(body) for body in get_args(items.Body)}
DETAIL: Codec[items.Detail] = Codec(Annotated[items.Detail, Field(discriminator="type")])
USAGE: Codec[Usage] = Codec(Usage)
RESOLVED: Codec[ResolvedInteraction] = Codec(ResolvedInteraction)
OVERRIDES: Codec[tuple[ModelOverride, ...]] = Codec(tuple[ModelOverride, ...])
SPAN: Codec[timedelta | None] = Codec(timedelta | None)
OPERATION_VERSION: Codec[OperationVersion] = Codec(OperationVersion)
DESCRIPTOR: Codec[Descriptor] = Codec(Annotated[Descriptor, Field(discriminator="type")])
VERSIONS: dict[DefinitionKind, Codec[Any]] = {
    DefinitionKind.AGENT: Codec(AgentVersion),
    DefinitionKind.ROUTER: Codec(RouterVersion),
    DefinitionKind.AI_MODEL: Codec(AiModelVersion),
    DefinitionKind.INTERACTION: Codec(InteractionVersion),
    DefinitionKind.MCP_CONNECTOR: Codec(McpConnectorVersion),
    DefinitionKind.OPEN_API_CONNECTOR: Codec(OpenApiConnectorVersion),
    DefinitionKind.CREDENTIAL_STACK: Codec(CredentialStackVersion),
    DefinitionKind.CHANNEL: Codec(ChannelVersion),
}


def write_body(item: items.Item) -> str:
    return BODIES[item.body.kind].write(item.body)


def read_item(row: Any) -> items.StoredItem:
    """A row of `item`, with all its columns, as a StoredItem."""
    author = items.Author(items.AuthorKind(row["author_kind"]), row["author_name"], row["author_id"])
    detail = DETAIL.read(row["detail"]) if row["detail"] is not None else None
    body = BODIES[row["kind"]].read(row["body"])
    item = items.Item(row["item_id"], author, body, detail, row["turn_id"], row["model_call_id"], row["thread_id"])
    return items.StoredItem(row["sequence"], row["created_at"], item)


def json_value(text: str) -> Any:
    """The value of a jsonb column."""
    return json.loads(text)
