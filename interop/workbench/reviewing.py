"""Reviews in the workbench: the panel of a session, adding to several sessions, and the review queue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

import msgspec
from msgspec.structs import replace
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...engine.errors import DuologError, InvalidInput, SessionNotFound
from ...engine.text import quantity
from ...scoring.display.texts import moment, shorten
from ...scoring.index.lists import SessionList
from ...scoring.index.order import BEGUN
from ...scoring.index.query import Matching, SessionQuery
from ...scoring.reviews import (
    SCALE,
    Comment,
    Rated,
    Review,
    Reviews,
    Subject,
    Tagged,
    add_review,
    check_reviewer,
    read_reviews,
)
from ..http.responses import as_json
from .access.body import decoded_body
from .access.guard import identity_of
from .access.roles import operators, readers
from .frame import page
from .links import session_link
from .markup.html import Html, Node, join, tag
from .sessions.address import parse_address
from .sessions.rows import title_of
from .sessions.searching import searched
from .state import Workbench

__all__ = ("review_panel", "review_routes")

_NAME: Final = 1000  # characters of a session's id
_AT_ONCE: Final = 500  # sessions that one request may review
_LISTED: Final = 100  # sessions that the page of the queue names


class _Asked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request to review.

    Attributes:
        sessions: ids of the sessions.
        by: name of the reviewer.
        review: what they add to each.
    """

    sessions: tuple[str, ...]
    by: str
    review: Review


_decode = msgspec.json.Decoder(_Asked).decode


def review_routes(workbench: Workbench) -> Sequence[Route]:
    """The routes."""
    routes = _Routes(workbench)
    return (
        Route("/review", operators(routes.page)),
        Route("/v1/reviews", readers(routes.panel)),
        Route("/v1/reviews/next", operators(routes.next)),
        Route("/v1/reviews/queue", operators(routes.queue)),
        Route("/v1/reviews/add", operators(routes.add), methods=["POST"]),
    )


@final
class _Routes:
    """The endpoints."""

    def __init__(self, workbench: Workbench) -> None:
        self._workbench = workbench

    async def panel(self, request: Request) -> Response:
        """The reviews of a session, as HTML."""
        session = request.query_params.get("session", "")[:_NAME]
        try:
            reviews = await read_reviews(self._workbench.log, session)
        except SessionNotFound as error:
            raise HTTPException(404, str(error)) from None
        return as_json({"html": join(_given(reviews)).text})

    async def add(self, request: Request) -> Response:
        """Adds a review to sessions; says which of them it could not be added to, and why."""
        asked = await decoded_body(request, _decode, self._workbench.limits.body)
        if not 0 < len(asked.sessions) <= _AT_ONCE:
            raise InvalidInput(
                f"a review is for 1 to {_AT_ONCE} sessions, not {len(asked.sessions):,}"
            )
        check_reviewer(asked.by)
        asked.review.check()
        failed: dict[str, str] = {}
        for session in asked.sessions:
            try:
                await add_review(self._workbench.log, session, asked.by.strip(), asked.review)
            except DuologError as error:
                if len(asked.sessions) == 1:
                    raise
                failed[session] = str(error)
        return as_json({"added": len(asked.sessions) - len(failed), "failed": failed})

    async def next(self, request: Request) -> Response:
        """The next session that a reviewer has not reviewed, after one of them; and how many are left."""
        found = await self._left(request)
        index = self._workbench.sessions
        here = index.place(request.query_params.get("here", "")[:_NAME])
        places = [place for place in found.places() if place != here]
        later = [place for place in places if here is None or place > here]
        chosen = (later or places)[:1]
        session = index.names[chosen[0]] if chosen else None
        return as_json({"session": session, "left": len(places)})

    async def queue(self, request: Request) -> Response:
        """The sessions that a reviewer has not reviewed, as HTML."""
        found = await self._left(request)
        index = self._workbench.sessions
        summaries = await index.read([*found.places(0, _LISTED)])
        rows = [tag("li", session_link(one.session, title_of(one))) for one in summaries]
        more = len(found) - len(rows)
        parts: list[Node] = [tag("ol", rows)]
        if more > 0:
            parts.append(tag("p", f"and {quantity(more, 'other session')}", class_="quiet"))
        note = f"{len(found):,} of {quantity(len(index), 'session')} to review"
        return as_json({"html": join(parts).text, "note": note, "left": len(found)})

    async def page(self, request: Request) -> Response:
        """The page of the queue."""
        workbench = self._workbench
        address = parse_address(
            (key, value) for key, value in request.query_params.multi_items() if key != "by"
        )
        conditions = [tag("span", term, class_="chip") for term, _ in address.terms()]
        contents = [
            tag(
                "div",
                tag("h1", "Review"),
                tag("span", "", id="left", role="status"),
                conditions,
                class_="list-head",
            ),
            tag(
                "p",
                "Rate and tag sessions one after another. You get each session that you have not "
                "reviewed yet.",
                class_="quiet",
            ),
            tag(
                "form",
                tag("label", "Your name", for_="reviewer"),
                tag("input", id="reviewer", name="by", maxlength=60, required=True),
                tag("button", "Review the next session", type="submit", class_="primary"),
                id="queue-form",
                class_="queue-form",
            ),
            tag("p", "", id="queue-problem", class_="problem", role="alert"),
            tag("div", id="queue", class_="queue"),
        ]
        return page(
            workbench, identity_of(request), "Review", *contents, script="queue.js", at="/review"
        )

    async def _left(self, request: Request) -> SessionList:
        given = request.query_params.multi_items()
        by = request.query_params.get("by", "").strip()
        check_reviewer(by)
        kept = [(key, value) for key, value in given if key not in ("by", "here")]
        query, _ = await searched(self._workbench, parse_address(kept))
        query = _not_by(query, by)
        found = self._workbench.lists.of(query, BEGUN)
        await found.refresh()
        return found


