"""What Schemathesis cannot know of our refusals. Loaded by it, not by pytest."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from typing import Any

import schemathesis
from schemathesis.generation.meta import TestPhase
from standardwebhooks import Webhook

OF_SHAPE = ("The body does not validate", "A parameter does not validate", "The body cannot be read")


ANSWER = {"type": "consent.answer", "data": {"token": "of nothing", "secret": "fmc_none", "decision": "decline"}}


@schemathesis.hook
def before_call(ctx: schemathesis.HookContext, case: schemathesis.Case[Any], kwargs: dict[str, Any]) -> None:
    """What a caller does outside of the API: runs a server for a connector, and signs what goes to a channel."""
    if "connectors/" in case.path and isinstance(case.body, dict):
        _at_a_server(case.body)
    if case.path == "/channels/{channel_id}/inbound" and case.media_type == "application/json" and _is_good(case):
        _sign(case)


def _is_good(case: schemathesis.Case[Any]) -> bool:
    return case.meta is not None and case.meta.generation.mode.is_positive


def _sign(case: schemathesis.Case[Any]) -> None:
    """No body that is thought up is signed; this one is, and answers something that nobody asked."""
    now, id_ = datetime.now(UTC), "msg_1"
    case.body = ANSWER
    case.headers.update(
        {
            "webhook-id": id_,
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": Webhook(os.environ["FOLKMOOT_TEST_SIGNING"]).sign(id_, now, json.dumps(ANSWER)),
        }
    )


def _at_a_server(body: dict[str, Any]) -> None:
    """Connectors look at servers when they are saved: at the test's own, whatever address was thought up."""
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
        problem = response.json()
        if meta.phase.name is TestPhase.STATEFUL and _is_about_path(problem):
            return None  # its links are inferred from names: an agent run's number is taken for a run's id
        assert not problem["detail"].startswith(OF_SHAPE), problem["detail"]
    return None


def _is_about_path(problem: dict[str, Any]) -> bool:
    return bool(problem.get("errors")) and all(each["pointer"].startswith("/path/") for each in problem["errors"])


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
