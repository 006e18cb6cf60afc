"""Which apps there are, and each by its name, loaded when it is first asked for.

The shipped apps are in a table, since a source tree that is not installed has no entry points; others are found by theirs. A shipped app's
name is not given away, and of two strangers with one name neither has it. An app that cannot be loaded takes none of the others down.
"""

from __future__ import annotations

import importlib
import logging
from collections import defaultdict
from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from folkmoot.channels.channel import Channel, ChannelWorld
from folkmoot.kernel.errors import BadInput

GROUP = "folkmoot.channels"
SHIPPED = {
    "web": "folkmoot.channels.web:make",
    "webhook": "folkmoot.channels.webhook:make",
    "email": "folkmoot.channels.mail.app:make",
    "slack": "folkmoot.channels.slack.app:make",
}
_FUNCTIONS = ("send", "receive", "tell", "taken")
_log = logging.getLogger("folkmoot.channels")


class AppUnavailable(BadInput):
    """There is no such app, or it cannot be used; the message says why."""


class ChannelApps:
    """`found`: the entry points of the group; the installed ones where none are given. `refused`: those that are not used, each with why."""

    def __init__(self, world: ChannelWorld, *, found: Iterable[EntryPoint] | None = None) -> None:
        self._world = world
        self._targets = dict(SHIPPED)
        self._faults: dict[str, str] = {}
        self._loaded: dict[str, Channel] = {}
        self.refused: tuple[str, ...] = self._admit(entry_points(group=GROUP) if found is None else found)
        for words in self.refused:
            _log.warning("%s", words)

    @property
    def names(self) -> tuple[str, ...]:
        """Of all apps, those that cannot be used included."""
        return tuple(sorted({*self._targets, *self._faults}))

    def find(self, name: str) -> Channel:
        """Raises AppUnavailable: unknown, or why it cannot be used."""
        if name not in self._loaded and name not in self._faults:
            if name not in self._targets:
                raise AppUnavailable(f"There is no channel app '{name[:100]}'; the apps are {', '.join(self.names)}.")
            try:
                self._loaded[name] = _made(name, self._targets[name], self._world)
            except (Exception, SystemExit) as error:  # whatever somebody's module does when it is imported
                self._faults[name] = f"{type(error).__name__}: {str(error)[:500]}"
        if name in self._faults:
            raise AppUnavailable(f"The channel app '{name}' cannot be used: {self._faults[name]}")
        return self._loaded[name]

    def why_not(self, name: str) -> str | None:
        """Why an app cannot be used; null if it can."""
        try:
            self.find(name)
        except AppUnavailable as error:
            return str(error)
        return None

    def _admit(self, found: Iterable[EntryPoint]) -> tuple[str, ...]:
        by_name: dict[str, set[str]] = defaultdict(set)
        for entry in found:
            by_name[entry.name].add(entry.value)
        refused: list[str] = []
        for name, values in sorted(by_name.items()):
            if name in SHIPPED:
                refused += [
                    f"The channel app '{name}' of '{value}' is not used: the name is that of a shipped app; give it another."
                    for value in sorted(values - {SHIPPED[name]})
                ]
            elif len(values) > 1:
                words = f"several packages offer it ({', '.join(sorted(values))}); install one of them"
                self._faults[name] = words
                refused.append(f"The channel app '{name}' is not used: {words}.")
            else:
                self._targets[name] = values.pop()
        return tuple(refused)


def _made(name: str, target: str, world: ChannelWorld) -> Channel:
    module, _, attribute = target.partition(":")
    make: Any = importlib.import_module(module)
    for part in attribute.split("."):
        make = getattr(make, part)
    made: Channel = make(world)
    if made.app != name:
        raise TypeError(f"it calls itself '{made.app}', and its entry point '{name}'; give both the same name")
    if not isinstance(made.settings_schema, dict):
        raise TypeError("its settings_schema is no JSON Schema; give a dict")
    for function in _FUNCTIONS:
        if not callable(getattr(made, function, None)):
            raise TypeError(f"it has no function '{function}'")
    return made
