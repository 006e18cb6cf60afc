"""Tool calls that leave the process: what is asked, how far it got, what came of it.

A call is recorded as begun before it is sent. Deliberately absent: how a call is made (`tools`), and protocol tools, which touch nothing outside.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class CallState(StrEnum):
    ASKED = "asked"
    BEGUN = "begun"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class FunctionTool:
    """A Python function of the operator's, as it was when the run started. Limits: seconds, bytes of UTF-8."""

    name: str
    description: str
    parameters: dict[str, Any]
    is_idempotent: bool = False
    is_read_only: bool = False
    is_terminal: bool = False
    limit_seconds: float = 60.0
    limit_bytes: int = 262_144


@dataclass(frozen=True, slots=True)
class AskedCall:
    """A call as the items hold it. `call_id` is ours (a UUID in text); providers' ids repeat."""

    call_id: str
    name: str
    arguments_json: str
    participant: str


@dataclass(frozen=True, slots=True)
class CallFact:
    """How far a call got. `lost`: it began under a claim that is no more."""

    call_id: str
    state: CallState
    lost: bool = False


@dataclass(frozen=True, slots=True)
class CallResult:
    """What came of a call. `unknown`: it may or may not have happened."""

    text: str
    is_error: bool
    unknown: bool = False
