"""The key of a problem, by content.

Sessions with the same key had the same problem, whatever its name and whichever agent played it.
Pairs, clusters and curves by instance use the task and the key. A task computes the key from its
instance. The key never depends on a participant's messages.
"""

from __future__ import annotations

from collections.abc import Mapping

from . import codec
from .events import JSON, SessionOpened

__all__ = ("Posed", "derived_problem", "problem_key")

_LENGTH = 16  # hexadecimal digits


def problem_key(
    task: str,
    *,
    request: str,
    profile: JSON = None,
    truth: JSON = None,
    world: JSON = None,
    version: str = "1",
) -> str:
    """The key of an instance: a digest of all that poses the problem.

    Args:
        task: name of the task.
        request: the human's initial request, in the task's words.
        profile: the hidden profile.
        truth: the basis for judging the output.
        world: what tells apart the worlds that actions look at, e.g. the name of a data set.
        version: the version of the task; another version poses other problems.
    """
    return codec.digest([task, version, world, request, profile, truth])[:_LENGTH]


class Posed:
    """An opening without a key, until the request is known.

    Sessions that Duolog ran before there were keys recorded everything but the request in the opening. The request
    is the task's own, and the first message of the human; nothing that came later is looked at.

    Args:
        opened: the opening of such a session.
    """

    def __init__(self, opened: SessionOpened) -> None:
        self._opened = opened

    def asked(self, request: str) -> str | None:
        """The key, given the request; None if the opening does not hold the rest."""
        opened = self._opened
        human = next((one.name for one in opened.participants if one.role == "human"), None)
        if human is None or human not in opened.private:
            return None
        truth, source = opened.private.get(opened.task), opened.config.get("source")
        if source is None and isinstance(truth, Mapping):
            truth = {name: part for name, part in truth.items() if name != "name"}
        return problem_key(
            opened.task,
            request=request,
            profile=opened.private[human],
            truth=truth,
            world=None if source is None else [source, opened.instance],
        )


def derived_problem(session: str, opened: SessionOpened) -> str | Posed | None:
    """The key of a session, from its opening.

    Args:
        session: session id.
        opened: the opening.

    Returns:
        The key that was recorded, or else one that follows from the opening; ``Posed`` if it takes the request
        as well; None if nothing tells which problem it was.
    """
    if opened.problem is not None:
        return opened.problem or None
    imported = opened.config.get("imported")
    if isinstance(imported, Mapping):
        own = opened.instance not in ("", session) and opened.task != imported.get("format")
        return opened.instance if own else None
    cell = opened.config.get("cell")
    if not isinstance(cell, Mapping):
        return None
    posed = Posed(opened)
    if opened.task in opened.private:
        return posed if opened.request is None else posed.asked(opened.request)
    seed = cell.get("seed")
    return problem_key(opened.task, request=opened.instance, world=seed)
