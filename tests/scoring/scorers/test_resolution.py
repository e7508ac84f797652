"""Resolution: the round that a person's words are about, and sessions without such words."""

from __future__ import annotations

import pytest
from duolog.engine.events import CloseReason, UtilityScored
from duolog.scoring.live import score_records
from duolog.scoring.scorers.last_words import Standing
from duolog.scoring.scorers.resolution import ResolutionUtility
from duolog.testing.records import RecordWriter, run_scorer


def chat(*lines: str, reason: CloseReason | None = "ended") -> RecordWriter:
    """A chat: the person's lines, each answered but for those that begin with a plus."""
    script = RecordWriter()
    script.opened()
    for line in lines:
        script.human(line.lstrip("+"))
        if not line.startswith("+"):
            script.agent("An answer.")
    if reason is not None:
        script.closed(reason)
    return script


async def scored(
    script: RecordWriter, scorer: ResolutionUtility | None = None
) -> list[tuple[int | None, float | None]]:
    measured = await run_scorer(scorer or ResolutionUtility(), script.records)
    return [(event.round, event.value) for event, _ in measured if isinstance(event, UtilityScored)]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (("My parcel is late.", "+Great, thank you!"), [(1, 1.0)]),
        (("My parcel is late.", "+That does not help."), [(1, 0.0)]),
        (("Where is parcel 42?", "+So where is parcel 42?"), [(1, 0.0)]),
        (("My parcel is late.", "It is number 42.", "+Thanks, bye."), [(2, 1.0)]),
        (("Hello", "It is broken.", "+Now it works."), [(1, 0.0), (2, 1.0)]),
        # Words that belong together: the later ones count.
        (("My parcel is late.", "+Thanks!", "+But it still is not here."), [(1, 1.0), (1, 0.0)]),
        # Words in between score nothing, and the last ones leave it open.
        (("My parcel is late.", "+One moment, please."), [(1, None)]),
        (("My parcel is late.", "Great, thanks.", "+And the other one?"), [(1, 1.0), (2, None)]),
        (("My parcel is late.",), [(1, None)]),
        (("+Thanks in advance!",), []),
    ],
)
async def test_what_is_said_scores_the_round_that_it_answers(
    lines: tuple[str, ...], expected: list[tuple[int | None, float | None]]
) -> None:
    assert await scored(chat(*lines)) == expected


@pytest.mark.parametrize(
    ("reason", "value"),
    [("finished", 1.0), ("abandoned", 0.0), ("tolerance", 0.0), ("limit", None), ("ended", None)],
)
async def test_how_it_was_closed_says_it_too(reason: CloseReason, value: float | None) -> None:
    assert await scored(chat("My parcel is late.", reason=reason)) == [(1, value)]


async def test_it_is_scored_while_the_chat_goes_on() -> None:
    assert await scored(chat("My parcel is late.", "Super, thanks!", reason=None)) == [(1, 1.0)]


async def test_thanks_that_nobody_answers_score_the_last_round_of_the_trajectory() -> None:
    script = chat("My parcel is late.", "It is number 42.", "+Thanks, bye.")
    for event, _ in await run_scorer(ResolutionUtility(), script.records):
        script.add(event, "resolution", "scorer", stream="resolution@1")
    points = score_records(script.records).points
    assert [point.utility for point in points][:2] == [0.0, 1.0]


async def test_words_of_another_language_take_another_function() -> None:
    def lies(text: str, before: str) -> Standing:
        return "resolved" if "danke" in text else "open"

    scorer = ResolutionUtility(lies, version="de-1")
    assert await scored(chat("Wo ist mein Paket?", "+Ah, danke"), scorer) == [(1, 1.0)]
    assert scorer.ref != ResolutionUtility().ref
