"""Estimates of tokens where a provider told nothing: near what tokenizers make of prose, code, JSON and scripts without spaces."""

from __future__ import annotations

import pytest

from folkmoot.llm.token_counts import tokens_in


@pytest.mark.parametrize(
    "text, tokens",
    [
        ("The quick brown fox jumps over the lazy dog, and then it rests.", 16),
        ('{"id": 17, "name": "Ann", "tags": ["a", "b"], "isOpen": true}', 28),
        ("def add(a: int, b: int) -> int:\n    return a + b\n", 21),
        ("3.14159265358979323846", 9),
        ("会議は明日の午後三時に始まります。", 17),
        ("回議明日下午三点开始", 11),
        ("Встреча начинается завтра в три часа дня.", 16),
        ("회의는 내일 오후 세 시에 시작합니다", 16),
        ("", 0),
    ],
)
def test_estimate_is_within_a_third_of_what_tokenizers_count(text: str, tokens: int) -> None:
    """B45: four bytes a token would be half of what JSON and digits are, and wrong for scripts without spaces."""
    assert tokens * 2 / 3 - 1 <= tokens_in(text) <= tokens * 4 / 3 + 1
