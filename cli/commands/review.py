"""``duolog review``: tags, comments and ratings of reviewers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from .. import options
from ..arguments import choices, example
from ..lookup import existing_log, find_session
from ..output import print_json, print_text
from ..root import app
from ..runtime import run

if TYPE_CHECKING:
    from ...scoring.reviews import Reviews

__all__ = ("review_command",)


@app.command(
    "review",
    short_help="Adds tags, comments and ratings to sessions, or lists them.",
    epilog=example(
        "duolog review demo.db travel-3-two-stage --tag wrong-goal --rating 2 --reviewer anna",
        'duolog review demo.db travel-3-two-stage --round 2 --comment "It asks again." --reviewer anna',
        "duolog review demo.db travel-3-two-stage --untag wrong-goal --reviewer anna",
        "duolog review demo.db travel-3-two-stage",
        "duolog sessions demo.db reviewer!=anna",
        "duolog report demo.db --group-by tag",
        note="Reviews are events in the stream review of the session, which stays open after its close. "
        "They change no round, effort or utility.",
    ),
)
def review_command(
    log: options.LogToRead,
    sessions: Annotated[list[str], typer.Argument(metavar="SESSION", help="Ids of the sessions.")],
    reviewer: Annotated[
        str | None, typer.Option(metavar="NAME", help="Name of the reviewer.")
    ] = None,
    tag: Annotated[
        str | None, typer.Option(metavar="TAGS", help="Tags to add, separated by commas.")
    ] = None,
    untag: Annotated[
        str | None,
        typer.Option(metavar="TAGS", help="Tags of this reviewer to remove, separated by commas."),
    ] = None,
    comment: Annotated[str, typer.Option(metavar="TEXT", help="Comment to add.")] = "",
    rating: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            max=5,
            help="Rating from 1 (worst) to 5 (best); a later rating replaces it.",
        ),
    ] = None,
    round_: Annotated[
        int | None,
        typer.Option("--round", metavar="N", help="Number of the round that the review is about."),
    ] = None,
    record: Annotated[
        int | None,
        typer.Option(metavar="N", help="Number of the record that the review is about."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the reviews of each session as JSON.")
    ] = False,
) -> None:
    """Adds what a reviewer says about sessions, and lists the reviews of these sessions.

    Without a tag, comment or rating, it only lists them.
    """
    from ...engine.errors import InvalidInput
    from ...scoring.reviews import Review, add_review, read_reviews

    review = Review(
        tags=tuple(choices(tag, "--tag")) if tag is not None else (),
        removed=tuple(choices(untag, "--untag")) if untag is not None else (),
        comment=comment,
        rating=rating,
        round=round_,
        of=record,
    )
    adds = review != Review(round=round_, of=record)
    if adds and reviewer is None:
        raise InvalidInput("say who reviews: --reviewer NAME")
    if adds:
        review.check()
    elif (round_, record) != (None, None):
        raise InvalidInput("--round and --record say what a tag, comment or rating is about")
    elif reviewer is not None:
        raise InvalidInput("--reviewer is for adding: give --tag, --untag, --comment or --rating")

    async def main() -> dict[str, Reviews]:
        async with existing_log(log) as opened:
            found = [(await find_session(opened, one)).session for one in sessions]
            reviews = {}
            for session in dict.fromkeys(found):
                if adds and reviewer is not None:
                    reviews[session] = await add_review(opened, session, reviewer, review)
                else:
                    reviews[session] = await read_reviews(opened, session)
            return reviews

    reviews = run(main)
    if as_json:
        print_json(reviews)
        return
    from ..text.reviews import review_lines

    for session, some in reviews.items():
        print_text("\n".join([session, *review_lines(some)]) + "\n")
