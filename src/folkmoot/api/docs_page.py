"""`/docs`: the OpenAPI document as a page that needs no script and nothing from outside."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

Json = dict[str, Any]

_HEAD = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Folkmoot API</title><style>body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}
code{font-family:ui-monospace,monospace}summary{cursor:pointer;padding:.2rem 0}b{display:inline-block;min-width:4.5rem}</style>
<h1>Folkmoot API</h1>
<p>The whole document: <a href="/openapi.json">/openapi.json</a>. Every call needs <code>Authorization: Bearer KEY</code>, but those of
<code>system</code>.</p>"""


def page(document: Json) -> str:
    """All operations by path, each with its parameters, body and answers, then the schemas."""
    parts = [_HEAD]
    for path, operations in document["paths"].items():
        parts += (_operation(method.upper(), path, operation) for method, operation in operations.items())
    parts.append("<h2>Schemas</h2>")
    for name, schema in document["components"]["schemas"].items():
        label = escape(name)
        body = f"{_sentence(schema)}<ul>{''.join(_fields(schema))}</ul>"
        parts.append(f'<details id="{label}"><summary><code>{label}</code></summary>{body}</details>')
    return "\n".join(parts)


def _operation(method: str, path: str, operation: Json) -> str:
    rows = [*_parameters(operation), *_body(operation), *_answers(operation)]
    title = f"<b>{method}</b> <code>{escape(path)}</code> {escape(operation['operationId'])}"
    return f"<details><summary>{title}</summary>{_sentence(operation)}<ul>{''.join(rows)}</ul></details>"


def _parameters(operation: Json) -> Iterator[str]:
    for parameter in operation.get("parameters", ()):
        place = f"{parameter['in']}, required" if parameter.get("required") else parameter["in"]
        kind, what = _kind(parameter["schema"]), escape(parameter.get("description", ""))
        yield f"<li><code>{escape(parameter['name'])}</code> ({place}): {kind}. {what}</li>"


def _body(operation: Json) -> Iterator[str]:
    for content in operation.get("requestBody", {}).get("content", {}).values():
        yield f"<li>body: {_kind(content.get('schema', {}))}</li>"


def _answers(operation: Json) -> Iterator[str]:
    for status, answer in operation["responses"].items():
        contents = answer.get("content", {})
        shapes = [f"{escape(media)} {_kind(content.get('schema', {}))}" for media, content in contents.items()]
        yield f"<li>{escape(status)}: {escape(answer['description'])} {' '.join(shapes)}</li>"
        for content in contents.values():
            for event in content.get("itemSchema", {}).get("oneOf", ()):
                name, data = event["properties"]["event"]["const"], event["properties"]["data"]["contentSchema"]
                yield f"<li>event <code>{escape(name)}</code>: {_kind(data)}</li>"


def _sentence(described: Json) -> str:
    text = described.get("description")
    return f"<p>{escape(text)}</p>" if text else ""


def _fields(schema: Json) -> Iterator[str]:
    required = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        mark = "" if name in required else " (may be left out)"
        yield f"<li><code>{escape(name)}</code>{mark}: {_kind(field)}</li>"
    if "properties" not in schema:
        yield f"<li>{_kind(schema)}</li>"


def _kind(schema: Json) -> str:
    """What a value may be, in words."""
    if "$ref" in schema:
        name = escape(schema["$ref"].rsplit("/", 1)[-1])
        return f'<a href="#{name}">{name}</a>'
    if choices := schema.get("anyOf", schema.get("oneOf")):
        return " or ".join(_kind(part) for part in choices)
    if "enum" in schema:
        return f"one of {escape(', '.join(map(str, schema['enum'])))}"
    if "const" in schema:
        return escape(str(schema["const"]))
    if "items" in schema:
        return f"list of {_kind(schema['items'])}"
    return escape(str(schema.get("format") or schema.get("type", "anything"))) + _bounds(schema)


def _bounds(schema: Json) -> str:
    least = schema.get("minimum", schema.get("minLength"))
    most = schema.get("maximum", schema.get("maxLength"))
    told = [f"{word} {value:,}" for word, value in (("from", least), ("to", most)) if value is not None]
    unit = " characters" if told and schema.get("type") == "string" else ""
    return f" ({' '.join(told)}{unit})" if told else ""
