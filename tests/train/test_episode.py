"""Episodes: their observations, actions and ends, and a log that stays whole."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Sequence
from typing import Any

import anyio
import duolog
import pytest
from duolog.engine.errors import InvalidInput, SessionClosedError, SessionNotFound
from duolog.engine.log.contract import Store
from duolog.engine.log.open import open_log
from duolog.engine.models.protocol import ToolCall
from duolog.engine.session.decisions import Decision, Finish, Say, Submit
from duolog.engine.session.limits import Limits
from duolog.scoring.live import score_sessions
from duolog.train.blocking import BlockingEpisode, Stage
from duolog.train.episode import Episode, EpisodeSetting
from duolog.train.rewards import RewardTerms, reward_of
from duolog.train.sampling import sampled_value
from duolog.train.seat import Observation
from trained import BOUQUET, FLORIST, call, plays


@pytest.fixture
async def log() -> AsyncIterator[Store]:
    async with open_log("memory://") as opened:
        yield opened


async def streams(log: Store, session: str) -> list[tuple[object, ...]]:
    """All that a log holds of a session, but for its id and the positions."""
    return [
        (r.stream, r.version, r.time, r.actor, r.role, r.kind, r.body)
        async for r in log.read_all(session=session)
    ]


async def test_an_agent_sees_a_chat_in_which_the_humans_words_are_marked(log: Store) -> None:
    async with Episode(log) as episode:
        seen = await plays(episode)
    first, reply = seen[0], seen[1]
    assert [one.role for one in first.messages] == ["system", "user"]
    assert first.messages[1].author == "human"
    assert first.messages[1].content == "A bouquet, please."
    assert {"message", "wait", "submit", "finish", "Count"} <= {tool.name for tool in first.tools}
    [said] = [one for one in reply.messages if one.tool_call_id == "c0"]
    assert (said.role, said.author, said.name) == ("tool", "human", "user")
    [counted] = [one for one in seen[2].messages if one.tool_call_id == "c1"]
    assert (counted.role, counted.author) == ("tool", "environment")
    assert counted.content.isdecimal()
    trained = [one for one in episode.messages if one.trained]
    assert [one.role for one in trained] == ["assistant"] * (len(seen) - 1)
    assert [one.tool_calls[0].name for one in trained] == [name for name, _ in FLORIST][
        : len(trained)
    ]


async def test_each_call_is_answered_once(log: Store) -> None:
    async with Episode(log) as episode:
        await plays(episode)
    asked = [c.id for one in episode.messages for c in one.tool_calls]
    answered = [one.tool_call_id for one in episode.messages if one.role == "tool"]
    assert answered == asked


async def test_the_same_seeds_and_actions_give_the_same_log() -> None:
    found = []
    for _ in range(2):
        async with duolog.open("memory://") as log, Episode(log) as episode:
            await plays(episode)
            found.append((episode.session, await streams(log, episode.session)))
    assert found[0] == found[1]
    async with duolog.open("memory://") as log, Episode(log) as episode:
        await plays(episode, seed=6)
        assert await streams(log, episode.session) != found[0][1]


async def test_the_same_problem_may_be_played_often_and_at_once(log: Store) -> None:
    episodes = [Episode(log) for _ in range(3)]

    async def run(episode: Episode) -> None:
        async with episode:
            await plays(episode)
            await plays(episode)

    async with anyio.create_task_group() as tasks:
        for episode in episodes:
            tasks.start_soon(run, episode)
    names = {record.session async for record in log.read_all()}
    assert len(names) == 6
    traces = [await streams(log, name) for name in names]
    assert all(trace == traces[0] for trace in traces)


async def test_an_action_that_cannot_be_taken_is_answered_and_leaves_no_trace(log: Store) -> None:
    async with Episode(log) as episode:
        await episode.reset(BOUQUET, "0", seed=5)
        version = episode.view.version
        for action, why in (
            (call("dance"), "unknown action 'dance'"),
            (call("Count", {"petal": 1}), "Count was called wrongly"),
            (ToolCall(id="c", name="message", arguments='{"text": '), "are not JSON"),
            ((), "an action is a tool call"),
        ):
            seen = await episode.step(action)
            assert why in seen.invalid
            assert not seen.done
            assert why in seen.messages[-1].content
        assert episode.view.version == version
        seen = await episode.step(call("message", {"text": "Which flowers?"}))
        assert not seen.invalid
    assert not [r async for r in log.read_all() if r.kind == "ActorFailed"]


async def test_too_many_of_them_in_a_row_end_the_session_as_failed(log: Store) -> None:
    async with Episode(log, EpisodeSetting(mistakes=2)) as episode:
        await episode.reset(BOUQUET, "0", seed=5)
        assert not (await episode.step(call("dance"))).done
        seen = await episode.step(call("dance"))
        assert (seen.done, seen.ended) == (True, "failed")
        assert "unknown action 'dance'" in seen.invalid
        assert "unknown action 'dance'" in seen.messages[1].content
        assert "none of 2 actions in a row could be taken" in seen.detail
        with pytest.raises(SessionClosedError):
            await episode.step(call("wait"))


async def test_a_step_at_the_wrong_time_is_refused(log: Store) -> None:
    episode = Episode(log)
    with pytest.raises(InvalidInput, match="async with"):
        await episode.reset(BOUQUET, "0")
    async with episode:
        with pytest.raises(InvalidInput, match="call reset first"):
            await episode.step(call("wait"))
        with pytest.raises(InvalidInput, match="unknown instance"):
            await episode.reset(BOUQUET, "zero")
        with pytest.raises(InvalidInput, match="unknown task"):
            await episode.reset("gardening", "0")
        await plays(episode)
        with pytest.raises(SessionClosedError):
            await episode.step(call("wait"))
        assert not (await episode.reset(BOUQUET, "1", seed=5)).done


async def test_a_reset_in_the_middle_calls_the_session_off(log: Store) -> None:
    async with Episode(log) as episode:
        await episode.reset(BOUQUET, "0", seed=5)
        await episode.step(call(*FLORIST[0]))
        first = episode.session
        await episode.reset(BOUQUET, "1", seed=5)
        assert (await log.summary(first)).state == "cancelled"
        second = episode.session
    assert (await log.summary(second)).state == "cancelled"
    assert not (await log.verify()).problems


async def test_calls_at_the_same_time_are_refused_or_end_in_order(log: Store) -> None:
    async with Episode(log) as episode:
        await episode.reset(BOUQUET, "0", seed=5)
        first = episode.session
        found: dict[str, Observation | str] = {}

        async def note(name: str, calling: Awaitable[Observation]) -> None:
            try:
                found[name] = await calling
            except InvalidInput as error:
                found[name] = str(error)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(note, "step", episode.step(call(*FLORIST[0])))
            tasks.start_soon(note, "step at once", episode.step(call("wait")))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(note, "cut off", episode.step(call(*FLORIST[0], id="c2")))
            tasks.start_soon(note, "reset", episode.reset(BOUQUET, "1", seed=5))
            tasks.start_soon(note, "reset at once", episode.reset(BOUQUET, "2", seed=5))
        refused = [one for one in found.values() if isinstance(one, str)]
        assert len(refused) == 2
        assert all("has not returned yet: wait for it" in one for one in refused)
        assert found["cut off"].ended == "cancelled"  # type: ignore[union-attr]
        assert (await log.summary(first)).state == "cancelled"
        assert not (await episode.step(call("wait"))).done
    assert [one.state async for one in log.sessions()] == ["cancelled", "cancelled"]
    assert not (await log.verify()).problems


async def test_a_tolerance_that_is_used_up_ends_the_episode(log: Store) -> None:
    idle = [("message", {"text": f"Lovely weather, is it not? {n}"}) for n in range(30)]
    async with Episode(log, EpisodeSetting(tau=2)) as episode:
        seen = await plays(episode, acts=idle)
    assert seen[-1].ended == "tolerance"
    async with Episode(log, EpisodeSetting(limits=Limits(rounds=3))) as episode:
        seen = await plays(episode, acts=idle)
    assert seen[-1].ended == "limit"


async def test_news_interrupts_what_the_agent_types_if_it_is_to(log: Store) -> None:
    long = Say("Let me tell you of each flower that there is. " * 200)

    async def sent(interrupts: bool) -> list[bool]:
        """After each of three steps: whether the long message was sent."""
        async with Episode(log, EpisodeSetting(interrupts=interrupts)) as episode:
            await episode.reset(BOUQUET, "0", seed=5)
            await episode.step(Submit("rose"))
            found = []
            for _ in range(3):
                await episode.step(long)
                found.append(any(one.text == long.text for one in episode.view.messages))
            return found

    assert await sent(False) == [True, True, True]
    assert await sent(True) == [False, True, True]


async def test_the_engines_verbs_are_actions_too(log: Store) -> None:
    async with Episode(log) as episode:
        await episode.reset(BOUQUET, "0", seed=5)
        seen = await episode.step(Say("Which flowers do you like?"))
    [said] = [one for one in seen.messages if one.author == "human"]
    assert said.role == "user"


@pytest.mark.parametrize(
    "terms",
    [
        RewardTerms(),
        RewardTerms(effort="acts", price=0.01, terminal=0.5, drop=1.0, unproductive=0.1),
    ],
)
async def test_rewards_add_up_to_what_score_has_of_the_log(log: Store, terms: RewardTerms) -> None:
    async with Episode(log, EpisodeSetting(reward=terms)) as episode:
        seen = await plays(episode)
        assert seen[-1].done
    trajectory = await duolog.score_log(log, episode.session)
    last = trajectory.points[-1]
    reward = await reward_of(log, episode.session)
    assert reward == episode.reward
    assert reward.total == pytest.approx(sum(one.reward for one in seen))
    assert reward.parts["utility"] == pytest.approx(last.utility)
    assert reward.parts["effort"] == pytest.approx(-terms.price * (last.effort[terms.effort] or 0))
    assert reward.parts["terminal"] == pytest.approx(terms.terminal * (last.utility or 0))
    assert reward.total == pytest.approx(sum(reward.parts.values()))
    assert len(reward.rounds) == len(trajectory.points)


@pytest.mark.slow
async def test_hundreds_of_episodes_at_once_have_the_rewards_of_their_log(log: Store) -> None:
    episodes = [Episode(log) for _ in range(300)]

    async def run(number: int) -> None:
        async with episodes[number]:
            await plays(episodes[number], str(number), acts=[FLORIST[4], FLORIST[7]])

    async with anyio.create_task_group() as tasks:
        for number in range(len(episodes)):
            tasks.start_soon(run, number)
    rewards = {episode.session: episode.reward for episode in episodes}
    assert len(rewards) == len(episodes)
    async for trajectory in score_sessions(log):
        found = rewards.pop(trajectory.session)
        assert found.parts["utility"] == pytest.approx(trajectory.points[-1].utility)
        seconds = trajectory.points[-1].effort["seconds"] or 0
        assert found.parts["effort"] == pytest.approx(-0.0005 * seconds)
    assert not rewards


def test_episodes_of_programs_without_a_loop_are_the_same() -> None:
    acts = [call(name, arguments, f"c{n}") for n, (name, arguments) in enumerate(FLORIST)]
    with Stage() as stage, BlockingEpisode(stage) as episode:
        seen = episode.reset(BOUQUET, "0", seed=5)
        for action in acts:
            if not seen.done:
                seen = episode.step(action)
        blocking = (episode.messages, episode.reward)
    with pytest.raises(InvalidInput):
        episode.step(acts[0])

    async def plain() -> tuple[object, object]:
        async with duolog.open("memory://") as log, Episode(log) as episode:
            await plays(episode)
            return episode.messages, episode.reward

    assert blocking == anyio.run(plain)


def test_the_value_of_a_state_is_what_continuations_earn() -> None:
    async def main() -> None:
        async with open_log("memory://") as log:
            async with Episode(log) as episode:
                await episode.reset("tutoring", "0", seed=7)
                await episode.step(Say("What is 3/4 + 1/4?"))
                await episode.step(Finish())
            name = episode.session
            found = await sampled_value(log, name, 1, agent="two-stage", continuations=2)
            again = [await reward_of(log, session) for session in found.sessions]
            assert found.rewards == tuple(one.total for one in again)
            assert found.rewards[0] != found.rewards[1]
            assert found.value == pytest.approx(sum(found.rewards) / 2)
            with pytest.raises(InvalidInput, match="no act in round 9"):
                await sampled_value(log, name, 9, agent="two-stage")
            with pytest.raises(InvalidInput, match="unknown agent"):
                await sampled_value(log, name, 1, agent="nobody")
            with pytest.raises(SessionNotFound):
                await sampled_value(log, "nowhere", 1, agent="two-stage")

    anyio.run(main)  # continuations look for the installed tasks, which reads files


async def test_questions_that_were_answered_before_cost(log: Store) -> None:
    asks = [("message", {"text": text}) for text in ("Which flowers?", "Roses?", "WHICH flowers?")]
    terms = RewardTerms(repeated=0.25)
    async with Episode(log, EpisodeSetting(reward=terms)) as episode:
        await plays(episode, acts=[*asks, ("finish", {})])
    assert episode.reward.parts["repeated"] == -0.25


def test_settings_that_make_no_sense_are_refused() -> None:
    wrong: Sequence[dict[str, Any]] = (
        {"price": float("nan")},
        {"price": "high"},
        {"price": True},
        {"effort": "sweat"},
        {"tau": 0},
        {"tau": 1.5},
    )
    for terms in wrong:
        with pytest.raises(InvalidInput):
            RewardTerms(**terms)
    settings: Sequence[dict[str, Any]] = (
        {"tau": 0},
        {"tau": "2"},
        {"mistakes": 0},
        {"mistakes": 1.5},
        {"hold": -1},
        {"reward": {"price": 1}},
        {"limits": 30},
        {"timing": None},
        {"agent": ""},
        {"interrupts": "yes"},
        {"config": 5},
    )
    for setting in settings:
        name, value = next(iter(setting.items()))
        with pytest.raises(
            InvalidInput, match=rf"^{name} expects .+, got {re.escape(repr(value))}$"
        ):
            EpisodeSetting(**setting)


async def test_arguments_of_the_wrong_type_are_refused_and_begin_no_session(log: Store) -> None:
    async with Episode(log) as episode:
        for arguments, why in (
            ({"task": 3}, "3 is not a task"),
            ({"problem": 0}, "problem expects str, got 0"),
            ({"persona": None}, "persona expects str, got None"),
            ({"seed": "x"}, "seed expects int, got 'x'"),
            ({"seed": 1.5}, "seed expects int, got 1.5"),
            ({"repeat": 0}, "repeat expects int >= 1, got 0"),
            ({"config": 5}, "config expects object, got 5"),
        ):
            given: dict[str, Any] = {"task": BOUQUET, "problem": "0", **arguments}
            with pytest.raises(InvalidInput, match=re.escape(why)):
                await episode.reset(**given)
    assert not [one async for one in log.sessions()]


async def test_actions_of_the_wrong_type_are_answered(log: Store) -> None:
    wrong: Sequence[Any] = (
        None,
        5,
        "hi",
        {"name": "message"},
        [call("wait"), 5],
        ToolCall(id="c", name="message", arguments={"text": "Hi"}),  # type: ignore[arg-type]
        ToolCall(id="c", name=5, arguments="{}"),  # type: ignore[arg-type]
        Say(5),  # type: ignore[arg-type]
        Decision(("hi",)),  # type: ignore[arg-type]
    )
    async with Episode(log, EpisodeSetting(mistakes=99)) as episode:
        await episode.reset(BOUQUET, "0", seed=5)
        version = episode.view.version
        for action in wrong:
            seen = await episode.step(action)
            assert seen.invalid
            assert not seen.done
        assert episode.view.version == version


async def test_a_step_that_was_cancelled_is_made_up_for_by_the_next(log: Store) -> None:
    async with Episode(log) as episode:
        await plays(episode)
        whole = (episode.messages, await streams(log, episode.session))
        seen = [await episode.reset(BOUQUET, "0", seed=5)]
        with anyio.move_on_after(0):
            await episode.step(call(*FLORIST[0], id="c0"))
        for number, (name, arguments) in enumerate(FLORIST[1:], 1):
            if not seen[-1].done:
                seen.append(await episode.step(call(name, arguments, f"c{number}")))
        assert (episode.messages, await streams(log, episode.session)) == whole
        assert [one.tool_call_id for one in seen[1].messages if one.role == "tool"] == ["c0", "c1"]
        assert episode.reward.total == pytest.approx(sum(one.reward for one in seen))
        await episode.reset(BOUQUET, "1", seed=5)
        with anyio.move_on_after(0):
            await episode.step(call(*FLORIST[0]))
        await episode.leave()
        assert (await log.summary(episode.session)).state == "cancelled"
