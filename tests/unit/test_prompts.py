"""`%%name%%` prompts (spec/interactions.md, inputsPrompt; F56)."""

import pytest

from folkmoot.domain.prompts import check_prompts, fill, names_in


def test_names_come_in_order_of_first_use_and_once() -> None:
    assert names_in("%%b%% %%a%% %%b%%") == ("b", "a")


def test_a_name_may_hold_blanks_dots_and_other_letters() -> None:
    assert names_in("%%customer name%% %%größe.max%% %%x-1%%") == ("customer name", "größe.max", "x-1")


@pytest.mark.parametrize(
    "text", ["", "100%", "100%% of all", "%% a %%", "%%%%name%%%%", "%%a\nb%%", "%%", "%%%", "%a%"]
)
def test_what_is_no_name_is_text(text: str) -> None:
    assert names_in(text) == ()
    assert fill(text, {"name": "X", "a": "X", "b": "X"}) == text.replace("%%%%", "%%")


def test_each_use_is_filled_in() -> None:
    assert (
        fill("Decide: %%q%%. Again: %%q%% by %%who%%", {"q": "A or B", "who": "Ann"})
        == "Decide: A or B. Again: A or B by Ann"
    )


def test_a_value_that_looks_like_a_prompt_stays_as_it_is() -> None:
    """F56: input values are substituted once, never scanned again."""
    assert fill("%%a%%|%%b%%", {"a": "%%b%%", "b": "%%%%a%%%%"}) == "%%b%%|%%%%a%%%%"


def test_a_value_with_backslashes_and_groups_is_no_pattern() -> None:
    assert fill("%%a%%", {"a": r"\1 \g<0> \n"}) == r"\1 \g<0> \n"


def test_four_percent_signs_are_a_literal_pair() -> None:
    assert fill("%%%%a%%%% is how to write a field; %%a%%", {"a": "1"}) == "%%a%% is how to write a field; 1"


def test_values_join_without_making_a_new_field() -> None:
    assert fill("%%a%%b%%", {"a": "%%", "b": "no"}) == "%%b%%"


def test_a_typo_is_a_fault_that_says_where_and_what_there_is() -> None:
    faults = check_prompts([("/prompt", "%%question%%"), ("/systemPrompts/0", "%%qestion%% %%%%x%%%%")], ["question"])
    assert [fault.pointer for fault in faults] == ["/systemPrompts/0"]
    assert "'%%qestion%%' names no input" in faults[0].message
    assert "'question'" in faults[0].message
    assert "%%%%" in faults[0].message


def test_without_inputs_the_fault_says_so() -> None:
    (fault,) = check_prompts([("/prompt", "%%a%%")], [])
    assert "There are no inputs" in fault.message


def test_an_unknown_name_is_left_as_it_is() -> None:
    assert fill("%%a%%", {}) == "%%a%%"
