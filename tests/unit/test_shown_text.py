"""What a person is shown before deciding cannot hide, reorder or end early (F33)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folkmoot.domain.shown_text import is_hidden, shown, shown_json

HOSTILE = {
    "right to left override": "\u202e",
    "isolate": "\u2066",
    "arabic mark": "\u061c",
    "zero-width space": "\u200b",
    "zero-width joiner": "\u200d",
    "byte order mark": "\ufeff",
    "soft hyphen": "\u00ad",
    "tag letter": "\U000e0041",
    "cancel tag": "\U000e007f",
    "variation selector": "\ufe0f",
    "supplementary variation selector": "\U000e0101",
    "hangul filler": "\u3164",
    "braille blank": "\u2800",
    "line separator": "\u2028",
    "escape": "\x1b",
    "backspace": "\b",
    "carriage return": "\r",
    "delete": "\x7f",
    "next line": "\x85",
    "private use": "\ue000",
    "lone surrogate": "\ud83d",
    "unassigned": "\U000e0ffe",
}


@pytest.mark.parametrize("character", HOSTILE.values(), ids=HOSTILE)
def test_what_hides_or_reorders_is_written_out(character: str) -> None:
    """F33: as an escape that names the code point."""
    text = shown(f"a{character}b").text
    assert text == (f"a\\u{ord(character):04x}b" if ord(character) < 0x10000 else f"a\\U{ord(character):08x}b")


def test_ordinary_text_stays_as_it_is() -> None:
    text = "Zoë, 東京, हिन्दी, \U0001f600, שלום,\tfirst\nsecond"
    assert shown(text).text == text


@given(st.text(), st.integers(min_value=10, max_value=200))
def test_nothing_hidden_is_left_and_a_cut_is_said(text: str, limit: int) -> None:
    made = shown(text, limit=limit)
    assert not any(is_hidden(character) for character in made.text)
    assert made.is_cut == (made.characters > limit)
    assert ("characters are not shown here" in made.text) or not made.is_cut
    assert len(made.text) <= limit + 80


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda below: st.lists(below) | st.dictionaries(st.text(), below),
    )
)
def test_json_that_is_shown_means_the_same(value: object) -> None:
    """F33: the card is made from the real arguments."""
    for is_ascii in (True, False):
        text = shown_json(json.dumps(value, ensure_ascii=is_ascii)).text
        assert json.loads(text) == value
        assert not any(is_hidden(character) for character in text)


def test_a_cut_shows_the_beginning_and_the_end() -> None:
    """F33: what is dangerous may stand last."""
    made = shown_json(json.dumps({"text": "x" * 5000, "then": "rm -rf /"}), limit=300)
    assert made.is_cut and made.text.startswith('{"text": "xxx') and made.text.endswith('"then": "rm -rf /"}')
    assert f"[{made.characters - 300:,} of {made.characters:,} characters are not shown here]" in made.text
