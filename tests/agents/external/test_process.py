"""The program of an external agent: however it is cancelled, it ends."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import anyio
import pytest
from duolog.agents.external.process import LineProcess
from duolog.agents.external.surroundings import check_names, surroundings
from duolog.engine.errors import InvalidInput, ModelDenied


@pytest.mark.slow
async def test_a_program_that_begins_while_it_is_cancelled_can_still_be_ended() -> None:
    process = LineProcess((sys.executable, "-c", "input()"), "a program")
    with anyio.CancelScope() as scope:
        scope.cancel()
        await process.start()
    assert process.alive
    await process.stop()
    assert not process.alive


async def said(process: LineProcess, line: bytes = b"{}") -> str:
    """The line that a program answers with."""
    found: list[bytes] = []

    async def take(line: bytes) -> bool:
        found.append(line)
        return True

    await process.exchange(line, take)
    return found[0].decode()


def alive(process: int) -> bool:
    """Whether a process runs: one that has ended, and is not reaped, does not."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


@pytest.mark.slow
async def test_a_program_gets_the_variables_that_it_needs_and_those_that_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    secrets = "DUOLOG_TOKEN PGPASSWORD OPENAI_API_KEY AWS_SECRET_ACCESS_KEY".split()
    for name in (*secrets, "LC_ALL", "MY_KEY"):
        monkeypatch.setenv(name, f"the {name}")
    show = "import json, os; input(); print(json.dumps(dict(os.environ)), flush=True)"
    process = LineProcess((sys.executable, "-c", show), "a program", ("MY_KEY",))
    await process.start()
    got = json.loads(await said(process))
    await process.stop()
    assert not set(secrets) & set(got)
    assert (got["LC_ALL"], got["MY_KEY"]) == ("the LC_ALL", "the MY_KEY")
    assert got["PATH"] == os.environ["PATH"]


def test_no_agent_gets_what_is_duologs_own() -> None:
    assert check_names(("OPENAI_API_KEY",)) == ("OPENAI_API_KEY",)
    for name in ("DUOLOG_TOKEN", "duolog_token", "A=B", ""):
        with pytest.raises(InvalidInput, match="--agent-env"):
            check_names((name,))
    environ = {"DUOLOG_TOKEN": "x", "PATH": "/bin", "OTHER": "y"}
    assert surroundings(("DUOLOG_TOKEN",), environ) == {"PATH": "/bin"}


LEAVES = """
import os, subprocess, sys, time
started = [
    subprocess.Popen(["sleep", "600"]).pid,
    subprocess.Popen(["sleep", "600"], start_new_session=True).pid,
]
if not os.fork():
    os.setsid()
    if os.fork():
        os._exit(0)
    with open(sys.argv[1], "w") as file:
        print(os.getpid(), *started, file=file)
    os.close(0), os.close(1), os.close(2)
    time.sleep(600)
while line := sys.stdin.readline():
    if os.path.exists(sys.argv[1]) and open(sys.argv[1]).read().endswith("\\n"):
        print(open(sys.argv[1]).read(), flush=True)
        if "end" in line:
            os._exit(3)
    else:
        print("not yet", flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says which processes are whose")
@pytest.mark.parametrize("how", ["it is stopped", "it ends by itself", "it is killed"])
async def test_all_that_a_program_has_started_ends_with_it(how: str, tmp_path: Path) -> None:
    process = LineProcess((sys.executable, "-c", LEAVES, str(tmp_path / "pids")), "a program")
    await process.start()
    last = b"end" if how == "it ends by itself" else b"{}"
    while (answer := await said(process, last)) == "not yet":
        await anyio.lowlevel.checkpoint()
    children = [int(one) for one in answer.split()]
    assert len(children) == 3
    if how == "it is killed":
        (program,) = {parent_of(one) for one in children[1:]}
        os.kill(program, 9)
    if how != "it is stopped":
        while process.alive:
            await anyio.lowlevel.checkpoint()
    await process.stop()
    assert not any(map(alive, children))


def parent_of(process: int) -> int:
    stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    return int(stat.rpartition(")")[2].split()[1])


@pytest.mark.slow
async def test_a_program_that_is_not_there_is_named() -> None:
    with pytest.raises(ModelDenied, match=r"a program cannot be started: .*no-such-program"):
        await LineProcess(("no-such-program",), "a program").start()
