"""A webhook: an address that gets a POST of JSON when a rule has fired."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable
from hashlib import sha256
from typing import Final
from urllib.error import HTTPError
from urllib.parse import urlsplit

from ....engine.errors import InvalidInput
from .firing import Firing

__all__ = ("webhook",)

_PATIENCE: Final = 10.0  # seconds that it has to answer


def webhook(address: str) -> Callable[[Firing], None]:
    """A function that calls a webhook. It raises OSError if the webhook rejects a firing.

    A firing has one ``id``, however often it is sent, so that a receiver can skip duplicates.

    Raises:
        InvalidInput: the address is not an HTTP address.
    """
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidInput(f"a webhook is an address of http or https, not {address!r}")

    def send(firing: Firing) -> None:
        named = f"{firing.rule}\n{firing.session}\n{firing.cause}"
        body = {
            "id": sha256(named.encode()).hexdigest()[:32],
            "rule": firing.rule,
            "session": firing.session,
            "record": firing.number,
            "position": firing.position,
        }
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(address, json.dumps(body).encode(), headers, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=_PATIENCE) as answer:
                answer.read(1)
        except HTTPError as error:  # holds the answer open
            error.close()
            raise

    return send
