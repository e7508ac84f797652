"""A peer of training episodes: the loop of agent, simulated user and environment of tau2-bench, with null models.

Both models are LiteLLM's mock, which answers at once; the domain is its ``mock``. It is installed from a checkout of its
repository (the package ``tau2`` on PyPI is another one), and reads its data from ``TAU2_DATA_DIR``.
"""

from __future__ import annotations

import importlib
import importlib.util
import time
from typing import Final

__all__ = ("PACKAGE", "installed", "turn_of_theirs")

PACKAGE: Final = "tau2-bench"
_STEPS: Final = 20
_NULL: Final = {"mock_response": "That would be fine with me."}


def installed() -> bool:
    """Whether it is installed; another package has the same name."""
    try:
        return importlib.util.find_spec("tau2.orchestrator") is not None
    except ModuleNotFoundError:
        return False


def turn_of_theirs(conversations: int) -> float:
    """Milliseconds of the processor for each message of the agent, with the user's reply to it."""
    importlib.import_module("loguru").logger.remove()
    build = importlib.import_module("tau2.runner.build")
    loop = importlib.import_module("tau2.orchestrator.orchestrator")
    task = importlib.import_module("tau2.runner.helpers").load_tasks("mock")[0]

    def talk() -> int:
        environment = build.build_environment("mock")
        model = {"llm": "gpt-4.1", "llm_args": dict(_NULL)}
        done = loop.Orchestrator(
            domain="mock",
            agent=build.build_agent("llm_agent", environment, task=task, **model),
            user=build.build_user("user_simulator", environment, task, **model),
            environment=environment,
            task=task,
            max_steps=_STEPS,
        ).run()
        return int(sum(one.role == "assistant" for one in done.messages))

    talk()
    began = time.process_time()
    turns = sum(talk() for _ in range(conversations))
    return 1e3 * (time.process_time() - began) / turns
