"""AI models: where they are, how much they hold, what they can do, what they cost.

Deliberately absent: keys. `apiKeyVariable` names the environment variable that holds one.
"""

from folkmoot.wire.definitions.resources import DefinitionResource, DefinitionVersion
from folkmoot.wire.formats import Amount, Flag, Name, Page, Positive, RequestShape, ResponseShape, Text


class AiModelCapabilities(ResponseShape):
    """What a model can do."""

    tools: bool
    structured_output: bool
    images: bool
    reasoning: bool


class AiModelPrices(ResponseShape):
    """US dollars per million tokens, by kind; null where no price is known."""

    input: Amount | None
    cached_input: Amount | None
    cache_write: Amount | None
    output: Amount | None
    reasoning: Amount | None


class CustomAiModel(ResponseShape):
    """A whole model. `path` is a GGUF file's (provider `local`) or a script's (`scripted`); sizes are in tokens."""

    provider: str
    model_name: str
    base_url: str | None
    context_window: int | None
    largest_response: int | None
    capabilities: AiModelCapabilities
    prices: AiModelPrices
    path: str | None
    api_key_variable: str | None


class AiModelVersion(CustomAiModel, DefinitionVersion):
    """One version of a catalogue model."""


class AiModel(DefinitionResource):
    """A catalogue model and its newest version, disabled or not."""

    latest_version: AiModelVersion


class AiModelPage(Page[AiModel]):
    """A page of catalogue models."""


class AiModelVersionPage(Page[AiModelVersion]):
    """A page of versions, the newest first."""


class AiModelCapabilitiesRequest(RequestShape):
    """What a model can do."""

    tools: Flag = True
    structured_output: Flag = True
    images: Flag = False
    reasoning: Flag = False


class AiModelPricesRequest(RequestShape):
    """US dollars per million tokens, by kind; null where no price is known."""

    input: Amount | None = None
    cached_input: Amount | None = None
    cache_write: Amount | None = None
    output: Amount | None = None
    reasoning: Amount | None = None


class AiModelVersionRequest(RequestShape):
    """A whole model, as a new version or inline. `contextWindow` null: as the catalogue of known models says."""

    provider: Name
    model_name: Name
    base_url: Text | None = None
    context_window: Positive | None = None
    largest_response: Positive | None = None
    capabilities: AiModelCapabilitiesRequest = AiModelCapabilitiesRequest()
    prices: AiModelPricesRequest = AiModelPricesRequest()
    path: Text | None = None
    api_key_variable: Name | None = None


class AiModelRequest(RequestShape):
    """Creates a catalogue model with its first version."""

    name: Name
    version: AiModelVersionRequest
