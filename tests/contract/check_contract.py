#!/usr/bin/env python3
"""Hold an OpenAPI document against docs/spec/contract.json.

    check_contract.py OPENAPI.json [--existing] [TYPE ...]

For every type (or those named): a component schema of that name, with every field, each of them required, null where
the contract says so, of the right JSON kind, and with the contract's enumeration where it has one. For every endpoint:
that it exists. With --existing, types and endpoints that are not there yet are counted, not faults. Prints the faults;
exit 1 if there are any.
"""

import json
import sys
from collections.abc import Collection, Iterator
from enum import Enum
from pathlib import Path
from typing import Any, Final

CONTRACT = Path(__file__).resolve().parents[2] / "docs" / "spec" / "contract.json"


class Absent(Enum):
    """A type or endpoint of the contract that is not there yet."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT
KINDS = {
    "boolean": {"boolean"},
    "integer": {"integer"},
    "long": {"integer"},
    "string": {"string"},
    "uuid": {"string"},
    "datetime": {"string"},
    "timespan": {"string"},
    "list": {"array"},
    "object": {"object"},
}


def kinds(schema: dict[str, Any], components: dict[str, Any], depth: int = 0) -> set[str]:
    """The JSON types that a property schema admits, following $ref and unions."""
    if depth > 8:
        return set()
    if "$ref" in schema:
        return kinds(components.get(schema["$ref"].rsplit("/", 1)[-1], {}), components, depth + 1)
    found: set[str] = set()
    for key in ("anyOf", "oneOf", "allOf"):
        for part in schema.get(key, ()):
            found |= kinds(part, components, depth + 1)
    declared = schema.get("type")
    found |= set(declared) if isinstance(declared, list) else {declared} if declared else set()
    if "enum" in schema or "const" in schema:
        found.add("string")
    if "properties" in schema:
        found.add("object")
    return found


def choices(schema: dict[str, Any], components: dict[str, Any], depth: int = 0) -> set[str]:
    """The values that a property's enumeration admits, following $ref and unions; empty where it has none."""
    if depth > 8:
        return set()
    if "$ref" in schema:
        return choices(components.get(schema["$ref"].rsplit("/", 1)[-1], {}), components, depth + 1)
    found = set(schema.get("enum", ())) | ({schema["const"]} if "const" in schema else set())
    for key in ("anyOf", "oneOf", "allOf"):
        for part in schema.get(key, ()):
            found |= choices(part, components, depth + 1)
    return found - {None}


def expected(declared: str) -> set[str]:
    """The JSON types that a contract type name stands for."""
    if declared.endswith("[]"):
        return {"array"}
    if declared in KINDS:
        return KINDS[declared]
    return {"string", "object"}  # a named type: an enumeration or an object


def check(
    document: dict[str, Any], contract: dict[str, Any], only: Collection[str] = (), *, existing: bool = False
) -> Iterator[str | Absent]:
    """Yield a sentence per fault, and with `existing` ABSENT per type or endpoint that is not there yet."""
    components = document.get("components", {}).get("schemas", {})
    for name, fields in contract["types"].items():
        if only and name not in only:
            continue
        if name not in components:
            yield ABSENT if existing else f"{name}: no such schema"
            continue
        for field, rule in fields.items():
            values = contract["enums"].get(f"{name}.{field}") or contract["enums"].get(rule["type"])
            yield from check_field(f"{name}.{field}", components[name], rule, values, components)
    if not only:
        paths = {(m.upper(), strip(p)) for p, ops in document.get("paths", {}).items() for m in ops}
        for endpoint in contract["endpoints"]:
            method, path = endpoint.split(" ", 1)
            if (method, strip(path)) not in paths:
                yield ABSENT if existing else f"{endpoint}: no such endpoint"


def check_field(
    place: str, schema: dict[str, Any], rule: dict[str, Any], values: list[str] | None, components: dict[str, Any]
) -> Iterator[str]:
    """Yield a sentence per fault of one field."""
    field = place.split(".", 1)[1]
    if field not in schema.get("properties", {}):
        yield f"{place}: missing"
        return
    described = schema["properties"][field]
    if field not in schema.get("required", ()):
        yield f"{place}: not required, so not promised in every response"
    admits = kinds(described, components)
    if not admits & expected(rule["type"]):
        yield f"{place}: admits {sorted(admits)}, the contract says {rule['type']}"
    if values and choices(described, components) != set(values):
        yield f"{place}: its values are not {values}"
    if rule.get("nullable") is True and "null" not in admits:
        yield f"{place}: must admit null"
    if rule.get("nullable") is False and "null" in admits:
        yield f"{place}: must not admit null"


def strip(path: str) -> str:
    """A path with its parameter names removed, so that only its shape counts."""
    return "/".join("{}" if part.startswith("{") else part for part in path.strip("/").split("/"))


def main() -> int:
    arguments = [a for a in sys.argv[1:] if a != "--existing"]
    document = json.loads(Path(arguments[0]).read_text())
    contract = json.loads(CONTRACT.read_text())
    only = set(arguments[1:])
    found = list(check(document, contract, only, existing="--existing" in sys.argv))
    faults = [f for f in found if f is not ABSENT]
    print(*faults, sep="\n")
    total = sum(len(f) for n, f in contract["types"].items() if not only or n in only)
    absent = len(found) - len(faults)
    print(f"{total} fields of the contract, {len(faults)} faults, {absent} types and endpoints not there yet")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
