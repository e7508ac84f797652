"""A client of ``duolog serve`` in plain Python, to be copied into a product or another language.

    duolog serve --log telemetry.db &
    python examples/client_http.py http://127.0.0.1:8720

It records a short conversation, sends again what was not acknowledged, and follows the updates of
scoring. It needs only the standard library; DUOLOG_TOKEN holds the token, if there is one.
"""

from __future__ import annotations

import json
import os
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

__all__ = ("Duolog", "main")

Event = dict[str, Any]


class Duolog:
    """Posts events to a server and follows them.

    Args:
        address: the address of the server, e.g. ``http://127.0.0.1:8720``.
        token: its token, if it has one.
        attempts: how often to try to send a batch.
    """

    def __init__(self, address: str, token: str | None = None, attempts: int = 8) -> None:
        self._address = address.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._attempts = attempts

    def post(self, session: str, events: Sequence[Event]) -> list[Event]:
        """Records events, all or none, and only once even if they have to be sent again.

        Args:
            session: id of the session.
            events: each gets an id if it has none, so that the server recognises it.

        Returns:
            Their records.

        Raises:
            HTTPError: the server refuses them; its ``error`` and ``message`` say why.
            OSError: it could not be reached.
        """
        named = [{"id": uuid.uuid4().hex, "time": time.time(), **event} for event in events]
        body = json.dumps({"events": named}).encode()
        url = f"{self._address}/v1/sessions/{quote(session)}/events"
        headers = {**self._headers, "Content-Type": "application/json"}
        for attempt in range(1, self._attempts + 1):
            try:
                with urlopen(Request(url, body, headers), timeout=30) as answer:
                    records: list[Event] = json.load(answer)["records"]
                    return records
            except HTTPError as error:
                if error.code < 500 or attempt == self._attempts:
                    raise
            except (OSError, HTTPException):
                if attempt == self._attempts:
                    raise
            time.sleep(min(0.05 * 2**attempt, 5))  # noqa: TID251  (a script without an event loop)
        raise AssertionError("the last attempt returns or raises")

    def follow(self, session: str, after: int = 0) -> Iterator[tuple[str, Event]]:
        """The records of a session with the updates of scoring, live.

        Ends when the connection does. To continue from there, pass the ``position`` of the last
        record that was processed as ``after``.
        """
        query = urlencode({"session": session, "after": after, "updates": 1})
        with urlopen(Request(f"{self._address}/v1/stream?{query}", headers=self._headers)) as lines:
            name = ""
            for line in lines:
                field, _, value = line.decode().rstrip("\n").partition(": ")
                if field == "event":
                    name = value
                elif field == "data":
                    yield name, json.loads(value)


def said(actor: str, role: str, text: str) -> Event:
    """A message, in the form in which it is posted."""
    return {"kind": "MessageSent", "actor": actor, "role": role, "body": {"text": text}}


def main(address: str) -> None:
    """Records a conversation, and prints what follows from it."""
    log = Duolog(address, os.environ.get("DUOLOG_TOKEN"))
    session = f"conversation-{uuid.uuid4().hex[:8]}"
    people = [{"name": "ann", "role": "human"}, {"name": "bot", "role": "agent"}]
    opened = {"task": "support", "instance": "", "clock": "utc", "participants": people}
    log.post(
        session,
        [
            {"kind": "SessionOpened", "actor": "shop", "role": "environment", "body": opened},
            said("ann", "human", "Where is my parcel?"),
        ],
    )
    search = {"name": "track", "arguments": {"parcel": "7"}}
    [taken] = log.post(
        session, [{"kind": "ActionTaken", "actor": "bot", "role": "agent", "body": search}]
    )
    # An answer to another event refers to its version, which the server has assigned.
    resolved = {"action": taken["version"], "outcome": "ok", "observation": "at the depot"}
    log.post(
        session,
        [
            {"kind": "ActionResolved", "actor": "shop", "role": "environment", "body": resolved},
            said("bot", "agent", "It is at the depot, and comes tomorrow."),
            said("ann", "human", "Thank you!"),
            {
                "kind": "SessionClosed",
                "actor": "ann",
                "role": "human",
                "body": {"reason": "finished", "by": "ann"},
            },
        ],
    )
    for name, told in log.follow(session):
        kind = told["update"] if name == "update" else told["kind"]
        sys.stdout.write(f"{name:<7} {kind:<16} {told.get('effort', '')}\n")
        if kind == "SessionEnded":
            return


if __name__ == "__main__":
    main(sys.argv[1])
