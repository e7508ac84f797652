"""A report as a table in the terminal, as Markdown, and a session's explanation."""

from __future__ import annotations

import io
import re

import pytest
from duolog.scoring.metrics import aggregate
from duolog.scoring.report import (
    Document,
    Explanation,
    Numbers,
    TerminalDocument,
    document_markdown,
    explain,
    explanation_document,
    report_document,
)
from duolog.scoring.report.summary import completeness
from duolog.scoring.trajectory.files import decode_trajectory
from duolog.scoring.trajectory.points import Point, Trajectory
from markdown_it import MarkdownIt
from rich.console import Console


def session(number: int, group: str, utilities: str, rest: str = "") -> Trajectory:
    rounds = ",".join(
        f'{{"utility": {utility}, "rating": {rating}}}'
        for utility, rating in (pair.split("/") for pair in utilities.split())
    )
    return decode_trajectory(
        f'{{"session": "s{number}", "group": {{{group}}}, "rounds": [{rounds}]{rest}}}'
    )


ONE, TWO, AUTO = '"agent": "one-stage"', '"agent": "two-stage"', '"agent": "auto"'
M, N = ', "model": "m"', ', "model": "n"'
TOKENS = ', "tokens": {"agent": 3000, "human": 1000}'
SESSIONS = [
    session(1, ONE + M, "0.4/4 0.5/2 0.8/4", TOKENS),
    session(2, ONE + M, "0.2/2 0.4/2 0.6/3", TOKENS),
    session(3, TWO + M, "0.5/5 0.6/4"),
    session(4, TWO + M, "0.7/5 0.6/1 1.0/4"),
    session(5, ONE + N, "0.1/null null/3 0.9/4"),
    session(6, ONE + N, "0.3/3 0.5/2"),
    session(7, AUTO + M, "0.55/null", ', "baseline": true'),
]


def drawn(report: Numbers, width: int, encoding: str = "utf-8") -> list[str]:
    return printed(report_document(report), width, encoding)


def printed(document: Document, width: int, encoding: str = "utf-8") -> list[str]:
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    Console(file=file, width=width).print(TerminalDocument(document))
    file.seek(0)
    return file.read().splitlines()


def report_markdown(report: Numbers) -> str:
    return document_markdown(report_document(report))


def explanation_text(found: Explanation) -> str:
    return "\n".join(printed(explanation_document(found), 100)).strip() + "\n"


@pytest.mark.parametrize("width", [60, 80, 100, 120, 140, 200])
@pytest.mark.parametrize("paper", [True, False])
def test_table_fits_its_width(width: int, paper: bool) -> None:
    report = aggregate(SESSIONS, convention="paper" if paper else "formal", bootstrap=50)
    assert max(len(line) for line in drawn(report, width)) <= width


def test_wide_table_is_one_and_narrow_table_is_several() -> None:
    report = aggregate(SESSIONS, bootstrap=50)
    wide, narrow = drawn(report, 150), drawn(report, 80)
    assert sum("Utility" in line and "Drop τ = 3" in line for line in wide) == 1
    assert sum("Utility" in line for line in narrow) == 1
    assert sum("Drop τ = 3" in line for line in narrow) == 1
    assert not any("Utility" in line and "Drop" in line for line in narrow)
    many = aggregate(SESSIONS, taus=range(1, 13), bootstrap=0)
    assert sum(line.count("Drop τ =") for line in drawn(many, 80)) == 12


def test_drops_have_no_columns_where_nobody_rated_anything() -> None:
    unrated = [session(1, ONE, "0.4/null 0.5/null"), session(2, TWO, "0.2/null")]
    lines = drawn(aggregate(unrated, bootstrap=0), 120)
    assert not any("Drop" in line for line in lines)
    assert any("No round has a progress rating" in line for line in lines)


