"""What a page says where something was refused or cannot be had, and with which status.

Deliberately absent: what an answer to a consent came to (`consent_pages`).
"""

from __future__ import annotations

import logging

from folkmoot.kernel import errors
from folkmoot.vault.masks import mask

_log = logging.getLogger("folkmoot.console")
_UNAVAILABLE = "The server cannot reach its database now. Try again in a moment; the server's log says more."
STATUSES: dict[type[errors.FolkmootError], tuple[int, str]] = {
    errors.NotFound: (404, "Not found"),
    errors.NotPermitted: (403, "Not permitted"),
    errors.NotAllowed: (401, "Not signed in"),
    errors.Conflict: (409, "That cannot be done now"),
    errors.BadInput: (422, "Something is missing or wrong"),
    errors.KeyReused: (422, "This form was sent before"),
    errors.BudgetSpent: (429, "The budget is used up"),
    errors.ModelUnavailable: (422, "The model cannot be had"),
    errors.Unreachable: (503, "The server cannot work now"),
    errors.DatabaseFault: (503, "The server cannot work now"),
    errors.SecretFault: (503, "The server cannot work now"),
}


def told(error: errors.FolkmootError) -> tuple[int, str, str]:
    """Status, title and words. What is only the operator's to know goes to the log."""
    kinds = type(error).__mro__
    status, title = next((STATUSES[kind] for kind in kinds if kind in STATUSES), (500, "The server failed"))
    if status == 503:
        _log.warning("%s", error)
        return status, title, _UNAVAILABLE
    return status, title, mask(str(error))
