"""A control: a worker that masks nothing, so that what servers give back of a secret stays."""

from __future__ import annotations

from folkmoot.vault import masks


def _as_it_is(text: str) -> str:
    return text


masks.OF_PROCESS.mask = _as_it_is  # type: ignore[method-assign]
masks.mask = _as_it_is
