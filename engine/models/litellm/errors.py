"""Converts LiteLLM's errors to Duolog's, and removes secrets from their messages."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime

from ...errors import (
    ModelBadReply,
    ModelDenied,
    ModelError,
    ModelRateLimited,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
)
from ...redaction import redact, secrets_in

__all__ = ("model_error", "retry_after")

# Errors are classified by class name, so that this does not import LiteLLM; the first match of the
# error or its base classes counts. LiteLLM derives its classes from those of the OpenAI client.
_DENIED = (
    "AuthenticationError",
    "PermissionDeniedError",
    "NotFoundError",
    "PaymentRequiredError",
    "LiteLLMUnknownProvider",
    "UnsupportedParamsError",
    "BudgetExceededError",
)
_REFUSED = ("BadRequestError", "UnprocessableEntityError", "GuardrailRaisedException")
_TIMEOUT = ("Timeout", "APITimeoutError")
_RATE_LIMITED = ("RateLimitError",)
_UNREADABLE = (
    "JSONDecodeError",
    "UnicodeDecodeError",
    "ClientPayloadError",
    "RemoteProtocolError",
    "APIResponseValidationError",
    "JSONSchemaValidationError",
)
_UNAVAILABLE = ("APIError", "OpenAIError")

# Messages of errors that providers report under the class of another error.
_NO_CREDIT = re.compile(
    r"insufficient_quota|exceeded your current quota|credit balance", re.IGNORECASE
)
_NO_KEY = re.compile(r"Missing credentials|Missing [\w ]*API key", re.IGNORECASE)
_KEY_VARIABLE = re.compile(r"\b[A-Z][A-Z0-9_]*_API_KEY\b")
_EXAMPLES = "anthropic/claude-sonnet-4-5 or ollama_chat/llama3.3"
_NO_PROVIDER = re.compile(r"LLM Provider NOT provided", re.IGNORECASE)
_NO_COMPLETION = re.compile(
    r"provider returned 'choices'|Invalid response object|choices", re.IGNORECASE
)

_PREFIXES = re.compile(r"^(?:(?:litellm\.)?\w+(?:Error|Exception|Timeout)(?::| -) )+")

_TRACEBACK = "Traceback (most recent call last):"

_LONGEST = 500
_LONGEST_READ = 20_000  # of a message, so that reading it costs little


def model_error(
    error: BaseException, model: str, parameters: Mapping[str, object] | None = None
) -> ModelError:
    """The Duolog error for an error that a model call raised.

    An unknown error counts as ``ModelUnavailable``, so the call is retried a few times.

    Args:
        error: the error raised.
        model: the model's name in the request.
        parameters: the parameters of the call; their secrets are removed from the error's message.
    """
    names = {cls.__name__ for cls in type(error).__mro__}
    text = str(error).partition(_TRACEBACK)[0]  # LiteLLM puts some into the text of errors
    said = _PREFIXES.sub("", " ".join(text.split()))
    text = redact(f"{model!r}: {said[:_LONGEST_READ]}", secrets_in(parameters or {}))
    if len(text) > _LONGEST:
        text = text[:_LONGEST] + "..."
    if _NO_KEY.search(said):
        return ModelDenied(_no_key(model, said))
    headers = _headers(error)
    if names.intersection(_RATE_LIMITED):
        if _NO_CREDIT.search(said):
            return ModelDenied(text)
        return ModelRateLimited(text, retry_after(headers, time.time()))
    if names.intersection(_TIMEOUT):
        return ModelTimeout(text)
    if _NO_PROVIDER.search(said):
        return ModelDenied(
            f"unknown model {model!r}; names begin with a provider, as in {_EXAMPLES}"
        )
    if names.intersection(_DENIED):
        return ModelDenied(text)
    if names.intersection(_REFUSED):
        return ModelRefused(text)
    causes = {cls.__name__ for cause in _chain(error) for cls in type(cause).__mro__}
    if causes.intersection(_UNREADABLE) or _NO_COMPLETION.search(said):
        return ModelBadReply(text)
    if names.intersection(_UNAVAILABLE):
        return ModelUnavailable(text, retry_after(headers, time.time()))
    return ModelUnavailable(f"{type(error).__name__}: {text}")


def _no_key(model: str, said: str) -> str:
    """What to do about a missing API key; a provider's own advice is for its own library."""
    found = _KEY_VARIABLE.search(said)
    variable = found[0] if found is not None else "the provider's API key"
    return f"no API key for {model}; set {variable} in the environment"


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds that a response asks to wait: ``retry-after-ms``, else ``Retry-After``, which is a
    number of seconds or a date (RFC 9110, 10.2.3). None if it is missing or unclear.

    Args:
        headers: with lower-case names.
        now: UTC epoch seconds.
    """
    for name, factor in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            seconds = float(value) * factor
        except ValueError:
            try:
                seconds = parsedate_to_datetime(value).timestamp() - now
            except ValueError:
                continue
        if math.isfinite(seconds):
            return max(0.0, seconds)
    return None


def _headers(error: BaseException) -> dict[str, str]:
    """The headers of the provider's response, from the first of LiteLLM's places that has any."""
    response = getattr(error, "response", None)
    for headers in (
        getattr(error, "litellm_response_headers", None),
        getattr(response, "headers", None),
    ):
        if isinstance(headers, Mapping) and headers:
            return {str(name).lower(): str(value) for name, value in headers.items()}
    return {}


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__ or cause.__context__
