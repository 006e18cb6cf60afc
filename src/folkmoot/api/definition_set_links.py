"""Links within a set of definition files: those by name must lead to something that the set has.

Deliberately absent: ids, and which operations a connector has; both are looked up when the set is applied.
"""

from __future__ import annotations

from collections.abc import Iterator

from folkmoot.domain.checking import operations_of
from folkmoot.domain.definition_names import parse_reference
from folkmoot.domain.definitions import AgentBinding, AgentVersion, DefinitionKind, InteractionVersion, Reference
from folkmoot.domain.participant_checks import faults_of_participant
from folkmoot.kernel.errors import BadInput, Fault
from folkmoot.services.apply import Document
from folkmoot.services.operation_links import CONNECTORS
from folkmoot.services.references import NOUNS

Known = dict[tuple[DefinitionKind, str, str], Document]


def link_faults(document: Document, known: Known) -> Iterator[Fault]:
    """Links that name something which the set does not have. An id is looked up when the set is applied."""
    version = document.version
    if isinstance(version, AgentVersion):
        if _missing(DefinitionKind.AI_MODEL, version.model, document, known):
            yield _no_such("/model", DefinitionKind.AI_MODEL, version.model, document)
        yield from _connector_faults("", version, document, known)
    elif isinstance(version, InteractionVersion):
        for index, binding in enumerate(version.agents):
            pointer = f"/agents/{index}/agent"
            if _missing(DefinitionKind.AGENT, binding.agent, document, known):
                yield _no_such(pointer, DefinitionKind.AGENT, binding.agent, document)
            elif (agent := _found(DefinitionKind.AGENT, binding.agent, document, known)) is not None:
                assert isinstance(agent.version, AgentVersion)
                yield from faults_of_participant(
                    pointer, agent=agent.version, name=agent.name, binding=binding, interaction=version
                )
            yield from _connector_faults(f"/agents/{index}", binding, document, known)
        model = version.compaction_model
        if model is not None and _missing(DefinitionKind.AI_MODEL, model, document, known):
            yield _no_such("/contextSettings/compactionModel", DefinitionKind.AI_MODEL, model, document)
        yield from _stack_faults(version, document, known)
        yield from _connector_faults("", version, document, known)


def _stack_faults(version: InteractionVersion, document: Document, known: Known) -> Iterator[Fault]:
    if version.credential_stack is None:
        return
    try:
        stack = parse_reference(version.credential_stack)
    except BadInput as error:
        yield Fault("/credentialStack", str(error))
        return
    if _missing(DefinitionKind.CREDENTIAL_STACK, stack, document, known):
        yield _no_such("/credentialStack", DefinitionKind.CREDENTIAL_STACK, stack, document)


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


def _no_such(pointer: str, kind: DefinitionKind, link: Reference, document: Document) -> Fault:
    title = f"{NOUNS[kind]} '{link.namespace or document.namespace}/{link.name}'"
    return Fault(pointer, f"There is no {title} in these files. Add it, or correct the reference.")
