"""Plays episodes through training frameworks, each by its own runner, and compares every reward with the log.

    python -P -m duolog.benchmarks.adapters gymnasium    # make adapters installs each apart from the others
    python -P -m duolog.benchmarks.adapters trl --episodes 8

``trl``: ``GRPOTrainer`` trains a tiny random model. It cannot write tool calls, so a parser of its replies makes
them from its tokens. ``gymnasium``: ``check_env``, and ``SyncVectorEnv`` with actions by chance. ``verifiers``: ``vf-eval``,
whose model is a server here that answers by chance.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from random import Random
from typing import Any

import anyio
from duolog import train
from duolog.benchmarks.null_model import Reply, null_model
from duolog.engine.log.open import open_log
from duolog.scoring.live import score_sessions
from duolog.train.blocking import Stage
from duolog.train.rewards import reward_of

__all__ = ("RUNS", "compare", "main")

_CODE = Path(train.__file__).parent
_CALLS = (
    {"name": "message", "arguments": {"text": "What matters most to you?"}},
    {"name": "message", "arguments": {"text": "Would you try the next problem, please?"}},
    {"name": "wait", "arguments": {}},
    {"name": "submit", "arguments": {"content": "x = 3"}},
    {"name": "dance", "arguments": {}},
    {"name": "finish", "arguments": {}},
)
"""Calls to choose from; one is of no tool."""


async def compare(url: str, given: dict[str, float]) -> tuple[int, int]:
    """How many sessions the log holds, and how many rewards are those that it says."""
    async with open_log(url) as log:
        held = [one.session async for one in score_sessions(log)]
        same = 0
        for session, value in given.items():
            found = (await reward_of(log, session)).total
            same += found is not None and math.isclose(found, value, abs_tol=1e-6)
        return len(held), same


def run_gymnasium(url: str, episodes: int) -> dict[str, float]:
    """Vectorized environments of Gymnasium's, and its checker."""
    import gymnasium
    from duolog.train.gymnasium import EpisodeEnv
    from gymnasium.utils.env_checker import check_env

    aside = EpisodeEnv("tutoring")
    check_env(aside, skip_render_check=True)
    aside.close()
    problems = tuple(map(str, range(20)))
    chance = Random(0)
    given: dict[str, float] = {}
    env = gymnasium.make(
        "duolog/Episode-v0", task="tutoring", problems=problems, log=url, max_episode_steps=None
    )
    for number in range(episodes):
        env.reset(seed=number)
        total, over = 0.0, False
        for step in range(30):
            call = chance.choice(_CALLS) if step < 29 else _CALLS[-1]
            _, reward, ended, cut, _ = env.step(json.dumps(call))
            total += float(reward)
            over = ended or cut
            if over:
                break
        played = env.unwrapped
        assert isinstance(played, EpisodeEnv)
        given[played.session] = total
    env.close()
    vector = gymnasium.vector.SyncVectorEnv([lambda: EpisodeEnv("tutoring")] * 2)
    vector.reset(seed=1)
    vector.step([json.dumps(_CALLS[0])] * 2)
    vector.close()
    return given


