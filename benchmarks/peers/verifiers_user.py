"""A peer of training episodes: ``verifiers`` with its own modelled user (``pip install verifiers``).

Its environment ``user-sim`` has two models talk: the assistant, and a user whose instructions are the task. Here both
are a server in this process that answers at once. Only the processor time of verifiers counts, without its start;
it writes the traces that it always writes.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from duolog.benchmarks.null_model import null_model

__all__ = ("PACKAGE", "turn_of_theirs")

PACKAGE = "verifiers"

_TURNS: Final = 10  # replies of the assistant in each conversation
_FEW: Final = 10  # conversations of the run that tells what the start takes

_ROWS = """
import verifiers.v1 as vf


class Talks(vf.Taskset[vf.Task[vf.TaskData], vf.TasksetConfig]):
    def load(self):
        for number in range({count}):
            data = vf.TaskData(idx=number, prompt="Plan a trip of three days to Madison for two people.")
            yield vf.Task(data, self.config.task)


__all__ = ["Talks"]
"""


def _reply(asked: Mapping[str, Any]) -> dict[str, Any]:
    """What is said at once; the user says that it is done after some turns."""
    said = [one["role"] for one in asked["messages"]].count("assistant")
    is_user = "role-playing a USER" in str(asked["messages"][0]["content"])
    return {
        "content": "###DONE###" if is_user and said >= _TURNS else "That would be fine with me."
    }


def turn_of_theirs(conversations: int) -> float:
    """Milliseconds of the processor for each reply of the assistant, with the user's reply to it.

    Raises:
        RuntimeError: its program failed.
    """
    with null_model(_reply) as url:
        start = _spent(url, _FEW)
        more = _spent(url, _FEW + conversations)
    return 1e3 * (more - start) / (conversations * _TURNS)


def _spent(url: str, conversations: int) -> float:
    """The seconds of the processor that one run of its program takes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "null_talks.py").write_text(_ROWS.format(count=conversations), encoding="utf-8")
        command = [
            f"{Path(sys.executable).parent / 'vf-eval'}",
            "null-talks",
            *("--env.id", "user-sim", "--env.user.max-turns", str(_TURNS + 2)),
            *("--env.assistant.harness.id", "null", "--env.assistant.runtime.type", "subprocess"),
            *("--env.user.runtime.type", "subprocess"),
            *("--client.base-url", url, "--client.api-key-var", "NO_KEY"),
            *("-m", "null", "-c", "64", "--no-push", "--no-rich", "--run.name", "run"),
            *("-o", f"{folder / 'out'}"),
        ]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        ran = subprocess.run(
            command,
            env={**os.environ, "PYTHONPATH": name},
            capture_output=True,
            text=True,
            check=False,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if ran.returncode:
            raise RuntimeError(f"verifiers: {ran.stdout[-500:]}{ran.stderr[-2000:]}")
        traces = (folder / "out" / "run" / "traces.jsonl").read_text(encoding="utf-8")
        if len(traces.splitlines()) != conversations:
            raise RuntimeError(f"verifiers: {len(traces.splitlines())} of {conversations} ended")
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
