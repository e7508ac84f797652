"""Review events: the tags, comments and ratings of reviewers, in the stream ``review`` of a session.

The stream stays open after the session is closed. A review changes no round, effort or utility. The
actor of each record is the reviewer. Each event is about the session, about one of its rounds
(``round``), or about a record of its trace (``of``); it is never about both.
"""

from __future__ import annotations

from .parts import Event

__all__ = ("CommentAdded", "RatingGiven", "TagAdded", "TagRemoved")


class TagAdded(Event, frozen=True):
    """A reviewer tagged a session, a round or a record.

    Attributes:
        tag: the tag, e.g. ``wrong-goal``.
        round: number of the round that it is about, by handoffs, from 1.
        of: trace version of the record that it is about.
        at: when, in seconds since the epoch (UTC), whatever the session's clock is.
    """

    tag: str
    round: int | None = None
    of: int | None = None
    at: float = 0.0


class TagRemoved(Event, frozen=True):
    """A reviewer took back a tag that they had added; the attributes are those of ``TagAdded``."""

    tag: str
    round: int | None = None
    of: int | None = None
    at: float = 0.0


class CommentAdded(Event, frozen=True):
    """A reviewer commented on a session, a round or a record.

    Attributes:
        text: the comment.
        round: see ``TagAdded``, like the others.
        of: likewise.
        at: likewise.
    """

    text: str
    round: int | None = None
    of: int | None = None
    at: float = 0.0


class RatingGiven(Event, frozen=True):
    """A reviewer rated a session, a round or a record. A later rating of the same subject by the same
    reviewer replaces it.

    Attributes:
        rating: 1 (worst) to 5 (best).
        round: see ``TagAdded``, like the others.
        of: likewise.
        at: likewise.
    """

    rating: int
    round: int | None = None
    of: int | None = None
    at: float = 0.0
