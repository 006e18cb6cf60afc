"""Files of definitions on the command line: read, applied with their diff, and which interaction or agent of them is meant."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from folkmoot.api.definition_files import read_files
from folkmoot.bootstrap.installation import Installation
from folkmoot.bootstrap.outside import open_outside
from folkmoot.bootstrap.reaching import reach_of
from folkmoot.cli import screen
from folkmoot.domain.definitions import DefinitionKind, Reference
from folkmoot.domain.tenancy import DEFAULT_NAMESPACE, Caller
from folkmoot.kernel.errors import BadInput
from folkmoot.services import apply as applying
from folkmoot.services.apply import Change, Document
from folkmoot.services.connectors import Discoveries
from folkmoot.services.operation_links import CONNECTORS
from folkmoot.services.references import NOUNS
from folkmoot.store.definitions import Outcome

_MARKS = {Outcome.CREATED: "+", Outcome.CHANGED: "~", Outcome.UNCHANGED: "=", Outcome.DELETED: "-"}


@dataclass(frozen=True, slots=True)
class InFiles:
    """A document of a set, which is to be run, and to be published with the set."""

    documents: tuple[Document, ...]
    document: Document


def meant(what: str, chosen: str | None, *, kind: DefinitionKind = DefinitionKind.INTERACTION) -> InFiles | Reference:
    """What is to be run: one of a file or folder of definitions, by the name `chosen` if it holds several; else a name."""
    noun = NOUNS[kind]
    if not what.endswith((".yaml", ".yml")) and not (what and Path(what).exists()):
        if chosen is not None:
            raise BadInput(
                f"--{noun} chooses among those of a file, and '{what[:80]}' is no file or folder here. Correct the path, or leave "
                f"--{noun} out if it is the {noun}'s name."
            )
        return reference(what, noun=noun)
    documents = read_files([Path(what)])
    return InFiles(tuple(documents), document_of(documents, chosen, kind=kind))


async def settle(installation: Installation, caller: Caller, meant: InFiles | Reference) -> Reference:
    """What to start. Of files it is the very version that they say, be there a later one or not."""
    if isinstance(meant, Reference):
        return meant
    changes = await apply(installation, caller, meant.documents)
    document = meant.document
    for change in changes:
        if (change.kind, change.namespace, change.name) == (document.kind, document.namespace, document.name):
            return Reference(document.name, document.namespace, version=change.number)
    raise AssertionError("what was applied has a change for each document")


async def apply(installation: Installation, caller: Caller, documents: Sequence[Document]) -> tuple[Change, ...]:
    """Publish what differs; says what it did where it did something."""
    found = await look(installation, caller, documents)
    changes = await applying.apply(
        installation.database, caller, documents, new_id=installation.new_id, found=found, channel_apps=installation.channel_apps
    )  # fmt: skip
    for change in changes:
        if change.outcome is not Outcome.UNCHANGED:
            screen.say(line_of(change))
    return changes


async def look(installation: Installation, caller: Caller, documents: Sequence[Document]) -> Discoveries:
    """What the servers of connectors offer, of those that are new or differ; without connectors nothing is opened."""
    if not any(document.kind in CONNECTORS for document in documents):
        return {}
    async with open_outside(installation.settings) as outside:
        reach = reach_of(installation, outside)
        return await applying.look(installation.database, caller, reach, documents)


def line_of(change: Change) -> str:
    return f"{_MARKS[change.outcome]} {change.kind} {change.namespace}/{change.name}@{change.number} {change.outcome}"


def show(changes: Sequence[Change], *, as_json: bool) -> None:
    """The diff: each definition, and each field that differs."""
    for change in changes:
        if as_json:
            screen.put_json(_shown(change))
            continue
        screen.put(line_of(change))
        for difference in change.differences:
            screen.put(f"    {difference.pointer}: {_short(difference.before)} -> {_short(difference.after)}")


def _shown(change: Change) -> dict[str, Any]:
    return {
        "kind": change.kind, "namespace": change.namespace, "name": change.name, "version": change.number,
        "outcome": change.outcome,
        "differences": [{"pointer": d.pointer, "before": d.before, "after": d.after} for d in change.differences],
    }  # fmt: skip


def _short(value: object) -> str:
    text = screen.printable(json.dumps(value, ensure_ascii=False, default=str))
    return text if len(text) <= 100 else f"{text[:100]} …"


def document_of(documents: Sequence[Document], name: str | None, *, kind: DefinitionKind) -> Document:
    """The interaction or agent of a set that is to be run: the named one, else the only one."""
    noun = NOUNS[kind]
    found = [d for d in documents if d.kind is kind]
    names = ", ".join(d.name for d in found)
    if name is not None:
        found = [d for d in found if name in (d.name, f"{d.namespace}/{d.name}")]
    if not names:
        raise BadInput(f"The file holds no {noun} to run. Add a document of kind {kind}.")
    if len(found) != 1:
        wanted = f"There is no {noun} '{name}' in it" if name else f"It holds several {noun}s"
        raise BadInput(f"{wanted}; name one of these with --{noun}: {names}.")
    return found[0]


def reference(what: str, *, noun: str = "interaction") -> Reference:
    """`name`, `namespace/name`, either with @version."""
    text, at, version = what.partition("@")
    namespace, slash, name = text.rpartition("/")
    if not name or (slash and not namespace):
        raise BadInput(f"'{what[:80]}' names nothing to run; name a YAML file, or an {noun} as namespace/name.")
    if at and not (version.isascii() and version.isdigit() and 0 < int(version) < 2**31):
        raise BadInput(f"'{what[:80]}' is no {noun}: after @ comes a version, a number from 1 on.")
    return Reference(name, namespace if slash else DEFAULT_NAMESPACE, version=int(version) if at else None)
