"""Names of functions as every provider takes them, each its own, and back.

The rule is the narrowest of all providers: a letter or an underscore first, then letters, digits, underscores and dashes, 64 at
most. A name that keeps to it stays as it is; another one ends in a digest of itself, so that two that would look alike stay apart,
in every turn alike. Deliberately absent: which functions are offered.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from functools import lru_cache

_FIT = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")
_UNFIT = re.compile(r"[^a-zA-Z0-9_-]")
_KEPT_CHARACTERS = 50


@lru_cache(maxsize=4096)
def safe_function_name(name: str) -> str:
    """The name as it is sent."""
    if _FIT.fullmatch(name):
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:10]
    kept = _UNFIT.sub("_", name)[:_KEPT_CHARACTERS]
    return f"{kept if kept[:1].isalpha() else f'_{kept}'}_{digest}"


def own_names(names: Iterable[str]) -> dict[str, str]:
    """The names as they are sent, and what each one stands for."""
    return {safe_function_name(name): name for name in names}
