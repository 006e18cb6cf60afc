"""AI models: a request as a version, a stored version as it is shown."""

from __future__ import annotations

from decimal import Decimal
from uuid import UUID

from folkmoot.api.mapping.resources import definition_fields, version_fields
from folkmoot.domain.definitions import AiModelVersion, StoredVersion
from folkmoot.wire import definitions as wire


def version_of(request: wire.AiModelVersionRequest) -> AiModelVersion:
    prices = request.prices.model_dump(mode="json", by_alias=True)
    known = {kind: float(price) for kind, price in prices.items() if price is not None}
    return AiModelVersion(
        provider=request.provider,
        model_name=request.model_name,
        context_window=request.context_window,
        largest_response=request.largest_response,
        base_url=request.base_url,
        api_key_variable=request.api_key_variable,
        path=request.path,
        capabilities=request.capabilities.model_dump(by_alias=True),
        prices=known or None,
    )


def version(stored: StoredVersion) -> wire.AiModelVersion:
    body = stored.body
    assert isinstance(body, AiModelVersion)
    return wire.AiModelVersion(**version_fields(stored), **dict(custom(body)))


def custom(body: AiModelVersion) -> wire.CustomAiModel:
    """A whole model, as one run has it."""
    prices = {kind: Decimal(str(price)) for kind, price in (body.prices or {}).items()}
    return wire.CustomAiModel(
        provider=body.provider,
        model_name=body.model_name,
        base_url=body.base_url,
        context_window=body.context_window,
        largest_response=body.largest_response,
        capabilities=wire.AiModelCapabilities(
            tools=body.capabilities.get("tools", True),
            structured_output=body.capabilities.get("structuredOutput", True),
            images=body.capabilities.get("images", False),
            reasoning=body.capabilities.get("reasoning", False),
        ),
        prices=wire.AiModelPrices(
            input=prices.get("input"),
            cached_input=prices.get("cachedInput"),
            cache_write=prices.get("cacheWrite"),
            output=prices.get("output"),
            reasoning=prices.get("reasoning"),
        ),
        path=body.path,
        api_key_variable=body.api_key_variable,
    )


def model(stored: StoredVersion, tenant_id: UUID) -> wire.AiModel:
    """A catalogue model with its newest version."""
    return wire.AiModel(**definition_fields(stored, tenant_id), latest_version=version(stored))
