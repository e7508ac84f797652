"""Reviews: the tags, comments and ratings that reviewers give to sessions, their rounds and records.

They are events of the stream ``review`` of a session, which stays open after the close. A tag counts
until its reviewer removes it. If a reviewer rates one subject several times, the last
rating counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeAlias, final

import msgspec

from ..engine.errors import InvalidInput, VersionConflict
from ..engine.events import CommentAdded, RatingGiven, TagAdded, TagRemoved
from ..engine.log.contract import EventLog
from ..engine.log.summary import FORGOTTEN
from ..engine.records import REVIEW, Draft, Record
from ..engine.rounds import RoundProjector
from ..engine.text import suggestion

__all__ = (
    "SCALE",
    "Comment",
    "Rated",
    "Review",
    "ReviewFold",
    "Reviews",
    "Subject",
    "Tagged",
    "add_review",
    "check_reviewer",
    "read_reviews",
    "units_of",
)

SCALE: Final = (1, 2, 3, 4, 5)
"""The ratings that a reviewer or a judge can give, the worst first."""

_LONGEST: Final = 60  # characters of a tag, and of the name of a reviewer
_BARRED: Final = frozenset(",*=<>!\"'")
_TRIES: Final = 5  # appends, if other reviewers write at the same time

_Event: TypeAlias = TagAdded | TagRemoved | CommentAdded | RatingGiven


class Subject(NamedTuple):
    """The subject of a review: the session, or one of its rounds or records.

    Attributes:
        round: number of a round; None if it is not about one.
        of: trace version of a record; None if it is not about one.
    """

    round: int | None = None
    of: int | None = None

    def __str__(self) -> str:
        if self.round is not None:
            return f"round {self.round}"
        return "session" if self.of is None else f"record {self.of}"


class Tagged(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tag that was not removed.

    Attributes:
        by: the reviewer.
        tag: the tag.
        round: number of the round that it is about.
        of: trace version of the record that it is about.
        at: when it was added, in seconds since the epoch (UTC).
    """

    by: str
    tag: str
    round: int | None = None
    of: int | None = None
    at: float = 0.0


class Comment(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A comment; the attributes are those of ``Tagged``, with a text in place of the tag."""

    by: str
    text: str
    round: int | None = None
    of: int | None = None
    at: float = 0.0


class Rated(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The current rating of a reviewer; the attributes are those of ``Tagged``, with a rating of 1
    to 5 in place of the tag.
    """

    by: str
    rating: int
    round: int | None = None
    of: int | None = None
    at: float = 0.0


class Reviews(msgspec.Struct, frozen=True, omit_defaults=True):
    """The reviews of one session, in the order in which they came.

    Attributes:
        tags: the tags that were not removed.
        ratings: the ratings that count.
        comments: all comments.
        reviewers: everyone who ever reviewed the session, in alphabetical order.
    """

    tags: tuple[Tagged, ...] = ()
    ratings: tuple[Rated, ...] = ()
    comments: tuple[Comment, ...] = ()
    reviewers: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.reviewers)

    @property
    def names(self) -> tuple[str, ...]:
        """The different tags, in alphabetical order."""
        return tuple(sorted({one.tag for one in self.tags}))

    @property
    def rating(self) -> float | None:
        """The mean rating of the whole session over its reviewers; None without a rating."""
        given = [one.rating for one in self.ratings if one.round is None and one.of is None]
        return sum(given) / len(given) if given else None


class Review(msgspec.Struct, frozen=True, kw_only=True):
    """What one reviewer adds at once.

    Attributes:
        tags: tags to add.
        removed: tags of the same reviewer to remove.
        comment: a comment; empty for none.
        rating: 1 to 5; None for none.
        round: number of the round that it is about, by handoffs.
        of: trace version of the record that it is about.
    """

    tags: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    comment: str = ""
    rating: int | None = None
    round: int | None = None
    of: int | None = None

    def check(self) -> None:
        """Checks what can be checked without the session.

        Raises:
            InvalidInput: it says nothing, or a part of it cannot be recorded.
        """
        if not (self.tags or self.removed or self.comment.strip() or self.rating is not None):
            raise InvalidInput("a review needs a tag, a comment or a rating")
        for tag in (*self.tags, *self.removed):
            _check_tag(tag)
        if self.rating is not None and self.rating not in SCALE:
            raise InvalidInput(f"a rating is a whole number from 1 to 5, not {self.rating}")
        if self.round is not None and self.of is not None:
            raise InvalidInput("a review is about a round or a record, not about both")


