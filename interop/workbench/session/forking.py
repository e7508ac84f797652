"""Forking a session at a moment: the request, and the protocol of forkers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Protocol

import msgspec

from ....engine.errors import InvalidInput

__all__ = ("ForkRequest", "Forker", "Forking", "is_kind")

_KIND: Final = re.compile(r"[a-z][a-z0-9-]{0,40}")


def is_kind(name: str) -> bool:
    """Whether a name can be that of a kind of agent or user."""
    return _KIND.fullmatch(name) is not None


class Forking(msgspec.Struct, frozen=True, kw_only=True):
    """The choices for a fork of a session.

    Attributes:
        agents: kinds of agents that have sessions of its task.
        users: kinds of users.
        refused: why it cannot be forked; empty if it can.
    """

    agents: Sequence[str] = ()
    users: Sequence[str] = ()
    refused: str = ""


class ForkRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The session to fork, and the changes from there on.

    Attributes:
        session: the origin.
        at: after how many of its records.
        agent: kind of agent that takes over; None for the same. Only kinds that the task knows by
            name: nothing from a page names a program, a file or an address.
        user: kind of user that takes over; None for the same.
        seed: the seed of the randomness from there on; None for the same.

    Raises:
        InvalidInput: a kind that is not a name.
    """

    session: str
    at: int
    agent: str | None = None
    user: str | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        for kind in (self.agent, self.user):
            if kind is not None and not is_kind(kind):
                raise InvalidInput(f"{kind[:60]!r} is not a known agent or user")


class Forker(Protocol):
    """Begins forks; they run by themselves."""

    async def __call__(self, request: ForkRequest, version: int) -> str:
        """Begins a fork after a version of the origin's trace, and gives its id.

        Raises:
            DuologError: the session cannot be forked there, or not so.
        """
        ...
