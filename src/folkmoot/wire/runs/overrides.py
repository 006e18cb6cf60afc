"""What one run has in place of its definition: web access, looms, gifts, models.

Deliberately absent: changes to a definition.
"""

from typing import Literal

from folkmoot.wire.definitions import AiModelVersionRequest, CustomAiModel
from folkmoot.wire.formats import Flag, Name, RequestShape, ResponseShape, Text, Uuid

ModelPurpose = Literal["Agent", "Compaction", "Router", "Weaver", "Vet"]


class WebAccessOverride(ResponseShape):
    """A participant's web access in this run; null leaves it as defined."""

    agent_name: str
    search: bool | None
    fetch: bool | None


class LoomMapping(ResponseShape):
    """Which loom a participant uses, settled at the start."""

    agent_name: str
    loom: str


class LoomGiftOrigin(ResponseShape):
    """Where a gift comes from: the run and the participant who learnt it."""

    process_id: Uuid | None
    agent_name: str | None


class LoomStartGift(ResponseShape):
    """Threads that a participant learns on first waking, and from whom."""

    agent_name: str
    from_loom_id: Uuid
    thread_ids: tuple[Uuid, ...]
    note: str | None
    given_by: str | None
    origin: LoomGiftOrigin | None


class AiModelOverride(ResponseShape):
    """The model that a participant uses in this run: one of the catalogue, or a whole one."""

    agent_name: str
    ai_model_id: Uuid | None
    custom_model: CustomAiModel | None
    purpose: ModelPurpose


class WebAccessOverrideRequest(RequestShape):
    """A participant's web access in this run; null leaves it as defined."""

    agent_name: Name
    search: Flag | None = None
    fetch: Flag | None = None


class LoomMappingRequest(RequestShape):
    """Which loom a participant uses."""

    agent_name: Name
    loom: Name


class LoomStartGiftRequest(RequestShape):
    """Threads that a participant learns on first waking."""

    agent_name: Name
    from_loom_id: Uuid
    thread_ids: tuple[Uuid, ...]
    note: Text | None = None


class AiModelOverrideRequest(RequestShape):
    """The model that a participant uses in this run: one of the catalogue, or a whole one."""

    agent_name: Name
    ai_model_id: Uuid | None = None
    custom_model: AiModelVersionRequest | None = None
    purpose: ModelPurpose = "Agent"
