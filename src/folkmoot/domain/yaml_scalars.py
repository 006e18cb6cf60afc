"""What YAML text without quotes and tag means, by the core schema of YAML 1.2: `no`, `12:30` and dates are text.

Deliberately absent: YAML itself; whoever reads files or documents has a parser and bounds of its own.
"""

from __future__ import annotations

import re
from typing import Any

Json = Any

_MAX_DIGITS = 300
_INTEGER = re.compile(r"[-+]?[0-9]+")
_OTHER_INTEGER = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]{1,3})?")
_CONSTANTS: dict[str, Json] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


def plain_scalar(text: str) -> Json:
    """Null, true, false, a number of at most 300 characters; the text itself for anything else."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if len(text) <= _MAX_DIGITS:
        if _INTEGER.fullmatch(text):
            return int(text)
        if _OTHER_INTEGER.fullmatch(text):
            return int(text, 0)
        if _NUMBER.fullmatch(text) and abs(number := float(text)) != float("inf"):
            return number
    return text