def run_trl(url: str, episodes: int) -> dict[str, float]:
    """TRL's trainer, with a model of random weights."""
    import torch
    from datasets import Dataset
    from duolog.train.trl import trl_environments
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM
    from trl import GRPOConfig, GRPOTrainer

    torch.manual_seed(0)
    special = ["<|im_start|>", "<|im_end|>", "<pad>"]
    plain = Tokenizer(models.BPE())
    plain.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    plain.decoder = decoders.ByteLevel()
    texts = [path.read_text(encoding="utf-8") for path in _CODE.glob("*.py")]
    plain.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=2000,
            special_tokens=special,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    vocabulary = plain.get_vocab()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=plain,
        eos_token="<|im_end|>",
        pad_token="<pad>",
    )
    from trl.chat_template_utils import add_response_schema, qwen3_chat_template

    tokenizer.chat_template = qwen3_chat_template
    tokenizer = add_response_schema(tokenizer)
    config = Qwen3Config(
        vocab_size=len(vocabulary),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=32_768,
        eos_token_id=vocabulary["<|im_end|>"],
        pad_token_id=vocabulary["<pad>"],
    )
    model = Qwen3ForCausalLM(config)
    given: dict[str, float] = {}
    chance = Random(0)
    parse = tokenizer.parse_response

    def parsed(response: Any, *args: Any, **more: Any) -> Any:  # noqa: ANN401 (TRL's)
        """Tool calls in place of noise, drawn by chance."""
        found = parse(response, *args, **more)
        call = chance.choice(_CALLS)
        found["tool_calls"] = [{"type": "function", "function": call}]
        return found

    object.__setattr__(tokenizer, "parse_response", parsed)
    with tempfile.TemporaryDirectory() as folder, Stage(url) as stage:
        make = trl_environments(stage, "tutoring")

        def noted() -> Any:  # noqa: ANN401 (a new class for each factory)
            environment = make()
            own = environment.get_reward

            def get_reward() -> float:
                value = own()
                given[environment._episode.episode.session] = value  # type: ignore[attr-defined]
                return value

            environment.get_reward = get_reward  # type: ignore[method-assign]
            return environment

        rows = [
            {"prompt": [{"role": "user", "content": ""}], "problem": str(n), "seed": 0}
            for n in range(episodes // 4)
        ]
        settings = GRPOConfig(
            output_dir=folder,
            per_device_train_batch_size=20,
            num_generations=4,
            max_completion_length=1024,
            generation_kwargs={"max_new_tokens": 8},
            max_tool_calling_iterations=3,
            max_steps=max(1, episodes // 20),
            report_to=[],
            use_cpu=True,
            save_strategy="no",
            logging_steps=10,
        )
        trainer = GRPOTrainer(
            model=model,
            args=settings,
            processing_class=tokenizer,
            train_dataset=Dataset.from_list(rows),
            environment_factory=noted,
        )
        trainer.train()
    return given


def _by_chance() -> Reply:
    """A model that speaks or calls tools by chance."""
    chance = Random(0)

    def reply(asked: Mapping[str, Any]) -> dict[str, Any]:
        call = chance.choice(_CALLS)
        if call["name"] == "message":
            return {"content": call["arguments"]["text"]}  # type: ignore[index]
        function = {"name": call["name"], "arguments": json.dumps(call["arguments"])}
        return {"tool_calls": [{"id": "1", "type": "function", "function": function}]}

    return reply


_PLUGIN = """
from duolog.train.verifiers import DuologEnv, DuologHarness, DuologTaskset

__all__ = ["DuologEnv", "DuologHarness", "DuologTaskset"]
"""


def run_verifiers(url: str, episodes: int) -> dict[str, float]:
    """The evaluation command of verifiers."""
    with null_model(_by_chance()) as base, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "duolog_users.py").write_text(_PLUGIN, encoding="utf-8")
        command = [
            f"{Path(sys.executable).parent / 'vf-eval'}",
            "duolog-users",
            *("--env.taskset.name-of-task", "tutoring"),
            *("--env.taskset.problems", str(min(episodes, 25))),
            *("-r", str(-(-episodes // min(episodes, 25)))),
            *("--env.log", url),
            *("--env.assistant.max-turns", "30"),
            *("--client.base-url", base, "--client.api-key-var", "NO_KEY"),
            *("-m", "null", "-c", "16", "--no-push", "--no-rich", "--run.name", "run"),
            *("-o", f"{folder / 'out'}"),
        ]
        ran = subprocess.run(
            command,
            env={**os.environ, "PYTHONPATH": f"{folder}"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        if ran.returncode:
            sys.exit(ran.stderr[-3000:])
        given: dict[str, float] = {}
        with (folder / "out" / "run" / "traces.jsonl").open(encoding="utf-8") as lines:
            for line in lines:
                given.update(_rewarded(json.loads(line)))
    return given


def _rewarded(episode: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """The session and the reward of the trained agent of an episode of verifiers."""
    for trace in episode.get("traces", [episode]):
        agent = trace.get("agent") or {}
        if agent.get("name") != "assistant":
            assert agent.get("trainable") is False
        elif "duolog" in trace.get("info", {}):
            total = sum(one["score"] * one["weight"] for one in trace["rewards"].values() if one)
            yield trace["info"]["duolog"]["session"], total


RUNS: dict[str, Callable[[str, int], dict[str, float]]] = {
    "gymnasium": run_gymnasium,
    "trl": run_trl,
    "verifiers": run_verifiers,
}


def main() -> None:
    """Runs what was asked for; exits with 1 if a reward differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("frameworks", nargs="+", choices=sorted(RUNS))
    parser.add_argument("--episodes", type=int, default=100)
    asked = parser.parse_args()
    failed = False
    for name in asked.frameworks:
        with tempfile.TemporaryDirectory() as folder:
            url = f"sqlite:///{Path(folder) / 'log.db'}"
            given = RUNS[name](url, asked.episodes)
            held, same = anyio.run(compare, url, given)
        print(
            f"{name} {version(name)}: {len(given)} episodes, {held} sessions in the log, "
            f"{same} rewards as the log has them",
            flush=True,
        )
        failed |= same < len(given) or len(given) < asked.episodes
    sys.exit(failed)


if __name__ == "__main__":
    main()
