"""What went wrong with a call, as a class and a sentence.

A sentence names the place and what to do, and holds no secret: a key is called by its name, a URL loses
its user part, and whatever a provider echoes of a key is masked. Deliberately absent: what is done about a failure.
"""

from __future__ import annotations

import re

from pydantic_ai import exceptions as faults

from folkmoot.domain.model_calls import FailureClass, ModelFailure
from folkmoot.llm.place import Place
from folkmoot.llm.retry_waits import told_wait
from folkmoot.vault.masks import mask

_LONGEST_QUOTE = 300
_KEY_LIKE = re.compile(r"\b(?:sk|pk|key|gsk|xai)-[A-Za-z0-9_*.-]{6,}|\bAIza[A-Za-z0-9_*.-]{6,}|Bearer\s+\S+")
_TOO_LONG = (
    "context size",
    "context length",
    "context window",
    "prompt is too long",
    "input is too long",
    "too many tokens",
    "reduce the length",
    "exceed context limit",
    "exceeds the maximum number of tokens",
)
_FILTERED = (
    "content_filter",
    "content_policy_violation",
    "responsibleaipolicyviolation",
    "content management policy",
    "blocked by content filtering policy",
)
_QUOTA = ("specified api usage limits",)
_UNSENT_PHASES = ("pool", "connect")


def failure_of(error: Exception, place: Place) -> ModelFailure:
    """The class and sentence of whatever a call raised."""
    said = _quoted(error, place)
    retry_after = getattr(error, "retry_after", None)
    failure = _class_of(error)
    if retry_after is None and failure is FailureClass.RATE_LIMITED:
        retry_after = told_wait(getattr(error, "headers", None) or {})
    return ModelFailure(
        failure, _sentence(failure, error, place, said), retry_after, is_for_this_key=_is_for_this_key(error)
    )


def may_have_counted(error: Exception) -> bool:
    """Whether the provider may have done the work, and so counted the call, though its reply is lost."""
    if isinstance(error, faults.ModelConnectionError):
        return error.phase not in _UNSENT_PHASES
    if isinstance(error, faults.ModelAPIError):
        return error.in_stream or not isinstance(error, faults.ModelHTTPError)
    return not isinstance(error, faults.UserError)


def _is_for_this_key(error: Exception) -> bool:
    """Whether another key may be let do what this one was not: a model that is not there for it, or that it may not use."""
    is_forbidden = isinstance(error, faults.ModelHTTPError) and error.status_code == 403
    is_refused = is_forbidden and isinstance(error, faults.ModelAuthenticationError)
    return is_refused or isinstance(error, faults.ModelNotFoundError)


def _class_of(error: Exception) -> FailureClass:
    text = _text_of(error).lower()
    # What the provider says comes before its status: one status stands for several things.
    if isinstance(error, faults.ContentFilterError) or any(word in text for word in _FILTERED):
        return FailureClass.CONTENT_FILTERED
    if isinstance(error, faults.ModelContextWindowExceededError):
        return FailureClass.CONTEXT_TOO_LONG
    if isinstance(error, faults.ModelRequestRejectedError) and any(words in text for words in _TOO_LONG):
        return FailureClass.CONTEXT_TOO_LONG
    if isinstance(error, faults.ModelRequestRejectedError) and any(words in text for words in _QUOTA):
        return FailureClass.QUOTA_EXHAUSTED
    if isinstance(error, faults.ModelHTTPError) and error.status_code in _OF_STATUS:
        return _OF_STATUS[error.status_code]
    if isinstance(error, faults.ModelHTTPError) and error.provider_error_code == "UNAVAILABLE":
        return FailureClass.OVERLOADED
    for kind, failure in _CLASSES:
        if isinstance(error, kind):
            return failure
    return FailureClass.INVALID_REQUEST if isinstance(error, faults.ModelHTTPError) else FailureClass.UNAVAILABLE


# Statuses that mean one thing wherever they come from.
_OF_STATUS = {408: FailureClass.TIMEOUT, 413: FailureClass.CONTEXT_TOO_LONG, 504: FailureClass.TIMEOUT}

