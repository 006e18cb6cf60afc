"""How a model is reached for one call: its place and a key, read just before the call, so that a changed key counts at once.

Deliberately absent: keeping a key, and making the call (`llm`).
"""

from __future__ import annotations

from folkmoot.domain.model_calls import Access, FailureClass, ModelChoice, ModelFailure
from folkmoot.domain.providers import PROVIDERS, key_variable
from folkmoot.runtime.workshop import Workshop
from folkmoot.vault.texts import SecretText


def opened(workshop: Workshop, model: ModelChoice) -> Access | ModelFailure:
    """The operator's key from the environment, where the model needs one. A ModelFailure where it is not set."""
    known = PROVIDERS.get(model.provider)
    base_url = model.base_url or (known.base_url if known is not None else None)
    variable = key_variable(model.provider, model.api_key_variable)
    if variable is None:
        return Access(model.model_name, base_url)
    value = workshop.read_key(variable)
    if not value:
        message = f"Model '{model.model_name}' needs a key: set the environment variable {variable}."
        return ModelFailure(FailureClass.AUTHENTICATION, message)
    return Access(model.model_name, base_url, SecretText(value), f"the environment variable {variable}")
