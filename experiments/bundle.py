"""Bundles: one archive with the tables of a log, its report, its manifests and a data card, which anybody can verify.

Verification computes the report again from the tables, and from the records if the bundle has them, and compares it
with the report in the bundle, character by character. The data card and the digests of the manifests are computed again, too.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import anyio.to_thread
import msgspec

from .._version import __version__
from ..engine.budget import Budget
from ..engine.errors import DuologError, InvalidInput, TooLarge, malformed
from ..engine.events import SessionOpened
from ..engine.log.contract import EventLog
from ..engine.log.exchange.jsonl_export import export_jsonl
from ..engine.log.exchange.jsonl_import import import_jsonl
from ..engine.log.exchange.output_file import OutputRules, output_file
from ..engine.log.open import open_log
from ..engine.text import quantity
from ..scoring.columns.rows import DEFINITIONS
from ..scoring.trajectory.options import Options
from .manifest import Manifest, manifest_digest, read_manifests

__all__ = ("Card", "Verified", "verify_bundle", "write_bundle")

_TABLES: Final = "tables"
_RECORDS: Final = "records.jsonl"
_REPORT: Final = "report.json"
_TEXT: Final = "report.txt"
_MANIFEST: Final = "manifest.json"
_CARD: Final = "DATA_CARD.md"
_SUMS: Final = "SHA256SUMS"
_ABOUT: Final = "bundle.json"
_NEW: Final = OutputRules((), replace=False)
_LARGEST: Final = 8 << 30  # bytes that a bundle may unpack to
_FILES: Final = 10_000
_READ: Final = Budget(size=64 << 20)
"""The limits of a file that is read whole; the tables and the records are read in parts."""


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """The words of a data card that cannot be computed.

    Attributes:
        licence: under which the data may be used, as an SPDX identifier or in words.
        about: a sentence on what the data are.
    """

    licence: str
    about: str = ""


class Verified(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a verification.

    Attributes:
        checks: what was checked, with what was wrong; empty for nothing.
        package: version of Duolog that made the bundle.
    """

    checks: Mapping[str, str]
    package: str

    @property
    def holds(self) -> bool:
        """Whether nothing was wrong."""
        return not any(self.checks.values())


class _About(msgspec.Struct, frozen=True, kw_only=True):
    """How the report of a bundle was computed.

    Attributes:
        card: the words of the data card.
        format: of bundles.
        package: version of Duolog.
        definitions: version of the definitions of its numbers.
        bootstrap: resamples.
        seed: the seed of the resampling.
    """

    card: Card
    format: int = 1
    package: str = __version__
    definitions: int = DEFINITIONS
    bootstrap: int = 1000
    seed: int = 0


async def write_bundle(
    log: str,
    output: Path,
    card: Card,
    *,
    records: bool = True,
    bootstrap: int = 1000,
    rules: OutputRules = _NEW,
) -> int:
    """Writes a bundle of a log; gives the number of files in it.

    Args:
        log: path or URL.
        output: the archive.
        card: its licence and what it is.
        records: put all records into it, with what was said; else only tables and report.
        bootstrap: resamples of the report.
        rules: what the archive may take the place of.

    Raises:
        InvalidInput: no session is closed, or the archive cannot be written.
        MissingExtra: pyarrow is not installed.
        LogError: the log cannot be read.
    """
    from ..scoring.columns.exporter import export_tables

    about = _About(card=card, bootstrap=bootstrap)
    manifests = await anyio.to_thread.run_sync(read_manifests, log)
    with tempfile.TemporaryDirectory(prefix="duolog-bundle-") as place:
        folder = Path(place)
        async with open_log(log, create=False) as opened:
            written = await export_tables(opened, folder / _TABLES, Options())
            if not written.sessions:
                raise InvalidInput(f"nothing to bundle: all sessions of {log} are still open")
            closed = [one.session async for one in opened.sessions() if one.state != "open"]
            counts = await _who_took_part(opened, closed)
            if records:
                await export_jsonl(opened, folder / _RECORDS, sessions=closed)
        report, text = await anyio.to_thread.run_sync(_report, str(folder / _TABLES), about)
        files = {
            _ABOUT: _json(about),
            _REPORT: report.encode(),
            _TEXT: text.encode(),
            _MANIFEST: _json(manifests),
            _CARD: _data_card(about, counts, manifests, written.sessions, records).encode(),
        }
        for name, content in files.items():
            (folder / name).write_bytes(content)
        return await anyio.to_thread.run_sync(_pack, folder, output, rules)


