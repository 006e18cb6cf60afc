"""Who may send a body, and what counts as JSON: no body is read before its sender is known, and JSON has one meaning or none.

Refused, where Python's reader would guess: a key that an object has twice, NaN and infinities, text that is not UTF-8, numbers
and nesting beyond what can be read. Deliberately absent: what the body should hold (`wire`), how long it may be (`limits`), and
the query's names (`queries`).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from folkmoot.api.doors import authenticated
from folkmoot.api.queries import check_names, names_of

_LONGEST_NAME = 80
_LARGEST_EXACT = 2**53


class KeyedRoute(APIRoute):
    """A route that asks for the key before anything else, takes no parameter that it does not have, and reads its body strictly."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        known = names_of(self.dependant)

        async def strictly(request: Request) -> Response:
            await authenticated(request)
            check_names(request, known)
            return await handle(_StrictRequest(request.scope, request.receive))

        return strictly


class _StrictRequest(Request):
    """Raises HTTPException: the only kind of error that the framework passes on from here."""

    async def body(self) -> bytes:
        body = await super().body()
        kind = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        if body and kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
            raise HTTPException(415, "Send the body as JSON, with the header `Content-Type: application/json`.")
        return body

    async def json(self) -> Any:
        return read_json(await self.body())


def read_json(body: bytes) -> Any:
    """Raises HTTPException (400) with a sentence."""
    try:
        text = body.decode("utf-8-sig")
        return json.loads(text, object_pairs_hook=_object, parse_float=_number, parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        problem = f"it is not UTF-8 at byte {error.start}"
    except json.JSONDecodeError as error:
        problem = f"{error.msg} at line {error.lineno}, column {error.colno}"
    except RecursionError:
        problem = "it is nested too deeply"
    except _Refused as error:
        problem = str(error)
    except ValueError:  # what int() says of thousands of digits
        problem = "it holds a number with too many digits"
    raise HTTPException(400, f"The body cannot be read as JSON: {problem}. Correct it and send it again.")


class _Refused(Exception):
    pass


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        twice = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise _Refused(f"the key '{_shortened(twice)}' is there twice in one object")
    return made


def _number(text: str) -> float:
    """JSON has one kind of number, and 1.0 is an integer of it (JSON Schema, 6.1.1)."""
    value = float(text)
    return int(value) if value.is_integer() and abs(value) <= _LARGEST_EXACT else value


def _refuse_constant(name: str) -> NoReturn:
    raise _Refused(f"JSON has no {name}")


def _shortened(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else name[:_LONGEST_NAME] + "…"
