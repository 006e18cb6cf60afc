"""The catalogue of known models: windows, and prices at a date."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from decimal import Decimal
from types import SimpleNamespace

import pytest

from folkmoot.domain.costs import UNKNOWN, Prices
from folkmoot.domain.model_calls import ModelChoice
from folkmoot.llm import catalogue

D = Decimal
OPENAI = "https://api.openai.com/v1"
SPRING, SUMMER = datetime(2025, 6, 9, 23, tzinfo=UTC), datetime(2025, 6, 10, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("provider", "model", "url", "window"),
    [
        ("openai", "gpt-4o-mini", None, 128_000),
        ("openai", "gpt-4o-mini", OPENAI, 128_000),
        ("openai-compatible", "gpt-4o-mini", OPENAI, 128_000),
        ("anthropic", "claude-sonnet-4-5", None, 200_000),
        # whatever a server of somebody's own calls its model, or who is not known
        ("openai", "gpt-4o-mini", "http://127.0.0.1:9/v1", None),
        ("openai-compatible", "gpt-4o-mini", "http://127.0.0.1:9/v1", None),
        ("openai-compatible", "gpt-4o-mini", None, None),
        ("openai", "nobodys-model", None, None),
        ("acme", "gpt-4o-mini", None, None),
        ("scripted", "gpt-4o-mini", None, None),
        ("local", "gpt-4o-mini", None, None),
    ],
)
def test_window_is_the_catalogues_where_the_model_is_known(
    provider: str, model: str, url: str | None, window: int | None
) -> None:
    assert catalogue.window_of(provider, model, url) == window


def test_prices_are_those_of_the_date() -> None:
    """Platform.md: computed from the catalogue's prices at that date."""
    before, after = (catalogue.prices_of(ModelChoice("openai", "o3"), at) for at in (SPRING, SUMMER))
    assert (before.input, before.output, before.cached_input) == (D(10), D(40), D("0.5"))
    assert (after.input, after.output, after.cached_input) == (D(2), D(8), D("0.5"))


def test_prices_are_those_of_the_length_of_the_prompt_and_of_the_service_tier() -> None:
    claude, gpt = ModelChoice("anthropic", "claude-sonnet-4-5"), ModelChoice("openai", "gpt-5.2")
    now = datetime(2026, 11, 30, tzinfo=UTC)
    short, long = (catalogue.prices_of(claude, now, prompt_tokens=n) for n in (200_000, 200_001))
    assert (short.input, short.cache_write, long.input) == (D(3), D("3.75"), D(6))
    usual, flex, unheard = (catalogue.prices_of(gpt, now, service_tier=tier) for tier in (None, "flex", "velvet"))
    assert (usual.input, flex.input, unheard.input) == (D("1.75"), D("0.875"), D("1.75"))


def test_prices_of_a_definition_win_and_the_catalogue_fills_the_other_kinds() -> None:
    model = ModelChoice("openai", "o3", prices={"input": 0.0, "reasoning": 9.5})
    assert catalogue.prices_of(model, SUMMER) == Prices(D("0.0"), D("0.5"), None, D(8), D("9.5"))


@pytest.mark.parametrize(
    "model", [ModelChoice("local", "o3"), ModelChoice("openai", "o3", base_url="http://127.0.0.1/v1")]
)
def test_price_that_is_not_known_is_null(model: ModelChoice) -> None:
    assert catalogue.prices_of(model, SUMMER) == UNKNOWN


def test_model_that_is_not_charged_by_tokens_has_no_known_price(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = SimpleNamespace(requests_kcount=D(5), cache_read_mtok=D(1))
    info = SimpleNamespace(get_prices=lambda at, context: listed)
    monkeypatch.setattr(catalogue, "_known", lambda *_: catalogue.Known(None, info))
    assert catalogue.prices_of(ModelChoice("openai", "x"), SUMMER) == UNKNOWN


def test_catalogue_is_not_loaded_before_a_model_is_looked_up() -> None:
    """Nor for models of this machine, nor for one whose definition names all of its prices."""
    code = """if True:
        import sys
        from datetime import UTC, datetime
        from folkmoot.domain.model_calls import ModelChoice
        from folkmoot.llm import catalogue
        whole = dict.fromkeys(("input", "cachedInput", "cacheWrite", "output", "reasoning"), 1.0)
        for model in (ModelChoice("scripted", "x"), ModelChoice("local", "x"), ModelChoice("openai", "o3", prices=whole)):
            catalogue.prices_of(model, datetime.now(UTC))
        catalogue.window_of("local", "x")
        assert not [name for name in sys.modules if "genai_prices" in name or "pydantic_ai" in name]
    """
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
