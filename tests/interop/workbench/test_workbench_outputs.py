"""The versions of an output: which is the latest, and how much is read to know that."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import cast

from duolog.engine.log.contract import EventLog
from duolog.engine.log.open import open_log
from duolog.engine.records import TRACE, Record
from duolog.interop.workbench.participation.outputs import Outputs
from duolog.testing.records import RecordWriter
from duolog.testing.sessions import put_records


class Counting:
    """A log that counts the records that are read of it."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self.count = 0

    async def read(
        self, session: str, *, stream: str = TRACE, after_version: int = 0
    ) -> AsyncIterator[Record]:
        async for record in self._log.read(session, stream=stream, after_version=after_version):
            self.count += 1
            yield record


async def test_the_latest_version_is_found_by_what_has_come_since() -> None:
    script = RecordWriter()
    script.opened()
    async with open_log("memory://") as log:
        counted = Counting(log)
        outputs = Outputs(cast(EventLog, counted))
        assert await outputs.latest("s") is None
        for number in range(30):
            done = len(script.records)
            for text in range(8):
                script.human(f"word {text}")
            draft = script.output(f"draft {number}")
            script.agent("here it is")
            await put_records(log, script.records[done:] if done > 1 else script.records)
            counted.count = 0
            latest = await outputs.latest("s")
            assert latest is not None
            assert latest.version == draft.version
            assert counted.count <= 12  # the ten that are new, the opening, and the version itself
        first = await outputs.version("s", 10)
        assert first is not None
        assert first.kind == "SnapshotTaken"
        assert await outputs.version("s", 3) is None  # a message
        assert await outputs.version("s", 0) is None
        # People read of versions 1, 2, 3, whatever else the session holds.
        assert [await outputs.number("s", at) for at in (3, 10, draft.version)] == [0, 1, 30]
