"""A log that is open while its process forks, as a server does that loads a program before it forks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,  # these tests start programs
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork"),
]

SYNC = """
import os, sys, duolog
from duolog.engine.errors import LogClosed

def refused(*verbs):
    for verb in verbs:
        try:
            verb()
        except LogClosed as error:
            assert f"opened in process {parent}" in str(error), error
            assert f"this is process {os.getpid()}" in str(error), error
        else:
            os._exit(3)

parent = os.getpid()
log = duolog.open_sync(sys.argv[1]).__enter__()
session = log.session("s")
session.human.says("before", durable=True)
locked = log.recorder.intake._lock
locked.acquire()  # as a thread may have it that is not there after the fork
child = os.fork()
if not child:
    refused(
        lambda: session.human.says("lost"),
        lambda: session.agent.says("lost", durable=True),
        lambda: log.session("t"),
        lambda: log.read("s"),
        lambda: log.summary("s"),
        lambda: log.statistics(),
        lambda: log.watch(),
    )
    log.close()
    log.__exit__(None, None, None)
    sys.exit(7)  # through all that an interpreter does at its end
locked.release()
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 7, status
session.human.says("after", durable=True)
log.close()
with duolog.open_sync(sys.argv[1]) as again:
    print([record.event.text for record in again.read("s")[1:]])
"""

ASYNC = """
import asyncio, os, sys
from duolog.engine.errors import LogClosed
from duolog.engine.events import MessageSent
from duolog.engine.records import Draft
from duolog.telemetry.log import open

async def refused(call):
    try:
        await call()
    except LogClosed as error:
        assert "forked" in str(error)
    else:
        os._exit(3)

async def main():
    draft = Draft(MessageSent(text="x"), "ann", "human", 1.0)
    async with open(sys.argv[1]) as log:
        session = await log.session("s")
        await session.human.says("before", durable=True)
        waits = asyncio.create_task(session.human.says("waits"))
        child = os.fork()
        if not child:
            await refused(lambda: session.human.says("lost"))
            await refused(lambda: log.session("t"))
            await refused(lambda: log.append("s", [draft]))
            await refused(lambda: log.summary("s"))
            await refused(lambda: log.verify())
            await log.aclose()
        else:
            await waits
            _, status = await asyncio.to_thread(os.waitpid, child, 0)
            assert os.waitstatus_to_exitcode(status) == 7, status
            await session.human.says("after", durable=True)
            print([record.version async for record in log.read("s")])
    if not child:
        os._exit(7)

asyncio.run(main())
"""


MAY = "ignore:This process:DeprecationWarning"  # since Python 3.12, about any fork with threads


@pytest.mark.parametrize(
    ("program", "told"), [(SYNC, "['before', 'after']"), (ASYNC, "[1, 2, 3, 4]")]
)
def test_a_fork_is_refused_and_does_not_hang(tmp_path: Path, program: str, told: str) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-W", MAY, "-c", program, str(tmp_path / "a.db")],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.stdout.strip(), done.returncode, done.stderr) == (told, 0, "")
