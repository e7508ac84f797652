"""``duolog import``: records from JSON Lines, or sessions from the logs of other tools, into a log."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from shutil import copyfileobj
from typing import TYPE_CHECKING, Annotated, BinaryIO, cast

import typer

from ...engine.errors import InvalidInput
from .. import options
from ..arguments import example
from ..foreign_import import (
    MOST,
    follow_source,
    report_preview,
    report_taken,
    take_source,
)
from ..lookup import new_log
from ..output import check_not_read, print_json, say
from ..root import app
from ..runtime import run

if TYPE_CHECKING:
    from ...engine.log.exchange.jsonl_import import Imported
    from ...interop.importers.labels import Labels
    from ...interop.importers.protocol import Importer, Reading

__all__ = ("import_command",)

_PIPE = "-"
_OWN = "jsonl"
_AUTO = "auto"
_SQLITE = b"SQLite format 3\0"


@app.command(
    "import",
    short_help="Imports JSON Lines, or the logs of other tools, into a log.",
    epilog=example(
        "duolog import demo.jsonl --log copy.db",
        "duolog export demo.db | duolog import - --log copy.db",
        "duolog import results/ --log runs.db --format cogym --zone Europe/Berlin",
        "duolog import gpt-4o-airline.json --log tau.db",
        "duolog import tickets.json --mapping tickets.toml --dry-run",
        "duolog import ~/.claude/projects --log mine.db --follow",
        "duolog import chats.jsonl --log chats.db --label agent=helper-2 --label task=support",
        note="Records that the log holds already are skipped: importing again adds nothing, and an "
        "interrupted import is completed by running it again.",
    ),
)
def import_command(
    source: Annotated[
        str,
        typer.Argument(metavar="PATH", help="A file or directory; - for JSON Lines from a pipe."),
    ],
    log: Annotated[
        str | None, typer.Option(metavar="LOG", help="Path or URL; created if it does not exist.")
    ] = None,
    form: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="jsonl (as export writes it), cogym (Collaborative Gym), tau (τ-bench, "
            "τ²-bench), chat (messages of OpenAI or Anthropic), claude-code, codex, atif, swe-agent, openhands, inspect, ag-ui, otlp, openinference, langfuse, lmsys, sharegpt, one that is installed, or auto.",
        ),
    ] = _AUTO,
    zone: Annotated[
        str,
        typer.Option(
            metavar="ZONE",
            help="Time zone of times that name none: UTC, a name like Europe/Berlin, or local.",
        ),
    ] = "UTC",
    label: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="Label of all sessions: agent, task, instance, or another to group by; may be repeated.",
        ),
    ] = None,
    keep_going: Annotated[
        bool,
        typer.Option("--keep-going", help="Import what can be read, and list what cannot."),
    ] = False,
    mapping: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="TOML file that maps the fields of any other JSON."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be imported; write nothing.")
    ] = False,
    follow: Annotated[
        bool,
        typer.Option("--follow", help="Keep importing what is added until interrupted."),
    ] = False,
    redact: options.Redact = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Imports records, or sessions from the logs of other tools, into a log.

    Records that Duolog exported are restored exactly: ids, versions, times and bodies. Without
    --keep-going, a source with a broken line is refused before anything is imported; a pipe is kept
    in a temporary file for that. Labels are for all sessions of the source, and count before what
    it says itself.
    """
    if log is None and not dry_run:
        raise InvalidInput("missing option --log; say where to import to")
    if log is not None:
        if log.startswith("memory:"):
            raise InvalidInput(f"{log} would be gone as soon as this is done; name a log in a file")
        check_not_read(log, source)
    found = (
        _mapped(source, mapping, form)
        if mapping is not None
        else _importer(source, form, grows=follow)
    )
    labels = _labels(found, label or ())
    if found is None and (follow or dry_run):
        option = "--follow" if follow else "--dry-run"
        raise InvalidInput(f"{option} is for files of other tools, not for {_OWN}")
    if found is not None and follow and not dry_run:
        assert log is not None
        follow_source(found, labels, source, log, _reading(zone, redact))
        return
    importer = _labelled(found, labels)
    if importer is not None and dry_run:
        reading = _reading(zone, redact)
        report_preview(importer, source, reading, keep_going=keep_going, as_json=as_json)
        return
    assert log is not None
    if importer is None:
        _report_imported(run(lambda: _import(source, log, keep_going=keep_going)), as_json=as_json)
        return
    taken = take_source(importer, source, log, _reading(zone, redact), keep_going=keep_going)
    report_taken(taken, importer.name, as_json=as_json)


def _reading(zone: str, redact: str | None) -> Reading:
    from ...engine.redacting import DEFAULT, redaction_of
    from ...interop.importers.protocol import Reading
    from ...interop.importers.timestamps import zone_named

    return Reading(zone=zone_named(zone), redact=redaction_of(redact or DEFAULT))


def _mapped(source: str, mapping: Path, form: str) -> Importer:
    """The importer that a mapping describes."""
    from ...interop.importers.mapping import MappingImporter, load_mapping

    if form != _AUTO:
        raise InvalidInput(f"--mapping and --format {form} cannot be combined")
    return _for(Path(source), MappingImporter(load_mapping(mapping), mapping.stem))


def _for(path: Path, importer: Importer) -> Importer:
    """The importer for a source; if that is a directory of files, one for each file below it."""
    if path.is_dir() and not importer.recognises(path, None):
        from ...interop.importers.directory import DirectoryImporter

        return DirectoryImporter(importer)
    return importer


