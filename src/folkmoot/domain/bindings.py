"""What is bound to a call: gone from the schema that the model sees, and put in whatever the model sends (B50).

Deliberately absent: whether a binding is right; `binding_checks` says that when a definition is saved and when a run starts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from folkmoot.domain.argument_paths import (
    IN_PLACE,
    IN_PLACE_LISTS,
    Path,
    children,
    path_of,
    resolved,
    types_at,
    views,
)
from folkmoot.domain.json_text import Unreadable, read_json
from folkmoot.domain.operations import Bound, Descriptor, OperationTarget
from folkmoot.domain.prompts import fill
from folkmoot.domain.schema_reports import shortened

Json = Any

_DEFINITIONS = ("$defs", "definitions")
_MAX_DEPTH = 60
_ONE_INPUT = re.compile(r"\s*%%\w(?:[^%\n\r]{0,126}\w)?%%\s*")
_IS_OF_TYPE = {
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "null": lambda value: value is None,
}


class Unfit(ValueError):
    """A bound value is none for its parameter; the message is a sentence."""


def bound_schema(descriptor: Descriptor, bound: Iterable[Bound]) -> dict[str, Json]:
    """The schema of the arguments without the parameters that are bound."""
    made: Json = descriptor.parameters
    is_changed = False
    for each in bound:
        path = path_of(descriptor, each.place, each.target)
        if path is not None:
            made, is_changed = _without(made, made, path, frozenset(), 0), True
    return _pruned(made) if is_changed else made


def final_arguments(target: OperationTarget, arguments: Mapping[str, Json]) -> dict[str, Json]:
    """The arguments of the call: what the model chose, and the bound values in the place of whatever it sent for them."""
    made = without_bound(target, arguments)
    # What lies deeper comes later, so that it wins over an object that is bound whole.
    for path, bound in sorted(_paths(target), key=lambda pair: len(pair[0])):
        if bound.is_sent:
            made = _placed(made, path, bound.value)
    return made


def without_bound(target: OperationTarget, arguments: Mapping[str, Json]) -> dict[str, Json]:
    """What is left of the model's arguments: these are to be held against the schema that it saw."""
    made = dict(arguments)
    root = target.descriptor.parameters
    for path, bound in _paths(target):
        made = _taken(made, path)
        if not children(root, [root], bound.target):
            made.pop(bound.target, None)  # the path spelt as a name, which is no parameter
    return made


def bound_value(descriptor: Descriptor, path: Path, text: str, inputs: Mapping[str, str]) -> Json:
    """The value that a binding's text stands for, its `%%inputs%%` filled in once (F56), of the parameter's type. Raises Unfit.

    Inputs within JSON are filled into its strings, after it was read: a value cannot add fields.
    """
    types = types_at(descriptor, path)
    if not types or "string" in types:
        return fill(text, inputs)
    try:
        value = _filled(read_json(text), inputs)
    except Unreadable:
        value = _read_filled(text, inputs)
    if not any(_IS_OF_TYPE[name](value) for name in types if name in _IS_OF_TYPE):
        raise Unfit(
            f"'{shortened(json.dumps(value, ensure_ascii=False), 60)}' is not of type {' or '.join(sorted(types))}"
        )
    return value


def _read_filled(text: str, inputs: Mapping[str, str]) -> Json:
    filled = fill(text, inputs)
    try:
        value = read_json(filled)
    except Unreadable:
        raise Unfit(f"'{shortened(filled, 60)}' is no JSON") from None
    if isinstance(value, dict | list) and not _ONE_INPUT.fullmatch(text):
        raise Unfit("an input within an object or array stands inside a string of it")
    return value


def _filled(value: Json, inputs: Mapping[str, str]) -> Json:
    match value:
        case str():
            return fill(value, inputs)
        case dict():
            return {name: _filled(part, inputs) for name, part in value.items()}
        case list():
            return [_filled(part, inputs) for part in value]
        case _:
            return value


def _paths(target: OperationTarget) -> list[tuple[Path, Bound]]:
    """A run is pinned to the descriptor that its bindings were checked against: a target that is not found there is a name."""
    return [(path_of(target.descriptor, bound.place, bound.target) or (bound.target,), bound) for bound in target.bound]


