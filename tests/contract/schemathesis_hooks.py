"""What Schemathesis cannot know of our refusals. Loaded by it, not by pytest."""

from __future__ import annotations

import os
from typing import Any

import schemathesis

OF_SHAPE = ("The body does not validate", "A parameter does not validate", "The body cannot be read")


@schemathesis.hook
def before_call(ctx: schemathesis.HookContext, case: schemathesis.Case[Any], kwargs: dict[str, Any]) -> None:
    """Connectors look at servers when they are saved: at the test's own, whatever address was thought up."""
    body = case.body
    if "connectors/" not in case.path or not isinstance(body, dict):
        return
    inner = body.get("version")
    version = inner if isinstance(inner, dict) else body
    for name in ("url", "documentUrl"):
        if isinstance(version.get(name), str) and version[name]:
            version[name] = os.environ["FOLKMOOT_TEST_BENCH"]


@schemathesis.check
def refused_for_its_meaning(
    ctx: schemathesis.CheckContext, response: schemathesis.Response, case: schemathesis.Case[Any]
) -> bool | None:
    """A request that fits the published schemas may be refused for what it means, never for its shape."""
    meta = case.meta
    if meta is not None and meta.generation.mode.is_positive and response.status_code in (400, 422):
        detail = response.json()["detail"]
        assert not detail.startswith(OF_SHAPE), detail
    return None


@schemathesis.check
def every_problem_is_a_sentence(
    ctx: schemathesis.CheckContext, response: schemathesis.Response, case: schemathesis.Case[Any]
) -> bool | None:
    """README.md, Wire conventions: RFC 9457, whatever was asked."""
    if response.status_code >= 400 and case.path != "/readyz":
        assert response.headers["content-type"] == ["application/problem+json"]
        problem = response.json()
        assert problem["status"] == response.status_code
        assert problem["detail"].endswith((".", ")")), problem["detail"]
    return None
