"""Takes keys and passwords out of texts that go into logs and errors."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

__all__ = ("scrub",)

_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL", re.IGNORECASE)
_SHORTEST = 8

# What keys look like, in part or masked too: "sk-proj-ab12***89", "Bearer eyJ...", "api_key=...".
_SHAPES = (
    re.compile(r"\b(?:sk|pk|rk|gsk|xai|hf|key)[-_][\w*.\-]{6,}"),
    re.compile(r"\bAIza[\w*\-]{10,}"),
    re.compile(r"(?<=[Bb]earer )[\w*.\-~+/=]+"),
    re.compile(r"(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"),
    re.compile(
        r"((?:api[-_ ]?key|x-api-key|authorization|access[-_ ]?token|password)[\"']?\s*[:=]\s*)"
        r"(?!Bearer\b)[\"']?[^\s\"',}]+",
        re.IGNORECASE,
    ),
)


def scrub(text: str, environ: Mapping[str, str] | None = None) -> str:
    """The text with whatever is, or looks like, a secret replaced by ``[removed]``.

    Args:
        text: e.g. a provider's message, which may quote the key that it was sent.
        environ: the environment, whose values under names such as ``..._API_KEY`` are secrets.
    """
    values = os.environ if environ is None else environ
    secrets = {v for k, v in values.items() if len(v) >= _SHORTEST and _SECRET_NAME.search(k)}
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "[removed]")
    for shape in _SHAPES:
        text = shape.sub(lambda m: (m.group(1) if m.lastindex else "") + "[removed]", text)
    return text
