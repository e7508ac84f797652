"""Records restored from another log: checked like all records, off the event loop."""

from __future__ import annotations

import threading
from pathlib import Path

import msgspec
import pytest
from duolog.engine import validation
from duolog.engine.codec import digest
from duolog.engine.errors import CodecError, PluginFailed
from duolog.engine.events import JSON, MessageSent, SnapshotTaken
from duolog.engine.log import append
from duolog.engine.log.contract import Store
from duolog.engine.log.memory import MemoryLog
from duolog.engine.log.open import open_log
from duolog.engine.records import Draft, Record

STORES = ["memory://", "sqlite:///{}/target.db"]


async def long_records(count: int) -> list[Record]:
    async with MemoryLog() as log:
        for number in range(count):
            event = MessageSent(text=f"{number} {'x' * 20_000}")
            await log.append("s", [Draft(event, "ann", "human", 1.0)])
        return [record async for record in log.read_all()]


@pytest.mark.parametrize("url", STORES)
async def test_many_bytes_are_checked_beside_the_loop(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: set[int] = set()
    check = validation.check_body

    def noticed(kind: str, schema: int, body: bytes) -> object:
        threads.add(threading.get_ident())
        return check(kind, schema, body)

    records = await long_records(3)
    monkeypatch.setattr(append, "check_body", noticed)
    async with open_log(url.format(tmp_path)) as log:
        assert await log.restore(records) == records
    assert len(threads) == 1
    assert threading.get_ident() not in threads


def deep(draft: Draft) -> Draft:
    content: JSON = "x" * 40_000
    for _ in range(150):
        content = [content]
    event = SnapshotTaken(content=content, digest=digest(content))
    return msgspec.structs.replace(draft, event=event)


def raises(draft: Draft) -> Draft:
    raise ValueError("hook")


@pytest.mark.parametrize("url", STORES)
async def test_what_a_hook_makes_of_a_record_is_checked_like_all(url: str, tmp_path: Path) -> None:
    records = await long_records(1)
    for hook, kind in ((deep, CodecError), (raises, PluginFailed)):
        log: Store = open_log(url.format(tmp_path), redact=hook)
        async with log:
            [outcome] = await log.restore(records)
            assert isinstance(outcome, kind)
            assert [record async for record in log.read_all()] == []