def _taken(node: dict[str, Json], path: Path) -> dict[str, Json]:
    head, *rest = path
    if head not in node:
        return node
    made = dict(node)
    if not rest:
        del made[head]
    elif isinstance(made[head], dict):
        made[head] = _taken(made[head], tuple(rest))
    else:
        del made[head]  # no object, where one will be: nothing of it can stay
    return made


def _placed(node: dict[str, Json], path: Path, value: Json) -> dict[str, Json]:
    head, *rest = path
    below = node.get(head)
    inner = _placed(below if isinstance(below, dict) else {}, tuple(rest), value) if rest else value
    return {**node, head: inner}


def _without(root: Json, node: Json, path: Path, seen: frozenset[str], depth: int) -> Json:
    """The schema without the parameter at `path`; what it refers to is put in its place where that changes too."""
    if not isinstance(node, dict) or depth > _MAX_DEPTH:
        return node
    made = dict(node)
    for key in (key for key in IN_PLACE if key in made):
        made[key] = _without(root, made[key], path, seen, depth + 1)
    for key in (key for key in IN_PLACE_LISTS if isinstance(made.get(key), list)):
        made[key] = [_without(root, part, path, seen, depth + 1) for part in made[key]]
    _take_property(root, made, path, depth)
    reference = made.get("$ref")
    if isinstance(reference, str) and reference not in seen:
        before = resolved(root, reference)
        after = _without(root, before, path, seen | {reference}, depth + 1)
        if after != before:
            del made["$ref"]
            if set(made) & set(after) - {"description", "title"}:
                made["allOf"] = [after, *made.get("allOf", [])]
            else:
                made = {**after, **made}
    return made


def _take_property(root: Json, made: dict[str, Json], path: Path, depth: int) -> None:
    head, *rest = path
    found = made.get("properties")
    properties: dict[str, Json] = found if isinstance(found, dict) else {}
    is_there = head in properties
    if rest and is_there:
        child = _without(root, properties[head], tuple(rest), frozenset(), depth + 1)
        made["properties"] = {**properties, head: child}
        # The object is made by the bound value; the model need not send an empty one.
        if not any(view.get("required") for view in views(root, [child])):
            _drop_requirement(made, head)
    if rest:
        return
    if is_there:
        made["properties"] = {name: part for name, part in properties.items() if name != head}
    _drop_requirement(made, head)
    for key in ("dependentRequired", "dependentSchemas", "dependencies"):
        if isinstance(made.get(key), dict):
            made[key] = {name: _less(part, head) for name, part in made[key].items() if name != head}
    if isinstance(made.get("minProperties"), int):
        made["minProperties"] = max(0, made["minProperties"] - 1)


def _drop_requirement(made: dict[str, Json], name: str) -> None:
    if isinstance(made.get("required"), list):
        made["required"] = _less(made["required"], name)


def _less(part: Json, name: str) -> Json:
    return [each for each in part if each != name] if isinstance(part, list) else part


def _pruned(schema: dict[str, Json]) -> dict[str, Json]:
    """Without the definitions that nothing refers to any more: they may still tell of what is bound."""
    rest = {key: part for key, part in schema.items() if key not in _DEFINITIONS}
    used = _references(rest)
    if any(not each.startswith("#/") for each in _references(schema)):
        return schema  # by anchors: which definition is meant is not looked up
    waiting = set(used)
    while waiting:
        found = _references(resolved(schema, waiting.pop())) - used
        used |= found
        waiting |= found
    for key in _DEFINITIONS:
        if isinstance(schema.get(key), dict):
            kept = {name: part for name, part in schema[key].items() if _is_used(f"#/{key}/{name}", used)}
            rest |= {key: kept} if kept else {}
    return rest


def _is_used(place: str, used: set[str]) -> bool:
    return any(_plain(each) == place or _plain(each).startswith(f"{place}/") for each in used)


def _plain(reference: str) -> str:
    return reference.replace("~1", "/").replace("~0", "~")


def _references(part: Json) -> set[str]:
    found: set[str] = set()
    waiting = [part]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            reference = node.get("$ref")
            found |= {reference} if isinstance(reference, str) else set()
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node
    return found
