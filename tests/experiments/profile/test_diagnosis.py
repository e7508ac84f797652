"""Each planted flaw is found by its name, a good agent is not accused, and certainty says what it means."""

from __future__ import annotations

from functools import partial

import anyio
import msgspec
import pytest
from duolog.benchmarks.profiles.__main__ import EXPECTED, Tally, confusion_table, play_run
from duolog.benchmarks.profiles.characters import CHARACTERS, Character
from duolog.experiments.profile.diagnosis import KINDS, diagnose, over_problems
from duolog.experiments.profile.page import profile_document
from duolog.experiments.profile.playing import Profile
from duolog.experiments.profile.signs import Signs
from duolog.scoring.report import document_markdown


def shown(number: int, **changes: object) -> Signs:
    """The signs of a session in which nothing is wrong, with changes."""
    usual = Signs(
        session=f"s{number}",
        task="travel",
        agent="one-stage",
        user="proactive",
        problem=f"p{number}",
        seed=1,
        baseline=False,
        first=0.4,
        final=0.8,
        best=0.8,
        minutes=4.0,
        written=100.0,
        read=500.0,
        rounds=6,
        looping=0.0,
        empty=0.1,
        polished=3,
        unexplained=0.0,
        handed=0.3,
        idle=0.0,
        words=25.0,
        tail=0.1,
    )
    return msgspec.structs.replace(usual, **changes)


def test_sessions_that_end_with_the_first_output_say_nothing_of_polish() -> None:
    """A tutor's sessions end there: they do not hide that it polishes on the other task."""
    ended = [shown(number, empty=None, polished=None, first=0.5, best=0.5) for number in range(4)]
    polished = [shown(number, empty=1.0, polished=1, first=0.5, best=0.5) for number in range(4, 8)]
    assert diagnose([*ended, *polished], resamples=0).kind == "early polish"


def test_sessions_that_failed_show_no_kind() -> None:
    failed = [shown(number, failed=True, idle=1.0, waited=9) for number in range(3)]
    assert diagnose([shown(9), *failed], resamples=0).sessions == 1
    assert diagnose(failed, resamples=0).kind == "unclear"


@pytest.mark.parametrize("character", CHARACTERS)
def test_a_planted_agent_is_found_to_be_what_it_is(character: Character) -> None:
    found = anyio.run(partial(play_run, 1, character))
    assert found.kind == EXPECTED[character]


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({}, "sustained"),
        ({"looping": 0.3}, "loop"),
        ({"looping": 0.3, "empty": 1.0, "words": 400.0}, "loop"),
        ({"words": 400.0, "handed": 1.0}, "flood"),
        ({"empty": 0.95}, "early polish"),
        ({"empty": 0.9, "polished": 0}, "sustained"),
        ({"handed": 0.9}, "shifted"),
        ({"unexplained": 0.9}, "opaque"),
        ({"idle": 0.9, "waited": 3}, "plateau"),
        ({"idle": 0.9, "waited": 1}, "sustained"),
        ({"tail": 0.8, "best": 0.41}, "plateau"),
        ({"tail": 0.8}, "sustained"),
        ({"best": 0.41}, "unclear"),
    ],
)
def test_the_first_kind_that_holds_is_named(changes: dict[str, object], kind: str) -> None:
    found = diagnose([shown(number, **changes) for number in range(6)], resamples=50)
    assert (found.kind, found.certainty) == (kind, 1.0)


def test_certainty_is_the_share_of_resamples_with_the_same_answer() -> None:
    """Half of the problems show a loop far beyond the limit, the others none: one draw of six may lack it."""
    mixed = [shown(number, looping=0.25 if number % 2 else 0.0) for number in range(6)]
    found = diagnose(mixed, resamples=2000)
    assert found.kind == "loop"
    assert 0.5 < found.certainty < 0.95
    loop = found.finding("loop")
    assert loop.sign.low is not None
    assert loop.sign.high is not None
    assert loop.sign.low < loop.limit.least < loop.sign.high


def test_sessions_to_look_at_are_those_that_show_it_most() -> None:
    found = diagnose([shown(n, looping=n / 10) for n in range(6)], resamples=0)
    assert found.finding("loop").sessions == ("s5", "s4", "s3")


def test_automated_runs_are_no_evidence_and_no_sessions_are_unclear() -> None:
    found = diagnose([shown(1, looping=0.9, baseline=True)])
    assert (found.kind, found.certainty, found.findings) == ("unclear", 0.0, ())


def test_a_sign_that_no_session_shows_is_absent_and_holds_for_nothing() -> None:
    found = diagnose([shown(n, unexplained=None, empty=None) for n in range(3)], resamples=20)
    assert found.finding("opaque").sign.value is None
    assert not found.finding("opaque").holds
    assert found.kind == "sustained"


def test_a_plateau_by_its_rounds_says_so_and_names_sessions() -> None:
    """If an agent's utility is 0 from the first to the last round, it never has later turns."""
    stuck = [shown(n, first=0.0, best=0.0, final=0.0, tail=1.0, idle=None) for n in range(3)]
    found = diagnose(stuck, resamples=20)
    assert found.kind == "plateau"
    assert found.finding("plateau").sessions == ("s0", "s1", "s2")
    profile = Profile(
        subject="x",
        suite="suite-1",
        digest="d",
        published=True,
        tasks=("travel",),
        planned=3,
        played=3,
        diagnoses={"one-stage": found},
        recommendation=None,
    )
    page = document_markdown(profile_document(profile))
    assert "Evidence with one-stage: utility stays as it is in most rounds" in page
    assert "– of its later turns" not in page


def test_problems_are_drawn_and_not_sessions() -> None:
    """Ten sessions of one problem are one observation: a mean over them does not vary."""
    means = over_problems(["a"] * 10, {"x": [float(n) for n in range(10)]}, 100, 0)["x"]
    assert set(means) == {4.5}


def test_the_confusion_table_counts_precision_and_recall() -> None:
    tally = Tally.of({("loop", "loop"): 3, ("loop", "plateau"): 1, ("plateau", "plateau"): 4})
    assert (tally.precision("plateau"), tally.recall("plateau")) == (0.8, 1.0)
    assert (tally.precision("loop"), tally.recall("loop")) == (1.0, 0.75)
    assert tally.recall("opaque") is None
    rows = confusion_table(tally).splitlines()
    assert rows[0].startswith("| planted | sustained | plateau | loop |")
    assert "| loop |  | 1 | 3 |  |  |  |  |  | 1.00 | 0.75 |" in rows
    assert set(KINDS) <= {part.strip() for part in rows[0].split("|")}
