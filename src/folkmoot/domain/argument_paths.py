"""Where a bound target stands among the arguments of an operation, and what its schemas say about it.

A target is a parameter's own name, or a path whose steps are parted by dots; a name that itself holds dots is found first.
Deliberately absent: values, and references out of the schema, which were refused when the operation was found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from folkmoot.domain.operations import Argument, Descriptor, McpDescriptor, Place

Json = Any
Path = tuple[str, ...]

IN_PLACE_LISTS = ("allOf", "anyOf", "oneOf")
IN_PLACE = ("if", "then", "else")
_PLACES = {
    Place.REQUEST: ("field", "body"),
    Place.PATH: ("path",),
    Place.QUERY: ("query",),
    Place.HEADER: ("header",),
}
_MAX_VIEWS = 500


def path_of(descriptor: Descriptor, place: Place, target: str) -> Path | None:
    """The steps to the target in the arguments as the model sees them; null if the operation has no such parameter."""
    root = descriptor.parameters
    if isinstance(descriptor, McpDescriptor):
        return _steps(root, [root], target) if place is Place.REQUEST else None
    arguments = [argument for argument in descriptor.arguments if argument.place in _PLACES[place]]
    for argument in arguments:
        if _is_named(argument, target, place):
            return (argument.name,)
    for argument in sorted(arguments, key=lambda argument: -len(argument.wire_name)):
        if argument.place == "body":
            rest = target
        elif target.startswith(f"{argument.wire_name}."):
            rest = target[len(argument.wire_name) + 1 :]
        else:
            continue
        steps = _steps(root, children(root, [root], argument.name), rest)
        if steps is not None:
            return (argument.name, *steps)
    return None


def _is_named(argument: Argument, target: str, place: Place) -> bool:
    """Names of headers are the same in any case."""
    if place is Place.HEADER:
        return argument.wire_name.casefold() == target.casefold()
    return target in (argument.wire_name, argument.name)


def _steps(root: Json, nodes: Iterable[Json], target: str) -> Path | None:
    seen = list(views(root, nodes))
    if not target or not seen:
        return None
    named = {name for view in seen for name in _properties(view)}
    if target in named:
        return (target,)
    for end in (index for index in range(len(target) - 1, 0, -1) if target[index] == "."):
        head = target[:end]
        if head in named and (rest := _steps(root, children(root, seen, head), target[end + 1 :])) is not None:
            return (head, *rest)
    is_open = not named and all(view.get("additionalProperties", True) is not False for view in seen)
    return tuple(target.split(".")) if is_open and _admits_objects(seen) else None


def _admits_objects(seen: Iterable[Mapping[str, Json]]) -> bool:
    types = _types(seen)
    return not types or "object" in types


def views(root: Json, nodes: Iterable[Json]) -> Iterator[dict[str, Json]]:
    """The schemas that look at one and the same value: these, what they refer to, and what they are combined of."""
    waiting, known = list(nodes), set[int]()
    while waiting and len(known) < _MAX_VIEWS:
        node = waiting.pop(0)
        if not isinstance(node, dict) or id(node) in known:
            continue
        known.add(id(node))
        yield node
        waiting.append(resolved(root, node.get("$ref")))
        waiting += [node[key] for key in IN_PLACE if key in node]
        for key in IN_PLACE_LISTS:
            parts = node.get(key)
            waiting += parts if isinstance(parts, list) else []


def children(root: Json, nodes: Iterable[Json], name: str) -> list[Json]:
    """The schemas of a property, of all that look at its object."""
    return [_properties(view)[name] for view in views(root, nodes) if name in _properties(view)]


def types_at(descriptor: Descriptor, path: Path) -> frozenset[str]:
    """The JSON types that the parameter may have; empty if its schemas do not say."""
    root = descriptor.parameters
    nodes: list[Json] = [root]
    for name in path:
        nodes = children(root, nodes, name)
    return frozenset(_types(views(root, nodes)))


def is_required(descriptor: Descriptor, path: Path) -> bool:
    """Whether a call without the parameter is incomplete: each step of the path is required by what it stands in."""
    root = descriptor.parameters
    nodes: list[Json] = [root]
    for name in path:
        if not any(name in _required(view) for view in views(root, nodes)):
            return False
        nodes = children(root, nodes, name)
    return bool(path)


def resolved(root: Json, reference: Json) -> Json:
    """What a reference within the schema leads to; null if nothing."""
    if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
        return None
    node = root
    for token in reference.split("/")[1:]:
        key = unquote(token).replace("~1", "/").replace("~0", "~")
        if isinstance(node, dict):
            node = node.get(key)
        elif isinstance(node, list) and key.isdigit() and int(key) < len(node):
            node = node[int(key)]
        else:
            return None
    return node


def _properties(view: Mapping[str, Json]) -> Mapping[str, Json]:
    found = view.get("properties")
    return found if isinstance(found, dict) else {}


def _required(view: Mapping[str, Json]) -> list[Json]:
    found = view.get("required")
    return found if isinstance(found, list) else []


def _types(seen: Iterable[Mapping[str, Json]]) -> set[str]:
    found: set[str] = set()
    for view in seen:
        declared = view.get("type")
        found |= {declared} if isinstance(declared, str) else set(declared) if isinstance(declared, list) else set()
    return found
