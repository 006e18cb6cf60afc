"""Errors as `application/problem+json` (RFC 9457): the one place that knows an error's HTTP status.

Deliberately absent: internals. An unexpected error, and what keeps the database from being reached, is logged; the answer says
that it is so and no more.
"""

from __future__ import annotations

import logging
import re
from functools import cache
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from fastapi.routing import iter_route_contexts
from starlette.exceptions import HTTPException
from starlette.routing import compile_path

from folkmoot.kernel import errors
from folkmoot.vault.masks import mask
from folkmoot.wire.errors import Problem, faults_of, problem_errors

MEDIA_TYPE = "application/problem+json"
_log = logging.getLogger("folkmoot.api")

STATUSES: dict[type[errors.FolkmootError], int] = {
    errors.BadInput: 422,
    errors.NotFound: 404,
    errors.NotAllowed: 401,
    errors.NotPermitted: 403,
    errors.Conflict: 409,
    errors.KeyReused: 422,
    errors.BudgetSpent: 429,
    errors.Unreachable: 503,
    errors.DatabaseFault: 503,
    errors.ModelUnavailable: 422,
    errors.ConnectorFault: 422,
    errors.SecretFault: 503,
}
_TITLES = {
    400: "The request cannot be read",
    401: "Not authenticated",
    403: "Not permitted",
    404: "Not found",
    405: "Method not allowed",
    409: "Conflict",
    413: "The body is too large",
    415: "The body is of the wrong kind",
    422: "The request does not hold together",
    429: "Used up",
    500: "The server failed",
    503: "The server cannot work now",
}
_CODES = {
    400: "unreadable",
    401: "not_allowed",
    403: "not_permitted",
    404: "not_found",
    405: "method_not_allowed",
    413: "too_large",
    415: "unsupported_media_type",
    500: "failed",
}
_OF_FRAMEWORK = {404: "There is no such path.", 405: "This path does not take that method."}
RETRY_AFTER_SECONDS = "2"
UNAVAILABLE = (
    "The server cannot reach its database now. Send the request again in a moment; the server's log says more."
)

_SHAPE = {"schema": {"$ref": "#/components/schemas/Problem"}}


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """What a route's document says about the errors it can give. Whoever asks for a key asks for a right, and looks at the query."""
    given = {*statuses, 403, 422} if 401 in statuses else statuses
    return {
        status: {"model": Problem, "description": _TITLES[status], "content": {MEDIA_TYPE: _SHAPE}}
        for status in sorted(given)
    }


def problem(
    status: int, detail: str, *, code: str, faults: tuple[errors.Fault, ...] = (), headers: dict[str, str] | None = None
) -> Response:
    shown = tuple(errors.Fault(mask(fault.pointer), mask(fault.message)) for fault in faults)
    body = Problem(
        type=f"urn:folkmoot:error:{code}", title=_TITLES.get(status, "Error"), status=status,
        detail=mask(detail).encode("utf-8", "backslashreplace").decode(), errors=problem_errors(shown), code=code,
    )  # fmt: skip
    return Response(body.model_dump_json(by_alias=True), status_code=status, media_type=MEDIA_TYPE, headers=headers)


def problem_of(status: int, detail: str) -> Response:
    """One that no error of ours stands behind: its code is its status's."""
    return problem(status, detail, code=_CODES.get(status, "error"))


def status_of(error: errors.FolkmootError) -> int:
    return next((STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES), 500)


def _of_ours(_: Request, error: Exception) -> Response:
    assert isinstance(error, errors.FolkmootError)
    status, detail = status_of(error), str(error)
    headers: dict[str, str] = {}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, errors.BudgetSpent):
        headers["Retry-After"] = str(error.retry_after_seconds)
    if status == 503:
        _log.warning("%s", error)
        headers["Retry-After"] = RETRY_AFTER_SECONDS
        detail = UNAVAILABLE
    faults = error.faults if isinstance(error, errors.BadInput) else ()
    return problem(status, detail, code=error.code, faults=faults, headers=headers)


def _of_validation(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    details = error.errors()
    in_body = all(detail["loc"][:1] == ("body",) for detail in details)
    faults = faults_of(details, within=("body",) if in_body else ())
    what = "The body does not validate" if in_body else "A parameter does not validate"
    return problem(422, f"{what}: {faults[0].message if faults else ''}", code="bad_input", faults=faults)


def _of_framework(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    status, headers = error.status_code, dict(error.headers or {})
    if status == 405 and (methods := _methods_of(request)):
        headers["Allow"] = methods  # the framework names those of one of the path's routes only
    detail = _OF_FRAMEWORK.get(status, str(error.detail))
    return problem(status, detail, code=_CODES.get(status, "error"), headers=headers)


def _methods_of(request: Request) -> str:
    """The methods that any route has for the request's path."""
    path = request.url.path
    routes = [route for route in iter_route_contexts(request.app.routes) if _pattern(route.path or "").match(path)]
    return ", ".join(sorted({method for route in routes for method in route.methods or ()}))


@cache
def _pattern(path: str) -> re.Pattern[str]:
    return compile_path(path)[0]


def _of_fault(request: Request, error: Exception) -> Response:
    _log.exception("An unexpected error at %s %s", request.method, request.url.path, exc_info=error)
    return problem(500, "The server failed unexpectedly. Its log says more; please report it.", code="failed")


def add_to(app: FastAPI) -> None:
    app.add_exception_handler(errors.FolkmootError, _of_ours)
    app.add_exception_handler(RequestValidationError, _of_validation)
    app.add_exception_handler(HTTPException, _of_framework)
    app.add_exception_handler(Exception, _of_fault)