def _importer(source: str, form: str, *, grows: bool) -> Importer | None:
    """The importer for a source, which may be empty so far if it grows; None for Duolog's own JSON
    Lines.
    """
    if form == _OWN or (source == _PIPE and form == _AUTO):
        return None
    from ...interop.importers.registry import find_importer, importer_names

    if form == _AUTO:
        return _recognised(Path(source), grows=grows)
    if form not in importer_names():
        from ...engine.text import suggestion

        known = suggestion(form, [_AUTO, _OWN, *importer_names()])
        raise InvalidInput(f"--format: unknown value {form!r}{known}")
    if source == _PIPE:
        raise InvalidInput(f"a pipe is read as {_OWN} only; name a file for {form}")
    return _for(Path(source), find_importer(form))


def _labels(importer: Importer | None, texts: Sequence[str]) -> Labels | None:
    """The labels that the options give.

    Raises:
        InvalidInput: a label that is none; or there are some, and the source is Duolog's own.
    """
    from ...interop.importers.labels import labels_from

    labels = labels_from(texts)
    if labels is not None and importer is None:
        raise InvalidInput(
            f"{_OWN} comes in exactly as it was exported: --label is for other formats"
        )
    return labels


def _labelled(importer: Importer | None, labels: Labels | None) -> Importer | None:
    """The importer that also labels what it reads, if there are labels."""
    if importer is None or labels is None:
        return importer
    from ...interop.importers.labels import LabelledImporter

    return LabelledImporter(importer, labels)


def _recognised(path: Path, *, grows: bool) -> Importer | None:
    from ...interop.importers.json_sniff import shape_of
    from ...interop.importers.registry import candidates_for, installed_importers, recognise

    importers = installed_importers()
    importer = recognise(path, importers)
    if importer is not None:
        return importer
    if path.is_dir():
        from ...interop.importers.directory import DirectoryImporter

        several = DirectoryImporter()
        if grows or several.recognises(path, None):
            return several
    else:
        shape = shape_of(path)
        if grows and _is_blank(path):
            raise InvalidInput(
                f"{path} is empty so far: say which format it will have, with --format"
            )
        if shape is not None and "session" in shape.keys or _is_blank(path):
            return None
        with path.open("rb") as file:
            if file.read(len(_SQLITE)) == _SQLITE:
                raise InvalidInput(
                    f"{path} seems to be a log; duolog export writes what can be imported"
                )
    known = ", ".join([_OWN, *(one.name for one in importers)])
    refusal = f"{path} looks like none of the formats that can be imported ({known})"
    if could := candidates_for(path, importers):
        raise InvalidInput(
            f"{refusal}; it can be read as {' or '.join(could)}: say which with --format"
        )
    raise InvalidInput(
        f"{refusal}; if it is one of them, say which with --format; for other JSON, write a mapping "
        "(--mapping, docs/importing.md)"
    )


def _is_blank(path: Path) -> bool:
    with path.open("rb") as file:
        return not file.read(1 << 16).strip()


# --- Duolog's own ---------------------------------------------------------------------------------


async def _import(source: str, where: str, *, keep_going: bool) -> Imported:
    from ...engine.log.exchange.jsonl_import import import_jsonl, look_through
    from ..text.progress import RecordProgress

    async with _opened(source, twice=not keep_going) as file:
        if not keep_going:
            with _named("standard input" if source == _PIPE else source):
                await look_through(file)
        async with new_log(where) as log:
            with RecordProgress("importing", None) as progress:
                return await import_jsonl(log, file, keep_going=keep_going, progress=progress)


@asynccontextmanager
async def _opened(source: str, *, twice: bool) -> AsyncIterator[BinaryIO]:
    """Opens the file to read; a pipe that is read twice is kept in a temporary file.

    Raises:
        InvalidInput: it cannot be read.
    """
    from tempfile import TemporaryFile

    from anyio.to_thread import run_sync

    from ...engine.log.exchange.jsonl_export import open_lines

    if source != _PIPE:
        with await open_lines(Path(source)) as file:
            yield file
    elif twice:
        with TemporaryFile() as kept:
            await run_sync(copyfileobj, sys.stdin.buffer, kept)
            await run_sync(kept.seek, 0)
            yield cast("BinaryIO", kept)  # on Windows it is wrapped
    else:
        yield sys.stdin.buffer


@contextmanager
def _named(source: str) -> Iterator[None]:
    """Puts the name of a file before what is wrong with it."""
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput(f"{source}, {error}") from None


def _report_imported(done: Imported, *, as_json: bool) -> None:
    if as_json:
        print_json(done)
        return
    for line, what in done.problems[:MOST]:
        say(f"line {line}: {what}")
    if len(done.problems) > MOST:
        say(f"... and {len(done.problems) - MOST} more lines that could not be imported")
    say(_summary(done))


def _summary(done: Imported) -> str:
    from ...engine.text import quantity

    parts = [f"imported {quantity(done.records, 'record')}"]
    if done.known:
        parts.append(f"{quantity(done.known, 'record')} there already")
    if done.lost:
        parts.append(f"{quantity(done.lost, 'placeholder')} for what is missing")
    if done.problems:
        parts.append(f"{quantity(len(done.problems), 'line')} not taken")
    return ", ".join(parts)
