"""Every setting, read from the environment once, with its name, meaning and default. docs/settings.md lists them; a test holds the two together.

Deliberately absent: anything that acts on a setting. Only `bootstrap` imports this.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from folkmoot.kernel.errors import BadInput

PREFIX = "FOLKMOOT_"


@dataclass(frozen=True, slots=True)
class Setting:
    """`name` without the prefix. `default` as it would be written in the environment; '' where there is none."""

    name: str
    meaning: str
    default: str = ""


SETTINGS = (
    Setting(
        "DATABASE_URL",
        "A PostgreSQL server (16 or later) to use in place of the embedded one, as postgresql://user:password@host/database.",
    ),
    Setting(
        "DATA_DIR",
        "Where the embedded database and the local model are kept. Default: /var/lib/folkmoot for root, else ~/.local/share/folkmoot.",
    ),
    Setting("HOST", "The address that the API listens on.", "127.0.0.1"),
    Setting("PORT", "The port that the API listens on.", "8080"),
    Setting(
        "PUBLIC_URL",
        "The address under which people reach this server, such as https://agents.example, for links to its pages.",
    ),
    Setting(
        "MODEL", "A model to use in place of every agent's own in `folkmoot run` and `folkmoot demo`, as provider:name."
    ),
    Setting(
        "FUNCTIONS",
        "Python files whose functions agents may call, beside those found by entry point; separated by colons.",
    ),
    Setting(
        "SECRET_KEY",
        "The key that seals secrets, as base64 of 32 bytes; several are parted by commas: the first seals, all open.",
    ),
    Setting(
        "SECRET_KEY_FILE",
        "A file that holds what SECRET_KEY would. Default: the embedded database makes one, secret.key in the data directory.",
    ),
    Setting(
        "ALLOW_ADDRESSES",
        "What connectors and webhooks may reach inside: networks, addresses or host names, with a port or without, parted by commas.",
    ),
    Setting(
        "ALLOW_KEYS",
        "Where the operator's own keys of models may go beside their providers, as VARIABLE=URL, parted by commas.",
    ),
    Setting("ALLOW_STDIO", "yes lets MCP connectors start commands on this machine; no refuses them.", "no"),
    Setting("LEASE_SECONDS", "How long a worker's lease lasts without a ping.", "60"),
    Setting("PING_SECONDS", "How often a worker pings.", "10"),
    Setting("SWEEP_SECONDS", "How often lost leases and time limits are looked for, with 20 % jitter.", "10"),
    Setting("POLL_SECONDS", "How often a worker looks for runs when no notification comes.", "5"),
    Setting(
        "CHANNEL_POLL_SECONDS",
        "How often channels that do not call, such as mailboxes, are looked into, with 20 % jitter.",
        "30",
    ),
    Setting("SLACK_API_URL", "Where Slack's API is called.", "https://slack.com/api/"),
    Setting("DRAIN_SECONDS", "How long a stopping worker lets steps under way go on.", "120"),
    Setting("SLOTS", "How many runs a worker drives at once.", "200"),
    Setting("POISON_LIMIT", "After how many crashes while apart a run is Failed.", "3"),
    Setting(
        "RETRY_SECONDS",
        "The longest wait before a failed model call is asked a second time; it doubles with each further one, up to 100.",
        "1",
    ),
    Setting("LOG_LEVEL", "debug, info, warning or error.", "warning"),
    Setting(
        "FAULT",
        "For tests: breaks the process at a named point, as point:action[:nth], action being exit, raise or freeze=seconds.",
    ),
)


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings as values. Durations in seconds. `public_url`: a scheme and a host. `allow_keys`: environment variables, each with a URL without a
    slash at its end."""

    database_url: str | None
    data_dir: Path | None
    host: str
    port: int
    public_url: str | None
    model: str | None
    functions: tuple[Path, ...]
    secret_key: str | None = field(repr=False)
    secret_key_file: Path | None
    allow_addresses: tuple[str, ...]
    allow_keys: frozenset[tuple[str, str]]
    allow_stdio: bool
    lease_seconds: float
    ping_seconds: float
    sweep_seconds: float
    poll_seconds: float
    channel_poll_seconds: float
    slack_api_url: str
    drain_seconds: float
    slots: int
    poison_limit: int
    retry_seconds: float
    log_level: str
    fault: str | None


