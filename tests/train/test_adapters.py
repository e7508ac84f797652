"""Adapters for training frameworks: their tools and rewards, and bad input."""

from __future__ import annotations

import inspect
import json
import math
from pathlib import Path
from typing import Any, get_type_hints

import anyio
import pytest
from duolog.benchmarks.adapters import RUNS, compare
from duolog.engine.errors import InvalidInput, SessionClosedError
from duolog.engine.log.open import open_log
from duolog.train.blocking import Stage
from duolog.train.chat import calls_in, carry_out, written
from duolog.train.episode import Episode, EpisodeSetting
from duolog.train.rewards import RewardTerms
from duolog.train.trl import trl_environments
from trained import BOUQUET


def test_trl_gets_typed_methods_with_google_docstrings() -> None:
    with Stage() as stage:
        environment: Any = trl_environments(stage, BOUQUET)()
        methods = {
            name: value
            for name, value in inspect.getmembers(type(environment), predicate=inspect.isfunction)
            if not name.startswith("_")
        }
        assert {"reset", "get_reward", "message", "wait", "submit", "finish", "Count"} <= set(
            methods
        )
        count = environment.Count
        assert get_type_hints(count) == {"flower": str, "return": str}
        assert list(inspect.signature(count).parameters) == ["flower"]
        lines = (count.__doc__ or "").splitlines()
        assert lines[0] == "Count the stems of a flower in stock."
        assert "Args:" in lines
        assert any(line.strip().startswith("flower:") for line in lines)


def test_a_rollout_of_trl_is_an_episode_with_its_reward() -> None:
    with Stage() as stage:
        environment: Any = trl_environments(stage, BOUQUET)()
        assert "A bouquet, please." in environment.reset(problem="0", seed=5, prompt="ignored")
        assert "user:" in environment.message(text="Which flowers do you like?")
        assert environment.Count(flower="rose").isdecimal()
        assert "Error" in environment.Count(flower=3)
        environment.submit(content="rose")
        environment.finish()
        assert environment.message(text="Hello?") == "The session is over."
        assert math.isfinite(environment.get_reward())
        environment.reset(problem="1", seed=5)
        assert math.isfinite(environment.get_reward())  # the model stopped calling tools
        with pytest.raises(InvalidInput, match="'problem'"):
            environment.reset(prompt="nothing else")
        with pytest.raises(InvalidInput, match="whole numbers"):
            environment.reset(problem="0", seed="one")


def test_gymnasium_steps_through_an_episode() -> None:
    pytest.importorskip("gymnasium", reason="gymnasium is not installed")
    from duolog.train.gymnasium import EpisodeEnv

    env = EpisodeEnv(BOUQUET)
    try:
        first, _ = env.reset(seed=1)
        assert first == env.reset(seed=1)[0]
        _, reward, terminated, truncated, info = env.step("dance!")
        assert (reward, terminated, truncated) == (0.0, False, False)
        assert "an action is a tool call" in info["invalid"]
        env.step(json.dumps({"name": "submit", "arguments": {"content": "rose"}}))
        *_, terminated, truncated, info = env.step(json.dumps({"name": "finish"}))
        assert (terminated, truncated, info["ended"]) == (True, False, "finished")
        with pytest.raises(SessionClosedError):
            env.step(json.dumps({"name": "wait"}))
    finally:
        env.close()


def completion(*calls: object) -> dict[str, object]:
    """An assistant's message of chat completions."""
    return {"role": "assistant", "content": None, "tool_calls": list(calls)}


def function(name: str, arguments: object, id: str = "1") -> dict[str, object]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def test_the_calls_of_a_chat_completion_are_carried_out_and_each_is_answered() -> None:
    async def main() -> None:
        setting = EpisodeSetting(mistakes=9)
        async with open_log("memory://") as log, Episode(log, setting) as episode:
            await episode.reset(BOUQUET, "0", seed=5)
            version = episode.view.version
            for wrong, why in (
                (function("dance", "{}"), "unknown action 'dance'"),
                ({"id": "1"}, "unknown action ''"),
                ("dance", "unknown action ''"),
                (function("Count", "{"), "are not JSON"),
                (function("Count", {}), "Count was called wrongly"),
            ):
                [said] = await carry_out(episode, completion(wrong))
                assert said["role"] == "tool"
                assert why in str(said["content"])
            assert episode.view.version == version
            told = await carry_out(
                episode,
                completion(
                    function("Count", {"flower": "rose"}, "a"),
                    function("submit", '{"content": "rose"}', "b"),
                ),
            )
            assert [one.get("tool_call_id") for one in told[:2]] == ["a", "b"]
            assert str(told[0]["content"]).isdecimal()
            [over, *_] = await carry_out(episode, completion(function("finish", "{}", "z")))
            assert over == {
                "role": "tool",
                "content": "The session is over.",
                "tool_call_id": "z",
            }
            with pytest.raises(SessionClosedError):
                await carry_out(episode, completion(function("wait", "{}")))
            said = written(episode.messages[-2])
            assert said["tool_calls"] == [function("finish", "{}", "z")]

    anyio.run(main)


def test_a_message_without_calls_has_none() -> None:
    for message in ({}, {"tool_calls": None}, {"tool_calls": "wait"}, {"tool_calls": 5}):
        assert calls_in(message) == ()


def test_verifiers_gets_rows_and_refuses_terms_that_make_no_sense() -> None:
    pytest.importorskip("verifiers", reason="verifiers is not installed")
    from duolog.train.verifiers import (
        DuologEnvConfig,
        DuologTaskset,
        DuologTasksetConfig,
        setting_of,
    )

    rows = DuologTaskset(
        DuologTasksetConfig(
            id="x", name_of_task="tutoring", problems=3, personas=["lazy", "bounded"]
        )
    ).load()
    assert [(one.data.persona, one.data.problem) for one in rows] == [
        ("lazy", "0"),
        ("bounded", "1"),
        ("lazy", "2"),
    ]
    for terms in ({"price": "high"}, {"prize": 1}, {"tau": 0}):
        with pytest.raises(InvalidInput):
            setting_of(DuologEnvConfig(reward=terms))
    setting = setting_of(DuologEnvConfig(reward={"tau": 3, "price": 1, "effort": "acts"}, tau=2))
    assert (setting.reward, setting.tau) == (RewardTerms(tau=3, price=1, effort="acts"), 2)


@pytest.mark.slow
@pytest.mark.parametrize("framework", ["gymnasium", "verifiers"])
def test_a_frameworks_own_runner_gives_the_rewards_of_the_log(
    framework: str, tmp_path: Path
) -> None:
    pytest.importorskip(framework, reason=f"{framework} is not installed")
    url = f"sqlite:///{tmp_path / 'log.db'}"
    given = RUNS[framework](url, 4)
    assert len(given) == 4
    assert anyio.run(compare, url, given) == (4, 4)

    async def is_whole() -> bool:
        async with open_log(url) as log:
            return not (await log.verify()).problems

    assert anyio.run(is_whole)
