"""A peer of simulated sessions: ``inspect_ai`` with its mock model (``pip install inspect_ai``).

A sample is a conversation of as many model turns as one of our sessions has answers; its mock model
answers at once. Nothing is recorded but what ``inspect_ai`` writes into its own log anyhow, with its
settings as they come.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from duolog.benchmarks.floors.kernel import TEXT, TURNS

__all__ = ("PACKAGE", "simulate_theirs")

PACKAGE = "inspect_ai"


async def simulate_theirs(directory: Path, sessions: int, at_once: int) -> int:
    """Runs conversations, a number at once; returns their number.

    Raises:
        RuntimeError: one of them did not succeed.
    """
    inspect_ai = importlib.import_module("inspect_ai")
    dataset = importlib.import_module("inspect_ai.dataset")
    model = importlib.import_module("inspect_ai.model")
    usage = model.ModelUsage(input_tokens=100, output_tokens=20, total_tokens=120)

    def answer(*_: object) -> object:
        output = model.ModelOutput.from_content(model="mockllm", content=TEXT[:120])
        output.usage = usage  # else it counts tokens, which costs more than all the rest
        return output

    samples = [dataset.Sample(input=TEXT, id=number + 1) for number in range(sessions)]
    logs = await inspect_ai.eval_async(
        inspect_ai.Task(dataset=dataset.MemoryDataset(samples), solver=_talk(answer)),
        model=model.get_model("mockllm/model", custom_outputs=answer, memoize=False),
        log_dir=str(directory),
        max_samples=at_once,
        max_connections=at_once,
    )
    if logs[0].status != "success" or len(logs[0].samples) != sessions:
        raise RuntimeError(f"inspect_ai: {logs[0].status}, {logs[0].error}")
    return sessions


def _talk(answer: object) -> Any:  # noqa: ANN401 (its type needs the library)
    model = importlib.import_module("inspect_ai.model")
    solver = importlib.import_module("inspect_ai.solver")

    @solver.solver  # type: ignore[untyped-decorator]
    def talk() -> object:
        async def solve(state: Any, generate: object) -> object:  # noqa: ANN401
            chosen = model.get_model()
            for turn in range(TURNS):
                if turn:
                    state.messages.append(model.ChatMessageUser(content=TEXT))
                state.output = await chosen.generate(state.messages)
                state.messages.append(state.output.message)
            return state

        return solve

    return talk()
