"""What must hold of a link in itself. Deliberately absent: whether it leads anywhere; that takes the store."""

from __future__ import annotations

from collections.abc import Iterator

from folkmoot.domain.context_checks import LARGEST_COUNT
from folkmoot.domain.references import Reference
from folkmoot.kernel.errors import Fault


def faults_of_link(pointer: str, link: Reference, what: str) -> Iterator[Fault]:
    """`what`: that which it should lead to, such as 'an agent'."""
    if not link.name and link.definition_id is None:
        yield Fault(pointer, f"This refers to nothing; give {what}'s name or id.")
    if link.version is not None and not 0 <= link.version <= LARGEST_COUNT:
        yield Fault(pointer, f"There is no version {link.version}; leave it out for the latest enabled one.")
