"""What must hold of a router in itself when it is saved. Pointers are into the version, by the wire's names.

Deliberately absent: whether candidates are there, and circles (`router_chains`); both take other definitions.
"""

from __future__ import annotations

from collections.abc import Iterator

from folkmoot.domain.context_checks import LARGEST_COUNT
from folkmoot.domain.link_checks import faults_of_link
from folkmoot.domain.participant_names import faults_of_names
from folkmoot.domain.routers import RouterCandidate, RouterRule, RouterVersion
from folkmoot.domain.schema_reports import shortened
from folkmoot.kernel.errors import Fault

MOST_CANDIDATES = 50
MOST_RULES = 200


def faults_of_router(version: RouterVersion) -> tuple[Fault, ...]:
    """What keeps the version from being saved; () if nothing does."""
    return (
        *_candidate_faults(version),
        *_rule_faults(version),
        *_naming_faults("/fallback", version.fallback, version),
        *(faults_of_link("/model", version.model, "a model") if version.model is not None else ()),
    )


def _candidate_faults(version: RouterVersion) -> Iterator[Fault]:
    count = len(version.candidates)
    if not 1 <= count <= MOST_CANDIDATES:
        yield Fault("/candidates", f"A router has 1 to {MOST_CANDIDATES} candidates; this has {count}.")
    for index, candidate in enumerate(version.candidates):
        yield from _faults_of_candidate(f"/candidates/{index}", candidate)
    named = ((f"/candidates/{index}/name", each.called) for index, each in enumerate(version.candidates))
    yield from faults_of_names(
        ((pointer, name) for pointer, name in named if name is not None), what="candidate", reserved=()
    )


def _faults_of_candidate(pointer: str, candidate: RouterCandidate) -> Iterator[Fault]:
    if (candidate.agent is None) == (candidate.router is None):
        yield Fault(pointer, "A candidate is an agent or a router: set one of 'agent' and 'router'.")
        return
    what = "a router" if candidate.agent is None else "an agent"
    yield from faults_of_link(f"{pointer}/{candidate.kind.lower()}", candidate.link, what)


def _rule_faults(version: RouterVersion) -> Iterator[Fault]:
    if len(version.rules) > MOST_RULES:
        yield Fault(
            "/rules", f"A router has at most {MOST_RULES} rules; this has {len(version.rules)}. Leave some out."
        )
    for index, rule in enumerate(version.rules):
        yield from _naming_faults(f"/rules/{index}/candidate", rule.candidate, version)
        yield from _faults_of_rule(f"/rules/{index}", rule)


def _faults_of_rule(pointer: str, rule: RouterRule) -> Iterator[Fault]:
    if rule.input is not None and rule.input_value is None:
        yield Fault(f"{pointer}/inputValue", f"Say which value of the input '{shortened(rule.input, 60)}' is meant.")
    if rule.input is None and rule.input_value is not None:
        yield Fault(f"{pointer}/input", "Say which input is to have this value, or leave the value out.")
    if rule.turn_number is not None and not 1 <= rule.turn_number <= LARGEST_COUNT:
        yield Fault(f"{pointer}/turnNumber", f"Turns are counted from 1 to {LARGEST_COUNT}; correct it.")


def _naming_faults(pointer: str, name: str, version: RouterVersion) -> Iterator[Fault]:
    known = [candidate.called for candidate in version.candidates]
    if name not in known and None not in known:  # null: one is linked by its id alone, and bears a name not known here
        names = ", ".join(f"'{each}'" for each in known) or "none"
        yield Fault(pointer, f"There is no candidate '{shortened(name, 60)}' here. The candidates: {names}.")
