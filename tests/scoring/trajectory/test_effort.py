from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping

import msgspec
import pytest
from duolog.engine.errors import CodecError, InvalidInput
from duolog.engine.events import (
    JSON,
    ActionTaken,
    ApprovalAsked,
    ApprovalGiven,
    DraftDropped,
    MessageSent,
    ModelCalled,
    NoteTaken,
    Participant,
    Tokens,
)
from duolog.engine.text import new_lines, new_words
from duolog.scoring.live import score_records
from duolog.scoring.report import make_report
from duolog.scoring.report.summary import completeness
from duolog.scoring.trajectory.effort import MEASURES
from duolog.scoring.trajectory.files import decode_trajectory, encode_trajectory
from duolog.scoring.trajectory.fold import TrajectoryFold
from duolog.scoring.trajectory.options import Options
from duolog.scoring.trajectory.points import Trajectory
from duolog.scoring.trajectory.token_estimate import estimate_tokens
from duolog.scoring.turns import is_vague
from duolog.testing.records import AGENT, RecordWriter
from hypothesis import given
from hypothesis import strategies as st


def words(text: str) -> int:
    return len(text.split())


WORDS = Options(count=words)


def scored(script: RecordWriter, options: Options = WORDS) -> Trajectory:
    return score_records(script.records, options)


def effort(script: RecordWriter, options: Options = WORDS) -> Mapping[str, float | None]:
    return scored(script, options).points[-1].effort


def series(script: RecordWriter, measure: str) -> list[float | None]:
    return [point.effort[measure] for point in scored(script).points]


# --- rounds and acts -----------------------------------------------------------------------------


def test_every_measure_is_there_from_the_start() -> None:
    script = RecordWriter()
    script.opened()
    assert tuple(effort(script)) == MEASURES


def test_human_led_rounds_are_those_with_a_human_act_and_the_requests() -> None:
    script = RecordWriter()
    script.opened(request="plan a trip")
    script.agent("where to?")
    script.human("Rome")
    script.human("soon")
    script.agent("ok")
    script.human(ActionTaken(name="search"))
    script.closed()
    assert series(script, "rounds") == [1, 2, 3]
    assert series(script, "acts") == [0, 2, 3]


def test_a_round_that_the_agent_begins_unprompted_is_nobodys() -> None:
    script = RecordWriter()
    script.opened()
    script.output("a plan")
    script.human("hi")
    assert series(script, "rounds") == [0, 1]
    greeted = RecordWriter()
    greeted.opened()
    greeted.agent("hello")
    greeted.human("hi")
    assert series(greeted, "rounds") == [1]


def test_the_humans_first_act_after_a_request_leads_no_further_round() -> None:
    script = RecordWriter()
    script.opened(request="plan a trip")
    script.human("to Rome")
    assert series(script, "rounds") == [1]


# --- tokens --------------------------------------------------------------------------------------


def test_tokens_written_and_read_by_hand() -> None:
    script = RecordWriter()
    script.opened(request="this is not an act")
    script.human("a trip to Rome")  # 4 written
    script.agent("when and how")  # 3 read
    script.agent(ApprovalAsked(question="may I book"))  # 3 read
    script.human(ApprovalGiven(asked=4, approved=True, comment="yes please"))  # 2 written
    script.agent(NoteTaken(text="nobody reads this"))
    script.agent(ActionTaken(name="search", arguments={"query": "not a text"}))
    script.output("Day 1: Rome\nDay 2: Ostia")  # 6 read
    script.human("nice")  # 1 written
    assert series(script, "tokens_written") == [4, 6, 7]
    assert series(script, "tokens_read") == [6, 12, 12]


