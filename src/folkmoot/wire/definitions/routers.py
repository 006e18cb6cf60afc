"""Routers: whom a participant's turns may be given to, and how that is chosen. Deliberately absent: what was decided (`runs`)."""

from folkmoot.wire.definitions.resources import DefinitionResource, DefinitionVersion
from folkmoot.wire.formats import (
    Name,
    Page,
    Positive,
    ReferenceRequest,
    RequestShape,
    ResponseShape,
    Text,
    VersionReference,
)


class RouterCandidate(ResponseShape):
    """An agent or a further router; one of the two is null. `name` null: the definition's own. `description`: when to choose it."""

    name: str | None
    agent: VersionReference | None
    router: VersionReference | None
    description: str | None


class RouterRule(ResponseShape):
    """Chooses `candidate` where all that is not null matches. `turnNumber` counts the participant's own turns, from 1."""

    candidate: str
    participant: str | None
    input: str | None
    input_value: str | None
    thread: str | None
    turn_number: int | None
    last_author: str | None


class RouterVersion(DefinitionVersion):
    """One version of a router: rules in order, then the model (null: nobody), then the fallback, a candidate's name."""

    description: str | None
    candidates: tuple[RouterCandidate, ...]
    rules: tuple[RouterRule, ...]
    model: VersionReference | None
    prompt: str | None
    fallback: str


class Router(DefinitionResource):
    """A router and its newest version, disabled or not."""

    latest_version: RouterVersion


class RouterPage(Page[Router]):
    """A page of routers."""


class RouterVersionPage(Page[RouterVersion]):
    """A page of versions, the newest first."""


class RouterCandidateRequest(RequestShape):
    """An agent or a further router: one of the two is set. What is left out of name and description is the definition's own."""

    name: Name | None = None
    agent: ReferenceRequest | None = None
    router: ReferenceRequest | None = None
    description: Text | None = None


class RouterRuleRequest(RequestShape):
    """Chooses `candidate` where all that is set matches. `inputValue`: of the run input `input`, as text."""

    candidate: Name
    participant: Name | None = None
    input: Name | None = None
    input_value: Text | None = None
    thread: Name | None = None
    turn_number: Positive | None = None
    last_author: Name | None = None


class RouterVersionRequest(RequestShape):
    """A new version of a router. `fallback`: the name of the candidate that is taken where nothing else chooses."""

    description: Text | None = None
    candidates: tuple[RouterCandidateRequest, ...]
    rules: tuple[RouterRuleRequest, ...] = ()
    model: ReferenceRequest | None = None
    prompt: Text | None = None
    fallback: Name


class RouterRequest(RequestShape):
    """Creates a router with its first version."""

    name: Name
    version: RouterVersionRequest
