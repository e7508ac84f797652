"""Makes the logs in this folder, with the program that ``PYTHONPATH`` names; they are never made again.

    PYTHONPATH=FOLDER_OF_THAT_DUOLOG python -P make.py OUTPUT [postgresql://...]

The log has two sessions of a run that ended, one that was interrupted, a fork, a forgotten session, a
recorded conversation that is still open, and a consumer's checkpoint.
"""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import anyio
import duolog
from duolog.engine.log.contract import Advance
from duolog.engine.log.exchange.jsonl_export import export_jsonl
from duolog.engine.log.exchange.jsonl_import import import_jsonl
from duolog.engine.log.open import open_log

RUN = (
    "finance",
    "--agents",
    "one-stage,adaptive",
    "--users",
    "proactive",
    "--max-rounds",
    "4",
    "--seed",
    "3",
)


def program(*arguments: str) -> str:
    command = [sys.executable, "-P", "-m", "duolog", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


async def main(output: Path, database: str) -> None:
    whole, path = output / "whole.db", output / "recorded.db"
    program("run", *RUN, "--sessions", "2", "--log", str(whole))
    async with open_log(str(whole)) as log:
        await export_jsonl(log, output / "whole.jsonl")
        last = await anext(line.session async for line in log.sessions() if line.instance == "1")
    lines = (output / "whole.jsonl").read_bytes().splitlines(keepends=True)
    own = [line for line in lines if b'"session":"%s"' % last.encode() in line]
    cut = {*own[len(own) // 2 :]}  # the process died in the middle of it
    (output / "cut.jsonl").write_bytes(b"".join(line for line in lines if line not in cut))
    url = f"sqlite:///{path}?chain=yes"
    async with open_log(url) as log:
        await import_jsonl(log, output / "cut.jsonl")
        first = await anext(line.session async for line in log.sessions())
    program("fork", str(path), first, "--at-round", "3", "--agent", "adaptive")
    async with duolog.open(url) as log:
        for name in ("secret", "conversation"):
            session = await log.session(name, task="support", agent="v7", labels={"country": "NZ"})
            await session.human.says(f"My {name} has not arrived.")
            await session.agent.submits("We will send it again.")
            await session.human.rates(2)
        await log.settle()
        await log.append(
            "conversation",
            [],
            checkpoint=Advance(consumer="copier", version="1", expected=0, position=9),
        )
        await log.forget("secret")
        await export_jsonl(log, output / "recorded.jsonl")
    for name, arguments in (
        ("sessions", ("sessions", str(path), "--json")),
        ("report", ("report", str(path), "--json", "--bootstrap", "50")),
        ("forks", ("report", str(path), "--json", "--forks")),
    ):
        (output / f"{name}.json").write_text(program(*arguments))
    if database:
        program("copy", str(path), database)
        command = ("pg_dump", "--inserts", "--no-owner", "--no-privileges", database)
        dump = (await anyio.run_process(command)).stdout
        kept = [line for line in dump.splitlines() if line and not line.startswith((b"--", b"\\"))]
        (output / "recorded-postgres.sql.gz").write_bytes(gzip.compress(b"\n".join(kept), mtime=0))
    for name in ("recorded.db", "recorded.jsonl"):
        data = (output / name).read_bytes()
        (output / f"{name}.gz").write_bytes(gzip.compress(data, mtime=0))
    for rest in ("whole.db", "whole.jsonl", "cut.jsonl", "recorded.db", "recorded.jsonl"):
        (output / rest).unlink()


anyio.run(main, Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "")
