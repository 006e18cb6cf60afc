"""What a run is given when it starts: inputs of prompts, of tools' calls and headers. Deliberately absent: values."""

from enum import StrEnum
from typing import Literal

from folkmoot.wire.definitions.links import LinkText, OperationLinkRequest, Scheme
from folkmoot.wire.formats import Flag, Name, RequestShape, ResponseShape, Text, Uuid

ConnectorBindingType = Literal["Request", "Path", "Query", "Header"]


class PromptInputType(StrEnum):
    """What the text of an input's value must be."""

    STRING = "String"
    NUMBER = "Number"
    INTEGER = "Integer"
    BOOLEAN = "Boolean"
    JSON = "Json"
    DATE = "Date"


class ConnectorAuthenticationSecretInput(ResponseShape):
    """An input whose value is a secret's id; for one agent's calls, or for all where `agentId` is null."""

    external_operation_id: Uuid
    agent_id: Uuid | None
    default_secret_id: Uuid | None
    header_name: str
    name: str
    description: str | None
    is_required: bool
    scheme: str | None


class ConnectorBindingInput(ResponseShape):
    """An input whose value goes into a tool's calls, to `target`; the model neither sees nor chooses it."""

    external_operation_id: Uuid
    agent_id: Uuid | None
    target: str
    default_value: str | None
    type: ConnectorBindingType
    name: str
    description: str | None
    is_required: bool


class PromptInput(ResponseShape):
    """An input that prompts use as `%%name%%`."""

    data_type: PromptInputType
    name: str
    description: str | None
    is_required: bool


class ConnectorAuthenticationSecretInputRequest(OperationLinkRequest):
    """An input whose value is a secret's id; for one agent's calls, or for all where none is named. Agent and secret by id, or
    by name as `agent` and `defaultSecret`."""

    agent_id: Uuid | None = None
    agent: LinkText | None = None
    default_secret_id: Uuid | None = None
    default_secret: LinkText | None = None
    header_name: Name
    scheme: Scheme | None = None
    name: Name
    description: Text | None = None
    is_required: Flag = False


class ConnectorBindingInputRequest(OperationLinkRequest):
    """An input whose value goes into a tool's calls, to `target`; the model neither sees nor chooses it."""

    agent_id: Uuid | None = None
    agent: LinkText | None = None
    target: Name
    default_value: Text | None = None
    type: ConnectorBindingType
    name: Name
    description: Text | None = None
    is_required: Flag = False


class PromptInputRequest(RequestShape):
    """An input that prompts use as `%%name%%`."""

    data_type: PromptInputType = PromptInputType.STRING
    name: Name
    description: Text | None = None
    is_required: Flag = False
