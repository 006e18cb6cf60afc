"""The keys that a call could take, in the order of platform.md: the run's stack alone; else the run's own, the tenant's, the operator's.

Deliberately absent: which of them is taken (`domain.key_choice`), and the call (`model_access`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace

from folkmoot.domain.credentials import (
    CredentialEntry,
    StackRule,
    StackSnapshot,
    by_priority,
    entries_of,
    matches,
    name_there,
    place_of,
)
from folkmoot.domain.definitions import ResolvedInteraction
from folkmoot.domain.key_choice import KeyGroup, KeyNow
from folkmoot.domain.model_calls import ModelChoice
from folkmoot.domain.providers import base_url, key_variable
from folkmoot.engine.step import AskModel
from folkmoot.runtime.workshop import Workshop
from folkmoot.store.credentials import KeysNow
from folkmoot.vault.texts import SecretText

DELETED = "deleted"
# A secret that is made anew under its old name is another one.
_ANEW = "save what names it again, with a secret that is there"


@dataclass(frozen=True, slots=True)
class Candidates:
    """`missing`: what to do where there is no key at all. `also`: which further keys are not used, and why; '' where there is nothing to say.

    `goes_without`: the model may be called without a key where there is none. `platform`: the operator's key, if it is among them.
    """

    groups: tuple[KeyGroup, ...]
    goes_without: bool
    missing: str = ""
    also: str = ""
    platform: KeyNow | None = None
    platform_value: SecretText | None = None

    @property
    def keys(self) -> list[KeyNow]:
        return [key for group in self.groups for key in group.keys]

    def without(self, broken: KeyNow, *, problem: str) -> Candidates:
        """The same, with one of the keys found to be of no use."""
        groups = tuple(
            replace(group, keys=tuple(replace(key, problem=problem) if key is broken else key for key in group.keys))
            for group in self.groups
        )
        return replace(self, groups=groups)


def candidates(
    workshop: Workshop, resolved: ResolvedInteraction, found: KeysNow, *, step: AskModel, model: ModelChoice
) -> Candidates:
    """What the call could take, as it is now."""
    variable = key_variable(model.provider, model.api_key_variable)
    stack = resolved.credential_stack
    if stack is not None:
        groups = tuple(
            KeyGroup(tuple(_of_stack(stack, rule, found, model)), rule.when_used_up)
            for rule in _rules(stack, step, model)
        )
        missing = f"the run's credential stack '{stack.stack_name}' has no entry for it, and nothing else counts."
        return Candidates(groups, variable is None, missing)
    keys = [
        *_keys(by_priority(resolved.credentials), found, model),
        *_keys(found.model_keys, found, model, title="the model key '{}'"),
    ]
    if variable is None:
        return Candidates((KeyGroup(tuple(keys)),), goes_without=True)
    platform, value, why_not = _platform(workshop, resolved, found, model, variable)
    missing = f"{why_not}. Or give the run or the tenant one (`folkmoot model-keys add`)."
    also = "" if platform is not None else f"The operator's key is not used: {why_not}."
    groups = (KeyGroup((*keys, *([platform] if platform is not None else []))),)
    return Candidates(groups, False, missing, also, platform, value)


def _rules(stack: StackSnapshot, step: AskModel, model: ModelChoice) -> list[StackRule]:
    if not stack.rules:
        return [StackRule()]
    return [
        rule for rule in stack.rules if matches(rule, participant=step.participant, model=model, purpose=step.purpose)
    ]


def _of_stack(stack: StackSnapshot, rule: StackRule, found: KeysNow, model: ModelChoice) -> list[KeyNow]:
    title = f"the entry '{{}}' of the credential stack '{stack.stack_name}'"
    return _keys(entries_of(rule, stack.entries), found, model, title=title)


def _keys(
    entries: Iterable[CredentialEntry], found: KeysNow, model: ModelChoice, *, title: str | None = None
) -> list[KeyNow]:
    made = []
    for entry in entries:
        name = name_there(entry, model)
        if name is not None:
            made.append(_key(entry, name, found, title))
    return made


def _key(entry: CredentialEntry, name: str, found: KeysNow, title: str | None) -> KeyNow:
    """`title`: what sentences call it, with its name put in; null: it has none, and is called by what it is."""
    place = place_of(entry)
    titled = title.format(entry.name) if title is not None else None
    if entry.secret_id is None:
        return KeyNow(
            f"server:{place}", titled or f"the server at {place}", name, place, is_own_license=entry.is_own_license
        )
    id_, secret = str(entry.secret_id), found.secrets.get(entry.secret_id)
    made = KeyNow(id_, titled or f"the secret {id_}", name, place, id_, entry.is_own_license)
    if secret is None:
        became = "was deleted" if titled is None else "names a secret that was deleted"
        return replace(made, version=DELETED, problem=f"{became}: {_ANEW}")
    return replace(made, shown=titled or f"the secret '{secret.name}'", version=secret.version)


def _platform(
    workshop: Workshop, resolved: ResolvedInteraction, found: KeysNow, model: ModelChoice, variable: str
) -> tuple[KeyNow | None, SecretText | None, str]:
    """The operator's own key with its value; or null, and what would have to be so."""
    place = base_url(model.provider, model.base_url)
    # A run that was started before this was asked goes on as it began.
    if resolved.allow_platform_fallback is False:
        return None, None, "the start does not allow the operator's own (allowPlatformFallback)"
    if resolved.allow_platform_fallback and not found.allows_platform:
        return None, None, "this tenant may not use the operator's own (`folkmoot model-keys fallback yes` lets it)"
    if not workshop.may_send_key(model.provider, variable, place):
        allowing = f"FOLKMOOT_ALLOW_KEYS={variable}={place}"
        return None, None, f"the operator lets {variable} not be sent to {place} ({allowing} lets it)"
    value = workshop.read_key(variable)
    if not value:
        return None, None, f"set the environment variable {variable}"
    # What changes with the value and gives none of it away: a corrected key does not rest for the one before it.
    version = hashlib.sha256(f"folkmoot key {value}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
    shown = f"the key in the environment variable {variable}"
    key = KeyNow(f"platform:{variable}", shown, model.model_name, place, version=version)
    return key, SecretText(value), ""
