"""Plain English: the markers of translated sentences become fewer, never more."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from translated import KEPT, ROOT, files_of, hits, messages, prose, spoken, texts_of


@pytest.mark.parametrize("parts", [("pages",), ("sources", "messages"), ("tests",)], ids=" ".join)
def test_there_are_no_more_markers_than_were_kept(parts: tuple[str, ...]) -> None:
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    found = {part: Counter[str]() for part in parts}
    for file in files_of(parts[0]):
        for part in parts:  # one after the other, so that a module is read once
            if count := hits(texts_of(file, part)).total():
                found[part][str(file.relative_to(ROOT))] = count
    for part, counts in found.items():
        assert counts.total() <= kept[part], (
            f"{counts.total()} markers of translated English in {part}, {kept[part]} were kept: "
            f"python tests/support/translated.py lists them for the files that you changed; "
            f"most have: {counts.most_common(5)}"
        )


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Who asks first starts better than the others.", "headless who"),
        ("The score is missing if the utility raises an error.", None),
        ("Where the utility is missing, there are no bounds.", "where for if"),
        ("This is a file that is no log.", "is no"),
        ("The address stands wherever an agent is named.", "stands"),
        ("It goes on with what was added.", "goes on"),
        ("A scorer of yours may raise an error.", "of its own"),
        ("If the rating is missing, the round counts as productive.", None),
        ("word " * 41 + ".", "long"),
    ],
)
def test_a_marker_is_found(text: str, name: str | None) -> None:
    found = hits(text)
    assert name in found if name is not None else not found


def test_code_tables_and_literals_are_no_prose() -> None:
    page = (
        "| where there is none |\n\n    where there is none\n\n`where it is no` is fine to say.\n"
    )
    assert not hits(prose(page))


def test_docstrings_comments_messages_and_help_are_read() -> None:
    module = (
        '"""Nobody reads this one."""\n'
        "LIMIT = 3  # it stands for three of them\n"
        "def f(x: int) -> None:\n"
        '    """Of a text the words are counted."""\n'
        '    option = Option(help="Goes on with the next one.")\n'
        '    raise ValueError(f"{x} is no number of rounds")\n'
    )
    assert set(hits(spoken(module))) == {"nobody", "stands", "of each"}
    assert set(hits(messages(module))) == {"goes on", "is no"}
