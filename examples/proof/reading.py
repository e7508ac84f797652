"""Reads the claims as stated out of the request."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from ...engine.errors import InvalidInput
from .proving.claims import read_claim

__all__ = ("stated_claims",)

_LINE = re.compile(r"^([A-F]): (.+)$", re.MULTILINE)


@lru_cache(maxsize=256)
def stated_claims(request: str) -> Mapping[str, str]:
    """The claims in a request, by label, without unreadable ones."""
    found: dict[str, str] = {}
    for label, text in _LINE.findall(request):
        try:
            found[label] = read_claim(text).text
        except InvalidInput:
            continue
    return found
