"""Proxies for load, confusion and sensemaking, by hand and for whatever happens."""

from __future__ import annotations

import msgspec
import pytest
from duolog.engine.codec import digest
from duolog.engine.events import ActionTaken, SnapshotTaken
from duolog.scoring.process import ProcessFold
from duolog.scoring.strain import LONGEST_PAUSE, StrainFold
from duolog.testing.records import RecordWriter
from hypothesis import given
from hypothesis import strategies as st


def folded(script: RecordWriter) -> StrainFold:
    fold = StrainFold()
    for record in script.records:
        fold.feed(record)
    return fold


def output(text: str) -> SnapshotTaken:
    return SnapshotTaken(content=text, digest=digest(text))


def test_measures_by_hand() -> None:
    script = RecordWriter()
    script.opened(clock="virtual")
    script.human("Plan a day in Oslo?")  # the request, which inquires nothing
    script.agent("one two three")
    script.agent(output("Fjord\nOpera"))
    script.human("What do you mean?")  # 5 words waited
    script.agent(output("Fjord\nMuseum"))
    script.human(output("Fjord\nOpera\nPark"))  # restores Opera; 1 word waited
    script.human(output("Fjord\nOpera"))  # takes Park back
    script.human(ActionTaken(name="LookUp"))
    found = folded(script)
    assert found.peak_reading == 5
    assert found.reworked_lines == 2
    assert found.inquiries == 2


def test_hesitation_is_what_reading_and_typing_do_not_explain() -> None:
    script = RecordWriter()
    script.opened(clock="utc")
    script.human("Hello", at=0.0)
    script.agent("word " * 238, at=10.0)
    script.human("word " * 52, at=10.0 + 60.0 + 60.0 + 7.0)
    script.human("and more", at=200.0)  # without an act in between
    assert folded(script).hesitation == pytest.approx(7.0)
    script.agent("There?", at=300.0)
    script.human("Back.", at=9_000.0)
    assert folded(script).hesitation == pytest.approx(7.0 + LONGEST_PAUSE)


acts = st.lists(
    st.tuples(
        st.sampled_from(["human", "agent"]),
        st.one_of(
            st.text("ab? \n", max_size=12),
            st.builds(output, st.text("ab\n", max_size=8)),
            st.just(ActionTaken(name="Search")),
        ),
        st.floats(0.0, 400.0),
    ),
    max_size=14,
)


@given(acts)
def test_measures_only_grow_and_are_the_process_fold_s(
    steps: list[tuple[str, str | SnapshotTaken | ActionTaken, float]],
) -> None:
    script, now = RecordWriter(), 0.0
    script.opened(clock="utc")
    for role, event, seconds in steps:
        now += seconds
        (script.human if role == "human" else script.agent)(event, at=now)
    process, strain = ProcessFold(), StrainFold()
    before = msgspec.structs.asdict(process.measures)
    for record in script.records:
        process.feed(record)
        strain.feed(record)
        measures = process.measures
        assert measures.peak_reading in (None, strain.peak_reading)
        assert measures.hesitation in (None, strain.hesitation)
        for name in ("peak_reading", "hesitation", "clarifications", "reworked_lines", "inquiries"):
            value = getattr(measures, name)
            assert value is None or value >= (before[name] or 0) >= 0
        before = msgspec.structs.asdict(measures)
    humans = sum(role == "human" for role, _, _ in steps)
    assert strain.inquiries <= humans
    assert (strain.hesitation or 0.0) <= humans * LONGEST_PAUSE
