"""Files of JSON Lines: the output of an export, and the lines that an import takes, knows and names."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ....engine.errors import DuologError, InvalidInput, LogUnavailable, SessionNotFound
from ....engine.events import MessageSent
from ....engine.log.exchange.jsonl_export import export_jsonl, from_jsonl, to_jsonl
from ....engine.log.exchange.jsonl_import import LOST, import_jsonl
from ....engine.log.memory import MemoryLog
from ....engine.records import Draft, Record
from ...tools import collect, raises, require
from ..around import check_gaps, check_restoring
from .ground import Ground, populate

__all__ = ("exchange", "mend", "restore")


async def exchange(ground: Ground) -> None:
    """A log goes through a file and comes back as it was; problems are named by their lines."""
    async with ground.open("exported") as log:
        records = await populate(log)
        await log.forget("f")
        records = await collect(log.read_all())
        told: list[int] = []
        file = io.BytesIO()
        count = await export_jsonl(log, file, progress=told.append)
        require(count == len(records) == told[-1], f"an export counts: {count}, {told}")
        require(told == sorted(set(told)) or told[-1] == told[-2], f"and tells: {told}")
        lines = file.getvalue().splitlines(keepends=True)
        require(lines == [to_jsonl(record) for record in records], "a record a line, in order")
        some = io.BytesIO()
        await export_jsonl(log, some, sessions=["c", "a", "c"])
        wanted = [each for name in "ca" for each in records if each.session == name]
        require(some.getvalue() == b"".join(map(to_jsonl, wanted)), "session by session, once")
        await raises(SessionNotFound, export_jsonl(log, io.BytesIO(), sessions=["a", "nobody"]))
    with tempfile.TemporaryDirectory(prefix="duolog-") as name:
        path = Path(name) / "out.jsonl"
        path.write_bytes(b"\n".join([lines[0], b"  \n", *lines[1:]]))
        async with ground.open("imported") as log:
            told = []
            taken = await import_jsonl(log, path, progress=told.append)
            counts = (taken.records, taken.known, taken.lost, taken.problems)
            require(counts == (len(records), 0, 0, ()), f"an import counts: {taken}")
            found = await collect(log.read_all())
            require(found == records, "an import gives the log back")
            again = await import_jsonl(log, path)
            require((again.records, again.known) == (0, len(records)), f"once: {again}")
            require(told[-1] >= len(records), f"it tells how many lines are done: {told}")
        await _check_bad_lines(path, lines, records)
        await raises(InvalidInput, import_jsonl(MemoryLog(), path.with_name("nothing")))
        async with MemoryLog() as log:
            await raises(LogUnavailable, export_jsonl(log, Path(name) / "no" / "where"))


def _write(path: Path, lines: Sequence[bytes]) -> None:
    path.write_bytes(b"".join(lines))


async def _check_bad_lines(path: Path, lines: list[bytes], records: Sequence[Record]) -> None:
    """A bad line is named; with ``keep_going`` all others are taken."""
    bad = [
        b"not json\n",
        b"{}\n",
        b'{"session":1}\n',
        b"[" * 100_000 + b"\n",
        lines[0].replace(b'"version":1', b'"version":0'),
        lines[0].replace(b'"role":"environment"', b'"role":"king"'),
        lines[0].replace(b'"session":"a"', b'"session":""'),
        lines[0].replace(b'"body":{', b'"body":{"clock":7,'),
    ]
    for line in bad:
        require(line not in lines, "a bad line is bad")
        file = [*lines[:3], line, *lines[3:]]
        _write(path, file)
        async with MemoryLog() as log:
            error = await raises(InvalidInput, import_jsonl(log, path))
            require(str(error).startswith("line 4:"), f"the line is named: {error}")
            require(not await collect(log.read_all()), "a file with a bad line is not begun")
            taken = await import_jsonl(log, path, keep_going=True)
            require([each.line for each in taken.problems] == [4], f"one is left out: {taken}")
            require(taken.records == len(records), f"the others are taken: {taken}")
        async with MemoryLog() as log:
            source = io.BytesIO(b"".join(file))
            error = await raises(InvalidInput, import_jsonl(log, source))
            require(str(error).startswith("line 4:"), f"the line is named: {error}")
    for changed, why in (
        ({"actor": "else"}, "the log has another"),
        ({"body": b'{"kind":"SessionOpened"}'}, "the log has another"),
    ):
        async with MemoryLog() as log:
            await log.restore(records)
            other = msgspec.structs.replace(records[0], **changed, _event=None)
            error = await raises(InvalidInput, import_jsonl(log, io.BytesIO(to_jsonl(other))))
            require(why in str(error), f"{error} says {why}")
            taken = await import_jsonl(log, io.BytesIO(to_jsonl(other)), keep_going=True)
            require((taken.records, taken.known) == (0, 0), f"nothing is taken: {taken}")
            require(await collect(log.read_all()) == list(records), "and nothing changes")


async def mend(ground: Ground) -> None:
    """A file without some lines is imported with placeholders, which keep the versions as they were."""
    async with MemoryLog() as origin:
        records = await populate(origin)
        records += await origin.append("c", [_text(f"line {at}") for at in range(6)])
        for draw in range(ground.draw % 5, ground.draw % 5 + 3):
            await check_gaps(records, draw << 4 | draw)
            await check_restoring(records, draw)
    own = [record for record in records if record.session == "c"]
    for missing in (own[:1], own[1:3], own[2:6]):
        left = [record for record in records if record not in missing]
        data = b"".join(map(to_jsonl, left))
        async with ground.open(f"mended {len(missing)} {missing[0].version}") as log:
            taken = await import_jsonl(log, io.BytesIO(data), keep_going=True)
            counts = (taken.records, taken.lost, taken.known, taken.problems)
            require(counts == (len(left), len(missing), 0, ()), f"an import counts: {taken}")
            found = await collect(log.read("c"))
            for record, was in zip(found, own, strict=True):
                lost = was in missing
                require((record.kind == LOST) == lost, f"a placeholder says so: {record}")
                require(lost or record.body == was.body, f"the others are as they were: {record}")
                require(record.version == was.version, f"versions stay: {record}")
            again = await import_jsonl(log, io.BytesIO(data), keep_going=True)
            facts = (again.records, again.lost, again.known)
            require(facts == (0, 0, len(left)), f"it may be run again: {again}")
    broken = msgspec.structs.replace(own[2], body=b'{"kind":"MessageSent","text":1}', _event=None)
    lines = [to_jsonl(broken if record is own[2] else record) for record in records]
    async with ground.open("broken") as log:
        taken = await import_jsonl(log, io.BytesIO(b"".join(lines)), keep_going=True)
        where = [each.line for each in taken.problems]
        require(where == [records.index(own[2]) + 1], f"one line is named: {taken}")
        taken_lost = (taken.records, taken.lost)
        require(taken_lost == (len(records) - 1, 1), f"those behind it are taken: {taken}")
        kinds = [record.kind == LOST for record in await collect(log.read("c"))]
        require(kinds == [record is own[2] for record in own], f"a placeholder is there: {kinds}")
    far = msgspec.structs.replace(own[-1], version=200_000)
    async with MemoryLog() as log:
        taken = await import_jsonl(log, io.BytesIO(to_jsonl(far)), keep_going=True)
        require((taken.records, taken.lost) == (0, 0), f"placeholders have an end: {taken}")
        require(len(taken.problems) == 1, f"which is said: {taken}")


def _text(text: str) -> Draft:
    return Draft(MessageSent(text=text), "ann", "human", 1.0)


async def restore(ground: Ground) -> None:
    """A log takes the records of another at their places, and says of each why it did not."""
    async with MemoryLog() as origin:
        records = await populate(origin)
        await origin.forget("c")
        erased = await collect(origin.read_all())
    async with ground.open("restored") as log:
        outcomes = await log.restore([records[1], *records, records[0]])
        first, *middle, last = outcomes
        require(isinstance(first, DuologError), f"what has no beginning is refused: {first}")
        require(middle == records, "the records come as they were")
        refused = isinstance(last, DuologError) or last == records[0]
        require(refused, f"what is there is not taken twice: {last}")
        require(await collect(log.read_all()) == records, "they are there")
        found = await log.verify()
        require(not found.problems, f"and whole: {found.problems}")
        gone = msgspec.structs.replace(erased[11], session="gone", version=1)
        [taken] = await log.restore([gone])
        require(isinstance(taken, Record) and taken.body is None, "an erased one stays erased")
        require((await log.summary("gone")).state == "forgotten", "and its session is forgotten")
        counts = await log.verify()
        facts = (counts.forgotten, counts.problems, counts.uncompacted)
        require(facts == (1, (), 0), f"which verify knows: {facts}")
        line = to_jsonl(records[0])
        for part in (line[:-2], b"null", b"", line + line):
            await raises(InvalidInput, _parse(part))
        large = msgspec.structs.replace(
            records[1], session="large", version=1, body=_BODY, _event=None
        )
        [taken] = await log.restore([large])
        require(isinstance(taken, Record) and taken.body == _BODY, "a large one is taken, too")


_BODY = b'{"kind":"MessageSent","text":"' + b"x" * 9000 + b'"}'


async def _parse(line: bytes) -> None:
    from_jsonl(line)
