"""Which questions of a message count, and which of them the reply answers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from duolog.benchmarks.overlooked import Asked, main, shares
from duolog.scoring.columns.table import Floats


def counts(message: Asked) -> Floats:
    return np.array(message.counts, dtype=np.float64)


def test_a_wrong_path_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["--star", "nowhere"])
    assert "nowhere" in capsys.readouterr().err.splitlines()[-1]


def test_the_question_that_is_answered_is_not_a_further_one() -> None:
    whole, part, none = Asked("a", 2, 2), Asked("b", 3, 1), Asked("c", 2, 0)
    assert [*shares(counts(whole) + counts(part) + counts(none))] == pytest.approx(
        [3 / 4, 2 / 3, 1 / 3]
    )
    assert [*shares(counts(whole))] == [0, 0, 0]


@pytest.mark.parametrize(
    ("asks", "slots", "reply", "informs", "row"),
    [
        ("Which day, and how many people?", ("Day", "People"), "Friday.", ("Day",), "1.00"),
        ("Which day, and how many people?", ("Day", "People"), "Friday, 2 people.", (), "0.00"),
        ("What area and price?", ("Area", "Price"), "It does n't matter.", (), "0.00"),
        ("For when, and how many people?", ("Day", "Time", "People"), "4 people.", (), "1.00"),
        ("Another day or time?", ("Day", "Time"), "At 18:00.", ("Time",), None),
        ("Any preferences?", ("Area", "Price"), "Cheap.", ("Price",), None),
    ],
)
def test_alternatives_and_open_questions_do_not_count(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    asks: str,
    slots: tuple[str, ...],
    reply: str,
    informs: tuple[str, ...],
    row: str | None,
) -> None:
    certain = ("Which food, and which area?", ("Food", "Area"), "Thai, north.", ("Food", "Area"))
    talk: list[object] = [{"text": "Hello.", "dialog_act": {}}]
    for said, requests, answer, told in (certain, (asks, slots, reply, informs)):
        request = {"Hotel-Request": [[slot, "?"] for slot in requests]}
        inform = {"Hotel-Inform": [[slot, "x"] for slot in told]}
        talk.append({"text": said, "dialog_act": request})
        talk.append({"text": answer, "dialog_act": inform})
    path = tmp_path / "val.json"
    path.write_text(json.dumps({"one": {"log": talk}}), "utf-8")
    assert main(["--multiwoz", str(path)]) == 0
    found = capsys.readouterr().out.splitlines()[2].split(" | ")
    messages, unanswered = found[1], found[3].split()[0]
    share = {"1.00": "0.50", "0.00": "0.00", None: "0.00"}[row]
    assert (messages, unanswered) == ("1" if row is None else "2", share)