def read(environment: Mapping[str, str]) -> Settings:
    """The settings of an environment; raises BadInput that names the variable that cannot be read."""
    known = {PREFIX + s.name for s in SETTINGS} | {PREFIX + "TEST_DATABASE_URL"}
    unknown = sorted(name for name in environment if name.startswith(PREFIX) and name not in known)
    if unknown:
        raise BadInput(f"There is no setting {', '.join(unknown)}. docs/settings.md lists those there are.")
    text = {s.name: environment.get(PREFIX + s.name, "") or s.default for s in SETTINGS}

    def number(name: str, *, least: float, most: float = 1e9) -> float:
        try:
            value = float(text[name])
        except ValueError:
            value = float("nan")
        if not least <= value <= most:
            raise BadInput(f"{PREFIX}{name} is '{text[name][:50]}'; it must be a number from {least:g} to {most:.0f}.")
        return value

    def whole(name: str, *, least: int, most: int = 1_000_000) -> int:
        value = number(name, least=least, most=most)
        if value != int(value):
            raise BadInput(f"{PREFIX}{name} is '{text[name][:50]}'; it must be a whole number.")
        return int(value)

    level = text["LOG_LEVEL"].lower()
    if level not in ("debug", "info", "warning", "error"):
        raise BadInput(f"{PREFIX}LOG_LEVEL is '{level[:50]}'; it must be debug, info, warning or error.")
    if text["ALLOW_STDIO"].lower() not in ("yes", "no"):
        raise BadInput(f"{PREFIX}ALLOW_STDIO is '{text['ALLOW_STDIO'][:50]}'; it must be yes or no.")
    if text["SECRET_KEY"] and text["SECRET_KEY_FILE"]:
        raise BadInput(f"{PREFIX}SECRET_KEY and {PREFIX}SECRET_KEY_FILE are both set. Set one of them.")
    return Settings(
        database_url=text["DATABASE_URL"] or None,
        data_dir=Path(text["DATA_DIR"]).expanduser() if text["DATA_DIR"] else None,
        host=text["HOST"],
        port=whole("PORT", least=0, most=65535),
        public_url=_read_public_url(text["PUBLIC_URL"]),
        model=text["MODEL"] or None,
        functions=tuple(Path(part) for part in text["FUNCTIONS"].split(":") if part),
        secret_key=text["SECRET_KEY"] or None,
        secret_key_file=Path(text["SECRET_KEY_FILE"]).expanduser() if text["SECRET_KEY_FILE"] else None,
        allow_addresses=tuple(part.strip() for part in text["ALLOW_ADDRESSES"].split(",") if part.strip()),
        allow_keys=_read_allowed_keys(text["ALLOW_KEYS"]),
        allow_stdio=text["ALLOW_STDIO"].lower() == "yes",
        lease_seconds=number("LEASE_SECONDS", least=0.5),
        ping_seconds=number("PING_SECONDS", least=0.05),
        sweep_seconds=number("SWEEP_SECONDS", least=0.05),
        poll_seconds=number("POLL_SECONDS", least=0.05),
        channel_poll_seconds=number("CHANNEL_POLL_SECONDS", least=0.05),
        slack_api_url=text["SLACK_API_URL"],
        drain_seconds=number("DRAIN_SECONDS", least=0),
        slots=whole("SLOTS", least=1),
        poison_limit=whole("POISON_LIMIT", least=1),
        retry_seconds=number("RETRY_SECONDS", least=0.001, most=100),
        log_level=level,
        fault=text["FAULT"] or None,
    )


def _read_public_url(text: str) -> str | None:
    """A scheme and a host, in lower case; raises BadInput. The pages and their cookies are at the root of it."""
    if not text:
        return None
    found = re.fullmatch(r"(https?://(?:[a-z0-9.-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?)/?", text.lower())
    if found is None:
        raise BadInput(
            f"{PREFIX}PUBLIC_URL is '{text[:100]}'; it must be http:// or https:// with a host, and a port if need be, and no path."
        )
    return found[1]


def _read_allowed_keys(text: str) -> frozenset[tuple[str, str]]:
    """Raises BadInput; the entry is not repeated, for it may be a key that stands in a variable's place."""
    found = set()
    for number, entry in enumerate((part.strip() for part in text.split(",") if part.strip()), 1):
        variable, mark, url = entry.partition("=")
        if not mark or not variable.isidentifier() or not url.startswith(("http://", "https://")):
            raise BadInput(
                f"Entry {number} of {PREFIX}ALLOW_KEYS cannot be read. Write VARIABLE=URL, such as MY_API_KEY=https://models.example/v1."
            )
        found.add((variable, url.rstrip("/")))
    return frozenset(found)
