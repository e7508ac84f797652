"""The workbench as a process, for benchmarks of it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx
from duolog.benchmarks.measuring import resident_memory

__all__ = ("TOKEN", "Server", "say", "timed")

TOKEN = "a-token-of-the-benchmark"


class Server:
    """The workbench of a log, on a free port.

    Attributes:
        began: when its process was started, by ``time.perf_counter``.
        base: its address.
        port: its port.
    """

    def __init__(self, log: Path) -> None:
        self.began = time.perf_counter()
        command = [sys.executable, "-P", "-m", "duolog", "workbench", str(log), "--port", "0"]
        self.process = subprocess.Popen(
            command,
            stderr=subprocess.PIPE,
            env=os.environ | {"DUOLOG_TOKEN": TOKEN},
            text=True,
            encoding="utf-8",
        )
        assert self.process.stderr is not None
        said = self.process.stderr.readline()
        self.base = said.partition(" is at ")[2].partition("/#")[0]
        self.port = int(self.base.rpartition(":")[2])

    def processor_time(self) -> float:
        """Seconds that it has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii").split()
        return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> float:
        """Its current memory, in MB."""
        return resident_memory(str(self.process.pid))

    async def enter(self, client: httpx.AsyncClient) -> None:
        """Lets a client in, as an operator."""
        entered = await client.post("/enter", json={"token": TOKEN}, headers={"Origin": self.base})
        entered.raise_for_status()

    def end(self) -> None:
        """Ends it."""
        self.process.terminate()
        self.process.wait(20)


async def timed(work: Callable[[], Awaitable[httpx.Response]]) -> float:
    """Milliseconds until an answer has come."""
    begin = time.perf_counter()
    answer = await work()
    answer.raise_for_status()
    return (time.perf_counter() - begin) * 1000


def say(name: str, *found: str) -> None:
    """Prints a row."""
    print(f"{name:42} {', '.join(found)}", flush=True)
