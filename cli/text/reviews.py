"""Reviews of a session as lines of text."""

from __future__ import annotations

from collections.abc import Sequence

from ...scoring.display.texts import clean, moment, one_line
from ...scoring.reviews import Comment, Rated, Reviews, Subject, Tagged

__all__ = ("review_lines",)


def review_lines(reviews: Reviews) -> Sequence[str]:
    """The tags, ratings and comments, a line or more each, with reviewer, time and subject."""
    if not reviews:
        return ["  not reviewed"]
    lines = [
        *(f"  tag {one_line(one.tag)}, {_given(one)}" for one in reviews.tags),
        *(f"  rating {one.rating}/5, {_given(one)}" for one in reviews.ratings),
    ]
    for one in reviews.comments:
        lines.append(f"  comment, {_given(one)}:")
        lines += [f"    {line}" for line in clean(one.text).splitlines()]
    return lines or [f"  reviewed by {', '.join(map(one_line, reviews.reviewers))}; nothing stands"]


def _given(one: Tagged | Rated | Comment) -> str:
    about = Subject(one.round, one.of)
    what = "" if about == Subject() else f" of {about}"
    return f"{one_line(one.by)}{what}, {moment(one.at)}"