@final
class ReviewFold:
    """Folds the records of a session into its reviews; records of other streams change nothing."""

    def __init__(self) -> None:
        self._tags: dict[tuple[str, Subject, str], float] = {}
        self._ratings: dict[tuple[str, Subject], tuple[int, float]] = {}
        self._comments: list[Comment] = []
        self._reviewers: set[str] = set()

    def feed(self, record: Record) -> None:
        """Takes the next record.

        Raises:
            CodecError: its body is damaged.
        """
        if record.stream != REVIEW:
            return
        event, by = record.event, record.actor
        if not isinstance(event, TagAdded | TagRemoved | CommentAdded | RatingGiven):
            return
        about = Subject(event.round, event.of)
        self._reviewers.add(by)
        match event:
            case TagAdded(tag=tag):
                self._tags.setdefault((by, about, tag), event.at)
            case TagRemoved(tag=tag):
                self._tags.pop((by, about, tag), None)
            case RatingGiven(rating=rating):
                self._ratings.pop((by, about), None)
                self._ratings[by, about] = rating, event.at
            case CommentAdded(text=text):
                comment = Comment(by=by, text=text, round=about.round, of=about.of, at=event.at)
                self._comments.append(comment)

    @property
    def reviews(self) -> Reviews:
        """The reviews so far."""
        if not self._reviewers:
            return _NONE
        return Reviews(
            tuple(
                Tagged(by=by, tag=tag, round=about.round, of=about.of, at=at)
                for (by, about, tag), at in self._tags.items()
            ),
            tuple(
                Rated(by=by, rating=rating, round=about.round, of=about.of, at=at)
                for (by, about), (rating, at) in self._ratings.items()
            ),
            tuple(self._comments),
            tuple(sorted(self._reviewers)),
        )


_NONE: Final = Reviews()


async def read_reviews(log: EventLog, session: str) -> Reviews:
    """The reviews of one session, as of now.

    Raises:
        SessionNotFound: the log has no such session.
        LogError: the log cannot be read.
    """
    await log.summary(session)
    return (await _read(log, session))[0]


async def add_review(
    log: EventLog,
    session: str,
    by: str,
    review: Review,
    *,
    now: Callable[[], float] = time.time,
) -> Reviews:
    """Records what a reviewer adds to a session, closed or open, and returns all of its reviews.

    A tag that is there already, and a rating that counts already, is not recorded again.

    Args:
        log: the log.
        session: session id.
        by: the reviewer's name.
        review: what they add.
        now: the time in seconds since the epoch.

    Raises:
        InvalidInput: the review cannot be recorded: it says nothing, names a round or record that the
            session does not have, or removes a tag that this reviewer did not add; or the session was
            forgotten.
        SessionNotFound: the log has no such session.
        LogError: the log cannot be read or written.
    """
    from ..engine.redacting import redact_secrets  # readers need none of its patterns

    check_reviewer(by)
    review.check()
    summary = await log.summary(session)
    if summary.state == FORGOTTEN:
        raise InvalidInput(f"session {session!r} was forgotten: there is nothing left to review")
    await _check_subject(log, session, review, summary.version)
    for tries_left in reversed(range(_TRIES)):
        reviews, version = await _read(log, session)
        drafts = [
            redact_secrets(Draft(event, by, "scorer", summary.last))
            for event in _events(by, review, reviews, now())
        ]
        if not drafts:
            return reviews
        try:
            await log.append(session, drafts, stream=REVIEW, expected_version=version)
            break
        except VersionConflict:  # another reviewer was faster
            if not tries_left:
                raise
    return (await _read(log, session))[0]


