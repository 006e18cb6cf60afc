"""The providers of models, by name: which protocol each speaks, where it is by default, and which environment variable holds the operator's
key for it.

Deliberately absent: models (the catalogue's and the tenants'), and any adapter (`llm`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType


class Protocol(StrEnum):
    """How a provider is spoken to. PACKAGED: in its own way, through a package of its own."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"
    GOOGLE = "google"
    PACKAGED = "packaged"
    LOCAL = "local"
    SCRIPTED = "scripted"


@dataclass(frozen=True, slots=True)
class Provider:
    """`base_url` null: a model names its server itself, or needs none. `key_variable` null: no key is needed unless a model names one.

    `package`: what must be installed beside Folkmoot; null: nothing.
    """

    name: str
    base_url: str | None = None
    key_variable: str | None = None
    protocol: Protocol = Protocol.OPENAI
    package: str | None = None

    @property
    def needs_base_url(self) -> bool:
        """Whether a model must name its server."""
        return self.base_url is None and self.protocol is Protocol.OPENAI


def _packaged(name: str, base_url: str, key: str) -> Provider:
    return Provider(name, base_url, key, Protocol.PACKAGED, f"pydantic-ai-slim[{name}]")


# Held to one conformance suite: those before the empty line. The others are what the library knows of them.
PROVIDERS: Mapping[str, Provider] = MappingProxyType(
    {
        made.name: made
        for made in (
            Provider("openai", "https://api.openai.com/v1", "OPENAI_API_KEY"),
            Provider("openai-compatible"),
            Provider("anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY", Protocol.ANTHROPIC),
            Provider("google", "https://generativelanguage.googleapis.com", "GEMINI_API_KEY", Protocol.GOOGLE),
            Provider("local", protocol=Protocol.LOCAL),
            Provider("scripted", protocol=Protocol.SCRIPTED),

            Provider("alibaba", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "ALIBABA_API_KEY"),
            Provider("azure", None, "AZURE_OPENAI_API_KEY"),
            Provider("cerebras", "https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"),
            Provider("crusoe", "https://api.inference.crusoecloud.com/v1", "CRUSOE_API_KEY"),
            Provider("deepseek", "https://api.deepseek.com", "DEEPSEEK_API_KEY"),
            Provider("fireworks", "https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"),
            Provider("heroku", "https://us.inference.heroku.com/v1", "HEROKU_INFERENCE_KEY"),
            Provider("litellm"),
            Provider("moonshotai", "https://api.moonshot.ai/v1", "MOONSHOTAI_API_KEY"),
            Provider("nebius", "https://api.studio.nebius.com/v1", "NEBIUS_API_KEY"),
            Provider("ollama", "http://127.0.0.1:11434/v1"),
            Provider("openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
            Provider("ovhcloud", "https://oai.endpoints.kepler.ai.cloud.ovh.net/v1", "OVHCLOUD_API_KEY"),
            Provider("sambanova", "https://api.sambanova.ai/v1", "SAMBANOVA_API_KEY"),
            Provider("together", "https://api.together.xyz/v1", "TOGETHER_API_KEY"),
            Provider("vercel", "https://ai-gateway.vercel.sh/v1", "VERCEL_AI_GATEWAY_API_KEY"),
            Provider("vllm"),
            Provider("xai", "https://api.x.ai/v1", "XAI_API_KEY"),
            Provider("zai", "https://api.z.ai/api/paas/v4", "ZAI_API_KEY"),
            _packaged("bedrock", "https://bedrock-runtime.us-east-1.amazonaws.com", "AWS_BEARER_TOKEN_BEDROCK"),
            _packaged("cohere", "https://api.cohere.com", "CO_API_KEY"),
            _packaged("groq", "https://api.groq.com", "GROQ_API_KEY"),
            _packaged("huggingface", "https://router.huggingface.co/v1", "HF_TOKEN"),
            _packaged("mistral", "https://api.mistral.ai", "MISTRAL_API_KEY"),
        )
    }
)  # fmt: skip


# Those within this process: they have no address and take no key, but have a file.
HERE = frozenset(name for name, known in PROVIDERS.items() if known.protocol in (Protocol.LOCAL, Protocol.SCRIPTED))


def base_url(provider: str, named: str | None) -> str | None:
    """Where a model is: the server that it names, else its provider's own; null where there is neither."""
    known = PROVIDERS.get(provider)
    return named or (known.base_url if known is not None else None)


def key_variable(provider: str, named: str | None) -> str | None:
    """The environment variable with the operator's key: what the model names, else the provider's usual one; null if no key is needed."""
    known = PROVIDERS.get(provider)
    return named or (known.key_variable if known is not None else None)


def is_usual_way(provider: str, variable: str, url: str | None) -> bool:
    """Whether the operator's key is the provider's usual one, and goes to the provider's own address: what needs no leave."""
    known = PROVIDERS.get(provider)
    if known is None or variable != known.key_variable:
        return False
    return url is None or (known.base_url is not None and url.rstrip("/") == known.base_url.rstrip("/"))
