"""The tenant's keys of models, and which credential stack is the default. No route gives a value back."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter

from folkmoot.api.bodies import KeyedRoute
from folkmoot.api.document import shown_as
from folkmoot.api.doors import Caller, Doorway, may
from folkmoot.api.mapping import credentials as mapping
from folkmoot.api.mapping.cursors import name_cursor, read_name_cursor
from folkmoot.api.mapping.references import reference, refuse
from folkmoot.api.paging import DEFAULT_LIMIT, Limit, cut
from folkmoot.api.problems import responses
from folkmoot.api.routes.addresses import After
from folkmoot.domain.credentials import StackEntry
from folkmoot.domain.rights import Right
from folkmoot.kernel.errors import Fault
from folkmoot.services import credential_stacks, model_keys
from folkmoot.wire.model_keys import (
    DefaultCredentialStack,
    DefaultCredentialStackRequest,
    ModelKey,
    ModelKeyPage,
    ModelKeyRequest,
)

router = APIRouter(tags=["model keys"], route_class=KeyedRoute)
Keeper = Annotated[Caller, may(Right.MANAGE_SECRETS)]
_READ = responses(401, 404, 422, 503)
_WRITE = responses(400, 401, 404, 409, 413, 415, 422, 503)
_ONE = "/model-keys/by-id/{model_key_id}"
_DEFAULT = "/credential-stacks/default"
_OF_NAMESPACE = f"/namespaces/{{namespace_name}}{_DEFAULT}"
_EXAMPLE = {"name": "spare", "provider": "openai-compatible", "baseUrl": "http://127.0.0.1:11434/v1"}
_STACK = {"credentialStack": "examples/production"}


@router.post("/model-keys", status_code=201, responses=_WRITE)
async def create_model_key(
    doors: Doorway, caller: Keeper, body: Annotated[ModelKeyRequest, shown_as(_EXAMPLE)]
) -> ModelKey:
    """Give every run without a stack a key, from its next call on."""
    made = await model_keys.create(doors.of(caller), caller, key=_key_of(body), new_id=doors.new_id)
    return mapping.model_key(made)


@router.get("/model-keys", responses=responses(401, 422, 503))
async def list_model_keys(
    doors: Doorway, caller: Keeper, limit: Limit = DEFAULT_LIMIT, after: After = None
) -> ModelKeyPage:
    """The tenant's keys by name, without their values."""
    rows = await model_keys.page(doors.of(caller), caller, after=read_name_cursor(after), limit=limit + 1)
    found, following = cut(rows, limit, lambda row: name_cursor(row.name))
    return ModelKeyPage(items=tuple(mapping.model_key(row) for row in found), next=following)


@router.get(_ONE, responses=_READ)
async def get_model_key(doors: Doorway, caller: Keeper, model_key_id: UUID) -> ModelKey:
    """One of them."""
    return mapping.model_key(await model_keys.get(doors.of(caller), caller, model_key_id=model_key_id))


@router.put(_ONE, responses=_WRITE)
async def replace_model_key(
    doors: Doorway, caller: Keeper, model_key_id: UUID, body: Annotated[ModelKeyRequest, shown_as(_EXAMPLE)]
) -> ModelKey:
    """Replace all that is said of a key. Runs under way take it so from their next call on."""
    changed = await model_keys.change(doors.of(caller), caller, model_key_id=model_key_id, key=_key_of(body))
    return mapping.model_key(changed)


@router.delete(_ONE, status_code=204, responses=_READ)
async def delete_model_key(doors: Doorway, caller: Keeper, model_key_id: UUID) -> None:
    """Withdraw a key: no call takes it any more. Its secret stays."""
    await model_keys.delete(doors.of(caller), caller, model_key_id=model_key_id)


@router.get(_DEFAULT, responses=responses(401, 503))
async def get_default_credential_stack(doors: Doorway, caller: Keeper) -> DefaultCredentialStack:
    """The stack of runs for which neither start, interaction nor namespace names one."""
    return _shown(await credential_stacks.default(doors.of(caller), caller))


@router.put(_DEFAULT, responses=responses(400, 401, 413, 415, 422, 503))
async def set_default_credential_stack(
    doors: Doorway, caller: Keeper, body: Annotated[DefaultCredentialStackRequest, shown_as(_STACK)]
) -> DefaultCredentialStack:
    """Set it, for runs that start from now on."""
    return _shown(await credential_stacks.set_default(doors.of(caller), caller, stack=body.credential_stack))


@router.get(_OF_NAMESPACE, responses=_READ)
async def get_default_credential_stack_of_namespace(
    doors: Doorway, caller: Keeper, namespace_name: str
) -> DefaultCredentialStack:
    """The stack of the namespace's runs for which neither start nor interaction names one."""
    return _shown(await credential_stacks.default(doors.of(caller), caller, namespace=namespace_name))


@router.put(_OF_NAMESPACE, responses=responses(400, 401, 404, 413, 415, 422, 503))
async def set_default_credential_stack_of_namespace(
    doors: Doorway,
    caller: Keeper,
    namespace_name: str,
    body: Annotated[DefaultCredentialStackRequest, shown_as(_STACK)],
) -> DefaultCredentialStack:
    """Set it, for runs that start from now on."""
    return _shown(
        await credential_stacks.set_default(
            doors.of(caller), caller, stack=body.credential_stack, namespace=namespace_name
        )
    )


def _key_of(body: ModelKeyRequest) -> StackEntry:
    """Raises BadInput for a link that is none."""
    faults: list[Fault] = []
    secret = reference(body.credential, "/credential", faults) if body.credential is not None else None
    refuse(faults)
    return mapping.key_of(body, secret, name=body.name)


def _shown(found: tuple[UUID, str] | None) -> DefaultCredentialStack:
    stack_id, name = found if found is not None else (None, None)
    return DefaultCredentialStack(credential_stack_id=stack_id, credential_stack=name or None)