async def verify_bundle(path: Path) -> Verified:
    """Verifies a bundle: checksums, manifests, and every number of its report and data card, computed again.

    Raises:
        InvalidInput: it is not a bundle, or of a format or definitions that this version does not know.
        MissingExtra: pyarrow is not installed.
    """
    with tempfile.TemporaryDirectory(prefix="duolog-verify-") as place:
        folder, log = Path(place) / "bundle", Path(place) / "records.db"
        await anyio.to_thread.run_sync(_unpack, path, folder)
        held = await anyio.to_thread.run_sync(_held, path, folder)
        checks = {"checksums": "; ".join(_wrong_sums(folder, held.sums))}
        if not checks["checksums"]:
            checks["manifests"] = "; ".join(_wrong_manifests(held.manifests))
            tables = str(folder / _TABLES)
            checks["numbers from the tables"] = await anyio.to_thread.run_sync(
                _wrong_report, tables, held
            )
            counts = None
            if (folder / _RECORDS).is_file():
                try:
                    async with open_log(str(log)) as opened:
                        await import_jsonl(opened, folder / _RECORDS)
                        counts = await _who_took_part(opened)
                except DuologError as error:
                    checks["numbers from the records"] = str(error)
                else:
                    checks["numbers from the records"] = await anyio.to_thread.run_sync(
                        _wrong_report, str(log), held
                    )
            if not checks["numbers from the tables"]:
                checks["data card"] = await anyio.to_thread.run_sync(
                    _wrong_card, folder, held, counts
                )
        return Verified(checks=checks, package=held.about.package)