def _not_by(query: SessionQuery, by: str) -> SessionQuery:
    """The sessions of a query that a reviewer has not reviewed, without those that are erased."""
    mine = Matching("reviewer", (by.casefold(),), True)
    kept = Matching("state", ("forgotten",), True)
    return replace(query, reviewers=(*query.reviewers, mine), texts=(*query.texts, kept))


def review_panel(*, adds: bool) -> list[Node]:
    """The panel of a session before its script fills it; with the form for those who may add."""
    parts: list[Node] = [tag("div", id="reviews")]
    if not adds:
        return parts
    ratings = [
        tag("label", tag("input", type="radio", name="rating", value=value), value)
        for value in SCALE
    ]
    subjects = [
        tag("option", text, value=value)
        for value, text in (
            ("", "the session"),
            ("round", "this round"),
            ("record", "this record"),
        )
    ]
    form = tag(
        "form",
        tag("label", "Your name", for_="reviewer"),
        tag("input", id="reviewer", name="by", maxlength=60, required=True, autocomplete="name"),
        tag("label", "About", for_="review-about"),
        tag("select", subjects, id="review-about", name="about"),
        tag("fieldset", tag("legend", "Rating, 1 (worst) to 5 (best)"), ratings),
        tag("label", "Tags", for_="review-tags"),
        tag(
            "input",
            id="review-tags",
            name="tags",
            list="known-tags",
            autocomplete="off",
            placeholder="separated by spaces",
        ),
        tag("datalist", id="known-tags"),
        tag("label", "Comment", for_="review-comment"),
        tag("textarea", id="review-comment", name="comment", rows=2),
        tag("p", "", id="review-problem", class_="problem", role="alert"),
        tag(
            "div",
            tag("button", "Add", type="submit", class_="primary"),
            " ",
            tag("a", "Next in the queue", id="review-next", href="/review", hidden=True),
            " ",
            tag("span", "", id="review-said", role="status", class_="quiet"),
        ),
        id="review-form",
    )
    return [*parts, form]


def _given(reviews: Reviews) -> list[Node]:
    """The tags, ratings and comments of a session."""
    if not reviews:
        return [tag("p", "Nobody has reviewed this session.", class_="quiet")]
    parts: list[Node] = []
    if reviews.tags:
        parts.append(tag("p", [_tag_chip(one) for one in reviews.tags], class_="tags"))
    if reviews.ratings:
        rows = [
            tag("tr", tag("th", _by(one), scope="row"), tag("td", f"{one.rating}/5"))
            for one in reviews.ratings
        ]
        parts.append(tag("table", tag("caption", "Ratings"), tag("tbody", rows)))
    for one in reviews.comments:
        head = tag("p", _by(one), " ", tag("time", moment(one.at)), class_="quiet")
        parts.append(tag("blockquote", head, tag("p", tag("bdi", one.text)), class_="comment"))
    return parts


def _by(one: Tagged | Rated | Comment) -> Html:
    about = Subject(one.round, one.of)
    what = "" if about == Subject() else f", {about}"
    return tag("bdi", f"{shorten(one.by, 60)}{what}")


def _tag_chip(one: Tagged) -> Html:
    title = f"by {one.by}, {moment(one.at)}"
    about = {"round": one.round, "of": one.of}
    away = tag(
        "button",
        "×",
        type="button",
        class_="away",
        hidden=True,
        data_untag=one.tag,
        data_by=one.by,
        data_round=about["round"],
        data_of=about["of"],
        aria_label=f"Remove the tag {one.tag}",
    )
    who: Node = [" ", tag("small", _by(one))]
    return tag("span", tag("b", tag("bdi", one.tag)), who, away, class_="chip", title=title)
