"""Names of definitions and namespaces, and references as people write them: `name`, `namespace/name`, `name@3`.

Deliberately absent: participants' names, which are spoken (`participant_names`).
"""

from __future__ import annotations

import re
import unicodedata
from uuid import UUID

from folkmoot.domain.definitions import Reference
from folkmoot.domain.schema_reports import shortened
from folkmoot.domain.shown_text import HIDDEN_CATEGORIES
from folkmoot.kernel.errors import BadInput, Fault

MAX_NAME_CHARACTERS = 200
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_VERSION = re.compile(r"[0-9]{1,10}")
_LARGEST_VERSION = 2_147_483_647


def faults_of_name(pointer: str, name: str, *, what: str) -> tuple[Fault, ...]:
    """What keeps `name` from naming a definition or namespace. `what` says which it is: 'agent', 'namespace'."""
    problem = _problem(name)
    return (Fault(pointer, f"This is no name for {_article(what)} {what}: {problem}"),) if problem else ()


def parse_reference(text: str) -> Reference:
    """What `name`, `namespace/name` or an id refers to, each also with `@3` for a version; raises BadInput with a sentence."""
    rest, at, number = text.rpartition("@")
    if not at:
        rest, number = text, ""
    elif not _VERSION.fullmatch(number) or not 0 <= int(number) <= _LARGEST_VERSION:
        raise BadInput(f"'{shortened(text, 80)}' is no reference: after '@' comes a version, such as name@3.")
    version = int(number or 0) or None
    if _UUID.fullmatch(rest):
        return Reference(definition_id=UUID(rest), version=version)
    namespace, slash, name = rest.rpartition("/")
    parts = (namespace, name) if slash else (name,)
    for part in parts:
        problem = _problem(part)
        if problem is not None:
            example = "Write name, namespace/name or name@3."
            raise BadInput(f"'{shortened(text, 80)}' is no reference: {problem} {example}")
    return Reference(name=name, namespace=namespace or None, version=version)


def _problem(name: str) -> str | None:
    if not name or name != name.strip():
        return "it is empty, or begins or ends with a blank."
    if len(name) > MAX_NAME_CHARACTERS:
        return f"it has {len(name):,} characters; at most {MAX_NAME_CHARACTERS} are allowed."
    return _unfit_part(name)


def _unfit_part(name: str) -> str | None:
    if "/" in name or "@" in name:
        return "it holds '/' or '@', which references use; leave it out."
    hidden = next((character for character in name if unicodedata.category(character) in HIDDEN_CATEGORIES), None)
    if hidden is not None:
        return f"it holds the invisible or control character U+{ord(hidden):04X}; leave it out."
    if _UUID.fullmatch(name):
        return "it looks like an id; choose a word."
    if name in (".", ".."):
        return "no URL can hold it; choose a word."
    return None


def _article(what: str) -> str:
    return "an" if what[0].lower() in "aeiou" else "a"
