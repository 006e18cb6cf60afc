"""Tags of runs: a few short words of whoever starts them. Deliberately absent: what they mean."""

from __future__ import annotations

from folkmoot.kernel.errors import Fault

_MAX_TAGS = 50
_MAX_TAG_CHARACTERS = 200


def faults_of_tags(tags: tuple[str, ...]) -> list[Fault]:
    """What keeps a run from having these tags, each with its pointer into the request."""
    faults = [
        Fault(f"/tags/{index}", f"A tag has 1 to {_MAX_TAG_CHARACTERS} characters; shorten it.")
        for index, tag in enumerate(tags)
        if not 1 <= len(tag) <= _MAX_TAG_CHARACTERS
    ]
    if len(tags) > _MAX_TAGS:
        faults.append(Fault("/tags", f"A run has at most {_MAX_TAGS} tags; these are {len(tags)}. Leave some out."))
    return faults
