"""Agents, routers, AI models, interactions, connectors, credential stacks and channels: by name below their namespace, by id at the top. Each kind has the same routes.

Annotations are evaluated when a route is made, for the bodies' types differ by kind; so no `from __future__ import annotations`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Response

from folkmoot.api.bodies import KeyedRoute
from folkmoot.api.document import shown_as
from folkmoot.api.doors import Caller, Doors, Doorway, Reader, may
from folkmoot.api.mapping import agents, ai_models, channels, connectors, credential_stacks, interactions, routers
from folkmoot.api.mapping.cursors import name_cursor, number_cursor, read_name_cursor, read_number_cursor
from folkmoot.api.mapping.references import version_at
from folkmoot.api.paging import DEFAULT_LIMIT, Limit, cut
from folkmoot.api.problems import responses
from folkmoot.api.routes.addresses import After, Number, Version, by_id, by_name
from folkmoot.api.routes.connectors import Save, looking_at_server
from folkmoot.domain.definitions import DefinitionKind, Reference, StoredVersion
from folkmoot.domain.definitions import Version as DomainVersion
from folkmoot.domain.rights import Right
from folkmoot.domain.tenancy import Caller as DomainCaller
from folkmoot.services import definitions
from folkmoot.services.definitions import PublishedVersion
from folkmoot.store.definitions import Outcome
from folkmoot.wire import definitions as wire

router = APIRouter(tags=["definitions"], route_class=KeyedRoute)

_READ = responses(401, 404, 422, 503)
_WRITE = responses(400, 401, 413, 415, 422, 503)


@dataclass(frozen=True, slots=True)
class Kind:
    """What one kind of definition needs: its path, its wire shapes, how it is saved and shown, a version for the document to show,
    and who may change it."""

    kind: DefinitionKind
    path: str
    noun: str
    create: Any
    add: Any
    shown: Any
    page: Any
    version_page: Any
    save: Save
    of_definition: Callable[[StoredVersion, UUID], Any]
    of_version: Callable[[StoredVersion], Any]
    example: dict[str, Any]
    right: Right = Right.PUBLISH


def writing_down(version_of: Callable[[Any], DomainVersion]) -> Save:
    """How a kind is saved that is all said in its version."""

    async def save(
        doors: Doors, caller: DomainCaller, *, namespace: str, name: str, body: Any, only_if_new: bool
    ) -> PublishedVersion:
        return await definitions.publish(
            doors.of(caller), caller, namespace=namespace, name=name, version=version_of(body), new_id=doors.new_id,
            only_if_new=only_if_new, channel_apps=doors.channel_apps,
        )  # fmt: skip

    return save


def add_writing(k: Kind) -> None:
    """Create, and put by name."""
    collection = f"/namespaces/{{namespace_name}}/{k.path}"
    publisher = Annotated[Caller, may(k.right)]
    typed = {"type": "RoundRobin"} if k.kind is DefinitionKind.INTERACTION else {}
    creation = Annotated[k.create, shown_as({"name": f"my-{k.noun}", **typed, "version": k.example})]  # type: ignore[name-defined]
    addition = Annotated[k.add, shown_as(k.example)]  # type: ignore[name-defined]

    @router.post(
        collection, status_code=201, response_model=k.shown, responses=_WRITE | responses(409), name=f"create_{k.noun}"
    )
    async def create(doors: Doorway, caller: publisher, namespace_name: str, body: creation) -> Any:
        """Create a definition with its first version; one of this name must not be there yet."""
        with version_at("/version"):
            made = await k.save(
                doors, caller, namespace=namespace_name, name=body.name, body=body.version, only_if_new=True
            )
        return k.of_definition(made.stored, caller.tenant_id)

    made_new: dict[int | str, Any] = {201: {"model": k.shown, "description": "It is new."}}

    @router.put(
        f"{collection}/by-name/{{name}}", response_model=k.shown, responses=_WRITE | made_new, name=f"put_{k.noun}"
    )
    async def put(
        doors: Doorway, caller: publisher, namespace_name: str, name: str, body: addition, response: Response
    ) -> Any:  # fmt: skip
        """Create the definition, or add a version; one that is the same as the newest adds nothing."""
        made = await k.save(doors, caller, namespace=namespace_name, name=name, body=body, only_if_new=False)
        response.status_code = 201 if made.outcome is Outcome.CREATED else 200
        return k.of_definition(made.stored, caller.tenant_id)


def add_listing(k: Kind) -> None:
    @router.get(
        f"/namespaces/{{namespace_name}}/{k.path}", response_model=k.page, responses=_READ, name=f"list_{k.noun}s"
    )
    async def list_all(
        doors: Doorway,
        caller: Reader,
        namespace_name: str,
        limit: Limit = DEFAULT_LIMIT,
        after: After = None,
    ) -> Any:
        """The definitions of a namespace by name, each with its newest version."""
        rows = await definitions.page(
            doors.of(caller),
            caller,
            kind=k.kind,
            namespace=namespace_name,
            after=read_name_cursor(after),
            limit=limit + 1,
        )
        found, following = cut(rows, limit, lambda stored: name_cursor(stored.definition.name))
        return k.page(items=tuple(k.of_definition(stored, caller.tenant_id) for stored in found), next=following)


def add_addressed(k: Kind, path: str, *, reference: Any, suffix: str) -> None:
    """What a single definition offers, addressed as `reference` says: a dependency that makes it of the path's parameters."""
    addressed = Annotated[Reference, reference]
    publisher = Annotated[Caller, may(k.right)]

    @router.get(path, response_model=k.shown, responses=_READ, name=f"get_{k.noun}_{suffix}")
    async def get(doors: Doorway, caller: Reader, which: addressed, version: Version = None) -> Any:
        """The definition with its newest version, or with the one that is asked for."""
        found = await definitions.get(doors.of(caller), caller, kind=k.kind, reference=_at(which, version))
        return k.of_definition(found, caller.tenant_id)

    @router.delete(path, status_code=204, responses=_READ, name=f"delete_{k.noun}_{suffix}")
    async def delete(doors: Doorway, caller: publisher, which: addressed) -> None:
        """Hide the definition from everything new; runs that used it keep their versions."""
        await definitions.delete(doors.of(caller), caller, kind=k.kind, reference=which)

    @router.get(
        f"{path}/versions", response_model=k.version_page, responses=_READ, name=f"list_{k.noun}_versions_{suffix}"
    )
    async def versions(
        doors: Doorway, caller: Reader, which: addressed, limit: Limit = DEFAULT_LIMIT, after: After = None
    ) -> Any:  # fmt: skip
        """Its versions, the newest first."""
        rows = await definitions.versions(
            doors.of(caller), caller, kind=k.kind, reference=which, before=read_number_cursor(after), limit=limit + 1
        )
        found, following = cut(rows, limit, lambda stored: number_cursor(stored.number))
        return k.version_page(items=tuple(k.of_version(stored) for stored in found), next=following)

    for word, is_disabled in (("disable", True), ("enable", False)):
        _add_disabling(k, path, addressed, word=word, is_disabled=is_disabled, suffix=suffix)


