"""How long a provider wants to be left alone, where it tells that by its limits' state and not by `Retry-After`.

Deliberately absent: this machine's clock (the answer's own date is read), and what is done with the wait.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime

# x-ratelimit-remaining-tokens beside x-ratelimit-reset-tokens; anthropic-ratelimit-tokens-remaining beside …-reset.
_REMAINING = re.compile(r"(x-ratelimit-)remaining(-[a-z-]+)|(anthropic-ratelimit-[a-z-]+-)remaining")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def told_wait(headers: Mapping[str, str]) -> float | None:
    """Seconds until all used-up limits are reset; null if the headers (lower case) tell none."""
    return max(_waits(headers), default=None)


def _waits(headers: Mapping[str, str]) -> Iterator[float]:
    for name, value in headers.items():
        found = _REMAINING.fullmatch(name)
        if found is None or value.strip() != "0":
            continue
        reset = headers.get(f"{found[1]}reset{found[2]}" if found[1] else f"{found[3]}reset", "")
        wait = _lasting(reset) if found[1] else _until(reset, headers.get("date", ""))
        if wait is not None and wait >= 0:
            yield wait


def _lasting(text: str) -> float | None:
    """A length of time such as 6m0s or 120ms."""
    parts = _DURATION.findall(text)
    if not parts or "".join(f"{number}{unit}" for number, unit in parts) != text:
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


def _until(moment: str, now: str) -> float | None:
    """From the answer's date to a moment in RFC 3339."""
    try:
        return (datetime.fromisoformat(moment) - parsedate_to_datetime(now)).total_seconds()
    except (ValueError, TypeError):
        return None
