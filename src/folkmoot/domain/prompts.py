"""Prompts with `%%name%%` in them: which names they use, and what they say once the values are filled in.

A value is filled in once and never scanned again (F56). Deliberately absent: where values come from, and any other syntax.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

from folkmoot.domain.schema_reports import shortened
from folkmoot.kernel.errors import Fault

# A name starts and ends with a word character and holds no percent sign or line break: '%% of all' and '100%%' are mere text.
_FIELD = re.compile(r"%%%%|%%(\w(?:[^%\n\r]{0,126}\w)?)%%")

_SHOWN = 40


def names_in(text: str) -> tuple[str, ...]:
    """The names that the text uses, each once, in the order of their first use."""
    return tuple(dict.fromkeys(match.group(1) for match in _FIELD.finditer(text) if match.group(1)))


def problem_of_input_name(name: str) -> str | None:
    """A sentence about what keeps this from naming an input: a prompt could not refer to it."""
    if names_in(f"%%{name}%%") == (name,):
        return None
    shown = shortened(name, 80)
    return f"'{shown}' is no name for an input: use letters, digits and '_', no '%', and at most 128 characters."


def fill(text: str, values: Mapping[str, str]) -> str:
    """The text with each `%%name%%` replaced by its value and each `%%%%` by `%%`, in one pass.

    A name without a value stays as it is; `check_prompts` has refused it before.
    """
    return _FIELD.sub(lambda match: values.get(match.group(1), match.group()) if match.group(1) else "%%", text)


def check_prompts(prompts: Iterable[tuple[str, str]], known: Collection[str]) -> tuple[Fault, ...]:
    """A fault for each name that is none of `known`. `prompts`: pairs of JSON pointer and text."""
    return tuple(
        Fault(pointer, f"'%%{name}%%' names no input. {_advice(known)}")
        for pointer, text in prompts
        for name in names_in(text)
        if name not in known
    )


def _advice(known: Collection[str]) -> str:
    literal = "or write '%%%%' where you mean '%%'"
    if not known:
        return f"There are no inputs: add it to inputsPrompt, {literal}."
    shown = ", ".join(f"'{name}'" for name in list(known)[:_SHOWN])
    more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
    return f"The inputs are {shown}{more}: correct the name, add it to inputsPrompt, {literal}."