def _add_disabling(k: Kind, path: str, addressed: Any, *, word: str, is_disabled: bool, suffix: str) -> None:
    publisher = Annotated[Caller, may(k.right)]

    @router.post(
        f"{path}/versions/{{number}}/{word}", response_model=k.shown, responses=_READ, name=f"{word}_{k.noun}_{suffix}"
    )
    async def disable(doors: Doorway, caller: publisher, which: addressed, number: Number) -> Any:
        """A disabled version is used for nothing new; runs already started go on."""
        found = await definitions.set_disabled(
            doors.of(caller), caller, kind=k.kind, reference=_at(which, number), is_disabled=is_disabled
        )
        return k.of_definition(found, caller.tenant_id)


def _at(which: Reference, version: int | None) -> Reference:
    return Reference(which.name, which.namespace, which.definition_id, version)


_DOCUMENT = """\
openapi: 3.1.0
info: {title: Shop, version: "1"}
paths:
  /orders/{id}:
    get:
      operationId: getOrder
      parameters: [{name: id, in: path, required: true, schema: {type: string}}]
      responses: {"200": {description: An order.}}
"""

KINDS = (
    Kind(
        DefinitionKind.AGENT, "agents", "agent", wire.AgentRequest, wire.AgentVersionRequest, wire.Agent, wire.AgentPage,
        wire.AgentVersionPage, writing_down(agents.version_of), agents.agent, agents.version,
        {"model": "small", "prompts": ["You see the best in every option. Two sentences at most."]},
    ),
    Kind(
        DefinitionKind.AI_MODEL, "ai-models", "ai_model", wire.AiModelRequest, wire.AiModelVersionRequest, wire.AiModel,
        wire.AiModelPage, wire.AiModelVersionPage, writing_down(ai_models.version_of), ai_models.model, ai_models.version,
        {"provider": "openai-compatible", "modelName": "qwen3:0.6b", "baseUrl": "http://127.0.0.1:11434/v1"},
    ),
    Kind(
        DefinitionKind.ROUTER, "routers", "router", wire.RouterRequest, wire.RouterVersionRequest, wire.Router, wire.RouterPage,
        wire.RouterVersionPage, writing_down(routers.version_of), routers.router, routers.version,
        {
            "candidates": [{"agent": "optimist", "description": "When hope is needed."}, {"agent": "sceptic"}],
            "rules": [{"candidate": "sceptic", "turnNumber": 1}], "model": "small", "fallback": "optimist",
        },
    ),
    Kind(
        DefinitionKind.INTERACTION, "interactions", "interaction", wire.InteractionRequest, wire.InteractionVersionRequest,
        wire.Interaction, wire.InteractionPage, wire.InteractionVersionPage, writing_down(interactions.version_of),
        interactions.interaction, interactions.version,
        {
            "agents": [{"agent": "optimist", "name": "Ann"}, {"agent": "optimist", "name": "Ben"}],
            "prompt": "Decide: %%question%%", "inputsPrompt": [{"name": "question", "isRequired": True}],
            "isSolutionProposalAllowed": True, "maximumRounds": 6,
        },
    ),
    Kind(
        DefinitionKind.MCP_CONNECTOR, "connectors/mcp", "mcp_connector", wire.McpConnectorRequest, wire.McpConnectorVersionRequest,
        wire.McpConnector, wire.McpConnectorPage, wire.McpConnectorVersionPage, looking_at_server(connectors.mcp_version_of),
        connectors.mcp_connector, connectors.mcp_version, {"url": "https://tools.example.com/mcp"}, Right.MANAGE_CONNECTORS,
    ),
    Kind(
        DefinitionKind.OPEN_API_CONNECTOR, "connectors/open-api", "open_api_connector", wire.OpenApiConnectorRequest,
        wire.OpenApiConnectorVersionRequest, wire.OpenApiConnector, wire.OpenApiConnectorPage, wire.OpenApiConnectorVersionPage,
        looking_at_server(connectors.open_api_version_of), connectors.open_api_connector, connectors.open_api_version,
        {"document": _DOCUMENT, "baseUrl": "https://api.example.com"}, Right.MANAGE_CONNECTORS,
    ),
    Kind(
        DefinitionKind.CREDENTIAL_STACK, "credential-stacks", "credential_stack", wire.CredentialStackRequest,
        wire.CredentialStackVersionRequest, wire.CredentialStack, wire.CredentialStackPage, wire.CredentialStackVersionPage,
        writing_down(credential_stacks.version_of), credential_stacks.stack, credential_stacks.version,
        # Who says where a key is sent must be one who may have the key.
        {"entries": [{"name": "spare", "provider": "openai-compatible", "baseUrl": "http://127.0.0.1:11434/v1"}]}, Right.MANAGE_SECRETS,
    ),
    Kind(
        DefinitionKind.CHANNEL, "channels", "channel", wire.ChannelRequest, wire.ChannelVersionRequest, wire.Channel, wire.ChannelPage,
        wire.ChannelVersionPage, writing_down(channels.version_of), channels.channel, channels.version,
        # It makes the server talk to the outside.
        {"app": "webhook", "settings": {"url": "https://hooks.example.com/folkmoot"}, "secrets": {"signing": "signing"}},
        Right.MANAGE_CONNECTORS,
    ),
)  # fmt: skip

for _kind in KINDS:
    add_writing(_kind)
    add_listing(_kind)
    add_addressed(
        _kind,
        f"/namespaces/{{namespace_name}}/{_kind.path}/by-name/{{name}}",
        reference=Depends(by_name),
        suffix="by_name",
    )
    add_addressed(_kind, f"/{_kind.path}/by-id/{{definition_id}}", reference=Depends(by_id), suffix="by_id")