def check_reviewer(name: str) -> None:
    """Checks the name of a reviewer.

    Raises:
        InvalidInput: it is empty, too long, or not on one line.
    """
    if not name.strip() or len(name) > _LONGEST or not name.isprintable():
        raise InvalidInput(
            f"a reviewer's name has 1 to {_LONGEST} characters on one line, not {name[:80]!r}"
        )


def _check_tag(tag: str) -> None:
    if (
        not 0 < len(tag) <= _LONGEST
        or not tag.isprintable()
        or _BARRED.intersection(tag)
        or tag.split() != [tag]
        or tag.casefold() == "none"
    ):
        raise InvalidInput(
            f"a tag is one word of 1 to {_LONGEST} characters, such as wrong-goal, without commas, "
            f"quotes, or any of * = < > !, and not 'none'; not {tag[:80]!r}"
        )


async def _check_subject(log: EventLog, session: str, review: Review, version: int) -> None:
    if review.of is not None and not 1 <= review.of <= version:
        raise InvalidInput(f"session {session!r} has records 1 to {version}, not {review.of}")
    if review.round is not None:
        projector = RoundProjector()
        async for record in log.read(session):
            projector.feed(record)
        if not 1 <= review.round <= projector.number:
            raise InvalidInput(
                f"session {session!r} has rounds 1 to {projector.number}, not {review.round}"
            )


async def _read(log: EventLog, session: str) -> tuple[Reviews, int]:
    """The reviews of a session, and the version of the stream that holds them."""
    fold, version = ReviewFold(), 0
    async for record in log.read(session, stream=REVIEW):
        fold.feed(record)
        version = record.version
    return fold.reviews, version


def _events(by: str, review: Review, before: Reviews, at: float) -> list[_Event]:
    """The events that record a review, given those before it."""
    number, of = review.round, review.of
    about = Subject(number, of)
    mine = {one.tag for one in before.tags if (one.by, one.round, one.of) == (by, *about)}
    found: list[_Event] = []
    for tag in dict.fromkeys(review.removed):
        if tag not in mine:
            raise InvalidInput(
                f"{by} has not added the tag {tag!r} to this {about}{suggestion(tag, mine)}"
            )
        found.append(TagRemoved(tag=tag, round=number, of=of, at=at))
    new = [tag for tag in dict.fromkeys(review.tags) if tag not in mine]
    found += [TagAdded(tag=tag, round=number, of=of, at=at) for tag in new]
    rated = {(one.by, one.round, one.of): one.rating for one in before.ratings}
    if review.rating is not None and rated.get((by, *about)) != review.rating:
        found.append(RatingGiven(rating=review.rating, round=number, of=of, at=at))
    if comment := review.comment.strip():
        found.append(CommentAdded(text=comment, round=number, of=of, at=at))
    return found


def units_of(
    reviews: Mapping[str, Reviews],
) -> tuple[
    dict[str, list[dict[str, int]]],
    dict[str, dict[str, list[dict[str, int]]]],
]:
    """What reviewers can agree on: by session, the ratings of each subject by reviewer; and the same by
    tag, with 1 for a session without it and 2 for one with it.

    A reviewer of a session who has not added a tag is taken to say that it does not apply. Only tags of
    a whole session are compared.
    """
    ratings: dict[str, list[dict[str, int]]] = {}
    tags: dict[str, dict[str, list[dict[str, int]]]] = {}
    names = sorted({one.tag for some in reviews.values() for one in some.tags})
    for session, some in reviews.items():
        by_subject: dict[Subject, dict[str, int]] = {}
        for rated in some.ratings:
            by_subject.setdefault(Subject(rated.round, rated.of), {})[rated.by] = rated.rating
        ratings[session] = list(by_subject.values())
        for name in names:
            having = {
                one.by
                for one in some.tags
                if one.tag == name and one.round is None and one.of is None
            }
            given = {by: 2 if by in having else 1 for by in some.reviewers}
            tags.setdefault(name, {})[session] = [given]
    return ratings, tags
