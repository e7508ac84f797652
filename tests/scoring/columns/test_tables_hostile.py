"""Directories of tables that no export wrote: each is refused in one sentence, in memory that
the size of its files bounds.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import anyio.to_thread
import pytest
from duolog.engine.errors import InvalidInput
from duolog.engine.log.open import open_log
from duolog.scoring.columns.exporter import export_tables
from duolog.scoring.columns.parquet import read_tables
from duolog.scoring.trajectory.options import Options
from duolog.testing.records import RecordWriter
from duolog.testing.sessions import put_records
from later import imported_later
from measured import measure

arrow = imported_later("pyarrow")
parquet = imported_later("pyarrow.parquet")


class Files(NamedTuple):
    """The files of a directory of tables."""

    manifest: Path
    sessions: Path
    rounds: Path


def replaced(path: Path, **columns: object) -> None:
    """Writes a file again, with other columns."""
    table = parquet.ParquetFile(path).read()
    held = {name: table[name] for name in table.column_names} | columns
    parquet.write_table(arrow.table(held), path, compression="zstd")


def shared_text(rows: int) -> object:
    """A column whose rows all have one text of a megabyte, which is there once."""
    return arrow.DictionaryArray.from_arrays(arrow.array([0] * rows), ["a" * 1_000_000])


def many_rows(files: Files) -> None:
    """Ten million rows that are one and the same take a few kilobytes."""
    table = parquet.ParquetFile(files.sessions).read()
    one = {
        name: arrow.array([table[name][0].as_py()], table.schema.field(name).type)
        for name in ("key", "session", "state", "instance")
    }
    with parquet.ParquetWriter(files.sessions, arrow.schema(arrow.table(one).schema)) as writer:
        rows = arrow.table(
            {name: arrow.concat_arrays([held] * 100_000) for name, held in one.items()}
        )
        for _ in range(30):
            writer.write_table(rows)


def long_texts(files: Files) -> None:
    """A dictionary holds a text of a megabyte once, and each row refers to it."""
    table = parquet.ParquetFile(files.sessions).read()
    rows = 3000
    held = {
        name: arrow.array([table[name][0].as_py()] * rows, table.schema.field(name).type)
        for name in table.column_names
    }
    held["key"] = arrow.array(range(rows), arrow.int64())
    held["instance"] = shared_text(rows)
    parquet.write_table(arrow.table(held), files.sessions, compression="zstd")
    replaced(files.rounds, key=arrow.array([0] * parquet.read_metadata(files.rounds).num_rows))


def long_lists(files: Files) -> None:
    """The same inside of a list."""
    replaced(files.sessions, tags=arrow.ListArray.from_arrays([0, 3000], shared_text(3000)))


def elsewhere(files: Files) -> None:
    files.manifest.write_text(
        files.manifest.read_text().replace("sessions/conv", "sessions/../../conv")
    )


def claimed_rows(files: Files) -> None:
    """The manifest claims many rows, and a column of an older version is missing."""
    manifest = json.loads(files.manifest.read_text())
    for view in manifest["views"]:
        for part in view["parts"]:
            part["rows"] = 10**12
    files.manifest.write_text(json.dumps(manifest))
    table = parquet.ParquetFile(files.sessions).read()
    parquet.write_table(table.drop_columns(["tags"]), files.sessions)


def patched(path: Path, field: int) -> None:
    """A number in the header of the first page is the greatest that there is room for. The footer
    says how much there is.
    """
    keys = arrow.array([1 + n * 7919 % 10007 for n in range(3000)], arrow.int64())
    parquet.write_table(arrow.table({"key": keys}), path, compression="zstd", use_dictionary=False)
    data = bytearray(path.read_bytes())
    at = parquet.read_metadata(path).row_group(0).column(0).data_page_offset
    for number in range(field + 1):
        at += (
            2 if data[at] == 0x2C else 1
        )  # the head of a struct is followed by that of its first field
        begin = at
        while data[at] >= 128:
            if number == field:
                data[at] = 0xFE if at == begin else 0xFF
            at += 1
        if number == field:
            data[at] = 0x7F
        at += 1
    path.write_bytes(data)


def wide(files: Files) -> None:
    """Values of 100 kB each, all the same one."""
    values = arrow.array([b"a" * 100_000] * 300, arrow.binary(100_000))
    parquet.write_table(arrow.table({"x": values}), files.sessions)


CASES: dict[str, tuple[Callable[[Files], object], str]] = {
    "many rows": (many_rows, r"part-1.parquet: [\d,]+ compressed bytes become"),
    "long texts": (long_texts, r"part-1.parquet: [\d,]+ compressed bytes become 3,000,000,000"),
    "long lists": (long_lists, r"part-1.parquet: [\d,]+ compressed bytes become 3,000,000,000"),
    "many columns": (
        lambda files: replaced(files.sessions, **{f"x{n}": arrow.array([1]) for n in range(1000)}),
        r"has [\d,]+ columns; at most 1,000 are read",
    ),
    "a file elsewhere": (elsewhere, "manifest.json names a file outside of"),
    "no sessions": (
        lambda files: parquet.write_table(
            parquet.ParquetFile(files.sessions).read().slice(0, 0), files.sessions
        ),
        "has rounds, and no session: export the log again",
    ),
    "pages of many bytes": (
        lambda files: patched(files.sessions, 1),
        "part-1.parquet: a page of the column key holds more than the footer says",
    ),
    "pages of many values": (
        lambda files: patched(files.rounds, 3),
        "part-2.parquet: a page of the column key holds more than the footer says",
    ),
    "pages without headers": (
        lambda files: files.sessions.write_bytes(
            files.sessions.read_bytes()[:4] + b"\xff" * 40 + files.sessions.read_bytes()[44:]
        ),
        "part-1.parquet: a page of the column key lacks a header",
    ),
    "wide values": (wide, r"part-1.parquet: [\d,]+ compressed bytes become 30,000,000"),
    "keys that are texts": (
        lambda files: replaced(files.sessions, key=arrow.array(["a"])),
        "the column key has the type string, not int64: export the log there again",
    ),
    "labels that are numbers": (
        lambda files: replaced(files.sessions, labels=arrow.array([1])),
        "the column labels has the type int64",
    ),
    "half a file": (
        lambda files: files.rounds.write_bytes(files.rounds.read_bytes()[:-40]),
        "the tables cannot be read: rounds/.*part-2.parquet: ",
    ),
    "levels": (
        lambda files: files.manifest.write_text('{"x":' + "[" * 100_000),
        "is not a manifest of tables: it nests too deeply",
    ),
}


async def exported(directory: Path) -> Files:
    script = RecordWriter("a")
    script.opened(clock="virtual", config={"group": {"agent": "clerk"}})
    script.human("a plan, please")
    draft = script.output("a plan", by="agent")
    script.scored(0.25, snapshot=draft)
    script.closed()
    async with open_log("memory://") as log:
        await put_records(log, script.records)
        await export_tables(log, directory, Options())
    return await anyio.to_thread.run_sync(found_in, directory)


def found_in(directory: Path) -> Files:
    (sessions,) = (directory / "sessions").rglob("*.parquet")
    (rounds,) = (directory / "rounds").rglob("*.parquet")
    return Files(directory / "manifest.json", sessions, rounds)


@pytest.mark.parametrize("case", CASES)
async def test_hostile_tables_are_refused(case: str, tmp_path: Path) -> None:
    spoil, said = CASES[case]
    files = await exported(tmp_path)
    await anyio.to_thread.run_sync(spoil, files)
    with pytest.raises(InvalidInput, match=said):
        await anyio.to_thread.run_sync(read_tables, tmp_path, Options())


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the system tells the peak of a process")
@pytest.mark.parametrize("case", ["many rows", "long texts", "long lists", "many columns"])
async def test_hostile_tables_take_memory_by_their_size(case: str, tmp_path: Path) -> None:
    spoil, said = CASES[case]
    files = await exported(tmp_path)
    await anyio.to_thread.run_sync(spoil, files)
    found = await anyio.to_thread.run_sync(measure, "tables", tmp_path)
    assert re.search(said, found.said), found.said
    assert found.grew < 100 * 2**20, found


async def test_the_rows_of_a_file_count_and_not_those_that_the_manifest_claims(
    tmp_path: Path,
) -> None:
    files = await exported(tmp_path)
    await anyio.to_thread.run_sync(claimed_rows, files)
    found = await anyio.to_thread.run_sync(read_tables, tmp_path, Options())
    assert len(found) == 1
