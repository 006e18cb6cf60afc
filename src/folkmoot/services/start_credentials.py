"""What keys a start names, settled: its credentials, the stack with the place that named it, whether the operator's keys may be used.

Secrets are named by their ids alone. Deliberately absent: values, which are read at each call; and the tenant's own keys, which are
as they are at that moment.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from uuid import UUID

from folkmoot.domain.credential_checks import MOST_ENTRIES, faults_of_key
from folkmoot.domain.credentials import (
    CredentialEntry,
    CredentialStackVersion,
    StackEntry,
    StackSnapshot,
    StackSource,
    name_there,
)
from folkmoot.domain.definition_names import parse_reference
from folkmoot.domain.definitions import (
    DefinitionKind,
    InteractionVersion,
    Reference,
    ResolvedInteraction,
    StoredVersion,
)
from folkmoot.domain.model_calls import ModelChoice
from folkmoot.domain.providers import key_variable
from folkmoot.domain.rights import Right
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.errors import BadInput, Fault
from folkmoot.kernel.ids import NewId
from folkmoot.services import references, secret_links
from folkmoot.services.closure import StartFields, Workbench
from folkmoot.store import credential_stacks, model_keys, tenancy
from folkmoot.store.database import Database, Reader

ReadKey = Callable[[str], str | None]

_KIND = DefinitionKind.CREDENTIAL_STACK


@dataclass(slots=True)
class StartCredentials:
    """One start's look at keys; `faults` says what is wrong, with pointers into its request."""

    reader: Reader
    caller: Caller
    interaction: StoredVersion
    request: StartFields
    new_id: NewId
    faults: list[Fault]

    async def settled(self, resolved: ResolvedInteraction) -> ResolvedInteraction:
        """The closure with what the run's calls may take. Raises NotPermitted where a secret would go to a place of the start's choice."""
        own = await self._credentials()
        stack = await self._stack()
        if stack is not None and own:
            message = (
                f"This run has the credential stack '{stack.stack_name}', named by: {stack.source}. Only a stack counts where there is "
                "one: leave the credentials out."
            )
            self.faults.append(Fault("/credentials", message))
        return replace(
            resolved, credential_stack=stack, credentials=own, allow_platform_fallback=bool(self.request.allow_platform_fallback)
        )  # fmt: skip

    async def _credentials(self) -> tuple[CredentialEntry, ...]:
        given = self.request.credentials
        if len(given) > MOST_ENTRIES:
            message = f"A run has at most {MOST_ENTRIES} credentials; these are {len(given)}."
            self.faults.append(Fault("/credentials", message))
            return ()
        return tuple([await self._credential(f"/credentials/{index}", each) for index, each in enumerate(given)])

    async def _credential(self, pointer: str, given: StackEntry) -> CredentialEntry:
        if given.credential is not None and given.base_url is not None:
            # Who may start runs could otherwise have any secret of the tenant sent to a server of theirs.
            self.caller.require(Right.MANAGE_SECRETS)
        self.faults += faults_of_key(pointer, given)
        secret_id = None
        if given.credential is not None:
            secret_id = await self._secret_id(f"{pointer}/credentialId", given.credential)
        return given.settled(self.new_id(), secret_id=secret_id)

    async def _secret_id(self, pointer: str, secret: Reference) -> UUID | None:
        place = self.interaction.definition.namespace
        found = await secret_links.find(self.reader, self.caller.tenant_id, secret=secret, namespace=place)
        if isinstance(found, str):
            self.faults.append(Fault(pointer, found))
            return None
        return found.definition_id

    async def _stack(self) -> StackSnapshot | None:
        """That of the run above, if it passes it on; else the first that is named: by the start, the interaction, its namespace, the tenant."""
        if self.request.inherited_stack is not None:
            return replace(self.request.inherited_stack, source=StackSource.PARENT)
        named = await self._named()
        if named is None:
            return None
        source, reference, pointer, which = named
        found = await references.enabled(
            self.reader, self.caller.tenant_id, kind=_KIND, reference=reference, namespace=self.interaction.definition.namespace
        )  # fmt: skip
        if isinstance(found, str):
            self.faults.append(Fault(pointer, f"{which} cannot be used. {found}"))
            return None
        body = found.body
        assert isinstance(body, CredentialStackVersion)
        return StackSnapshot(
            stack_id=found.definition.definition_id,
            stack_name=found.definition.name,
            stack_version=found.number,
            source=source,
            resolved_at=await tenancy.now(self.reader),
            entries=tuple(entry.settled(self.new_id(), secret_id=_id_of(entry)) for entry in body.entries),
            rules=body.rules,
            passes_to_children=body.passes_to_children,
        )

    async def _named(self) -> tuple[StackSource, Reference, str, str] | None:
        """Where a stack is named, what it refers to, the pointer of its faults, and what sentences call it."""
        body, definition = self.interaction.body, self.interaction.definition
        assert isinstance(body, InteractionVersion)
        pointer = "/credentialStack"
        if self.request.credential_stack is not None:
            reference = self._read(self.request.credential_stack, pointer)
            which = "The credential stack that the start names"
            return (StackSource.START, reference, pointer, which) if reference is not None else None
        if body.credential_stack is not None:
            which = f"The credential stack of the interaction '{definition.name}'"
            return StackSource.INTERACTION, parse_reference(body.credential_stack), "", which
        found = await credential_stacks.defaults(self.reader, self.caller.tenant_id, namespace=definition.namespace)
        if found.of_namespace is not None:
            which = f"The credential stack that is the default of the namespace '{definition.namespace}'"
            return StackSource.NAMESPACE, Reference(definition_id=found.of_namespace), "", which
        if found.of_tenant is not None:
            which = "The credential stack that is the tenant's default"
            return StackSource.TENANT, Reference(definition_id=found.of_tenant), "", which
        return None

    def _read(self, text: str, pointer: str) -> Reference | None:
        try:
            return parse_reference(text)
        except BadInput as error:
            self.faults.append(Fault(pointer, str(error)))
            return None


