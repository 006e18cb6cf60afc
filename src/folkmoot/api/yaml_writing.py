"""Plain JSON values as YAML text that `yaml_values` reads back as the same values.

Text is written without quotes only where no reader could take it for anything else. Deliberately absent: anchors, tags, comments.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

Json = Any

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*(?:[ /@][A-Za-z0-9_.-]+)*")
_WORDS = frozenset(("true", "false", "null", "yes", "no", "on", "off", "y", "n"))
_WIDTH = 120


class _Dumper(yaml.SafeDumper):
    """Each value where it is, as often as it is used."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    style = '"'
    if "\n" in text:
        style = "|"  # falls back to quotes by itself where that form would lose something
    elif _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        style = ""
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style or None)


_Dumper.add_representer(str, _text)


def written(value: Json) -> str:
    """One document, without the line that opens it."""
    text: str = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH)
    return text