class _Held(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of a bundle that are read whole."""

    about: _About
    manifests: tuple[Manifest, ...]
    sums: str
    report: str
    text: str
    card: str


def _held(path: Path, folder: Path) -> _Held:
    """Reads an unpacked bundle.

    Raises:
        InvalidInput: it is not one, or of a format or definitions that this version does not know.
    """
    try:
        for name in (_ABOUT, _MANIFEST, _SUMS, _REPORT, _TEXT, _CARD):
            _READ.check_size((folder / name).stat().st_size)
        about = msgspec.json.decode(_read_json(folder / _ABOUT), type=_About)
        if about.format != 1 or about.definitions != DEFINITIONS:
            raise InvalidInput(
                f"{path} is a bundle of format {about.format} and definitions {about.definitions}, made by Duolog "
                f"{about.package}; this version verifies format 1 and definitions {DEFINITIONS}"
            )
        manifests = _read_json(folder / _MANIFEST)
        return _Held(
            about=about,
            manifests=msgspec.json.decode(manifests, type=tuple[Manifest, ...]),
            sums=(folder / _SUMS).read_text("utf-8"),
            report=(folder / _REPORT).read_text("utf-8"),
            text=(folder / _TEXT).read_text("utf-8"),
            card=(folder / _CARD).read_text("utf-8"),
        )
    except FileNotFoundError as error:
        name = Path(error.filename).name
        raise InvalidInput(f"{path} is not a bundle of Duolog, or {name} was removed") from None
    except (OSError, msgspec.DecodeError, RecursionError, TooLarge, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} is not a bundle of Duolog: {malformed(error)}") from None


def _read_json(path: Path) -> bytes:
    data = path.read_bytes()
    _READ.check_json(data)
    return data


def _wrong_report(source: str, held: _Held) -> str:
    """The first line of the report that differs from one computed again; empty if none does."""
    try:
        report, text = _report(source, held.about)
    except DuologError as error:
        return str(error)
    return _difference(held.report, report) or _difference(held.text, text)


def _wrong_card(folder: Path, held: _Held, counts: Counter[str] | None) -> str:
    """The first line of the data card that differs, likewise; without readable records who took part is not known."""
    from .sources import load

    sessions = len(load([str(folder / _TABLES)], Options(), workers=1))
    records = (folder / _RECORDS).is_file()
    found = _data_card(held.about, counts or Counter(), held.manifests, sessions, records)
    if counts is None:
        parts = [text.partition(_WHO)[0] for text in (held.card, found)]
        return _difference(parts[0], parts[1], "the data card")
    return _difference(held.card, found, "the data card")


def _wrong_manifests(manifests: Sequence[Manifest]) -> Iterator[str]:
    for number, one in enumerate(manifests, start=1):
        if one.digest != manifest_digest(one):
            yield f"manifest {number}, of {one.written}, has changed: its digest does not fit"


async def _who_took_part(log: EventLog, sessions: Sequence[str] | None = None) -> Counter[str]:
    """How many sessions there are of each participant and source; of some sessions, or of all."""
    chosen = None if sessions is None else set(sessions)
    found = Counter[str]()
    async for record in log.read_all():
        if isinstance(record.event, SessionOpened) and (chosen is None or record.session in chosen):
            found.update(set(_labels(record.event)))
    return found


def _report(source: str, about: _About) -> tuple[str, str]:
    """The report on a source as JSON and as text.

    Raises:
        InvalidInput: the source is damaged.
    """
    from .reports import report

    found = report(source, bootstrap=about.bootstrap, seed=about.seed, workers=1)
    return found.to_json() + "\n", str(found)


def _difference(held: str, found: str, what: str = "the report") -> str:
    """The first line that differs; empty if none does."""
    if held == found:
        return ""
    then, now = held.splitlines(), found.splitlines()
    for number, (one, other) in enumerate(zip(then, now, strict=False), start=1):
        if one != other:
            return f"line {number} of {what} is {one.strip()!r}, computed again {other.strip()!r}"
    return f"{what} has {quantity(len(then), 'line')}, computed again {len(now)}"


def _labels(opened: SessionOpened) -> Iterator[str]:
    yield f"task: {opened.task}"
    for one in opened.participants:
        if one.model is not None:
            yield f"model of the {one.role}: {one.model}"
        if one.role == "human":
            yield f"human: {one.persona or one.policy or 'a person'}"
        elif one.role == "agent" and one.policy is not None:
            yield f"agent: {one.policy}"
    if source := opened.config.get("source"):
        yield f"source of the problems: {source}"
    if imported := opened.config.get("imported"):
        form = imported.get("format") if isinstance(imported, Mapping) else imported
        yield f"imported from: {form}"


_WHO: Final = "## Who took part, in sessions"


def _data_card(
    about: _About,
    counts: Counter[str],
    manifests: Sequence[Manifest],
    sessions: int,
    records: bool,
) -> str:
    lines = [
        "# Data card",
        "",
        about.card.about or "Sessions of humans and agents who work together, recorded by Duolog.",
        "",
        f"- Licence of the data: {about.card.licence}",
        "- Licence of Duolog, its tasks and their invented worlds: MIT",
        f"- Closed sessions: {sessions:,}",
        f"- Records with what was said: {'yes' if records else 'no, tables and report only'}",
        f"- Made by: Duolog {about.package}, definitions {about.definitions}",
    ]
    for one in manifests:
        suite = f", suite {one.suite['name']} {one.suite['digest']}" if one.suite else ""
        file = f", {one.file} {one.file_sha256}" if one.file else ""
        lines.append(f"- Manifest of {one.written}: {one.digest}{file}{suite}")
    lines += ["", _WHO, "", f"- Sessions with real people: {counts['human: a person']:,}"]
    lines += [f"- {name}: {count:,}" for name, count in sorted(counts.items())]
    lines += [
        "",
        "## Verify",
        "",
        "`duolog verify-bundle FILE` compares all files with their checksums, and computes the report again.",
    ]
    return "\n".join(lines) + "\n"


def _pack(folder: Path, output: Path, rules: OutputRules) -> int:
    names = sorted(_files(folder))
    sums = "".join(f"{_sha256(folder / name)}  {name}\n" for name in names)
    (folder / _SUMS).write_text(sums, encoding="utf-8")
    with (
        output_file(output, rules) as file,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for name in [*names, _SUMS]:
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))  # the same log gives the same file
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            with (folder / name).open("rb") as part, archive.open(entry, "w") as place:
                shutil.copyfileobj(part, place)
    return len(names) + 1


def _unpack(path: Path, folder: Path) -> None:
    """Unpacks an archive into an empty folder.

    Raises:
        InvalidInput: it is not an archive, names places outside of the folder, or is too large.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            for entry in entries:
                parts = Path(entry.filename).parts
                if Path(entry.filename).is_absolute() or ".." in parts or "\\" in entry.filename:
                    raise InvalidInput(f"{path} names a file outside of itself: {entry.filename!r}")
            size = sum(entry.file_size for entry in entries)
            if size > _LARGEST:
                raise InvalidInput(f"{path} unpacks to more than {_LARGEST >> 30} GiB")
            if len(entries) > _FILES:
                raise InvalidInput(f"{path} has more than {_FILES:,} files")
            _READ.check_inflated(path.stat().st_size, size)
            archive.extractall(folder)
    except FileNotFoundError:
        raise InvalidInput(f"no such file: {path}") from None
    except IsADirectoryError:
        raise InvalidInput(f"{path} is a directory; name the file of the bundle") from None
    except zipfile.BadZipFile:
        raise InvalidInput(f"{path} is not a bundle of Duolog: it is not a ZIP file") from None
    except (OSError, EOFError, RuntimeError, TooLarge, zlib.error) as error:
        raise InvalidInput(f"{path} is not a bundle of Duolog: {malformed(error)}") from None


def _wrong_sums(folder: Path, sums: str) -> Iterator[str]:
    listed = {}
    for line in sums.splitlines():
        digest, _, name = line.partition("  ")
        listed[name] = digest
    there = set(_files(folder)) - {_SUMS}
    for name in sorted(there - set(listed)):
        yield f"{name} is not listed in {_SUMS}"
    for name, digest in sorted(listed.items()):
        if name not in there:
            yield f"{name} is missing"
        elif _sha256(folder / name) != digest:
            yield f"{name} has changed"


def _files(folder: Path) -> Iterator[str]:
    for path in folder.rglob("*"):
        if path.is_file() and path.stat().st_size:  # a lock is empty
            yield path.relative_to(folder).as_posix()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _json(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"
