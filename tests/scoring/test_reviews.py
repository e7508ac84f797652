"""Reviews: tags, comments and ratings are events that change no measurement."""

from __future__ import annotations

from pathlib import Path

import pytest
from duolog.engine.errors import InvalidInput, SessionNotFound
from duolog.engine.events import CommentAdded
from duolog.engine.log.contract import EventLog
from duolog.engine.log.open import open_log
from duolog.engine.records import REVIEW, Draft
from duolog.scoring.columns.log import folded
from duolog.scoring.columns.rows import SessionRow
from duolog.scoring.comparison.agreement import review_agreement
from duolog.scoring.index.query import parse_query
from duolog.scoring.index.select import select
from duolog.scoring.reviews import Comment, Rated, Review, Reviews, Tagged, add_review, read_reviews
from duolog.testing.sessions import put_records
from workbench import story

HIDDEN = "hidden-word"


async def found(log: EventLog, *terms: str) -> list[str]:
    return [one.session async for one in select(log, parse_query(terms))]


async def put(log: EventLog, *names: str) -> None:
    for name in names:
        script = story(name, [1, 4])
        script.closed()
        await put_records(log, script.records)


async def test_a_closed_session_takes_reviews_and_no_measurement_changes() -> None:
    async with open_log("memory://") as log:
        await put(log, "s")
        [before] = [one async for one in folded(log)]
        await add_review(
            log, "s", "anna", Review(tags=("slow", "wrong-goal"), rating=2), now=lambda: 5
        )
        await add_review(log, "s", "ben", Review(tags=("slow",), rating=5), now=lambda: 6)
        await add_review(log, "s", "anna", Review(rating=1, comment=" Too slow. ", round=2))
        reviews = await add_review(log, "s", "anna", Review(removed=("wrong-goal",), rating=3))
        assert reviews.tags[0] == Tagged(by="anna", tag="slow", at=5)
        assert reviews.names == ("slow",)
        assert reviews.rating == 4.0
        assert [(one.by, one.rating, one.round) for one in reviews.ratings] == [
            ("ben", 5, None),
            ("anna", 1, 2),
            ("anna", 3, None),
        ]
        assert [(one.by, one.text, one.round) for one in reviews.comments] == [
            ("anna", "Too slow.", 2)
        ]
        [after] = [one async for one in folded(log)]
        assert after.rounds == before.rounds
        row = after.session
        assert (row.tags, row.reviewers, row.review_rating, row.comments) == (
            ("slow",),
            ("anna", "ben"),
            4.0,
            1,
        )
        changed = {"tags", "reviewers", "review_rating", "comments"}
        for name in set(SessionRow.__struct_fields__) - changed:
            assert getattr(row, name) == getattr(before.session, name), name


async def test_what_stands_already_is_not_recorded_again() -> None:
    async with open_log("memory://") as log:
        await put(log, "s")
        review = Review(tags=("slow",), rating=2)
        for _ in range(2):
            await add_review(log, "s", "anna", review)
        assert len([record async for record in log.read("s", stream=REVIEW)]) == 2


@pytest.mark.parametrize(
    ("review", "says"),
    [
        (Review(), "needs a tag, a comment or a rating"),
        (Review(comment="  "), "needs a tag"),
        (Review(rating=6), "1 to 5, not 6"),
        (Review(tags=("two words",)), "'two words'"),
        (Review(tags=("a,b",)), "without commas"),
        (Review(tags=("none",)), "not 'none'"),
        (Review(tags=("x",), round=1, of=1), "not about both"),
        (Review(tags=("x",), round=9), "rounds 1 to 3, not 9"),
        (Review(tags=("x",), of=99), "not 99"),
        (Review(removed=("slo",)), "did you mean 'slow'"),
    ],
)
async def test_a_review_that_makes_no_sense_is_refused(review: Review, says: str) -> None:
    async with open_log("memory://") as log:
        await put(log, "s")
        await add_review(log, "s", "anna", Review(tags=("slow",)))
        with pytest.raises(InvalidInput, match=says):
            await add_review(log, "s", "anna", review)
        with pytest.raises(SessionNotFound):
            await add_review(log, "other", "anna", Review(rating=1))
        with pytest.raises(InvalidInput, match="name"):
            await add_review(log, "s", " ", Review(rating=1))


