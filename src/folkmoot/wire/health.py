"""What `/healthz` and `/readyz` say. Deliberately absent: addresses, paths and anything else of the host."""

from typing import Literal

from folkmoot.wire.formats import ResponseShape


class Health(ResponseShape):
    """The process lives."""

    status: Literal["Ok"]
    version: str


class ReadinessCheck(ResponseShape):
    """One thing that work needs. `detail` says what is missing and what to do; null when it is there."""

    name: str
    is_ready: bool
    detail: str | None


class Readiness(ResponseShape):
    """Whether requests can be served; with `NotReady`, at least one check says why."""

    status: Literal["Ready", "NotReady"]
    version: str
    checks: tuple[ReadinessCheck, ...]