# The first that fits counts, so a subclass stands before its base.
_CLASSES: tuple[tuple[type[Exception], FailureClass], ...] = (
    (faults.ModelAuthenticationError, FailureClass.AUTHENTICATION),
    (faults.ModelQuotaExceededError, FailureClass.QUOTA_EXHAUSTED),
    (faults.ModelRateLimitError, FailureClass.RATE_LIMITED),
    (faults.ModelOverloadedError, FailureClass.OVERLOADED),
    (faults.ModelTimeoutError, FailureClass.TIMEOUT),
    (faults.ModelRequestTimeout, FailureClass.TIMEOUT),
    (faults.ModelUnavailableError, FailureClass.UNAVAILABLE),
    (faults.ModelServerError, FailureClass.UNAVAILABLE),
    (faults.ModelConnectionError, FailureClass.UNAVAILABLE),
    (faults.ModelRequestRejectedError, FailureClass.INVALID_REQUEST),
    (faults.UserError, FailureClass.INVALID_REQUEST),
)


def _sentence(failure: FailureClass, error: Exception, place: Place, said: str) -> str:
    at = f"{place.shown_url} (model '{place.model_name}')"
    if isinstance(error, faults.ModelConnectionError) and error.phase in _UNSENT_PHASES:
        return f"{place.shown_url} cannot be reached: check the network, the address and that its server runs."
    match failure:
        case FailureClass.AUTHENTICATION:
            if not place.shown_key:
                return (
                    f"{at} asks for a key: name the environment variable that holds it in the model's apiKeyVariable."
                )
            return f"{at} refused the key from {place.shown_key}: check that it is valid and may use this model."
        case FailureClass.RATE_LIMITED:
            return f"{at} limits the rate of calls{said}."
        case FailureClass.QUOTA_EXHAUSTED:
            return f"The account behind {place.shown_key or 'this call'} has no quota left at {at}{said}."
        case FailureClass.OVERLOADED:
            return f"{at} is overloaded{said}."
        case FailureClass.CONTEXT_TOO_LONG:
            return f"The conversation is longer than the context of {at}{said}."
        case FailureClass.CONTENT_FILTERED:
            return f"{at} refused the content{said}."
        case FailureClass.TIMEOUT:
            if isinstance(error, faults.ModelHTTPError):
                return f"{at} took too long{said}."
            return f"{at} sent nothing for {place.silence_seconds:g} s."
    if isinstance(error, faults.ModelNotFoundError):
        return f"{at} does not know this model or address: check modelName and baseUrl{said}."
    if isinstance(error, faults.ModelConnectionError):
        return f"The connection to {at} broke before the reply was whole."
    if failure is FailureClass.INVALID_REQUEST:
        return f"{at} refused the request{said}."
    if isinstance(error, faults.ModelAPIError):
        return f"{at} failed{said}."
    return f"{at} sent what is no chat reply ({type(error).__name__}): check that baseUrl speaks the {place.protocol} protocol."


def _quoted(error: Exception, place: Place) -> str:
    """What the provider said, short and without the key, as the end of a sentence."""
    text = " ".join(_text_of(error).split())
    if place.key:
        text = text.replace(place.key, "***")
    text = _KEY_LIKE.sub("***", mask(text))[:_LONGEST_QUOTE].rstrip(" .")
    return f": {text}" if text else ""


def _text_of(error: Exception) -> str:
    body = getattr(error, "body", None)
    if isinstance(body, dict):
        inner = body.get("error")
        told = inner if isinstance(inner, dict) else body
        message = told.get("message") or told.get("detail") or (inner if isinstance(inner, str) else "")
        code = told.get("status") or told.get("code") or told.get("type") or ""
        return f"{message} ({code})" if code and message else str(message or code)
    status = f"status {error.status_code}" if isinstance(error, faults.ModelHTTPError) else ""
    return status or (str(error) if not isinstance(error, faults.ModelConnectionError) else "")