def test_table_shows_each_number_where_it_belongs() -> None:
    lines = drawn(aggregate(SESSIONS, bootstrap=0), 140)
    head = next(line for line in lines if line.startswith("Agent"))
    assert head.split() == [
        *["Agent", "N", "Baseline", "First", "Final", "Overall"],
        *["abs.", "rel."] * 4,
    ]
    at = lines.index("model m")
    # first .4, .2; final and best .8, .6; bad from round 2, and from round 1
    assert lines[at + 1].split() == (
        "one-stage 2 0.550 0.300 0.700 0.700 0.400 133.3% "
        "-0.350 -50.0% -0.100 -14.3% 0.000 0.0%".split()
    )
    assert lines[at + 2].split()[:6] == ["two-stage", "2", "0.550", "0.600", "0.800", "0.800"]
    assert lines[at + 3] == "model n"
    assert lines[at + 4].split()[:3] == ["one-stage", "2", "–"]
    effort = lines.index(next(line for line in lines if "Effort per session" in line))
    assert lines[effort + 5].split() == ["one-stage", "3.0", "3,000", "1,000", "3.00"]
    assert lines[effort + 6].split() == ["two-stage", "2.5", "–", "–", "–"]


def test_intervals_stand_below_their_numbers() -> None:
    lines = drawn(aggregate(SESSIONS, bootstrap=200), 140)
    at = lines.index("model m")
    number, interval = lines[at + 1], lines[at + 2]
    intervals = re.findall(r"\S+ to \S+", interval)
    assert intervals[:3] == ["0.200 to 0.400", "0.600 to 0.800", "0.600 to 0.800"]
    assert interval.index("0.200 to 0.400") + 14 == number.index("0.300") + 5
    assert any("95 % bootstrap interval" in line for line in lines)


def test_notes_say_why_numbers_are_absent_and_what_is_missing() -> None:
    text = "\n".join(drawn(aggregate(SESSIONS[4:5], convention="paper", bootstrap=0), 200))
    assert "– one-stage: fewer than two sessions with user interaction" in text
    assert "1 of 3 rounds has no progress rating." in text
    unrated = session(8, ONE, "0.5/null 0.6/null")
    text = "\n".join(drawn(aggregate([unrated], bootstrap=0), 200))
    assert "No round has a progress rating, so it is unknown when a human would leave." in text
    stale = decode_trajectory('{"session": "s", "rounds": [{"utility": null, "updated": true}]}')
    text = "\n".join(drawn(aggregate([stale], bootstrap=0), 200))
    assert "1 of 1 round is stale: the output changed, and its score is missing." in text


def test_notes_are_sentences_in_singular_and_plural() -> None:
    chats = [
        Trajectory(session=f"c{k}", points=(Point(round=1),), evaluated=False, state="open")
        for k in range(2)
    ]
    broken = Trajectory(session="b", points=(Point(round=1),), baseline=True, state="failed")
    erased = [Trajectory(session=f"e{k}", state="forgotten") for k in range(2)]
    one = aggregate([chats[0], broken, erased[0]], bootstrap=0)
    for report in (one, aggregate([*chats, broken, *erased], bootstrap=0)):
        told = list(completeness(report))
        assert all(note.endswith(".") and not note[0].islower() for note in told)
        assert " ".join(told) in report_markdown(report)
    first, both = list(completeness(one)), list(completeness(report))
    assert first[0] == "1 forgotten session is left out."
    assert both[0] == "2 forgotten sessions are left out."
    assert "1 automated run broke off, and is in no mean." in first
    assert "1 session is still open." in first
    assert "2 sessions are still open." in both
    unscored = "evaluated, since no utility scorer ran, and {} in no mean of utility."
    assert f"1 session was not {unscored.format('is')}" in first
    assert f"2 sessions were not {unscored.format('are')}" in both


def test_where_all_is_forgotten_that_is_said() -> None:
    report = aggregate([Trajectory(session="e", state="forgotten")], bootstrap=0)
    assert drawn(report, 100)[-2:] == [
        "There are no sessions to report on.",
        "1 forgotten session is left out.",
    ]


def test_markdown_says_how_sessions_ended() -> None:
    text = report_markdown(aggregate([SESSIONS[0]], bootstrap=0))
    assert "| Agent | N | Finished |" in text
    assert "| one-stage | 1 | 1 (100.0%) (20.7 to 100.0%) |" in text


def test_intervals_are_announced_only_where_there_are_any() -> None:
    assert "bootstrap interval" not in report_markdown(aggregate([SESSIONS[0]], bootstrap=50))
    assert "bootstrap interval" in report_markdown(aggregate(SESSIONS, bootstrap=50))


