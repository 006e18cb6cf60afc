"""Filling prompts, whatever the texts and values are (F56)."""

from hypothesis import given
from hypothesis import strategies as st

from folkmoot.domain.prompts import check_prompts, fill, names_in

NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)
PERCENT_RICH = st.text(st.sampled_from("%ab \n_1"), max_size=40)
ANY_TEXT = st.one_of(st.text(max_size=60), PERCENT_RICH)
PLAIN = st.text(st.characters(exclude_characters="%"), max_size=20)


@given(st.lists(st.tuples(PLAIN, NAMES)), PLAIN, st.data())
def test_a_filled_prompt_is_its_parts_joined(parts: list[tuple[str, str]], tail: str, data: st.DataObject) -> None:
    """No value is looked into, whatever it holds."""
    values = {name: data.draw(ANY_TEXT) for _, name in parts}
    text = "".join(f"{before}%%{name}%%" for before, name in parts) + tail
    assert fill(text, values) == "".join(before + values[name] for before, name in parts) + tail


@given(ANY_TEXT)
def test_an_escaped_text_comes_back_unchanged(text: str) -> None:
    escaped = text.replace("%%", "%%%%")
    assert names_in(escaped) == ()
    assert fill(escaped, {}) == text


@given(ANY_TEXT, st.dictionaries(NAMES, ANY_TEXT))
def test_only_names_in_the_text_matter(text: str, values: dict[str, str]) -> None:
    used = {name: value for name, value in values.items() if name in names_in(text)}
    assert fill(text, values) == fill(text, used)


@given(ANY_TEXT, st.sets(NAMES))
def test_a_text_without_faults_has_all_its_names_known(text: str, known: set[str]) -> None:
    faults = check_prompts([("/prompt", text)], known)
    assert len(faults) == len(set(names_in(text)) - known)


@given(PERCENT_RICH)
def test_filling_with_own_fields_changes_nothing_but_the_escapes(text: str) -> None:
    values = {name: f"%%{name}%%" for name in names_in(text)}
    assert fill(text, values) == fill(text, {})
