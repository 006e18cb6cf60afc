"""Links within a set of definition files: those by name must lead to something that the set has.

Deliberately absent: ids, and which operations a connector has; both are looked up when the set is applied.
"""

from __future__ import annotations

from collections.abc import Iterator

from folkmoot.domain.channels import WEB
from folkmoot.domain.checking import operations_of
from folkmoot.domain.definition_names import parse_reference
from folkmoot.domain.definitions import AgentBinding, AgentVersion, DefinitionKind, InteractionVersion, Reference
from folkmoot.domain.participant_checks import faults_of_participant, faults_of_router_in
from folkmoot.domain.router_chains import circle, too_long
from folkmoot.domain.routers import RouterVersion
from folkmoot.kernel.errors import BadInput, Fault
from folkmoot.services.apply import Document
from folkmoot.services.operation_links import CONNECTORS
from folkmoot.services.references import NOUNS
from folkmoot.services.router_links import faults_of_chains
from folkmoot.services.router_reach import KINDS
from folkmoot.services.specialist_links import MOST_AGENTS
from folkmoot.services.specialist_links import faults_of_chains as faults_of_specialists

Known = dict[tuple[DefinitionKind, str, str], Document]


def link_faults(document: Document, known: Known) -> Iterator[Fault]:
    """Links that name something which the set does not have. An id is looked up when the set is applied."""
    version = document.version
    if isinstance(version, AgentVersion):
        if _missing(DefinitionKind.AI_MODEL, version.model, document, known):
            yield _no_such("/model", DefinitionKind.AI_MODEL, version.model, document)
        yield from _connector_faults("", version, document, known)
        yield from _run_faults(version, document, known)
    elif isinstance(version, RouterVersion):
        yield from _router_faults(version, document, known)
    elif isinstance(version, InteractionVersion):
        for pointer, binding in version.placed:
            yield from _participant_faults(pointer, binding, version, document, known)
            yield from _connector_faults(pointer, binding, document, known)
        model = version.compaction_model
        if model is not None and _missing(DefinitionKind.AI_MODEL, model, document, known):
            yield _no_such("/contextSettings/compactionModel", DefinitionKind.AI_MODEL, model, document)
        for index, link in enumerate(version.swarm.interactions if version.swarm is not None else ()):
            if _missing(DefinitionKind.INTERACTION, link, document, known):
                yield _no_such(f"/swarm/interactions/{index}", DefinitionKind.INTERACTION, link, document)
        if version.credential_stack is not None:
            stack = version.credential_stack
            yield from _link_text_faults("/credentialStack", DefinitionKind.CREDENTIAL_STACK, stack, document, known)
        yield from _connector_faults("", version, document, known)


def _participant_faults(
    at: str, binding: AgentBinding, version: InteractionVersion, document: Document, known: Known
) -> Iterator[Fault]:
    """By name an agent goes before a router, as it does when the set is applied."""
    pointer, link = f"{at}/agent", binding.agent
    kinds = tuple(KINDS.values()) if binding.kind is None else (KINDS[binding.kind],)
    if link.definition_id is not None or not link.name:
        return
    found = next((it for kind in kinds if (it := _found(kind, link, document, known)) is not None), None)
    if found is None:
        yield _no_such(pointer, kinds[0], link, document, noun=" or ".join(NOUNS[kind] for kind in kinds))
    elif isinstance(found.version, AgentVersion):
        yield from faults_of_participant(
            pointer, agent=found.version, name=found.name, binding=binding, interaction=version
        )
    elif isinstance(found.version, RouterVersion):
        yield from faults_of_router_in(pointer, router=found.version, name=found.name, interaction=version)


def _router_faults(version: RouterVersion, document: Document, known: Known) -> Iterator[Fault]:
    if version.model is not None and _missing(DefinitionKind.AI_MODEL, version.model, document, known):
        yield _no_such("/model", DefinitionKind.AI_MODEL, version.model, document)
    for index, candidate in enumerate(version.candidates):
        kind = KINDS[candidate.kind]
        if _missing(kind, candidate.link, document, known):
            yield _no_such(f"/candidates/{index}/{candidate.kind.lower()}", kind, candidate.link, document)
    links = {key: _routers_of(each) for key, each in known.items()}
    yield from faults_of_chains(_named(circle(links, document.key)), lambda: _named(too_long(links, document.key)))


def _run_faults(version: AgentVersion, document: Document, known: Known) -> Iterator[Fault]:
    """Of what an agent's own runs refer to. An agent that is its own specialist is a circle, too."""
    for index, link in enumerate(version.runs.specialists):
        if _missing(DefinitionKind.AGENT, link, document, known):
            yield _no_such(f"/specialists/{index}", DefinitionKind.AGENT, link, document)
    channel = version.runs.channel
    if channel is not None and channel != WEB:
        yield from _link_text_faults("/channel", DefinitionKind.CHANNEL, channel, document, known)
    if not version.runs.specialists:
        return
    links = {key: _specialists_of(each) for key, each in known.items()}
    yield from faults_of_specialists(
        _named(circle(links, document.key)), lambda: _named(too_long(links, document.key, MOST_AGENTS))
    )


def _specialists_of(document: Document) -> list[tuple[DefinitionKind, str, str]]:
    links = document.version.runs.specialists if isinstance(document.version, AgentVersion) else ()
    return [(DefinitionKind.AGENT, link.namespace or document.namespace, link.name or "") for link in links]


def _named(chain: tuple[tuple[DefinitionKind, str, str], ...]) -> list[str]:
    return [f"{namespace}/{name}" for _, namespace, name in chain]


def _routers_of(document: Document) -> list[tuple[DefinitionKind, str, str]]:
    """What a router leads to, as a set knows it: by name."""
    if not isinstance(document.version, RouterVersion):
        return []
    links = [each.router for each in document.version.candidates if each.router is not None]
    return [(DefinitionKind.ROUTER, link.namespace or document.namespace, link.name or "") for link in links]


def _link_text_faults(
    pointer: str, kind: DefinitionKind, text: str, document: Document, known: Known
) -> Iterator[Fault]:
    """Of a link that stays a text."""
    try:
        link = parse_reference(text)
    except BadInput as error:
        yield Fault(pointer, str(error))
        return
    if _missing(kind, link, document, known):
        yield _no_such(pointer, kind, link, document)


def _connector_faults(
    pointer: str, holder: AgentVersion | AgentBinding | InteractionVersion, document: Document, known: Known
) -> Iterator[Fault]:
    """Connectors that the set does not have. Which operations they have is known to their servers alone."""
    for kind in CONNECTORS:
        for place, bound in operations_of(holder, pointer, kind=kind):
            if bound.connector is not None and _missing(kind, bound.connector, document, known):
                yield _no_such(f"{place}/connector", kind, bound.connector, document)


def _found(kind: DefinitionKind, link: Reference, document: Document, known: Known) -> Document | None:
    return known.get((kind, link.namespace or document.namespace, link.name or ""))


def _missing(kind: DefinitionKind, link: Reference, document: Document, known: Known) -> bool:
    return bool(link.name) and link.definition_id is None and _found(kind, link, document, known) is None


def _no_such(
    pointer: str, kind: DefinitionKind, link: Reference, document: Document, *, noun: str | None = None
) -> Fault:
    title = f"{noun or NOUNS[kind]} '{link.namespace or document.namespace}/{link.name}'"
    return Fault(pointer, f"There is no {title} in these files. Add it, or correct the reference.")
