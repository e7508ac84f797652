"""The log on a disk that fills up while several write: acknowledged events stay, and it continues once
there is room.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import pytest
from duolog.engine.errors import LogUnavailable, OutcomeUnknown
from duolog.engine.events import MessageSent
from duolog.engine.log.contract import EventLog
from duolog.engine.log.open import open_log
from duolog.engine.records import Draft
from duolog.testing.postgres_server import missing, running_postgres
from duolog.testing.tools import collect

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]

WRITERS = 5
MORE = 20
"""Appends of each writer before the disk is full, and after there is room."""


class SmallDisk:
    """A separate file system, in memory.

    Attributes:
        path: where it is mounted.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._ballast = path / "ballast"

    def fill(self) -> None:
        """Leaves no room on it."""
        with self._ballast.open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(bytes(4096))

    def make_room(self) -> None:
        """Takes away what filled it."""
        self._ballast.unlink()


@contextmanager
def small_disk(megabytes: int) -> Iterator[SmallDisk]:
    with TemporaryDirectory(prefix="duolog-disk-") as path:
        command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", path]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
        try:
            os.chmod(path, 0o1777)
            yield SmallDisk(Path(path))
        finally:
            subprocess.run(["umount", "-l", path], check=True)


class Writer:
    """Appends to a private session, each event at its version, whatever happens.

    Attributes:
        acknowledged: the texts of acknowledged appends.
        unknown: how often the outcome of an append was unknown.
        refused: the errors of refused appends.
    """

    def __init__(self, log: EventLog, number: int, size: int) -> None:
        self._log = log
        self._size = size
        self.session = f"s{number}"
        self.acknowledged: list[str] = []
        self.unknown = 0
        self.refused: list[str] = []

    async def write(self) -> None:
        """Writes until it is cancelled."""
        while True:
            version = len(self.acknowledged)
            text = f"{version} {'x' * self._size}"
            draft = Draft(MessageSent(text=text), "w", "agent", 1.0)
            try:
                await self._log.append(self.session, [draft], expected_version=version)
            except OutcomeUnknown as error:
                self.refused.append(str(error))
                self.unknown += 1
                if not await self._is_there(version):
                    continue
            except LogUnavailable as error:
                self.refused.append(str(error))
                await anyio.sleep(0.05)
                continue
            self.acknowledged.append(text)

    async def _is_there(self, version: int) -> bool:
        """Looks whether there is a record after a version, as soon as there is an answer."""
        while True:
            with suppress(LogUnavailable):
                return bool(await collect(self._log.read(self.session, after_version=version)))
            await anyio.sleep(0.05)


async def fill_up(
    url: str, disk: SmallDisk, size: int, restart: Callable[[], None] | None = None
) -> list[str]:
    """Fills a disk while several write, and makes room again; returns the writers' errors. If
    nothing has to be restarted, reading continues meanwhile.
    """
    async with open_log(url) as log, anyio.create_task_group() as tasks:
        writers = [Writer(log, number, size) for number in range(WRITERS)]
        for writer in writers:
            tasks.start_soon(writer.write)

        async def until_each(holds: Callable[[Writer], object]) -> None:
            while not all(map(holds, writers)):  # noqa: ASYNC110
                await anyio.sleep(0.02)

        await until_each(lambda writer: len(writer.acknowledged) >= MORE)
        disk.fill()
        await until_each(lambda writer: writer.refused)
        held = [] if restart else await collect(log.read_all())
        disk.make_room()
        if restart is not None:
            await anyio.to_thread.run_sync(restart)
        before = {writer.session: len(writer.acknowledged) for writer in writers}
        await until_each(lambda w: len(w.acknowledged) >= before[w.session] + MORE)
        tasks.cancel_scope.cancel()
    async with open_log(url) as log:
        records = await collect(log.read_all())
        assert not (await log.verify()).problems
    assert [record.position for record in records] == list(range(1, len(records) + 1))
    for writer in writers:
        mine = [r.event for r in records if r.session == writer.session]
        texts = [event.text for event in mine if isinstance(event, MessageSent)]
        assert texts[: len(writer.acknowledged)] == writer.acknowledged
        assert len(texts) - len(writer.acknowledged) <= 1  # the one that was cancelled on its way
    assert records[: len(held)] == held
    refused = [line for writer in writers for line in writer.refused]
    sys.stdout.write(
        f"{len(records)} events, {len(refused)} appends refused, of {sum(w.unknown for w in writers)} "
        f"the outcome was unknown: {sorted(set(refused))}\n"
    )
    return refused


@pytest.fixture
def programs() -> None:
    """Skips the test if PostgreSQL is not installed."""
    if why := missing():
        pytest.skip(why)


async def test_a_log_in_a_file() -> None:
    with small_disk(16) as disk:
        refused = await fill_up(f"sqlite:///{disk.path}/log.db", disk, 300)
    assert all("the disk is full; nothing was written" in line for line in refused)


@pytest.mark.usefixtures("programs")
async def test_tables_of_a_server() -> None:
    """It stays up, and readers continue."""
    with (
        small_disk(160) as disk,
        running_postgres(place=disk.path) as server,
    ):
        refused = await fill_up(server.url(), disk, 300)
    assert all("the server's disk is full; nothing was written" in line for line in refused)


@pytest.mark.usefixtures("programs")
async def test_the_write_ahead_log_of_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server stops, and is started again once there is room."""
    monkeypatch.setattr("duolog.engine.log.postgres.writer.PATIENCE", 5.0)
    with (
        small_disk(64) as disk,
        running_postgres(durable=False, wal=disk.path / "wal") as server,
    ):

        def restart() -> None:
            with suppress(subprocess.CalledProcessError):  # it is down, or coming up
                server.stop("immediate")
            server.start()

        refused = await fill_up(server.url(), disk, 8_000, restart)
    assert all(
        "went away while it committed" in line or "nothing was written" in line for line in refused
    )
