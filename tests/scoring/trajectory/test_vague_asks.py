"""Vague asks: precision and recall of the rules on texts that were labelled apart from them.

``vague_asks.json`` holds messages of many kinds, among them those of the simulated users. Every other
text, from the first on, was used to write the rules; the others were held out: the misses
among them were not looked at. The figures are those of ``docs/labels.md``.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from duolog.scoring.turns import is_vague
from duolog.tasks.rule_user import VAGUE
from duolog.users.deferrals import DEFERRALS

LABELLED: dict[str, list[str]] = json.loads(
    (Path(__file__).parent / "vague_asks.json").read_text(encoding="utf-8")
)
TUNING, HELD_OUT = 0, 1


def half(number: int) -> tuple[list[str], list[str]]:
    """The vague and the concrete texts of one half."""
    return LABELLED["vague"][number::2], LABELLED["concrete"][number::2]


def test_the_texts_are_many_of_both_kinds_and_all_different() -> None:
    texts = [*LABELLED["vague"], *LABELLED["concrete"]]
    assert len(set(texts)) == len(texts) >= 200
    assert all(len(kind) == 52 for number in (TUNING, HELD_OUT) for kind in half(number))
    assert {*DEFERRALS, *VAGUE} <= {*LABELLED["vague"]}


@pytest.mark.parametrize(
    ("number", "precision", "recall"), [(TUNING, 1.0, 1.0), (HELD_OUT, 1.0, 0.84)]
)
def test_the_rules_are_as_good_as_reported(number: int, precision: float, recall: float) -> None:
    vague, concrete = half(number)
    right = sum(map(is_vague, vague))
    wrong = sum(map(is_vague, concrete))
    assert right / (right + wrong) >= precision
    assert right / len(vague) >= recall


@pytest.mark.parametrize("text", VAGUE)
def test_vague_complaints_of_the_simulated_traveller_are_recognised(text: str) -> None:
    assert is_vague(text)


@pytest.mark.parametrize("text", DEFERRALS)
def test_deferrals_of_the_simulated_traveller_are_recognised(text: str) -> None:
    assert is_vague(text)
