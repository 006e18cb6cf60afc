"""How a model is reached: the key is read at each call, and what is missing is named."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from folkmoot.domain.model_calls import Access, FailureClass, ModelChoice, ModelFailure
from folkmoot.runtime.model_access import opened

KEYS = {"OTHER_KEY": "sk-old"}


def access_to(model: ModelChoice) -> Access | ModelFailure:
    workshop: Any = SimpleNamespace(read_key=KEYS.get)
    return opened(workshop, model)


def test_operators_key_is_read_at_each_call() -> None:
    model = ModelChoice("openai", "gpt", api_key_variable="OTHER_KEY")
    first = access_to(model)
    KEYS["OTHER_KEY"] = "sk-new"
    second = access_to(model)
    assert isinstance(first, Access) and isinstance(second, Access) and first.key and second.key
    assert (first.key.reveal(), second.key.reveal()) == ("sk-old", "sk-new")
    assert first.base_url == "https://api.openai.com/v1"
    assert "OTHER_KEY" in first.shown_key


def test_missing_key_is_named() -> None:
    failure = access_to(ModelChoice("openai", "gpt"))
    assert isinstance(failure, ModelFailure)
    assert failure.failure is FailureClass.AUTHENTICATION
    assert "OPENAI_API_KEY" in failure.message


def test_server_of_ones_own_may_want_no_key() -> None:
    access = access_to(ModelChoice("openai-compatible", "x", base_url="http://127.0.0.1:1/v1"))
    assert access == Access("x", "http://127.0.0.1:1/v1")
