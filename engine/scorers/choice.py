"""Which scorer's stream counts if several measured the same session."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

__all__ = (
    "candidates",
    "chosen_utility",
    "last_utility",
    "preferred",
    "split_stream",
    "version_key",
)

_PARTS = re.compile(r"\d+|[^\W\d_]+")


def split_stream(stream: str) -> tuple[str, str]:
    """Name and version of the scorer that a measurement stream belongs to."""
    name, _, version = stream.rpartition("@")
    return (name, version) if name else (stream, "")


def version_key(version: str) -> tuple[tuple[int, int, str], ...]:
    """A key that sorts versions as people do: ``1.9`` before ``1.10``, ``2.0rc1`` before ``2.0``.

    Numbers compare as numbers and words as words; a word sorts before the end of the version, and
    the end before a number.
    """
    parts = [
        (2, int(part), "") if part.isdigit() else (0, 0, part.lower())
        for part in _PARTS.findall(version)
    ]
    return (*parts, (1, 0, ""))


def preferred(streams: Iterable[str], wanted: str | None) -> str | None:
    """The stream that counts, among several with measurements of the same kind.

    It depends only on the set of streams, not on the order in which they were written.

    Args:
        streams: names of measurement streams.
        wanted: a scorer's name, or ``name@version``; None for any.

    Returns:
        The exact stream if one is wanted. Otherwise the newest version of the wanted scorer, or of
        the first one in alphabetical order. None if there is no such stream.
    """
    known = list(streams)
    if wanted is None and len(known) == 1:
        return known[0]
    if wanted is not None:
        if wanted in known:
            return wanted
        known = [stream for stream in known if split_stream(stream)[0] == wanted]
    if not known:
        return None
    first = min(split_stream(stream)[0] for stream in known)
    mine = [stream for stream in known if split_stream(stream)[0] == first]
    return max(mine, key=lambda stream: (version_key(split_stream(stream)[1]), stream))


def chosen_utility(streams: Iterable[str], wanted: str | None) -> str | None:
    """The stream whose utility counts: the stream of the wanted scorer, or of the only one.

    Args:
        streams: names of the streams that hold measurements of utility.
        wanted: a scorer's name, or ``name@version``; None if no scorer was chosen.

    Returns:
        The newest of several versions of a scorer. None if there is no such stream, or if there are
        several scorers and none is wanted; see ``candidates``.
    """
    known = list(streams)
    return None if wanted is None and candidates(known) else preferred(known, wanted)


def candidates(streams: Iterable[str]) -> tuple[str, ...]:
    """The names of the scorers to choose from, in alphabetical order; empty if fewer than two."""
    names = sorted({split_stream(stream)[0] for stream in streams})
    return tuple(names) if len(names) > 1 else ()


def last_utility(values: Mapping[str, float], wanted: object) -> float | None:
    """The utility that counts among the last values of each stream; None if none does.

    Args:
        values: by stream.
        wanted: ``config["utility"]`` of the session's opening.
    """
    chosen = chosen_utility(values, wanted if isinstance(wanted, str) else None)
    return None if chosen is None else values[chosen]