def test_of_the_output_only_what_changed_is_read_and_written() -> None:
    script = RecordWriter()
    script.opened()
    script.human("go")
    script.output("Day 1: Rome\nDay 2: Ostia")  # 6 words read
    script.output("Day 1: Rome\nDay 2: Tivoli", by="human")  # 1 written
    script.output("Day 1: Rome\nDay 2: Tivoli today\nDay 3: Home")  # 7 read
    assert series(script, "tokens_written") == [1, 2]
    assert series(script, "tokens_read") == [6, 13]


def test_versions_between_two_acts_of_the_human_are_read_once() -> None:
    script = RecordWriter()
    script.opened()
    script.human("go")
    script.output("one two three")
    script.output("four five six seven")
    script.output("one two")
    assert effort(script)["tokens_read"] == 2  # provisional: the current output
    script.human("ok")
    assert effort(script)["tokens_read"] == 2
    script.output("one two three")
    script.closed()
    assert effort(script)["tokens_read"] == 5  # the line that changed is read again


def test_what_was_not_looked_at_is_compared_with_what_was() -> None:
    script = RecordWriter()
    script.opened()
    script.human("go")
    script.output("one two")
    script.human("hm")
    script.output("three")
    script.output("one two\nfour")  # only "four" is new to the human
    script.closed()
    assert effort(script)["tokens_read"] == 3


def test_what_a_human_wrote_it_need_not_read() -> None:
    script = RecordWriter()
    script.opened()
    script.output("one two", by="human")
    script.output("one two\nthree")
    script.human("ok")
    assert series(script, "tokens_read") == [1, 1]
    assert series(script, "tokens_written") == [2, 3]


def test_the_same_output_again_is_not_read_again() -> None:
    script = RecordWriter()
    script.opened()
    script.human("go")
    script.output("one two")
    script.human("hm")
    script.output("one two")
    script.closed()
    assert effort(script)["tokens_read"] == 2


def test_agents_among_themselves_are_read_by_no_human() -> None:
    script = RecordWriter()
    script.opened()
    script.human("go")
    script.agent(MessageSent(text="between us", to=("bot2",)))
    script.agent(MessageSent(text="for you", to=("bot2", "ann")))
    assert effort(script)["tokens_read"] == 2


def test_structured_output_is_read_by_entry() -> None:
    script = RecordWriter()
    script.opened()
    script.human("go")
    script.output([{"content": "fly"}, {"content": "sleep"}])
    script.human("ok")
    before = effort(script)["tokens_read"]
    script.output([{"content": "fly"}, {"content": "sleep"}, {"content": "eat"}])
    script.closed()
    assert before is not None
    after = effort(script)["tokens_read"]
    assert after is not None
    assert after < before + 5  # the new entry, and the end of the one before it


def test_the_default_counter_is_used_without_another() -> None:
    script = RecordWriter()
    script.opened()
    script.human("Could you plan a trip to Rome?")
    written = effort(script, Options())["tokens_written"]
    assert written == estimate_tokens("Could you plan a trip to Rome?")


# --- generated tokens ----------------------------------------------------------------------------


def call(completion: int | None, reply: str = "...") -> ModelCalled:
    return ModelCalled(
        model="m", purpose="act", request="r", reply=reply, tokens=Tokens(completion=completion)
    )


def test_generated_tokens_are_what_the_models_counted() -> None:
    script = RecordWriter()
    script.opened()
    script.human(call(10))
    script.human("go")
    script.agent(call(30))
    script.agent(call(5))
    script.agent("a text that does not count")
    trajectory = scored(script)
    assert (trajectory.agent_tokens, trajectory.human_tokens) == (35, 10)
    assert not trajectory.estimated
    assert trajectory.points[-1].effort["token_ratio"] == 3.5


def test_without_counts_generated_tokens_are_estimated_from_texts() -> None:
    script = RecordWriter()
    script.opened()
    script.human("plan a trip")  # 3
    script.agent("sure")  # 1
    script.output("Day 1: Rome")  # 3
    script.output("Day 1: Rome\nDay 2: Ostia")  # 3 more
    script.human("ok")  # 1
    trajectory = scored(script)
    assert (trajectory.agent_tokens, trajectory.human_tokens) == (7, 4)
    assert trajectory.estimated


