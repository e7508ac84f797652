"""What docstrings show is what happens: the example of each main name is run."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import CodeType

import anyio
import duolog
import msgspec
import pytest
from duolog.engine.events import MessageSent, UtilityScored
from duolog.engine.task import Cell, Setting, Task, find_task
from duolog.testing import Script, a_session, human, played

SHOWN = {
    "open": duolog.open,
    "session": duolog.Log.session,
    "run_session": duolog.run_session,
    "playing": duolog.playing,
    "SimpleTask": duolog.SimpleTask,
    "simulate": duolog.simulate,
    "fork": duolog.fork,
    "SnapshotUtility": duolog.SnapshotUtility,
    "Controller": duolog.Controller,
    "ChatController": duolog.ChatController,
    "score_log": duolog.score_log,
    "replay": duolog.replay,
}
"""The names with an example; a test of this file runs each."""

BLOCK = re.compile(r"^For example.*::\n\n((?: {4}.*\n|\n)+)", re.MULTILINE)


def example(name: str) -> CodeType:
    """The example of a name, compiled; it may await at its top level."""
    [text] = BLOCK.findall(f"{inspect.getdoc(SHOWN[name])}\n")
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    code: CodeType = compile(textwrap.dedent(text), f"<{name}>", "exec", flags=flags)
    return code


async def run(name: str, show: Callable[..., object], **names: object) -> None:
    """Runs an example in which these names are known, plus ``duolog`` and ``print``."""
    awaited = eval(example(name), {"duolog": duolog, "print": show, **names})
    if inspect.isawaitable(awaited):
        await awaited


@pytest.fixture
def task() -> Task:
    """A task whose sessions have several rounds."""
    return find_task("travel")


async def record(log: duolog.Log) -> str:
    """Records a session in a log."""
    s = await log.session("conversation-42", task="support", judge="human")
    await s.human.says("Where is my parcel?")
    await s.agent.submits("It will come tomorrow.")
    await s.human.rates(2)
    await s.human.says("That is too late.")
    await s.close(durable=True)
    return s.id


def test_every_example_of_a_public_name_is_one_of_these() -> None:
    values = [getattr(duolog, name) for name in duolog._HOMES]
    members = [m for v in values if inspect.isclass(v) for m in vars(v).values()]
    ours = [v for v in (*values, *members) if inspect.isclass(v) or inspect.isfunction(v)]
    shown = [v for v in ours if "For example" in (v.__doc__ or "")]
    assert sorted(map(repr, shown)) == sorted(map(repr, SHOWN.values()))


async def test_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    await run("open", print)
    async with duolog.open("sqlite:///telemetry.db", create=False) as log:
        kinds = [record.kind async for record in log.read("conversation-42")]
    assert kinds == ["SessionOpened", "MessageSent", "MessageSent", "SessionClosed"]


async def test_session() -> None:
    async with duolog.open("memory://") as log:
        await run("session", print, log=log)
        await log.settle()
        summary = await log.summary("conversation-42")
        assert summary.group["country"] == "NZ"
        [point] = (await duolog.score_log(log, "conversation-42")).points
        assert point.rating == 5


async def test_run_session() -> None:
    async with duolog.open("memory://") as log:
        shown: list[object] = []
        await run("run_session", lambda *words: shown.extend(words), log=log)
        assert shown == ["finished", 1]


async def test_playing() -> None:
    names: dict[str, object] = {"duolog": duolog}
    exec(example("playing"), names)
    player = names["player"]
    assert isinstance(player, duolog.Player)
    ann = human(Script().hear().say("Hello?").hear().finish())
    trace = (await played(a_session(ann, player))).trace
    events = [record.event for record in trace]
    heard = [event.text for event in events if isinstance(event, MessageSent)]
    assert heard == ["Hello?", "Hello?"]


async def test_simple_task() -> None:
    async with duolog.open("memory://") as log:
        shown: list[object] = []
        await run("SimpleTask", shown.append, log=log)
        assert shown == [1 / 3]


async def test_simulate(task: Task) -> None:
    async with duolog.open("memory://") as log:
        outcomes: list[object] = []
        await run("simulate", outcomes.append, log=log, task=task, partial=partial)
        assert len(outcomes) == 3
        assert {summary.task async for summary in log.sessions()} == {"travel"}


async def test_fork(task: Task) -> None:
    async with duolog.open("memory://") as log:
        [instance] = task.instances(1, seed=3)
        cell = Cell(agent="two-stage", user="proactive", instance=instance, seed=3)
        make = partial(task.session, cell, Setting())
        origin = await duolog.run_session(log, make())
        await run("fork", print, log=log, session=make(), msgspec=msgspec)
        [forked] = [
            summary async for summary in log.sessions() if summary.session != origin.session
        ]
        assert forked.session.startswith("fork-")
        assert forked.session.endswith(f"-of-{origin.session}")
        assert forked.state == "finished"


async def test_snapshot_utility() -> None:
    async with duolog.open("memory://") as log:
        talk = await record(log)
        updates: list[object] = []
        await run("SnapshotUtility", updates.append, log=log)
        await log.settle()
        [scored] = [
            record.event
            async for record in log.read_all(session=talk)
            if isinstance(record.event, UtilityScored)
        ]
        assert scored.value == 1.0
        assert updates


async def test_controller() -> None:
    async with duolog.open("memory://") as log:
        await record(log)
        advice: list[object] = []
        advised = anyio.Event()

        def show(*words: object) -> None:
            advice.extend(words)
            advised.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(run, "Controller", show, log=log))
            await advised.wait()
            await log.aclose()  # which ends the updates, and the example with them
        assert advice[1] == "because"


async def test_chat_controller() -> None:
    async with duolog.open("memory://") as log:
        await record(log)
        advice: list[object] = []
        async with anyio.create_task_group() as tasks:

            def show(*words: object) -> None:
                advice.extend(words)
                tasks.cancel_scope.cancel()  # the subscription would wait for more

            await run("ChatController", show, log=log)
        assert advice[1] == "because"


async def test_score_log() -> None:
    async with duolog.open("memory://") as log:
        await record(log)
        points: list[tuple[object, ...]] = []
        await run("score_log", lambda *words: points.append(words), log=log)
        assert [(number, rating) for number, _, rating, _ in points] == [(1, 2), (2, None)]


async def test_replay() -> None:
    async with duolog.open("memory://") as log:
        await record(log)
        lines: list[str] = []
        await run("replay", lambda *words: lines.append(" ".join(map(str, words))), log=log)
        assert lines[0] == "RoundOpened in round 1"
        assert lines[-1] == "SessionEnded in round 2"
