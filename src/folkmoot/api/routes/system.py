"""Health, readiness, and the document. Public: they say nothing of any tenant."""

from __future__ import annotations

import logging

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from folkmoot import __version__
from folkmoot.api.docs_page import page
from folkmoot.api.doors import Doorway
from folkmoot.kernel.errors import FolkmootError
from folkmoot.wire.health import Health, Readiness, ReadinessCheck

router = APIRouter(tags=["system"])
_DOCS_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
_log = logging.getLogger("folkmoot.api")


@router.get("/healthz")
async def healthz() -> Health:
    """The process lives."""
    return Health(status="Ok", version=__version__)


@router.get("/readyz", responses={503: {"model": Readiness, "description": "Not ready"}})
async def readyz(doors: Doorway, response: Response) -> Readiness:
    """Whether requests can be served: the database answers, and what else this process runs is ready."""
    checks = [ReadinessCheck(name="database", is_ready=True, detail=None)]
    try:
        await doors.database.check()
    except FolkmootError as error:
        _log.warning("Not ready: %s", error)
        checks = [ReadinessCheck(name="database", is_ready=False, detail="It cannot be reached; the log says more.")]
    checks += [ReadinessCheck(name=name, is_ready=why is None, detail=why) for name, why in doors.readiness().items()]
    is_ready = all(check.is_ready for check in checks)
    response.status_code = 200 if is_ready else 503
    return Readiness(status="Ready" if is_ready else "NotReady", version=__version__, checks=tuple(checks))


@router.get("/docs", include_in_schema=False)
async def docs(request: Request) -> HTMLResponse:
    state = request.app.state
    if not hasattr(state, "docs_page"):
        state.docs_page = page(request.app.openapi())
    return HTMLResponse(state.docs_page, headers=_DOCS_HEADERS)