def test_each_actor_is_counted_by_its_own_means() -> None:
    script = RecordWriter()
    script.opened()
    script.human("plan a trip")  # 3, estimated
    script.agent(call(20))
    script.agent("sure")
    script.agent("me too", actor="bot2")  # 2, estimated
    trajectory = scored(script)
    assert (trajectory.agent_tokens, trajectory.human_tokens) == (22, 3)
    assert trajectory.estimated


def test_calls_that_do_not_say_make_the_sum_an_estimate() -> None:
    script = RecordWriter()
    script.opened()
    script.agent(call(20))
    assert not scored(script).estimated
    script.agent(call(None))
    assert scored(script).agent_tokens == 20
    assert scored(script).estimated


def test_texts_stop_counting_once_a_model_is_counted() -> None:
    script = RecordWriter()
    script.opened()
    script.agent("five words before any call")
    assert scored(script).agent_tokens == 5
    script.agent(call(20))
    script.agent("more")
    assert scored(script).agent_tokens == 20
    assert not scored(script).estimated


def test_a_judges_calls_are_nobodys_generated_tokens() -> None:
    script = RecordWriter()
    script.opened()
    script.add(call(99), "judge", "scorer", stream="judge@1")
    assert scored(script).agent_tokens == 0


def test_there_is_no_ratio_without_tokens_of_the_human() -> None:
    script = RecordWriter()
    script.opened(request="plan")
    script.agent("sure")
    assert effort(script)["token_ratio"] is None


def test_a_damaged_call_is_an_error() -> None:
    script = RecordWriter()
    script.opened()
    record = script.agent(call(1))
    script.records[-1] = msgspec.structs.replace(record, body=b'{"kind":"ModelCalled","tokens":7}')
    with pytest.raises(CodecError, match="ModelCalled"):
        scored(script)


# --- deferrals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "It's up to you.",
        "Whatever you think is best",
        "I don't know, you decide",
        "make it better",
        "just try again",
        "Anything is fine.",
        "no preference",
        "Surprise me!",
        "I don’t mind",
    ],
)
def test_vague_asks(text: str) -> None:
    assert is_vague(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Please find a hotel near the station that allows pets.",
        "I don't mind the hotel, but all of the flights have to leave in the morning, before ten.",
        "Keep it under 500, the rest is up to you",
        "The second restaurant is too expensive.",
        "Yes.",
    ],
)
def test_asks_that_say_something(text: str) -> None:
    assert not is_vague(text)


def test_deferrals_are_counted_in_humans_messages_only() -> None:
    script = RecordWriter()
    script.opened()
    script.human("plan a trip to Rome")
    script.agent("up to you")
    script.human("whatever you like")
    script.agent("hm")
    script.human(ApprovalGiven(asked=1, approved=True, comment="up to you"))
    assert series(script, "deferrals") == [0, 1, 1]
    assert effort(script, Options(vague=lambda text: "Rome" in text))["deferrals"] == 1


# --- time ----------------------------------------------------------------------------------------


def test_time_on_a_real_clock_is_from_the_agents_last_act_to_the_humans_next() -> None:
    script = RecordWriter()
    script.opened()
    script.human("go", at=100.0)  # no agent before
    script.agent("hm", at=110.0)
    script.agent("done", at=120.0)
    script.human("thanks", at=150.0)  # 30
    script.human("and more", at=170.0)  # the agent has not acted since
    script.agent("ok", at=171.0)
    script.human("sorry, I was away", at=5000.0)  # capped at 300
    script.agent("no problem", at=5001.0)
    script.closed(at=9000.0)
    assert series(script, "seconds") == [0.0, 30.0, 330.0]
    assert effort(script, Options(count=words, idle_cap=1000.0))["seconds"] == 1030.0


