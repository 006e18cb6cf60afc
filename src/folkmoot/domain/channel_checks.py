"""What must hold of a channel: an app that is known, settings as its schema says, secrets where it asks for them, and none in clear.

Pointers are into the version, by the wire's names. Deliberately absent: whether a secret is there, and whether the app reaches anybody.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from folkmoot.domain.channels import NO_APPS, WEB, AppShape, ChannelVersion, Json
from folkmoot.domain.json_text import canonical, is_deeper
from folkmoot.domain.link_checks import faults_of_link
from folkmoot.domain.schema_documents import step
from folkmoot.domain.schema_reports import shortened
from folkmoot.domain.schemas import compile_schema
from folkmoot.kernel.errors import Fault

MOST_SECRETS = 50
MOST_SETTINGS_CHARACTERS = 65_536
MOST_SETTINGS_DEPTH = 20
_APP = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
_SECRET_ENDINGS = ("password", "passwd", "passphrase", "token", "secret", "apikey", "privatekey", "signingkey")


def problem_of_app(app: str, apps: Mapping[str, AppShape] = NO_APPS) -> str | None:
    """A sentence about what keeps this from naming an app; `apps`: all there are, if anything is known of them."""
    if not _APP.fullmatch(app):
        return "An app's name is 1 to 64 lower-case letters, digits, '.', '_' or '-'; correct it."
    if apps and app not in apps:
        return f"There is no app '{app}' for channels; there are: {', '.join(sorted(apps))}. Correct the name, or install the app."
    return None


def faults_of_channel_name(name: str) -> Iterator[Fault]:
    if name == WEB:
        message = f"'{WEB}' means the server's own pages, which need no definition; give the channel another name."
        yield Fault("/name", message)


def faults_of_channel(version: ChannelVersion, apps: Mapping[str, AppShape] = NO_APPS) -> tuple[Fault, ...]:
    """What keeps the version from being saved. `apps`: what is known of them; where it is nothing, no app is held against it."""
    found = list(_own_faults(version, apps.get(version.app)))
    problem = problem_of_app(version.app, apps)
    if problem is not None:
        return (Fault("/app", problem), *found)
    shape = apps.get(version.app)
    if shape is None or any(fault.pointer == "/settings" for fault in found):
        return tuple(found)
    return (*found, *_setting_faults(version, shape), *_secret_faults(version, shape))


def _own_faults(version: ChannelVersion, shape: AppShape | None) -> Iterator[Fault]:
    if len(version.secrets) > MOST_SECRETS:
        yield Fault("/secrets", f"A channel has at most {MOST_SECRETS} secrets; leave some out.")
    for name, link in version.secrets.items():
        pointer = step("/secrets", shortened(name, 60))
        if not 1 <= len(name) <= 200:
            yield Fault(pointer, "The app's name for a secret has 1 to 200 characters; correct it.")
        yield from faults_of_link(pointer, link, "a secret")
    try:
        text = canonical(version.settings)
    except (RecursionError, ValueError, TypeError):
        yield Fault("/settings", "The settings are no JSON object, or are nested too deeply; correct them.")
        return
    if len(text) > MOST_SETTINGS_CHARACTERS or is_deeper(text, than=MOST_SETTINGS_DEPTH):
        message = f"Settings have at most {MOST_SETTINGS_CHARACTERS:,} characters and {MOST_SETTINGS_DEPTH} levels; make them shorter."
        yield Fault("/settings", message)
        return
    yield from _clear_secrets(version.settings, "/settings", _properties(shape))


def _clear_secrets(value: Json, pointer: str, declared: Mapping[str, Json]) -> Iterator[Fault]:
    """Texts under names such as `apiToken`; `declared`: the settings that the app has asked for itself, whatever they are called."""
    if isinstance(value, list | tuple):
        for index, part in enumerate(value):
            yield from _clear_secrets(part, step(pointer, index), {})
    if not isinstance(value, dict):
        return
    for name, part in value.items():
        at = step(pointer, shortened(name, 60))
        plain = re.sub(r"[^a-z0-9]", "", name.casefold())
        if isinstance(part, str) and part and plain.endswith(_SECRET_ENDINGS) and name not in declared:
            message = (
                f"'{shortened(name, 60)}' looks like a secret, and settings are shown to everybody who may read definitions. Keep it with "
                "`folkmoot secrets set`, and link it under 'secrets'."
            )
            yield Fault(at, message)
        yield from _clear_secrets(part, at, {})


def _properties(shape: AppShape | None) -> Mapping[str, Json]:
    schema = shape.settings_schema if shape is not None else None
    found = schema.get("properties") if isinstance(schema, dict) else None
    return found if isinstance(found, dict) else {}


def _setting_faults(version: ChannelVersion, shape: AppShape) -> Iterator[Fault]:
    known, settings = _properties(shape), version.settings
    is_closed = isinstance(shape.settings_schema, dict) and shape.settings_schema.get("additionalProperties") is False
    unknown = [name for name in settings if is_closed and name not in known]
    there_are = f"there are: {', '.join(known)}" if known else "it has none"
    for name in unknown:
        message = f"The app '{version.app}' has no setting '{shortened(name, 60)}'; {there_are}. Correct the name, or leave it out."
        yield Fault(step("/settings", shortened(name, 60)), message)
    rest = {name: value for name, value in settings.items() if name not in unknown}
    for sentence in compile_schema(canonical(shape.settings_schema)).faults(rest):
        yield Fault("/settings", f"The settings do not fit the app '{version.app}'. {sentence}")


def _secret_faults(version: ChannelVersion, shape: AppShape) -> Iterator[Fault]:
    for name in shape.required_secrets:
        if name not in version.secrets:
            message = f"The app '{version.app}' needs the secret '{name}'. Keep it with `folkmoot secrets set`, and link it here by that name."
            yield Fault("/secrets", message)
    known = (*shape.required_secrets, *shape.optional_secrets)
    there_are = f"there are: {', '.join(known)}" if known else "it has none"
    for name in version.secrets:
        if name not in known:
            message = f"The app '{version.app}' has no secret '{shortened(name, 60)}'; {there_are}. Correct the name, or leave it out."
            yield Fault(step("/secrets", shortened(name, 60)), message)
