"""Output files appear whole or not at all, and never replace a log or an input."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from pathlib import Path

import anyio
import pytest
from duolog.engine.errors import InvalidInput
from duolog.engine.events import MessageSent
from duolog.engine.log.exchange.jsonl_export import export_jsonl
from duolog.engine.log.exchange.output_file import OutputRules, check_output, is_log, output_file
from duolog.engine.log.open import open_log
from duolog.engine.records import Draft

KEEP = OutputRules(replace=False)


def write(path: Path, data: bytes, rules: OutputRules | None = None) -> None:
    with output_file(path, rules or OutputRules()) as file:
        file.write(data)


async def make_log(path: Path) -> None:
    async with open_log(str(path)) as log:
        await log.append("s", [Draft(MessageSent(text="precious"), "ann", "human", 1.0)])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A log, closed."""
    anyio.run(make_log, tmp_path / "a.db")
    return tmp_path / "a.db"


def test_a_file_appears_when_it_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "out.csv"
    umask = os.umask
    monkeypatch.delattr(os, "umask")  # it is of all threads
    with output_file(target) as file:
        file.write(b"half")
        file.flush()
        assert not target.exists()
        assert len(list(tmp_path.iterdir())) == 1
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("out.csv", b"half")]
    mask = umask(0)
    umask(mask)
    assert stat.S_IMODE(target.stat().st_mode) == 0o666 & ~mask


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, OSError(28, "No space left")])
def test_what_fails_leaves_no_trace(tmp_path: Path, error: type[BaseException]) -> None:
    target = tmp_path / "out.csv"
    target.write_bytes(b"old")

    def fail() -> None:
        with output_file(target) as file:
            file.write(b"new")
            raise error

    with pytest.raises((ValueError, KeyboardInterrupt, InvalidInput)):
        fail()
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("out.csv", b"old")]


def test_it_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    sync, replace = os.fsync, os.replace

    def synced(handle: int) -> None:
        steps.append("directory" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        sync(handle)

    def replaced(one: str, other: Path) -> None:
        steps.append("name")
        replace(one, other)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    write(tmp_path / "out.csv", b"x")
    assert steps == ["file", "name", "directory"]


def test_another_file_is_replaced_only_if_that_is_allowed(tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    write(target, b"old", KEEP)
    target.chmod(0o640)
    with pytest.raises(InvalidInput, match="exists: give the output another name"):
        write(target, b"new", KEEP)
    assert target.read_bytes() == b"old"
    write(target, b"new")
    assert target.read_bytes() == b"new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_a_file_that_appears_meanwhile_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "out.csv"

    def race() -> None:
        with output_file(target, KEEP) as file:
            file.write(b"ours")
            target.write_bytes(b"theirs")

    with pytest.raises(InvalidInput, match="exists"):
        race()
    link = os.link

    def late(one: str, other: Path) -> None:
        (tmp_path / "late.csv").write_bytes(b"theirs")
        link(one, other)

    monkeypatch.setattr(os, "link", late)
    with pytest.raises(InvalidInput, match="has appeared meanwhile"):
        write(tmp_path / "late.csv", b"ours", KEEP)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {
        "out.csv": b"theirs",
        "late.csv": b"theirs",
    }


def test_no_log_is_ever_replaced(tmp_path: Path, path: Path) -> None:
    before = path.read_bytes()
    (tmp_path / "link").symlink_to(path)
    (tmp_path / "hard.txt").hardlink_to(path)
    shutil.copy(path, tmp_path / "copy.txt")
    half = tmp_path / "half.db"
    half.write_bytes(before[:5000])
    for name in ("a.db", "a.db-wal", "a.db-shm", "link", "hard.txt", "copy.txt", "half.db"):
        for rules in (OutputRules(), KEEP):
            with pytest.raises(InvalidInput, match=f"{name} is a Duolog log, or part of one"):
                write(tmp_path / name, b"x", rules)
            with pytest.raises(InvalidInput, match="is not overwritten"):
                check_output(tmp_path / name, rules)
    assert path.read_bytes() == before


async def test_nor_is_one_that_is_open(tmp_path: Path, path: Path) -> None:
    async with open_log(str(path)) as log:
        for target in (path, tmp_path / "a.db-wal"):
            with pytest.raises(InvalidInput, match="is a Duolog log"):
                await export_jsonl(log, target)
        await log.append("s", [Draft(MessageSent(text="more"), "ann", "human", 1.0)])
        assert not (await log.verify()).problems


def test_what_is_no_log_of_ours(tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE t (x)")
    connection.commit()
    connection.close()
    (tmp_path / "empty").touch()
    (tmp_path / "text").write_bytes(b"SQLite or not")
    os.mkfifo(tmp_path / "pipe")
    for name in ("other.db", "empty", "text", "pipe", "none", "-wal", "none-wal", "."):
        assert not is_log(tmp_path / name)


def test_what_is_read_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = tmp_path / "in.jsonl"
    source.write_bytes(b"precious")
    Path("link").symlink_to("in.jsonl")
    Path("hard").hardlink_to(source)
    rules = OutputRules((Path("in.jsonl"),))
    for name in ("in.jsonl", "./in.jsonl", str(source), "link", "hard"):
        with pytest.raises(InvalidInput, match="is what this command reads"):
            write(Path(name), b"x", rules)
    with pytest.raises(InvalidInput, match="is what this command reads"):
        write(Path("new"), b"x", OutputRules((Path("new"),)))
    assert source.read_bytes() == b"precious"


def test_a_directory_that_takes_no_file_is_found_before_there_is_anything_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(InvalidInput, match=f"cannot write .*: no file can be made in {tmp_path}"):
        check_output(tmp_path / "x")
    check_output(Path(os.devnull))


def test_places_where_nothing_can_be_written(tmp_path: Path) -> None:
    for path, why in (
        (tmp_path, "is a directory"),
        (tmp_path / "no" / "x", "No such file or directory"),
    ):
        with pytest.raises(InvalidInput, match=why):
            write(path, b"x")
        with pytest.raises(InvalidInput, match=why):
            check_output(path)
    write(Path(os.devnull), b"x", KEEP)
    (tmp_path / "link").symlink_to(tmp_path / "target")
    write(tmp_path / "link", b"x", KEEP)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"x"