def test_a_real_clock_that_was_set_back_costs_no_time() -> None:
    script = RecordWriter()
    script.opened()
    script.agent("hi", at=100.0)
    script.human("hi", at=90.0)
    assert effort(script)["seconds"] == 0.0


PACE: Mapping[str, JSON] = {"timing": {"read_wpm": 60, "type_wpm": 30}}


def test_time_on_a_virtual_clock_is_modelled_reading_and_typing() -> None:
    script = RecordWriter()
    script.opened(clock="virtual", config=PACE)
    script.human("plan a trip", at=10.0)  # 3 words typed: 6 s
    script.agent("when do you leave", at=12.0)  # 4 read: 4 s
    script.output("Day 1: Rome", at=15.0)  # 3 read: 3 s
    script.human("ok", at=40.0)  # 2 s
    script.output("Day 1: Rome\nDay 2: Ostia", by="human", at=50.0)  # 3 typed: 6 s
    script.closed(at=60.0)
    assert series(script, "seconds") == [13.0, 21.0]


def test_the_rates_are_those_of_people_unless_told_otherwise() -> None:
    script = RecordWriter()
    script.opened(clock="virtual")
    script.human("one two", at=10.0)
    script.agent("three", at=20.0)
    expected = 2 / 52 * 60 + 1 / 238 * 60
    assert effort(script)["seconds"] == pytest.approx(expected, rel=1e-12)


def test_between_two_acts_nobody_spends_more_than_the_time_that_passed() -> None:
    script = RecordWriter()
    script.opened(clock="virtual", config=PACE)
    script.human("plan a trip", at=0.0)  # before the session began
    script.agent("one two three four five", at=1.0)  # of 5 s to read, 2 pass
    assert effort(script)["seconds"] == 1.0
    script.human("ok", at=2.0)
    assert series(script, "seconds") == [2.0, 2.0]
    script.output("one two three", at=5.0)
    script.human("a b", at=12.0)  # 3 s read and 4 s typed
    script.human("c", at=12.0)  # with it, 2 s more
    assert series(script, "seconds") == [2.0, 5.0, 11.0]
    script.agent("one two three", at=13.0)
    script.closed(at=14.0)
    assert series(script, "seconds") == [2.0, 5.0, 13.0]


def test_a_dropped_draft_took_at_most_the_time_since_the_last_act() -> None:
    script = RecordWriter()
    script.opened(clock="virtual", config=PACE)
    script.human("go", at=4.0)
    script.agent("hm", at=5.0)
    script.human(DraftDropped(text="wait", seconds=30.0, of=40.0), at=10.0)
    script.closed(at=11.0)
    assert effort(script)["seconds"] == 9.0  # 2 for the first word, and all 7 since


def test_an_import_without_times_has_the_modelled_time() -> None:
    script = RecordWriter()
    script.opened(clock="virtual", config={**PACE, "imported": {"format": "chat"}})
    script.human("plan a trip", at=0.0)
    script.agent("when do you leave", at=0.0)
    script.human("ok", at=0.0)
    assert series(script, "seconds") == [10.0, 12.0]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["ann", "ben", "bot", "output", "edit", "dropped", "action"]),
            st.integers(0, 30),
            st.integers(0, 6),
        ),
        max_size=14,
    ),
    st.booleans(),
)
def test_nobody_ever_spends_more_than_the_session_lasted(
    acts: list[tuple[str, int, int]], begins_late: bool
) -> None:
    script = RecordWriter()
    people = (*(Participant(name=one, role="human") for one in ("ann", "ben")), AGENT)
    script.opened(clock="virtual", config=PACE, participants=people)
    fold, now, before = TrajectoryFold("s", WORDS), 5.0 * begins_late, 0.0
    fold.feed(script.records[0])
    for number, (who, size, later) in enumerate(acts):
        now, text = now + later, f"{number} " * size
        match who:
            case "output" | "edit":
                record = script.output(text, by="human" if who == "edit" else "agent", at=now)
            case "dropped":
                record = script.human(DraftDropped(seconds=float(size), of=40.0), at=now)
            case "action":
                record = script.agent(ActionTaken(name="search"), at=now)
            case "bot":
                record = script.agent(text, at=now)
            case _:
                record = script.human(text, actor=who, at=now)
        fold.feed(record)
        spent = fold.trajectory().points[-1].effort["seconds"]
        assert spent is not None
        assert spent <= now + 1e-9
        if who not in ("output", "edit"):  # another version may have less to read
            assert spent >= before - 1e-9
        before = spent
    fold.feed(script.closed(at=now + 1.0))
    [*_, last] = fold.trajectory().points
    assert last.effort["seconds"] is not None
    assert last.effort["seconds"] <= now + 1.0 + 1e-9


