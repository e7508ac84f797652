"""What people's words say of their request: precision and recall on labelled texts.

``last_words.json`` holds two sets of messages, of support, travel, writing, code and small talk. The
rules were written on the first, ``tuning``. The second, ``held out``, was written and labelled when
they were finished, and they were not changed after it. The figures are those of ``docs/scorers.md``.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from duolog.scoring.scorers.last_words import standing

TEXTS: dict[str, dict[str, list[Any]]] = json.loads(
    (Path(__file__).parent / "last_words.json").read_text(encoding="utf-8")
)


def found(half: str) -> Counter[tuple[str, str]]:
    """How often which label was read as what."""
    texts = TEXTS[half]
    labels = ("resolved", "unresolved", "open")
    read: Counter[tuple[str, str]] = Counter(
        (label, standing(text)) for label in labels for text in texts[label]
    )
    read.update(("unresolved", standing(after, before)) for before, after in texts["asks again"])
    read.update(("open", standing(after, before)) for before, after in texts["moves on"])
    return read


def test_there_are_as_many_texts_held_out_as_rules_were_written_on() -> None:
    sizes = [{kind: len(texts) for kind, texts in TEXTS[half].items()} for half in TEXTS]
    assert sizes[0] == sizes[1]
    assert sum(sizes[0].values()) == 130
    single = [
        text for half in TEXTS.values() for texts in half.values() for text in map(str, texts)
    ]
    assert len(set(single)) == len(single)


@pytest.mark.parametrize(
    ("half", "label", "right", "read", "there"),
    [
        ("tuning", "resolved", 35, 35, 35),
        ("tuning", "unresolved", 45, 45, 45),
        ("held out", "resolved", 23, 24, 35),
        ("held out", "unresolved", 17, 18, 45),
    ],
)
def test_the_rules_are_as_good_as_reported(
    half: str, label: str, right: int, read: int, there: int
) -> None:
    counts = found(half)
    assert counts[label, label] == right
    assert sum(n for (_, as_), n in counts.items() if as_ == label) == read
    assert sum(n for (is_, _), n in counts.items() if is_ == label) == there
