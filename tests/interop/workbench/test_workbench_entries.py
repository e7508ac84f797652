"""The entries that a participant is shown."""

from __future__ import annotations

from duolog.engine.events import JSON, ActionResolved, ActionTaken
from duolog.engine.records import Record
from duolog.interop.workbench.participation.entries import ShownEntry, shown_entry
from duolog.testing.records import RecordWriter


def entry_of(record: Record) -> ShownEntry:
    found = shown_entry(record, "ann")
    assert found is not None
    return found


def test_an_action_that_failed_is_told_apart_so_that_it_is_not_folded() -> None:
    script = RecordWriter()
    script.opened()
    taken = script.agent(ActionTaken("Search", {"city": "Rome"}))
    resolved = [
        script.add(
            ActionResolved(taken.version, "failed", error="no such city"), "env", "environment"
        ),
        script.add(ActionResolved(taken.version, "ok"), "env", "environment"),
    ]
    assert [entry_of(record)["failed"] for record in resolved] == [True, False]


def test_the_brief_has_what_only_this_person_knows() -> None:
    private: dict[str, JSON] = {"ann": {"budget": "650"}, "bot": {"secret": "42"}}
    record = RecordWriter().opened(request="Plan a trip.", private=private)
    brief = str(entry_of(record)["brief"])
    assert "Plan a trip." in brief
    assert "650" in brief
    assert "42" not in brief
