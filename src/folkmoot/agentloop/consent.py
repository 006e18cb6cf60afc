"""Whether a call needs the owner's consent: by the tool's approval mode, or by a rule on its arguments.

What a rule cannot be held against needs consent: an argument that is missing, or of another type. Texts are compared so that in doubt
the owner is asked: one that is other than the value by case, form, invisible characters or space around it equals it, and differs from it.
Deliberately absent: who may answer, and how (`services.consents`), and letters of other alphabets that look alike.
"""

from __future__ import annotations

import json
import re
from typing import Any
from unicodedata import category, normalize

from folkmoot.domain.agent_settings import Comparison, ConsentRule
from folkmoot.domain.approvals import final_call
from folkmoot.domain.calls import AskedCall, Tool

Json = Any
_MISSING = object()
_INDEX = re.compile("0|[1-9][0-9]{0,8}")


def needs_consent(tool: Tool, call: AskedCall) -> bool:
    """By what would be sent: bound values are in their places."""
    if tool.is_gated or not tool.consent_rules:
        return tool.is_gated
    arguments = final_call(tool, call.arguments_json).arguments
    return any(applies(rule, arguments) for rule in tool.consent_rules)


def applies(rule: ConsentRule, arguments: dict[str, Json]) -> bool:
    if rule.comparison is Comparison.ALWAYS:
        return True
    found = _argument(rule.argument or "", arguments)
    if found is _MISSING:
        return True
    match rule.comparison:
        case Comparison.EQUALS:
            return _is_like(found, rule.value)
        case Comparison.DIFFERS:
            return not _is_exactly(found, rule.value)
        case Comparison.CONTAINS:
            is_held = isinstance(found, str | dict | list) or _kind(found) is _kind(rule.value)
            return not is_held or _contains(found, rule.value)
        case Comparison.ABOVE | Comparison.BELOW:
            if not (_is_number(found) and _is_number(rule.value)):
                return True
            return bool(found > rule.value) if rule.comparison is Comparison.ABOVE else bool(found < rule.value)


def _argument(name: str, arguments: Json) -> Json:
    """By a name at the top, or by a JSON pointer."""
    if not name.startswith("/"):
        return arguments.get(name, _MISSING)
    found = arguments
    for part in name[1:].split("/"):
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict) and key in found:
            found = found[key]
        elif isinstance(found, list) and _INDEX.fullmatch(key) and int(key) < len(found):
            found = found[int(key)]
        else:
            return _MISSING
    return found


def _kind(value: Json) -> type:
    """The JSON type: all numbers are of one, and a truth is none."""
    return float if _is_number(value) else type(value)


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_exactly(one: Json, other: Json) -> bool:
    """The same JSON value; 1 and 1.0 are one, and 1 and true are two."""
    if _kind(one) is not _kind(other):
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_is_exactly, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_is_exactly(one[key], other[key]) for key in one)
    return bool(one == other)


def _is_like(one: Json, other: Json) -> bool:
    """The same but for letters' case and form; what is of another type may be made the same by the tool."""
    if _kind(one) is not _kind(other):
        return True
    if isinstance(one, str):
        return _folded(one) == _folded(other)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_is_like, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_is_like(one[key], other[key]) for key in one)
    return bool(one == other)


def _folded(text: str) -> str:
    """Without case, forms and invisible characters; an accent is a letter of its own, so that a word is found below one."""
    text = text.strip()
    if text.isascii():
        return text.casefold()
    seen = "".join(each for each in text if category(each) != "Cf")
    return normalize("NFKD", normalize("NFKD", seen).casefold())


def _contains(found: Json, wanted: Json) -> bool:
    """Of a text a part, of a list an element, of an object a value; at any depth, so that nesting hides nothing."""
    if isinstance(found, str):
        return _folded(str(wanted)) in _folded(found)
    if isinstance(found, dict):
        return any(_contains(each, wanted) for each in found.values())
    if isinstance(found, list):
        return any(_contains(each, wanted) for each in found)
    if isinstance(wanted, str):
        return _folded(wanted) in json.dumps(found)
    return _is_exactly(found, wanted)