def test_faults_of_simulated_users_stand_beside_the_numbers_that_they_distort() -> None:
    assert "Faults" not in "\n".join(drawn(aggregate(SESSIONS, bootstrap=0), 200))
    faulty = session(9, ONE + M, "0.5/4", TOKENS + ', "faults": {"leak": 2, "invention": 1}')
    text = "\n".join(drawn(aggregate([*SESSIONS, faulty], bootstrap=0), 200))
    assert "Simulated user" in text
    assert "3 in 1 of 3" in text
    assert "Simulated users were at fault in 1 session (leak: 2, invention: 1)." in text
    assert "Simulated users were at fault" in report_markdown(aggregate([faulty], bootstrap=0))


PROCESS = (
    ', "process": {"initiatives": {"ann": 4}, "human_initiatives": 4, "agent_initiatives": 6,'
    ' "initiative_entropy": 0.5, "halts": 2, "interruptions": 1, "denied": 0}'
)


@pytest.mark.parametrize("width", [60, 80, 100, 140])
def test_process_measures_have_tables_of_their_own(width: int) -> None:
    assert not any("Initiatives" in line for line in drawn(aggregate(SESSIONS), width))
    measured = session(9, ONE + M, "0.5/4", PROCESS)
    lines = drawn(aggregate([*SESSIONS, measured], bootstrap=0), width)
    assert max(len(line) for line in lines) <= width
    for title in ("Initiatives", "Confirmations", "Approvals", "Human messages", "Load", "Loops"):
        assert sum(title in line and ":" not in line for line in lines) == 1
    first = next(number for number, line in enumerate(lines) if "Initiatives" in line)
    rows = [line.split() for line in lines[first:]]
    assert ["one-stage", "1", "6.00", "4.00", "0.50"] in [row[:5] for row in rows]
    assert ["two-stage", "0", "–", "–", "–"] in [row[:5] for row in rows]
    assert any(row[:2] == ["one-stage", "1"] and "2.00 1.00" in " ".join(row) for row in rows)


def test_effort_and_hazard_have_tables_in_markdown() -> None:
    left = [
        session(n, ONE, "0.4/2 0.4/2" if n % 2 else "0.4/4 0.5/2", f'{TOKENS}, "state": "{state}"')
        for n, state in enumerate(["abandoned", "finished", "tolerance", "finished"])
    ]
    _, effort, _, hazard, notes = report_markdown(aggregate(left, bootstrap=50)).split("\n\n")
    assert effort.splitlines()[0] == "| Agent | All rounds | Agent tokens | Human tokens | Ratio |"
    assert effort.splitlines()[2] == "| one-stage | 2.0 | 3,000 | 1,000 | 3.00 |"
    assert hazard.splitlines()[0] == "| Agent | Hazard after 0 | Hazard after 1 | Hazard after 2 |"
    hazards = "| one-stage | 0.0% (0.0 to 65.8%) | 50.0% (15.0 to 85.0%) | 0.0% (0.0 to 65.8%) |"
    assert hazard.splitlines()[2] == hazards
    assert "by the number of unproductive rounds in a row" in notes
    assert "Hazard" not in report_markdown(aggregate(SESSIONS, bootstrap=0))


def test_process_measures_are_a_table_of_their_own_in_markdown() -> None:
    measured = session(9, ONE + M, "0.5/4", PROCESS)
    text = report_markdown(aggregate([measured], bootstrap=0))
    first, second, _, notes = text.split("\n\n")
    assert first.startswith("| Agent | N | First update |")
    head, rule, row = second.splitlines()
    assert head.startswith("| Agent | N | Initiatives: agent | Initiatives: human |")
    assert rule.count("|") == head.count("|") == row.count("|")
    assert row.startswith("| one-stage | 1 | 6.00 | 4.00 | 0.50 | – | – | 0.00 | 2.00 | 1.00 |")
    assert "entropy: 1 if all take" in notes


def test_only_automated_runs_get_rows_of_their_own() -> None:
    lines = drawn(aggregate([SESSIONS[6]], bootstrap=0), 100)
    assert any(line.split()[:4] == ["auto", "1", "0.550", "–"] for line in lines)
    assert drawn(aggregate([]), 80)[-1] == "There are no sessions to report on."


