"""What must hold of a key before it is kept: a provider that takes keys, a place for it to go to, names that lead somewhere.

Pointers are by the wire's names. Deliberately absent: whether a secret is there, and whether a key is any good; a call sees to that.
"""

from __future__ import annotations

from collections.abc import Iterator

from folkmoot.domain.credentials import PURPOSES, CredentialStackVersion, StackEntry, StackRule
from folkmoot.domain.model_checks import url_problem
from folkmoot.domain.providers import HERE, PROVIDERS
from folkmoot.domain.schema_documents import step
from folkmoot.domain.schema_reports import shortened
from folkmoot.kernel.errors import Fault

MOST_ENTRIES = 100
_MOST_OVERRIDES = 200
_MOST_CHARACTERS = 1_024
_LARGEST_PRIORITY = 2_147_483_647


def faults_of_key(pointer: str, key: StackEntry, *, secret_at: str = "credentialId") -> Iterator[Fault]:
    """What is wrong with a key in itself. `secret_at`: the field that links its secret."""
    provider, base_url = key.provider, key.base_url
    known = PROVIDERS.get(provider)
    takers = ", ".join(name for name in PROVIDERS if name not in HERE)
    if known is None or provider in HERE:
        what = "takes no key" if provider in HERE else "is not known"
        yield Fault(f"{pointer}/provider", f"The provider '{shortened(provider, 60)}' {what}; there are: {takers}.")
    elif base_url is None and known.needs_base_url:
        message = f"A key of provider '{provider}' needs the URL of the server that it is for: it is sent nowhere else."
        yield Fault(f"{pointer}/baseUrl", message)
    elif base_url is None and key.credential is None and known.key_variable is not None:
        message = "Only a server of one's own needs no key: give its URL, or name the secret that holds the key."
        yield Fault(f"{pointer}/{secret_at}", message)
    problem = url_problem(base_url) if base_url is not None else None
    if problem is not None:
        yield Fault(f"{pointer}/baseUrl", problem)
    if len(key.model_name_overrides) > _MOST_OVERRIDES:
        yield Fault(f"{pointer}/modelNameOverrides", f"At most {_MOST_OVERRIDES} models can be named; leave some out.")
    for ours, theirs in key.model_name_overrides.items():
        if not (0 < len(ours) <= _MOST_CHARACTERS and 0 < len(theirs.strip()) <= len(theirs) <= _MOST_CHARACTERS):
            message = f"Names of models have 1 to {_MOST_CHARACTERS:,} characters; correct them."
            yield Fault(step(f"{pointer}/modelNameOverrides", shortened(ours, 60)), message)
    if abs(key.priority) > _LARGEST_PRIORITY:
        yield Fault(
            f"{pointer}/priority", f"A priority is a whole number up to {_LARGEST_PRIORITY}; the lowest is first."
        )


def faults_of_stack(version: CredentialStackVersion) -> tuple[Fault, ...]:
    """What keeps the version from being saved; () if nothing does."""
    return (*_entry_faults(version.entries), *_rule_faults(version))


def _entry_faults(entries: tuple[StackEntry, ...]) -> Iterator[Fault]:
    if not 1 <= len(entries) <= MOST_ENTRIES:
        yield Fault("/entries", f"A stack has 1 to {MOST_ENTRIES} entries; this has {len(entries)}.")
    seen: set[str] = set()
    for index, entry in enumerate(entries):
        pointer = f"/entries/{index}"
        if not 1 <= len(entry.name.strip()) <= len(entry.name) <= 200:
            yield Fault(f"{pointer}/name", "An entry's name has 1 to 200 characters; correct it.")
        elif entry.name in seen:
            yield Fault(f"{pointer}/name", f"There are two entries '{entry.name}'; rename one of them.")
        seen.add(entry.name)
        yield from faults_of_key(pointer, entry)


def _rule_faults(version: CredentialStackVersion) -> Iterator[Fault]:
    if len(version.rules) > MOST_ENTRIES:
        yield Fault("/rules", f"A stack has at most {MOST_ENTRIES} rules; leave some out.")
    known = [entry.name for entry in version.entries]
    for index, rule in enumerate(version.rules):
        yield from _faults_of_rule(f"/rules/{index}", rule, known)


def _faults_of_rule(pointer: str, rule: StackRule, known: list[str]) -> Iterator[Fault]:
    for place, name in enumerate(rule.entries):
        if name not in known:
            message = f"There is no entry '{shortened(name, 60)}' in this stack; there are: {', '.join(known)}."
            yield Fault(f"{pointer}/entries/{place}", message)
    if rule.purpose is not None and rule.purpose not in PURPOSES:
        yield Fault(f"{pointer}/purpose", f"There is no such purpose; there are: {', '.join(PURPOSES)}.")
    if rule.provider is not None and rule.provider not in PROVIDERS:
        message = f"There is no provider '{shortened(rule.provider, 60)}'; there are: {', '.join(PROVIDERS)}."
        yield Fault(f"{pointer}/provider", message)
