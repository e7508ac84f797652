"""The contents of a chat's screen, from the records of a session and their scoring."""

from __future__ import annotations

from duolog.cli.chat.state import ChatState
from duolog.engine.events import ActionResolved, ActionTaken, SnapshotTaken
from duolog.scoring.replay import Step
from duolog.scoring.trajectory.fold import TrajectoryFold
from duolog.scoring.trajectory.options import Options
from duolog.testing.records import RecordWriter
from scripted_logs import script_of


def followed(
    script: RecordWriter, upto: int | None = None, taus: tuple[int, ...] = (1, 2)
) -> ChatState:
    """The state after the records of a session."""
    state = ChatState()
    fold = TrajectoryFold(script.session, Options(taus=taus))
    for record in script.records[:upto]:
        state.follow(Step(record, tuple(fold.feed(record))))
    return state


def shown(state: ChatState) -> list[str]:
    return [f"{entry.name}: {entry.text.plain}" for entry in state.entries]


def test_the_conversation_names_who_speaks() -> None:
    state = followed(script_of(["human", "agent", "draft", "edit", "close"]))
    said = shown(state)
    assert said[:2] == ["you: word 0", "bot: answer 1"]
    assert said[2] == "bot: submits the first version of the output (2 lines)"
    assert said[3].startswith("you: revises the output (+1 −1 lines)")
    assert "■" in said[-1]


def test_the_output_marks_what_changed() -> None:
    state = followed(script_of(["human", "draft"]))
    assert [(line.mark, line.text) for line in state.output] == [(" ", "line"), (" ", "number 1")]
    assert state.title.endswith("by bot (first version)")
    state = followed(script_of(["human", "draft", "human", "edit"]))
    assert [(line.mark, line.text) for line in state.output] == [
        (" ", "line"),
        ("-", "number 1"),
        ("+", "number 3"),
    ]
    assert state.title.endswith("by you (+1 −1 lines)")


def test_an_output_submitted_again_stays_in_view() -> None:
    script = RecordWriter("s")
    script.opened()
    script.output("the same\nlines", by="agent")
    script.output("the same\nlines", by="agent")
    assert isinstance(script.records[-1].event, SnapshotTaken)
    state = followed(script)
    assert [(line.mark, line.text) for line in state.output] == [(" ", "the same"), (" ", "lines")]


def test_advice_to_stop_is_shown_where_it_falls_and_only_for_the_taus_asked_for() -> None:
    moves = ["human", "agent", "human", "bad", "agent", "human", "bad", "agent"]
    advice = "■ Advice to stop after round {}: {} rated below 3 (τ = {})"
    said = shown(followed(script_of(moves)))
    first = said.index(f": {advice.format(1, '1 round', 1)}")
    assert said[first - 1] == "you: word 2"
    assert f": {advice.format(2, '2 rounds in a row', 2)}" in said
    lines = followed(script_of(moves), taus=(2,)).measures.lines()
    assert lines[-1] == "■ Advice to stop: τ = 2 (round 2)"
    assert not any("τ = 1" in line for line in lines)


def test_utility_ratings_and_effort_are_in_a_few_lines() -> None:
    state = followed(script_of(["human", "draft", "score", "human", "good", "agent"]))
    lines = state.measures.lines()
    assert lines[0].startswith("Round 2 · utility 0.200")
    assert "Rated round 1: 5/5" in lines
    assert any(line.startswith("Effort: 2 rounds led") for line in lines)
    assert state.measures.lines(brief=True)[0].endswith("· rated round 1: 5/5")


def test_what_the_agent_is_doing() -> None:
    script = RecordWriter("s")
    script.opened()
    script.human("Find something")
    taken = script.agent(ActionTaken(name="search", arguments={"of": "flights"}))
    script.agent(ActionTaken(name="look", arguments={}))
    script.add(ActionResolved(action=taken.version, outcome="ok"), "env", "environment")
    script.agent("Here it is.")
    lines = [followed(script, count).activity.line for count in range(2, 7)]
    assert lines[0] == "bot is at work …"
    assert lines[1] == "bot is at work: search(of=flights) …"
    assert lines[2] == "bot is at work: look() and 1 more …"
    assert lines[3] == "bot is at work: look() …"
