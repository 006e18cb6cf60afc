"""Memory's settings: what was set, and what applies by default."""

from __future__ import annotations

from typing import Any

from folkmoot.wire.definitions import LoomConfiguration

# What is told to nobody else and costs nothing unasked, where nothing was set.
DEFAULT_SCOPE = "Process"
DEFAULT_IS_SHARED = False
DEFAULT_RECALL = "OnWake"
DEFAULT_WEAVE = "Manual"
DEFAULT_TAPESTRY_TOKENS = 1000


def shown(stored: dict[str, Any] | None) -> LoomConfiguration | None:
    """A configuration as it was kept, with its `effective…` fields."""
    if stored is None:
        return None
    vets = stored.get("vetModel") is not None
    return LoomConfiguration.model_validate(
        {
            **stored,
            "effectiveScope": stored.get("scope") or DEFAULT_SCOPE,
            "effectiveShared": DEFAULT_IS_SHARED if stored.get("shared") is None else stored["shared"],
            "effectiveRecall": stored.get("recall") or DEFAULT_RECALL,
            "effectiveWeave": stored.get("weave") or DEFAULT_WEAVE,
            "effectiveTapestryTokens": stored.get("tapestryTokens") or DEFAULT_TAPESTRY_TOKENS,
            "effectiveSubjectInputs": stored.get("subjectInputs") or (),
            "effectiveReadFromLoomIds": stored.get("readFromLoomIds") or (),
            "vets": vets,
            "effectiveVetRecall": vets and bool(stored.get("vetRecall")),
        }
    )
