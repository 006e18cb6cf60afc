"""Names of participants: what one may look like, and when two are the same to a reader's eye (F53).

A name heads everything its bearer says, so it must not hide characters, break lines, or pass for another's. Deliberately
absent: names of definitions, which are keys and not spoken.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from folkmoot.domain.pending import PERSON
from folkmoot.domain.shown_text import HIDDEN_CATEGORIES
from folkmoot.kernel.errors import Fault

MAX_NAME_CHARACTERS = 64
RESERVED = (PERSON, "Orchestrator")

# Letters of Cyrillic and Greek that are drawn like Latin ones; the keys are after case folding, so lower case is enough.
_LOOK_ALIKES = str.maketrans("авекмнорстухіјѕԁһԛԝαβεικνορτυχγ", "abekmhopctyxijsdhqwabeikvoptuxy")


def faults_of_names(
    names: Iterable[tuple[str, str]], *, what: str = "participant", reserved: Iterable[str] = RESERVED
) -> tuple[Fault, ...]:
    """What is wrong with the names of participants, or of whatever else a model tells apart by name (`what`: a noun).

    `names`: pairs of JSON pointer and name, in turn order.
    """
    faults = []
    seen = {name_key(name): f"'{name}', which is reserved" for name in reserved}
    for pointer, name in names:
        problem = _problem(name, what)
        if problem is not None:
            faults.append(Fault(pointer, problem))
            continue
        key = name_key(name)
        if key in seen:
            faults.append(
                Fault(pointer, f"The name '{name}' is taken or looks like {seen[key]}; give this {what} another.")
            )
        seen.setdefault(key, f"'{name}', another {what}'s")
    return tuple(faults)


def name_key(name: str) -> str:
    """Equal for names that a reader would take for the same: by compatibility form, case, blanks and look-alike letters."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    return " ".join(folded.split()).translate(_LOOK_ALIKES)


def _problem(name: str, what: str) -> str | None:
    if not name.strip():
        return f"A {what} needs a name; give it one."
    hidden = next((character for character in name if unicodedata.category(character) in HIDDEN_CATEGORIES), None)
    if hidden is not None:
        return f"The name holds the invisible or control character U+{ord(hidden):04X}; leave it out."
    if len(name) > MAX_NAME_CHARACTERS:
        return f"The name has {len(name)} characters; at most {MAX_NAME_CHARACTERS} are allowed. Shorten it."
    if name != name.strip():
        return f"The name '{name}' begins or ends with a blank; take it off."
    return None