async def lacks(reader: Reader, caller: Caller, *, resolved: ResolvedInteraction, bench: Workbench) -> list[Fault]:
    """Whose model has no key at all, where the run is worked on by this very process: elsewhere its environment is not known."""
    if bench.read_key is None:
        return []
    known = await _known(reader, caller)
    stack = resolved.credential_stack
    known = replace(known, entries=stack.entries if stack is not None else (*resolved.credentials, *known.entries))
    asked = [
        *((f"Agent '{each.agent_name}'", each.model) for p in resolved.participants for each in p.variants),
        *((f"Router '{each.name}'", each.model) for p in resolved.participants for each in p.routers),
    ]
    told = (
        (title, _lack(model, known, bench.read_key, is_stack=stack is not None))
        for title, model in asked
        if model is not None
    )
    found = dict.fromkeys(f"{title} cannot be asked. {lack}" for title, lack in told if lack is not None)
    return [Fault("", words) for words in found]


async def lack_of(database: Database, caller: Caller, *, model: ModelChoice, read_key: ReadKey) -> str | None:
    """A sentence about the key that a model lacks, of the tenant's and of those of this process; null if there is one, or none is needed."""
    async with database.reader() as reader:
        return _lack(model, await _known(reader, caller), read_key, is_stack=False)


@dataclass(frozen=True, slots=True)
class _Known:
    entries: tuple[CredentialEntry, ...]
    allows_platform: bool


async def _known(reader: Reader, caller: Caller) -> _Known:
    entries = tuple([key.entry for key in await model_keys.everything(reader, caller.tenant_id)])
    return _Known(entries, await tenancy.allows_platform_fallback(reader, caller.tenant_id))


def _lack(model: ModelChoice, known: _Known, read_key: ReadKey, *, is_stack: bool) -> str | None:
    variable = key_variable(model.provider, model.api_key_variable)
    if variable is None or any(name_there(entry, model) is not None for entry in known.entries):
        return None
    needs = f"Model '{model.model_name}' needs a key:"
    if is_stack:
        return f"{needs} the run's credential stack has no entry for it, and nothing else counts."
    if not known.allows_platform:
        return f"{needs} add one with `folkmoot model-keys add`; this tenant may not use the operator's own."
    return None if read_key(variable) else f"{needs} set the environment variable {variable}."


def _id_of(entry: StackEntry) -> UUID | None:
    return entry.credential.definition_id if entry.credential is not None else None
