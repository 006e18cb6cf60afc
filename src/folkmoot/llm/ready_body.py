"""A request's body as bytes, where an SDK would copy and check what is already built for the wire.

Deliberately absent: headers, and any change to what is sent.
"""

from __future__ import annotations

import json
from typing import Any


def encoded(body: Any) -> bytes:
    """JSON in UTF-8; half a surrogate pair, which no server reads, becomes a question mark."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8", "replace")
