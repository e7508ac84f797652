"""Records in words: one description for every screen."""

from __future__ import annotations

import pytest
from duolog.engine import codec
from duolog.engine.events import (
    JSON,
    ActionResolved,
    ActionTaken,
    AlertSent,
    ApprovalGiven,
    MessageSent,
    ProgressRated,
    SnapshotTaken,
)
from duolog.scoring.display.records import Context, Narrator, describe
from duolog.testing.records import RecordWriter
from msgspec.structs import replace


def snapshot(content: JSON, base: int | None = None) -> SnapshotTaken:
    return SnapshotTaken(content=content, digest=codec.digest(content), base=base)


def edit(path: str, text: str, diff: str | None = None) -> SnapshotTaken:
    return snapshot({"path": path, "text": text, "diff": diff})


def test_it_says_who_did_what_about_which_record() -> None:
    writer = RecordWriter()
    answer = ApprovalGiven(asked=3, approved=False, comment="too *dear*")
    told = describe(writer.add(answer, "ann", "human"))
    assert (told.actor, told.role, told.does, told.about) == ("ann", "human", "denies 3", 3)
    assert (told.text, told.kind, told.tone) == ("too *dear*", "markdown", "bad")


def test_an_outcome_names_its_action_and_how_long_it_took() -> None:
    writer = RecordWriter()
    narrator = Narrator()
    narrator.describe(writer.add(ActionTaken(name="Fry", arguments={"oil": 2}), "bot", "agent"))
    done = ActionResolved(action=1, outcome="ok", observation={"rows": [1, 2]})
    told = narrator.describe(writer.add(done, "environment", "environment", at=3.5))
    assert (told.does, told.value, told.failed) == ("→ Fry 1", "2 rows (2.5 s)", False)
    [passage] = told.details
    assert (passage.kind, passage.depth) == ("json", "full")


def test_versions_are_compared_with_the_one_before() -> None:
    writer, narrator = RecordWriter(), Narrator()
    first = narrator.describe(writer.add(snapshot("a\nb"), "bot", "agent"))
    assert first.does == "submits the first version of the output (2 lines)"
    same = narrator.describe(writer.add(snapshot("a\nb", 1), "bot", "agent"))
    assert same.does == "submits the output again, unchanged"
    changed = narrator.describe(writer.add(snapshot("a\nc", 1), "ann", "human"))
    assert changed.does == "revises the output (+1 −1 lines) from draft 1"
    lines = [f"{line.mark}{line.text}" for line in changed.details[0].lines]
    assert lines == [" a", "-b", "+c"]


def test_files_are_compared_with_their_own_last_version() -> None:
    writer, narrator = RecordWriter(), Narrator()
    told = [
        narrator.describe(writer.add(event, "bot", "agent")).does
        for event in (
            edit("x.py", "a\n"),
            edit("y.py", "b\n", "@@ -1 +1,2 @@\n-a\n+b\n"),
            edit("x.py", "a\nc\n"),
            edit("x.py", "a\nc\n"),
        )
    ]
    assert told == [
        "writes x.py (1 line)",
        "edits y.py (+1 −1 lines)",
        "edits x.py (+1 −0 lines)",
        "leaves x.py as it is",
    ]


def test_versions_too_long_to_compare_are_said_to_be() -> None:
    writer = RecordWriter()
    before = writer.add(snapshot("a\n" * 9), "bot", "agent")
    after = writer.add(snapshot("b\n" * 9), "bot", "agent")
    told = describe(after, Context(before=before, most=10))
    assert told.value == "too long to be compared here"
    assert not told.details


def test_a_low_rating_is_set_off_and_a_missing_one_says_why() -> None:
    writer = RecordWriter()
    low, fine, none = (
        describe(writer.add(ProgressRated(round=2, rating=rating, missing=why), "judge", "scorer"))
        for rating, why in ((2, None), (3, None), (None, "no next message"))
    )
    assert (low.value, low.tone, fine.tone) == ("2/5", "low", "quiet")
    assert none.value == "missing: no next message"


@pytest.mark.parametrize("error", ["", "503"])
def test_what_failed_says_so(error: str) -> None:
    sent = AlertSent(
        rule="r", outcome="failed" if error else "delivered", attempt=1, at=0.0, error=error
    )
    told = describe(RecordWriter().add(sent, "alerts", "scorer"))
    assert told.failed == bool(error)


def test_acts_that_crossed_are_named() -> None:
    writer, narrator = RecordWriter(), Narrator()
    narrator.describe(writer.add(MessageSent(text="Hi"), "ann", "human"))
    reply = writer.add(MessageSent(text="Ho"), "bot", "agent")
    told = narrator.describe(replace(reply, seen=0))
    assert list(told.crossed) == [1]