@pytest.mark.parametrize("timing", [{"read_wpm": 0}, {"type_wpm": "fast"}, "fast"])
def test_a_timing_that_makes_no_sense_is_an_error(timing: object) -> None:
    script = RecordWriter()
    script.opened(clock="virtual", config={"timing": timing})  # type: ignore[dict-item]
    with pytest.raises(InvalidInput):
        scored(script)


def test_without_an_opening_nobody_knows_the_time() -> None:
    script = RecordWriter()
    script.human("go")
    assert effort(script)["seconds"] is None


def test_several_humans_are_one_party() -> None:
    script = RecordWriter()
    script.opened(
        participants=(
            Participant(name="ann", role="human"),
            Participant(name="ben", role="human"),
            Participant(name="bot", role="agent"),
        )
    )
    script.human("one")
    script.human("two three", actor="ben")
    script.agent("read by both")
    got = effort(script)
    assert (got["acts"], got["tokens_written"], got["tokens_read"]) == (2, 3, 3)


# --- what changed --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "read", "written"),
    [
        ("", "one two", "one two", "one two"),
        ("one two", "one two", "", ""),
        ("one\ntwo", "two\none", "one", ""),  # moved
        ("one\ntwo", "one", "", ""),  # deleted
        ("one\ntwo", "one\none", "one", "one"),  # repeated
        ("one two three", "one 2 three", "one 2 three", "2"),
        ("one\ntwo", "one\nthree", "three", "three"),
        ("one", "one\ntwo two", "two two", "two two"),
        ("one", "one\n\n", "", ""),
    ],
)
def test_what_is_new(old: str, new: str, read: str, written: str) -> None:
    assert new_lines(old.splitlines(), new.splitlines()).strip() == read
    assert new_words(old.splitlines(), new.splitlines()).strip() == written


TEXTS = st.lists(
    st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=5).map(" ".join), max_size=6
).map("\n".join)


@given(TEXTS, TEXTS)
def test_what_was_written_is_part_of_what_has_to_be_read(old: str, new: str) -> None:
    read = [line for line in new_lines(old.splitlines(), new.splitlines()).splitlines() if line]
    fresh = [line for line in new.splitlines() if line and line not in old.splitlines()]
    assert not Counter(fresh) - Counter(read)
    left = [word for line in read for word in line.split()]
    for word in new_words(old.splitlines(), new.splitlines()).split():
        left.remove(word)
    assert new_words([], new.splitlines()).split() == new.split()


# --- several files -------------------------------------------------------------------------------


def code(lines: int, changed: int | None = None) -> str:
    return "\n".join(f"line {n} of it{'!' * (n == changed)}" for n in range(lines))


def test_a_fix_in_a_long_file_is_read_as_its_diff() -> None:
    script = RecordWriter()
    script.opened()
    script.human("Please fix it")
    script.files({"a.py": code(400), "b.py": "b"})
    script.human("Go on")
    before = effort(script)["tokens_read"]
    script.files({"a.py": code(400, changed=200)})
    assert before is not None
    assert effort(script)["tokens_read"] == before + 4
    script.human("Now b")
    script.files({"b.py": "b\nb"})
    script.human("Back to a")
    script.files({"a.py": code(400)})
    assert effort(script)["tokens_read"] == before + 4 + 1 + 4