async def test_sessions_are_found_by_what_reviewers_added() -> None:
    async with open_log("memory://") as log:
        await put(log, "a", "b", "c")
        await add_review(log, "a", "anna", Review(tags=("slow", "rude"), rating=2))
        await add_review(log, "b", "ben", Review(tags=("slow",)))
        assert await found(log, "tag=slow") == ["a", "b"]
        assert await found(log, "tag=RUDE,x") == ["a"]
        assert await found(log, "tag!=slow") == ["c"]
        assert await found(log, "tag=none") == ["c"]
        assert await found(log, "reviewer!=anna") == ["b", "c"]
        assert await found(log, "reviewer=none") == ["c"]
        assert await found(log, "rated=..2") == ["a"]
        assert await found(log, "rated=none") == ["b", "c"]


async def test_forgetting_erases_reviews(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with open_log(f"sqlite:///{path}") as log:
        await put(log, "s")
        review = Review(tags=(HIDDEN,), comment=f"this is the {HIDDEN}")
        await add_review(log, "s", "anna", review)
        assert await found(log, f"tag={HIDDEN}") == ["s"]  # and the rows that hold it are kept
        assert (await log.forget("s")).compacted
        assert await read_reviews(log, "s") == Reviews()
        with pytest.raises(InvalidInput, match="forgotten"):
            await add_review(log, "s", "anna", Review(rating=1))
        files = [path, path.with_name("a.db-wal")]
        raw = b"".join([file.read_bytes() for file in files if file.exists()])
    assert HIDDEN.encode() not in raw


async def test_the_log_redacts_reviews_as_other_events() -> None:
    def redact(draft: Draft) -> Draft:
        if isinstance(draft.event, CommentAdded):
            return Draft(CommentAdded("[removed]"), draft.actor, draft.role, draft.time)
        return draft

    async with open_log("memory://", redact=redact) as log:
        await put(log, "s")
        reviews = await add_review(log, "s", "anna", Review(comment="my number is 12"))
        assert reviews.comments == (Comment(by="anna", text="[removed]"),)


async def test_keys_are_recorded_in_no_review() -> None:
    async with open_log("memory://") as log:
        await put(log, "s")
        key = "sk-proj-" + "aB3" * 16
        reviews = await add_review(log, "s", "anna", Review(comment=f"it printed {key} twice"))
        [comment] = reviews.comments
        assert "aB3" not in comment.text
        assert comment.text.endswith(" twice")


def test_reviewers_agree_as_far_as_calculated_by_hand() -> None:
    # Tag x: both, only anna, neither, neither. p_o = 3/4, p_e = 1/2 * 1/4 + 1/2 * 3/4 = 1/2, κ = 1/2.
    def both(session: str, anna: bool, ben: bool, ratings: tuple[int, int]) -> Reviews:
        given = [by for by, has in (("anna", anna), ("ben", ben)) if has]
        return Reviews(
            tuple(Tagged(by=by, tag="x") for by in given),
            tuple(Rated(by=by, rating=r) for by, r in zip(("anna", "ben"), ratings, strict=True)),
            (),
            ("anna", "ben"),
        )

    reviews = {
        "1": both("1", True, True, (1, 1)),
        "2": both("2", True, False, (2, 3)),
        "3": both("3", False, False, (5, 5)),
        "4": both("4", False, False, (4, 4)),
        "5": Reviews((), (Rated(by="anna", rating=1),), (), ("anna",)),
    }
    agreed = review_agreement(reviews, resamples=0)
    [pair] = agreed.tags["x"].pairs
    assert pair.kappa.value == pytest.approx(0.5)
    assert pair.confusion == ((2, 0), (1, 1))
    assert (agreed.ratings.rounds, agreed.ratings.sessions) == (4, 4)
    assert agreed.ratings.pairs[0].equal == 0.75
