"""A bundle is verified from itself alone: a changed file, digit or record is named."""

from __future__ import annotations

import hashlib
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from duolog.cli import main
from duolog.engine.errors import InvalidInput
from duolog.experiments.bundle import Card, verify_bundle, write_bundle

GRID = """
task = "finance"
agents = ["auto", "one-stage"]
users = ["lazy"]
sessions = 2
"""

pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundle")
    (folder / "grid.toml").write_text(GRID, encoding="utf-8")
    path = folder / "a.db"
    assert main(["run", str(folder / "grid.toml"), "--log", str(path), "--json"]) == 0
    return path


@pytest.fixture(scope="module")
def bundle(log: Path) -> Path:
    path = log.with_name("a.zip")
    card = Card(licence="CC0-1.0", about="Plans of two households.")
    anyio.run(lambda: write_bundle(str(log), path, card, bootstrap=50))
    return path


def changed(bundle: Path, to: Path, change: Callable[[str, bytes], bytes], *, sums: bool) -> Path:
    """A copy of a bundle with its files changed, and checksums that fit, if wanted."""
    with zipfile.ZipFile(bundle) as archive:
        files = {name: change(name, archive.read(name)) for name in archive.namelist()}
    if sums:
        listed = "".join(
            f"{hashlib.sha256(content).hexdigest()}  {name}\n"
            for name, content in sorted(files.items())
            if name != "SHA256SUMS"
        )
        files["SHA256SUMS"] = listed.encode()
    with zipfile.ZipFile(to, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return to


def test_a_bundle_holds_by_itself_and_the_same_log_gives_the_same_file(
    log: Path, bundle: Path, tmp_path: Path
) -> None:
    moved = tmp_path / "elsewhere.zip"
    shutil.copy(bundle, moved)
    found = anyio.run(verify_bundle, moved)
    assert found.holds
    assert list(found.checks) == [
        "checksums",
        "manifests",
        "numbers from the tables",
        "numbers from the records",
        "data card",
    ]
    again = tmp_path / "again.zip"
    card = Card(licence="CC0-1.0", about="Plans of two households.")
    anyio.run(lambda: write_bundle(str(log), again, card, bootstrap=50))
    assert again.read_bytes() == bundle.read_bytes()


def test_the_data_card_says_who_took_part_and_under_which_licence(bundle: Path) -> None:
    with zipfile.ZipFile(bundle) as archive:
        card = archive.read("DATA_CARD.md").decode()
        assert b'"file_sha256"' in archive.read("manifest.json")
    for line in (
        "Plans of two households.",
        "- Licence of the data: CC0-1.0",
        "- Closed sessions: 4",
        "- Sessions with real people: 0",
        "- human: lazy: 2",
        "grid.toml",
    ):
        assert line in card


def test_a_changed_digit_of_the_report_is_found_though_the_checksums_fit(
    bundle: Path, tmp_path: Path
) -> None:
    def change(name: str, content: bytes) -> bytes:
        return (
            content.replace(b'"sessions": 2', b'"sessions": 3', 1)
            if name == "report.json"
            else content
        )

    found = anyio.run(verify_bundle, changed(bundle, tmp_path / "b.zip", change, sums=True))
    assert found.checks["checksums"] == ""
    assert "computed again" in found.checks["numbers from the tables"]
    assert "computed again" in found.checks["numbers from the records"]
    assert not found.holds


def without_last_row(content: bytes) -> bytes:
    from pyarrow import (  # type: ignore[import-untyped]
        BufferOutputStream,
        BufferReader,
        parquet,
    )

    table = parquet.read_table(BufferReader(content))
    written = BufferOutputStream()
    parquet.write_table(table.slice(0, len(table) - 1), written)
    return bytes(written.getvalue())


@pytest.mark.parametrize(
    ("file", "change", "check", "said"),
    [
        (
            "DATA_CARD.md",
            lambda content: content.replace(b"human: lazy: 2", b"human: lazy: 3"),
            "data card",
            "'- human: lazy: 3', computed again '- human: lazy: 2'",
        ),
        (
            "manifest.json",
            lambda content: content.replace(b'"sessions": 2', b'"sessions": 9'),
            "manifests",
            "manifest 1, of ",
        ),
        ("tables/sessions/", without_last_row, "numbers from the tables", "not together"),
        ("tables/rounds/", without_last_row, "numbers from the tables", "computed again"),
        ("tables/sessions/", lambda content: b"PAR1", "numbers from the tables", "cannot be read"),
        (
            "records.jsonl",
            lambda content: content[: content.rindex(b"\n", 0, -1) + 1],
            "numbers from the records",
            "",
        ),
        ("records.jsonl", lambda content: content[:-9], "numbers from the records", "line"),
    ],
)
def test_whatever_is_changed_is_found_though_the_checksums_fit(
    file: str,
    change: Callable[[bytes], bytes],
    check: str,
    said: str,
    bundle: Path,
    tmp_path: Path,
) -> None:
    def only(name: str, content: bytes) -> bytes:
        return change(content) if name.startswith(file) else content

    found = anyio.run(verify_bundle, changed(bundle, tmp_path / "b.zip", only, sums=True))
    assert found.checks["checksums"] == ""
    assert found.checks[check]
    assert said in found.checks[check]
    assert not found.holds


def test_a_changed_file_is_named(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def change(name: str, content: bytes) -> bytes:
        return content + b"more" if name == "DATA_CARD.md" else content

    path = changed(bundle, tmp_path / "b.zip", change, sums=False)
    assert main(["verify-bundle", str(path)]) == 1
    assert capsys.readouterr().out == "checksums: DATA_CARD.md has changed\n"


def test_without_records_the_tables_are_enough(log: Path, tmp_path: Path) -> None:
    path = tmp_path / "tables.zip"
    told = ["bundle", str(log), "--output", str(path), "--licence", "CC0-1.0", "--bootstrap", "0"]
    assert main([*told, "--no-records"]) == 0
    with zipfile.ZipFile(path) as archive:
        assert "records.jsonl" not in archive.namelist()
    found = anyio.run(verify_bundle, path)
    assert found.holds
    assert list(found.checks) == ["checksums", "manifests", "numbers from the tables", "data card"]


def test_what_is_no_bundle_is_refused(bundle: Path, tmp_path: Path) -> None:
    text = tmp_path / "text.zip"
    text.write_text("no archive", encoding="utf-8")
    outside = tmp_path / "outside.zip"
    with zipfile.ZipFile(outside, "w") as archive:
        archive.writestr("../evil.txt", "x")
    other = tmp_path / "other.zip"
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("a.txt", "x")
    for path, said in (
        (text, "is not a bundle"),
        (outside, "names a file outside of itself"),
        (other, "is not a bundle"),
        (tmp_path / "none.zip", "no such file: .*none.zip"),
    ):
        with pytest.raises(InvalidInput, match=said):
            anyio.run(verify_bundle, path)
    assert not (tmp_path.parent / "evil.txt").exists()
    bomb = tmp_path / "bomb.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("bundle.json", b"[" + b"{}," * 20_000_000)
    many = tmp_path / "many.zip"
    with zipfile.ZipFile(many, "w") as archive:
        for number in range(10_001):
            archive.writestr(f"tables/{number}", b"")
    for path, said in ((bomb, "compressed bytes become"), (many, "more than 10,000 files")):
        with pytest.raises(InvalidInput, match=said):
            anyio.run(verify_bundle, path)

    def swollen(name: str, content: bytes) -> bytes:
        return b"[" + b"{}," * 5_000_000 if name == "manifest.json" else content

    with pytest.raises(InvalidInput, match="more than 4,194,304 values"):
        anyio.run(verify_bundle, changed(bundle, tmp_path / "swollen.zip", swollen, sums=True))

    def older(name: str, content: bytes) -> bytes:
        return (
            content.replace(b'"definitions": 5', b'"definitions": 2')
            if name == "bundle.json"
            else content
        )

    with pytest.raises(InvalidInput, match="definitions 2"):
        anyio.run(verify_bundle, changed(bundle, tmp_path / "old.zip", older, sums=True))
