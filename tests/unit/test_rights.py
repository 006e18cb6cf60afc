"""Roles, rights and scopes: the table, what it says to whom it refuses, and the documents that show it (platform.md, Tenancy)."""

from __future__ import annotations

import re
from pathlib import Path
from uuid import UUID

import pytest

from folkmoot.domain.rights import ALL_RIGHTS, MEANINGS, RIGHTS, Right, Role, is_above, least_role, rights_of
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.errors import NotPermitted
from folkmoot.wire import rights as wire

SERVICES = Path(__file__).resolve().parents[2] / "src" / "folkmoot" / "services"
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "rights.md"
# As spec/platform.md names them, and what each has that the one before it lacks.
WHO_MAY_WHAT = {
    "viewer": {"read", "manage_own_keys"},
    "approver": {"take_part", "approve"},
    "operator": {"start", "stop", "operate"},
    "developer": {"publish", "manage_connectors", "manage_secrets"},
    "admin": {"manage_keys", "manage_users", "manage_webhooks", "manage_budgets", "read_audit"},
    "owner": {"manage_owners"},
}


def caller(role: Role, *scopes: str) -> Caller:
    return Caller(UUID(int=1), UUID(int=2), "Ann", UUID(int=3), role, rights_of(role, scopes or None))


def test_each_role_has_what_the_one_before_it_has_and_more() -> None:
    have: set[str] = set()
    for role, added in WHO_MAY_WHAT.items():
        assert not have & added
        have |= added
        assert {right.value for right in RIGHTS[Role(role)]} == have
    assert frozenset(Right) == ALL_RIGHTS
    assert list(WHO_MAY_WHAT) == list(Role)


def test_one_role_is_above_those_before_it_alone() -> None:
    order = list(Role)
    for role in order:
        assert [other for other in order if is_above(role, other)] == order[: order.index(role)]


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("scopes", [(), ("read",), ("read", "manage_owners"), ("no such right", "start")])
def test_scopes_only_narrow(role: Role, scopes: tuple[str, ...]) -> None:
    assert rights_of(role, scopes) == {right for right in RIGHTS[role] if right.value in scopes}
    assert rights_of(role, None) == RIGHTS[role]


@pytest.mark.parametrize("right", Right)
def test_a_refusal_names_the_right_and_who_can_give_it(right: Right) -> None:
    for role in Role:
        if right in RIGHTS[role]:
            caller(role).require(right)
            continue
        with pytest.raises(NotPermitted) as caught:
            caller(role).require(right)
        told = str(caught.value)
        assert f"'{right}'" in told and MEANINGS[right] in told and role in told and least_role(right) in told
        assert told.split(". ")[1].startswith(
            "An owner of" if least_role(right) is Role.OWNER else "An owner or admin of"
        )


def test_a_narrowed_key_is_told_that_the_key_is_what_lacks_it() -> None:
    with pytest.raises(NotPermitted, match=r"This key is narrowed and lacks the scope 'start'.*operator"):
        caller(Role.OPERATOR, "read").require(Right.START)
    with pytest.raises(NotPermitted, match="Your role operator lacks the right 'publish'"):
        caller(Role.OPERATOR, "read").require(Right.PUBLISH)


def test_the_wire_has_the_same_words() -> None:
    assert [(right.name, right.value) for right in wire.Right] == [(right.name, right.value) for right in Right]
    assert [(role.name, role.value) for role in wire.Role] == [(role.name, role.value) for role in Role]


def test_the_document_lists_what_is_written_down() -> None:
    """Every action of the audit log that the use cases name, and none that they do not; a few are put together of two words."""
    composed = {f"approval.{outcome}" for outcome in ("approved", "rejected", "refused")}
    composed |= {f"{noun}.refused" for noun in ("vote", "question", "turn")} | {
        "pending.expired",
        "run.lost",
    }  # the last two by the sweep
    named = {
        action
        for path in SERVICES.glob("*.py")
        if "audit.note(" in (text := path.read_text(encoding="utf-8"))
        for action in re.findall(r'"([a-z]+\.[a-z_]+)"', text)
    }
    rows = re.findall(r"^\| (`[a-z]+\.[a-z_]+`.*?) \|", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)
    listed = [action for row in rows for action in re.findall(r"`([a-z]+\.[a-z_]+)`", row)]
    assert sorted(listed) == sorted(named | composed)


def test_the_document_shows_the_table() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    roles = re.search(r"^\| right \| to \| (.+) \|$", text, re.MULTILINE)
    assert roles is not None and roles[1].split(" | ") == list(Role)
    rows = [
        (right, words, cells.split(" | "))
        for right, words, cells in re.findall(r"^\| `(\w+)` \| (.+?) \| ((?:(?:yes|-) ?\|? ?)+)\|$", text, re.MULTILINE)
    ]
    shown = [(right, words, [cell.strip() for cell in cells]) for right, words, cells in rows]
    assert shown == [
        (right.value, MEANINGS[right], ["yes" if right in RIGHTS[role] else "-" for role in Role]) for right in Right
    ]
