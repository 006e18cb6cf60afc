"""How participants remember. Deliberately absent: looms and threads themselves, which are resources of their own."""

from typing import Literal

from folkmoot.wire.formats import Count, Flag, Name, Positive, RequestShape, ResponseShape, Uuid

LoomScope = Literal["Process", "Agent", "Interaction", "Namespace", "Tenant", "Input"]
LoomRecall = Literal["Off", "OnWake", "EveryTurn"]
LoomWeave = Literal["Manual", "OnEnd", "EveryTurn"]


class LoomConfiguration(ResponseShape):
    """What was set, and after it (`effective…`, `vets`) what applies."""

    enabled: bool
    scope: LoomScope | None
    scope_input: str | None
    shared: bool | None
    recall: LoomRecall | None
    weave: LoomWeave | None
    tapestry_tokens: int | None
    subject_inputs: tuple[str, ...] | None
    night_weaving: bool
    quiet_minutes: int | None
    weaver_model: str | None
    vet_model: str | None
    vet_recall: bool | None
    seed_from_loom_id: Uuid | None
    read_from_loom_ids: tuple[Uuid, ...] | None
    effective_scope: LoomScope
    effective_shared: bool
    effective_recall: LoomRecall
    effective_weave: LoomWeave
    effective_tapestry_tokens: int
    effective_subject_inputs: tuple[str, ...]
    effective_read_from_loom_ids: tuple[Uuid, ...]
    vets: bool
    effective_vet_recall: bool


class LoomConfigurationRequest(RequestShape):
    """What to set; what is null has its default."""

    enabled: Flag = True
    scope: LoomScope | None = None
    scope_input: Name | None = None
    shared: Flag | None = None
    recall: LoomRecall | None = None
    weave: LoomWeave | None = None
    tapestry_tokens: Positive | None = None
    subject_inputs: tuple[Name, ...] | None = None
    night_weaving: Flag = False
    quiet_minutes: Count | None = None
    weaver_model: Name | None = None
    vet_model: Name | None = None
    vet_recall: Flag | None = None
    seed_from_loom_id: Uuid | None = None
    read_from_loom_ids: tuple[Uuid, ...] | None = None