def test_ascii_terminals_get_ascii() -> None:
    lines = drawn(aggregate(SESSIONS, bootstrap=50), 100, encoding="ascii")
    assert any("Drop T = 1" in line for line in lines)
    assert all(line.isascii() for line in lines)


def test_no_negative_zero() -> None:
    tiny = session(9, ONE, "0.5/2 0.5001/4")
    text = "\n".join(drawn(aggregate([tiny], bootstrap=0), 140))
    assert "-0.000" not in text


def test_markdown_has_a_row_per_group() -> None:
    lines = report_markdown(aggregate(SESSIONS, bootstrap=50, taus=(1,))).splitlines()
    assert lines[0].startswith("| Model | Agent | N | Automated baseline | First update |")
    assert lines[0].endswith("| Gain abs. | Gain rel. | Drop@1 abs. | Drop@1 rel. |")
    assert {line.count("|") for line in lines[:5]} == {lines[0].count("|")}
    assert lines[2].startswith(
        "| m | one-stage | 2 | 0.550 | 0.300 (0.200 to 0.400) | 0.700 (0.600 to 0.800) |"
    )
    assert "Convention formal" in lines[-1]


def test_markdown_escapes_what_would_end_a_cell() -> None:
    odd = session(1, '"agent": "a|b"', "0.5/4")
    assert "| a\\|b |" in report_markdown(aggregate([odd], bootstrap=0))


def test_a_name_from_a_log_loads_nothing_and_links_nowhere_in_markdown() -> None:
    odd = session(1, '"agent": "![a](https://evil.example/a.png) <img src=x>"', "0.5/4")
    shown = MarkdownIt().enable("table").render(report_markdown(aggregate([odd], bootstrap=0)))
    assert "evil.example" in shown
    assert "<img" not in shown
    assert "<a " not in shown


def test_explanation_in_words() -> None:
    text = explanation_text(explain(SESSIONS[1], taus=(1, 2, 3)))
    assert text == (
        "Session s2, convention formal\n"
        "\n"
        "round  evaluated  utility  rating  run  marks\n"
        "─────────────────────────────────────────────\n"
        "    1      0.200    0.200       2    1  k', τ = 1 reached, updated, unproductive\n"
        "    2      0.400    0.400       2    2  τ = 2 reached, updated, unproductive\n"
        "    3      0.600    0.600       3       best, K, updated\n"
        "\n"
        "number    value  how\n"
        "────────────────────\n"
        "first     0.200  U at k' = 1, the first round that updates the output\n"
        "final     0.600  U at K = 3, the last round\n"
        "overall   0.600  the greatest U, first reached at round 3\n"
        "gain      0.400  overall - first\n"
        "drop@1   -0.400  τ = 1 is reached at round 1, where U = 0.200; less final, 0.600\n"
        "drop@2   -0.200  τ = 2 is reached at round 2, where U = 0.400; less final, 0.600\n"
        "drop@3    0.000  τ = 3 is never reached: nothing is lost\n"
    )


def test_explanation_of_the_papers_way() -> None:
    text = explanation_text(explain(SESSIONS[1], convention="paper", max_step=2, taus=(1, 2)))
    assert "    3      0.600    0.600       3       best, K, updated, cut from the drop\n" in text
    assert "never     0.400  U at round 2, the last of the trajectory cut to 2 rounds" in text
    assert "drop@1        –  τ = 1 is reached at round 1, and there is no row before it" in text
    assert "drop@2   -0.200  τ = 2 is reached at round 2; U = 0.200 in the row before, 1" in text


def test_explanation_of_what_has_no_numbers_and_of_silence() -> None:
    nothing = decode_trajectory('{"session": "s", "rounds": []}')
    assert "No numbers: no round and no final performance.\n" in explanation_text(explain(nothing))
    silent = decode_trajectory('{"session": "s", "rounds": [], "final": 0.25}')
    text = explanation_text(explain(silent))
    assert "one pseudo-round, worth the final performance 0.250." in text
    pending = decode_trajectory(
        '{"session": "s", "rounds": [{"utility": 0.4, "pending": true}, {"utility": null}]}'
    )
    text = explanation_text(explain(pending))
    assert "    1      0.400    0.400  pending    …  k', best, updated, holds the" in text
    assert "    2          –    0.400        –    …  K, not counted yet\n" in text
