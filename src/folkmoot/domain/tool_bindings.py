"""Bindings of external operations, as definitions hold them: on an agent, a participant, an interaction; and the run inputs
that go into their calls.

A binding may tighten what the operation's version says, never loosen it. Deliberately absent: what a call is made of in the
end (`bindings`), and secrets, which are named.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from folkmoot.domain.operations import ApprovalMode, Place
from folkmoot.domain.references import Reference


@dataclass(frozen=True, slots=True)
class NamedValue:
    """A parameter (or a path into the arguments, its steps parted by dots) and its value; all but text is JSON text."""

    name: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OnOperation:
    """Which operation: by id, or by its connector and its own name. Saving settles all three."""

    external_operation_id: UUID | None = None
    connector: Reference | None = None
    operation: str | None = None


@dataclass(frozen=True, slots=True)
class AuthenticationHeader:
    """A header to send with a call: one secret, or the one that the run input `secret_input_name` chooses. For a command: a
    variable of its environment, without a scheme."""

    header_name: str
    secret: Reference | None = None
    secret_input_name: str | None = None
    scheme: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationBinding(OnOperation):
    """A tool. `name`: the function name that the model sees. `external_operation_version` null: the latest enabled one when a
    run starts. The last four tighten; null leaves what the operation's version says. `is_idempotent` is false or null."""

    name: str
    external_operation_version: int | None = None
    request_bindings: tuple[NamedValue, ...] = ()
    path_bindings: tuple[NamedValue, ...] = ()
    query_bindings: tuple[NamedValue, ...] = ()
    authentication_header: AuthenticationHeader | None = None
    prompt_guidance: str | None = None
    is_terminal: bool = False
    approval_mode: ApprovalMode | None = None
    is_idempotent: bool | None = None
    limit_seconds: float | None = None
    limit_bytes: int | None = None

    def fixed(self) -> tuple[tuple[Place, str, NamedValue], ...]:
        """The fixed values, each with its place and the JSON pointer within the binding."""
        lists = (
            (Place.REQUEST, "requestBindings", self.request_bindings),
            (Place.PATH, "pathBindings", self.path_bindings),
            (Place.QUERY, "queryBindings", self.query_bindings),
        )
        return tuple((place, f"/{name}/{i}", pair) for place, name, pairs in lists for i, pair in enumerate(pairs))


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretInput(OnOperation):
    """A run input whose value is a secret's id; for one agent's calls, or for all where `agent` is null."""

    name: str
    header_name: str
    agent: Reference | None = None
    default_secret: Reference | None = None
    scheme: str | None = None
    description: str | None = None
    is_required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BindingInput(OnOperation):
    """A run input whose value goes into an operation's calls, to `target`; the model neither sees nor chooses it."""

    name: str
    target: str
    type: Place = Place.REQUEST
    agent: Reference | None = None
    default_value: str | None = None
    description: str | None = None
    is_required: bool = False
