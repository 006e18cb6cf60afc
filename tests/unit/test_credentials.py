"""Which key is chosen, for which models a key is, and what keeps one from being saved (platform.md; B44)."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folkmoot import settings
from folkmoot.bootstrap.working import may_send_key
from folkmoot.domain.credential_checks import faults_of_stack
from folkmoot.domain.credentials import (
    CredentialEntry,
    CredentialStackVersion,
    StackEntry,
    StackRule,
    WhenUsedUp,
    entries_of,
    matches,
    name_there,
    place_of,
)
from folkmoot.domain.key_choice import KeyGroup, KeyNow, Rest, Resting, UsedUp, choose
from folkmoot.domain.model_calls import FailureClass, ModelChoice, Purpose
from folkmoot.domain.references import Reference
from folkmoot.kernel.errors import BadInput

NOW = 1_000.0
ID = UUID(int=1)
HERE, THERE = "https://here.example/v1", "https://there.example/v1"
OWN = "https://api.openai.com/v1"


def key(name: str, *, place: str = HERE, model: str = "m", version: str = "1", problem: str | None = None) -> KeyNow:
    return KeyNow(name, f"the key {name}", model, place, name, version=version, problem=problem)


def rest(seconds: float, reason: FailureClass = FailureClass.RATE_LIMITED, model: str = "", version: str = "1") -> Rest:
    return Rest(model, version, reason, "Slowly.", NOW + seconds)


def chosen(groups: list[KeyGroup], rests: dict[str, list[Rest]]) -> str | float | tuple[str, ...]:
    """The name of the key, until when is waited, or what became of each."""
    found = choose(groups, rests, now=NOW)
    match found:
        case KeyNow():
            return found.rests_as
        case Resting():
            return found.until - NOW
        case UsedUp():
            return found.became


AB = KeyGroup((key("a"), key("b")))
LIMITED, REFUSED = rest(30), rest(600, FailureClass.AUTHENTICATION)


@pytest.mark.parametrize(
    ("groups", "rests", "expected"),
    [
        ([AB], {}, "a"),
        ([AB], {"a": [LIMITED]}, "b"),
        ([AB], {"a": [rest(-1)]}, "a"),  # its rest is over
        ([AB], {"a": [rest(30, version="0")]}, "a"),  # of a value that it no longer has
        ([AB], {"a": [rest(30, model="another")]}, "a"),
        ([AB], {"a": [rest(30, model="m")]}, "b"),
        ([KeyGroup((key("a", problem="was deleted"), key("b")))], {}, "b"),
        # All used up: a rate limit passes by itself, everything else is final.
        ([AB], {"a": [LIMITED], "b": [rest(20)]}, 20.0),
        ([AB], {"a": [LIMITED], "b": [REFUSED]}, 30.0),
        ([KeyGroup((key("a"),), WhenUsedUp.FAIL), KeyGroup((key("b"),))], {"a": [LIMITED]},
         ("the key a rests for 30 s more (RateLimited: Slowly)",)),
        ([KeyGroup((key("a"),), WhenUsedUp.WAIT), KeyGroup((key("b"),))], {"a": [REFUSED]}, 600.0),
        ([KeyGroup((key("a", problem="was deleted"),), WhenUsedUp.WAIT), KeyGroup((key("b"),))], {}, "b"),  # nothing to wait for
        ([KeyGroup((key("a"),)), KeyGroup((key("b"),))], {"a": [LIMITED]}, "b"),
        ([KeyGroup(())], {}, ()),
        # Overload is a place's: another key there does not help, one elsewhere does; where there is none, it is asked again.
        ([AB], {"a": [rest(30, FailureClass.OVERLOADED)]}, "a"),
        ([KeyGroup((key("a"), key("b"), key("c", place=THERE)))], {"a": [rest(30, FailureClass.OVERLOADED)]}, "c"),
        ([AB], {"a": [rest(30, FailureClass.OVERLOADED), LIMITED]}, "b"),
    ],
)  # fmt: skip
def test_the_first_key_that_can_be_used_is_taken(
    groups: list[KeyGroup], rests: dict[str, list[Rest]], expected: str | float | tuple[str, ...]
) -> None:
    assert chosen(groups, rests) == expected


REASONS = st.sampled_from([FailureClass.AUTHENTICATION, FailureClass.QUOTA_EXHAUSTED, FailureClass.RATE_LIMITED])
RESTS = st.builds(rest, st.floats(-50, 50), REASONS, st.sampled_from(["", "m", "n"]), st.sampled_from(["1", "2"]))
KEYS = st.lists(st.sampled_from("abcdef"), max_size=6, unique=True)


@given(groups=st.lists(st.tuples(KEYS, st.sampled_from(WhenUsedUp)), max_size=4), rests=st.dictionaries(st.sampled_from("abcdef"), st.lists(RESTS, max_size=3)))  # fmt: skip
def test_no_choice_takes_a_resting_key_and_none_that_is_awake_is_left_before_the_end(
    groups: list[tuple[list[str], WhenUsedUp]], rests: dict[str, list[Rest]]
) -> None:
    """For any keys and rests: a wait ends when a rest does, and with none to wait for each key is told of."""
    made = [KeyGroup(tuple(key(name) for name in names), rule) for names, rule in groups]

    def rests_now(name: str) -> bool:
        return any(r.until > NOW and r.version == "1" and r.model in ("", "m") for r in rests.get(name, ()))

    found = choose(made, rests, now=NOW)
    names = [each for group, _ in groups for each in group]
    if isinstance(found, KeyNow):
        before = names[: names.index(found.rests_as)]
        assert not rests_now(found.rests_as) and all(rests_now(name) for name in before)
    else:
        told = names[: len(found.became)]
        assert all(rests_now(name) for name in told)
        is_cut = any(rule is not WhenUsedUp.NEXT for _, rule in groups)
        assert told == names or is_cut
        if isinstance(found, Resting):
            assert found.until in [r.until for name in told for r in rests[name]] and found.until > NOW


@pytest.mark.parametrize(
    ("entry", "model", "there"),
    [
        (CredentialEntry(ID, "openai", ID), ModelChoice("openai", "m"), "m"),
        (CredentialEntry(ID, "openai", ID), ModelChoice("anthropic", "m"), None),
        (CredentialEntry(ID, "openai", ID, THERE), ModelChoice("openai", "m"), "m"),
        # A model's own address draws no key to it.
        (CredentialEntry(ID, "openai", ID), ModelChoice("openai", "m", base_url=THERE), None),
        (CredentialEntry(ID, "openai", ID), ModelChoice("openai", "m", base_url=f"{OWN}/"), "m"),
        (CredentialEntry(ID, "openai", ID, THERE), ModelChoice("openai", "m", base_url=THERE), "m"),
        (CredentialEntry(ID, "openai", ID, THERE), ModelChoice("openai", "m", base_url=HERE), None),
        (CredentialEntry(ID, "openai", ID, THERE, {"m": "x"}), ModelChoice("openai", "m", base_url=HERE), "x"),
    ],
)
def test_a_key_is_for_models_of_its_place_and_those_it_names(
    entry: CredentialEntry, model: ModelChoice, there: str | None
) -> None:
    assert name_there(entry, model) == there
    assert place_of(entry) in (OWN, THERE)


def test_rules_match_what_they_name_and_keep_their_order() -> None:
    entries = [CredentialEntry(ID, "openai", ID, priority=p, name=n) for n, p in (("a", 2), ("b", 1), ("c", 1))]
    assert [each.name for each in entries_of(StackRule(), entries)] == ["b", "c", "a"]
    assert [each.name for each in entries_of(StackRule(entries=("c", "a")), entries)] == ["c", "a"]
    call = {"participant": "Ann", "model": ModelChoice("openai", "m"), "purpose": Purpose.BALLOT}
    for rule, expected in (
        (StackRule(), True),
        (StackRule(participant="Ann", model="m", provider="openai", purpose="Agent"), True),
        (StackRule(participant="Ben"), False),
        (StackRule(purpose="Compaction"), False),
    ):
        assert matches(rule, **call) is expected  # type: ignore[arg-type]


def test_what_is_wrong_with_a_stack_is_told_all_at_once() -> None:
    named = Reference("s")
    entries = (
        StackEntry("a", "openai", named),
        StackEntry("a", "acme", named),
        StackEntry(" ", "scripted"),
        StackEntry("d", "openai-compatible", named),
        StackEntry("e", "openai"),
        StackEntry("f", "openai", named, "ftp://x", {"": "y"}),
    )
    rules = (StackRule(entries=("a", "nobody"), purpose="Fun", provider="acme"),)
    found = [fault.pointer for fault in faults_of_stack(CredentialStackVersion(entries, rules))]
    assert found == [
        "/entries/1/name", "/entries/1/provider", "/entries/2/name", "/entries/2/provider", "/entries/3/baseUrl",
        "/entries/4/credentialId", "/entries/5/baseUrl", "/entries/5/modelNameOverrides/", "/rules/0/entries/1", "/rules/0/purpose",
        "/rules/0/provider",
    ]  # fmt: skip
    assert faults_of_stack(CredentialStackVersion(())) != ()


@pytest.mark.parametrize(
    ("provider", "variable", "url", "may"),
    [
        ("openai", "OPENAI_API_KEY", OWN, True),
        ("openai", "OPENAI_API_KEY", f"{OWN}/", True),
        ("openai", "OPENAI_API_KEY", "https://evil.example/v1", False),
        ("openai", "CLOUD_TOKEN", OWN, False),
        ("openai-compatible", "OPENAI_API_KEY", OWN, False),
        ("openai-compatible", "MY_KEY", f"{HERE}/", True),
        ("openai-compatible", "MY_KEY", f"{HERE}.evil.example", False),
        ("openai-compatible", "OTHER_KEY", HERE, False),
    ],
)
def test_the_operators_key_goes_only_where_the_operator_lets_it(
    provider: str, variable: str, url: str, *, may: bool
) -> None:
    """B52: no definition can have a key of the environment sent to an address of its choice."""
    allowed = settings.read({"FOLKMOOT_ALLOW_KEYS": f" MY_KEY={HERE} , NEXT_KEY=http://127.0.0.1:1/v1/"}).allow_keys
    assert may_send_key(allowed, provider, variable, url) is may


def test_an_allowance_that_cannot_be_read_is_not_repeated() -> None:
    with pytest.raises(BadInput) as refused:
        settings.read({"FOLKMOOT_ALLOW_KEYS": "MY_KEY=https://a.example, sk-secret-itself"})
    assert "Entry 2" in str(refused.value) and "sk-secret" not in str(refused.value)
