"""Adapters for training frameworks: their tools and rewards, and bad input."""

from __future__ import annotations

import inspect
import json
import math
from typing import Any, get_type_hints

import pytest
from duolog.engine.errors import InvalidInput, SessionClosedError
from duolog.train.blocking import Stage
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
