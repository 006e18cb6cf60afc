"""The models of a start: what each agent and router is asked with. Deliberately absent: what a start gives in their place (`overrides`)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from folkmoot.domain.definitions import (
    DEFAULT_WINDOW,
    AiModelVersion,
    Definition,
    DefinitionKind,
    Reference,
    StoredVersion,
)
from folkmoot.domain.model_calls import ModelChoice
from folkmoot.kernel.errors import BadInput, Fault
from folkmoot.services import references
from folkmoot.services.start_fields import Workbench
from folkmoot.store.database import Reader

Json = Any


class Models:
    """Each as its version is now; `faults` says what is wrong with them. `namespace`: where a start's own names are looked for."""

    def __init__(self, reader: Reader, tenant_id: UUID, *, namespace: str, bench: Workbench) -> None:
        self._reader = reader
        self._tenant_id = tenant_id
        self._namespace = namespace
        self._bench = bench
        self._chosen: dict[tuple[UUID, int], ModelChoice] = {}
        self.faults: list[Fault] = []

    async def of(self, link: Reference, holder: Definition) -> ModelChoice | None:
        """That of an agent or a router."""
        stored = await self._enabled(link, holder.namespace)
        if isinstance(stored, str):
            self.faults.append(Fault("", stored))
            return None
        key = (stored.definition.definition_id, stored.number)
        if key not in self._chosen:
            assert isinstance(stored.body, AiModelVersion)
            self._chosen[key] = self.choose(f"AI model '{stored.definition.name}'", stored.body)
        return self._chosen[key]

    async def find(self, link: Reference) -> StoredVersion | str:
        """One of the catalogue that a start or its interaction names, or why there is none."""
        return await self._enabled(link, self._namespace)

    async def _enabled(self, link: Reference, namespace: str) -> StoredVersion | str:
        return await references.enabled(
            self._reader, self._tenant_id, kind=DefinitionKind.AI_MODEL, reference=link, namespace=namespace
        )

    def note_lack(self, whose: str, model: ModelChoice) -> None:
        """A fault if this machine lacks what the model needs. `whose`: the beginning of a sentence, such as "Agent 'x'"."""
        lack = self._bench.lack_of(model)
        if lack is not None:
            self.faults.append(Fault("", f"{whose} cannot be asked. {lack}"))

    def choose(self, title: str, version: AiModelVersion, pointer: str = "") -> ModelChoice:
        script: Json = None
        if version.provider == "scripted" and version.path is not None:
            try:
                script = self._bench.read_script(version.path)
            except BadInput as error:
                self.faults.append(Fault(pointer, f"The script of {title} cannot be used. {error}"))
            except (OSError, UnicodeError) as error:
                reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
                self.faults.append(Fault(pointer, f"The script of {title} cannot be read ({version.path}): {reason}."))
        return ModelChoice(
            provider=version.provider,
            model_name=version.model_name,
            context_window=version.context_window or self._bench.window_of(version) or DEFAULT_WINDOW,
            largest_response=version.largest_response,
            base_url=version.base_url,
            api_key_variable=version.api_key_variable,
            path=version.path,
            script=script,
            structured_output=version.capabilities.get("structuredOutput", True),
            tools=version.capabilities.get("tools", True),
            prices=version.prices,
        )
