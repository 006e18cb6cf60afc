"""How apps of channels are found, and what becomes of those that cannot be used; settings against each app's schema; `web`."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Mapping
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any

import jsonschema_rs
import pytest
from channels_at_hand import message, setup_of

from folkmoot.channels.channel import ChannelWorld
from folkmoot.channels.registry import GROUP, SHIPPED, AppUnavailable, ChannelApps
from folkmoot.domain.channels import Delivery, InboundRequest

ROOT = Path(__file__).resolve().parents[2]


async def refusing(*_: Any) -> Any:
    raise AssertionError("nothing is to be reached")


WORLD = ChannelWorld(connect=refusing, post=refusing, tls=lambda: pytest.fail("nothing is to be encrypted"))


def entry(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, value, GROUP)


def apps(*found: EntryPoint) -> ChannelApps:
    return ChannelApps(WORLD, found=found)


class Pigeon:
    app = "pigeon"
    settings_schema: Mapping[str, Any] = {"type": "object"}

    def __init__(self, world: ChannelWorld) -> None:
        self.world = world

    async def send(self) -> None: ...
    async def receive(self) -> None: ...
    async def tell(self) -> None: ...
    async def taken(self) -> None: ...


class Lame(Pigeon):
    tell = None  # type: ignore[assignment]


@pytest.fixture
def strangers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module of somebody's package."""
    made: Any = ModuleType("strangers_channels")
    made.Pigeon, made.Lame = Pigeon, Lame
    monkeypatch.setitem(sys.modules, "strangers_channels", made)


def test_the_shipped_apps_are_there_without_anything_installed() -> None:
    found = apps()
    assert found.names == ("email", "slack", "web", "webhook")
    assert [found.find(name).app for name in found.names] == list(found.names)


def test_the_table_and_the_projects_entry_points_are_the_same() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"][GROUP] == SHIPPED


def test_an_app_is_loaded_when_it_is_first_asked_for() -> None:
    """Its libraries cost nothing where nobody uses it."""
    found = apps(entry("carrier", "no_such_module:make"))
    assert "carrier" in found.names
    with pytest.raises(AppUnavailable, match=r"carrier.*no_such_module"):
        found.find("carrier")


@pytest.mark.usefixtures("strangers")
def test_a_strangers_app_is_found_by_its_entry_point_and_given_the_world() -> None:
    found: Any = apps(entry("pigeon", "strangers_channels:Pigeon")).find("pigeon")
    assert isinstance(found, Pigeon) and found.world is WORLD


def test_a_shipped_apps_name_is_not_given_away() -> None:
    """The entry points of the installed project itself are no strangers'."""
    found = apps(*(entry(name, value) for name, value in SHIPPED.items()), entry("slack", "strangers_channels:Pigeon"))
    assert found.refused == (
        "The channel app 'slack' of 'strangers_channels:Pigeon' is not used: the name is that of a shipped app; give it another.",
    )
    assert type(found.find("slack")).__module__.startswith("folkmoot.channels.")


@pytest.mark.usefixtures("strangers")
def test_of_two_strangers_with_one_name_neither_is_used() -> None:
    found = apps(entry("pigeon", "strangers_channels:Pigeon"), entry("pigeon", "others:Pigeon"))
    with pytest.raises(AppUnavailable, match="several packages offer it"):
        found.find("pigeon")
    assert len(found.refused) == 1


@pytest.mark.usefixtures("strangers")
@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("pigeon", "strangers_channels:Hawk", "Hawk"),
        ("hawk", "strangers_channels:Pigeon", "calls itself 'pigeon'"),
        ("pigeon", "strangers_channels:Lame", "no function 'tell'"),
        ("pigeon", "strangers_channels:sys.exit", "sys"),
    ],
)
def test_an_app_that_cannot_be_used_says_why_and_takes_no_other_down(name: str, value: str, words: str) -> None:
    found = apps(entry(name, value))
    for _ in range(2):  # the second time as well
        with pytest.raises(AppUnavailable, match=words):
            found.find(name)
    assert name in found.names and words in (found.why_not(name) or "")
    assert found.why_not("webhook") is None


def test_an_unknown_app_is_told_which_there_are() -> None:
    with pytest.raises(AppUnavailable, match="'fax'; the apps are email, slack, web, webhook"):
        apps().find("fax")


async def test_web_sends_and_receives_nothing() -> None:
    web = apps().find("web")
    assert await web.send(setup_of({}, {}), message()) == Delivery()
    got = await web.receive(setup_of({}, {}), InboundRequest({}, b"{}"))
    assert got.answers == () and got.http is not None and got.http.status == 404


MAIL = {
    "from": "Folkmoot <moot@example.org>",
    "replyAddress": "approvals@example.org",
    "smtpHost": "mail.example.org",
    "smtpPort": 587,
    "smtpSecurity": "starttls",
}


@pytest.mark.parametrize(
    ("app", "settings", "fits"),
    [
        ("web", {}, True),
        ("web", {"url": "x"}, False),
        ("webhook", {"url": "https://example.org/a"}, True),
        ("webhook", {}, False),
        ("webhook", {"url": "ftp://example.org"}, False),
        ("webhook", {"url": "https://a\r\nb"}, False),
        ("slack", {}, True),
        ("slack", {"channel": "C0123456"}, True),
        ("slack", {"channel": "#general"}, False),
        ("slack", {"apiUrl": "https://elsewhere.example.org"}, False),
        ("email", MAIL, True),
        ("email", {**MAIL, "imapHost": "mail.example.org", "imapUser": "u", "imapFolder": "Answers/In"}, True),
        ("email", {**MAIL, "imapHost": "mail.example.org"}, False),
        ("email", {**MAIL, "imapFolder": 'a" (x'}, False),
        ("email", {**MAIL, "from": "a\r\nBcc: b@example.org"}, False),
        ("email", {**MAIL, "replyAddress": "an-address-that-is-too-long@example.org"}, False),
        ("email", {**MAIL, "smtpSecurity": "maybe"}, False),
    ],
)
def test_settings_are_checked_by_an_apps_own_schema(app: str, settings: dict[str, Any], fits: bool) -> None:
    assert jsonschema_rs.validator_for(dict(apps().find(app).settings_schema)).is_valid(settings) is fits