def test_files_that_older_importers_recorded_one_by_one_are_compared_by_path() -> None:
    script = RecordWriter()
    script.opened()
    script.human("Please fix it")
    for path, changed in [("a", None), ("b", None), ("a", 3), ("b", 4), ("a", 5)]:
        script.output({"path": path, "text": code(40, changed), "diff": ""})
        script.human("Go on")
    assert effort(script)["tokens_read"] == 2 * 160 + 4 + 4 + 4 + 4


def test_of_a_diff_that_was_shown_only_what_it_adds_is_read() -> None:
    script = RecordWriter()
    script.opened()
    script.human("Please fix it")
    diff = "@@ -200,3 +200,3 @@\n x\n-line 200 of it\n+line 200 of it!\n y"
    script.files({"a.py": code(400, changed=200)}, shown={"a.py": diff})
    script.human("Go on")
    assert effort(script)["tokens_read"] == 4
    script.files({"a.py": code(400)})
    assert effort(script)["tokens_read"] == 8


def test_what_was_unread_before_a_diff_was_shown_is_read_too() -> None:
    script = RecordWriter()
    script.opened()
    script.human("Please write it")
    script.files({"a.py": "one\ntwo", "b.py": "three"})
    script.files({"a.py": "one\nfour"}, shown={"a.py": "@@ -2 +2 @@\n-two\n+four"})
    assert effort(script)["tokens_read"] == 2 + 1 + 1


def test_a_human_writes_what_they_change_in_files() -> None:
    script = RecordWriter()
    script.opened()
    script.human("Hi")
    script.files({"a.py": "one two three", "b.py": "four"})
    script.files({"a.py": "one 2 three", "b.py": None}, by="human")
    assert effort(script)["tokens_written"] == 2


# --- tokens of a text ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "cl100k", "o200k"),
    [
        # counted with the published encodings
        ("Could you find a hotel near the station that allows pets, please?", 14, 14),
        ("Day 1:\nCurrent City: from Washington to Myrtle Beach\nBreakfast: -", 18, 16),
        ("Ich möchte gern eine Reise nach München planen.", 12, 9),
        ("我想计划一次为期五天的北京之旅。", 18, 13),
    ],
)
def test_the_estimate_is_close_to_common_encodings(text: str, cl100k: int, o200k: int) -> None:
    mean = (cl100k + o200k) / 2
    assert abs(estimate_tokens(text) - mean) <= 0.25 * mean


def test_the_estimate_of_nothing_is_nothing() -> None:
    assert estimate_tokens("") == 0
    assert estimate_tokens("a") == 1


@given(st.text())
def test_any_text_can_be_estimated(text: str) -> None:
    assert (estimate_tokens(text) > 0) == bool(text)


def test_versions_that_take_too_long_to_compare_are_counted_and_said() -> None:
    chance = random.Random(1)
    long, other = ("\n".join(chance.choices("abcdefghij", k=3_000)) for _ in range(2))
    script = RecordWriter("s")
    script.opened()
    script.human("go")
    script.output(long)
    script.human("again")
    script.output(other)
    script.human("and so")
    script.output(f"{other}\nmore")
    script.closed()
    folds = [TrajectoryFold("s", emit=emit) for emit in (True, False)]
    for record in script.records:
        for fold in folds:
            fold.feed(record)
    assert [fold.trajectory().coarse for fold in folds] == [1, 1]
    report = make_report([folds[0].trajectory()], bootstrap=0)
    [group] = report.groups
    assert (group.counts.coarse_sessions, group.counts.coarse_versions) == (1, 1)
    assert any("1 version of the output in 1 session took" in one for one in completeness(report))
    line = encode_trajectory(folds[0].trajectory())
    assert decode_trajectory(line).coarse == 1
