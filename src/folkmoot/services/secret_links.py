"""Finds the secrets that definitions name. A secret of another tenant is as one that never was.

Deliberately absent: their values.
"""

from __future__ import annotations

from uuid import UUID

from folkmoot.domain.references import Reference
from folkmoot.store import secrets
from folkmoot.store.database import Reader


async def find(reader: Reader, tenant_id: UUID, *, secret: Reference, namespace: str) -> Reference | str:
    """The secret with its names and its id (as `definition_id`), or a sentence that says that there is none."""
    if secret.definition_id is not None:
        found = await secrets.find(reader, tenant_id, secret_id=secret.definition_id)
        missing = (
            f"The secret with the id {secret.definition_id} was deleted, or never was. If there is another one of its name by now, save "
            "what refers to it again (`folkmoot apply` does), or correct the reference."
        )
    else:
        place = secret.namespace or namespace
        found = await secrets.find(reader, tenant_id, namespace=place, name=secret.name or "")
        missing = f"There is no secret '{place}/{secret.name}'. Make it first (`folkmoot secrets set {place}/{secret.name}`), or correct the reference."
    if found is None:
        return missing
    about = found.about
    return Reference(about.name, about.namespace, about.secret_id)
