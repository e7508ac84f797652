"""Measures what the proxy in front of a coding agent adds to a message, against the agent alone."""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path


def message(size: int, number: int) -> bytes:
    """A chunk of a message of the agent, as a line."""
    content = {"type": "text", "text": "x" * size}
    update = {"sessionUpdate": "agent_message_chunk", "messageId": str(number), "content": content}
    params = {"sessionId": "benchmark", "update": update}
    line = {"jsonrpc": "2.0", "method": "session/update", "params": params}
    return json.dumps(line).encode() + b"\n"


def round_trips(command: Sequence[str], lines: Sequence[bytes], pause: float) -> list[float]:
    """Seconds from writing each line to having read it back."""
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, bufsize=0) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        found = []
        for line in lines:
            began = time.perf_counter()
            process.stdin.write(line)
            left = len(line)
            while left:
                left -= len(process.stdout.read(left))
            found.append(time.perf_counter() - began)
            threading.Event().wait(pause)
        process.stdin.close()
    return found


def main() -> None:
    """Measures, and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=2000)
    parser.add_argument("--size", type=int, default=300, help="characters of each text")
    parser.add_argument("--pause", type=float, default=0.001, help="seconds between messages")
    options = parser.parse_args()
    lines = [message(options.size, number) for number in range(options.messages)]
    with tempfile.TemporaryDirectory() as directory:
        log = Path(directory) / "log.db"
        start = [sys.executable, "-P", "-m", "duolog", "acp", "--log", str(log), "--"]
        direct = round_trips(["cat"], lines, options.pause)[100:]
        proxied = round_trips([*start, "cat"], lines, options.pause)[100:]
    for name, share in (("median", 50), ("99 %", 99)):
        without, through = (
            statistics.quantiles(each, n=100)[share - 1] * 1000 for each in (direct, proxied)
        )
        print(
            f"{name:>7}: there and back {without:.3f} ms without, {through:.3f} ms through the "
            f"proxy; added each way {(through - without) / 2:.3f} ms"
        )


if __name__ == "__main__":
    main()
