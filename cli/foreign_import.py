"""Imports of the logs of other tools, as the command line runs and reports them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..engine.errors import InvalidInput
from ..scoring.display.texts import clean
from .lookup import new_log
from .output import print_json, print_text, say
from .runtime import run

if TYPE_CHECKING:
    from ..interop.importers.labels import Labels
    from ..interop.importers.protocol import Diagnostic, Importer, Reading
    from ..interop.importers.run import ImportResult

__all__ = ("MOST", "follow_source", "report_preview", "report_taken", "take_source")

MOST = 20
"""How many problems are listed one by one."""
_SHOWN = 3  # places of one diagnostic


def take_source(
    importer: Importer, source: str, where: str, reading: Reading, *, keep_going: bool
) -> ImportResult:
    """Imports a source into a log.

    Raises:
        InvalidInput: it cannot be read; says where.
    """
    return run(lambda: _take(importer, source, where, reading, keep_going=keep_going))


def report_preview(
    importer: Importer, source: str, reading: Reading, *, keep_going: bool, as_json: bool
) -> None:
    """Prints what an import would bring.

    Raises:
        InvalidInput: the source as a whole cannot be read, or an import would be refused.
    """
    from ..engine.text import quantity
    from ..interop.importers.preview import preview_foreign

    found = preview_foreign(Path(source), importer, reading)
    problems = sum(diagnostic.kind == "problem" for diagnostic in found.diagnostics)
    if as_json:
        print_json(found)
        _refuse_later(problems, keep_going=keep_going)
        return
    lines: list[str] = []
    for one in found.sessions[:MOST]:
        counts = [
            f"{quantity(one.human, 'message')} of people",
            f"{one.agent} of agents",
            f"{quantity(one.calls, 'call')} ({one.failed} failed)",
            quantity(one.outputs, "output"),
            quantity(one.scores, "score"),
        ]
        if one.ratings:
            counts.append(quantity(one.ratings, "rating"))
        if one.feedback:
            counts.append(f"feedback {one.feedback} times")
        lines.append(f"{one.session}  {one.task}: {', '.join(counts)}")
        if one.first:
            lines.append(f"    {one.first!r}")
    if len(found.sessions) > MOST:
        lines.append(f"... and {len(found.sessions) - MOST} more")
    lines += [
        f"{diagnostic.kind}: {diagnostic.where}: {diagnostic.what}"
        for diagnostic in found.diagnostics[:MOST]
    ]
    lines.append(
        f"{quantity(len(found.sessions), 'session')} and {quantity(problems, 'problem')} as "
        f"{importer.name}; nothing was written"
    )
    print_text("".join(f"{clean(line)}\n" for line in lines))
    _refuse_later(problems, keep_going=keep_going)


def _refuse_later(problems: int, *, keep_going: bool) -> None:
    from ..engine.text import quantity

    if problems and not keep_going:
        raise InvalidInput(
            f"{quantity(problems, 'problem')}: an import would be refused; --keep-going imports the rest"
        )


async def _take(
    importer: Importer, source: str, where: str, reading: Reading, *, keep_going: bool
) -> ImportResult:
    from ..interop.importers.run import import_foreign, survey_foreign
    from .text.progress import RecordProgress

    path = Path(source)
    survey = None
    if not keep_going:  # before the log is created, so that no empty log is left behind
        with RecordProgress("looking through", None) as progress:
            survey = await survey_foreign(path, importer, reading, progress=progress)
        _refuse(survey.problems)
    async with new_log(where) as log:
        total = None if survey is None else survey.events
        with RecordProgress("importing", total) as progress:
            return await import_foreign(
                log,
                path,
                importer,
                reading=reading,
                keep_going=keep_going,
                look_first=False,
                survey=survey,
                progress=progress,
            )


def follow_source(
    importer: Importer, labels: Labels | None, source: str, where: str, reading: Reading
) -> None:
    """Imports what is added to a file or directory, until it is interrupted."""
    from ..engine.text import quantity
    from ..interop.importers.directory import DirectoryImporter
    from ..interop.importers.follow import follow_foreign

    whole = importer.each if isinstance(importer, DirectoryImporter) else importer

    def show(path: Path, records: int, problems: Sequence[Diagnostic]) -> None:
        for problem in problems[:MOST]:
            say(f"{problem.where}: {problem.what}")
        say(f"{path}: {quantity(records, 'record')} more")

    async def go_on() -> None:
        async with new_log(where) as log:
            say(f"following {source}; Ctrl-C ends it")
            await follow_foreign(
                log, Path(source), whole, reading=reading, labels=labels, on_import=show
            )

    run(go_on)


def _refuse(problems: Sequence[Diagnostic]) -> None:
    if not problems:
        return
    for problem in problems[1:MOST]:
        say(f"{problem.where}: {problem.what}")
    first = problems[0]
    raise InvalidInput(
        f"{first.where}: {first.what}; nothing was imported (--keep-going imports the rest)"
    )


def report_taken(taken: ImportResult, form: str, *, as_json: bool) -> None:
    """Prints what an import did, on the standard error; as JSON on the standard output."""
    from ..engine.text import quantity

    problems = [diagnostic for diagnostic in taken.diagnostics if diagnostic.kind == "problem"]
    differences = _grouped(
        diagnostic for diagnostic in taken.diagnostics if diagnostic.kind == "difference"
    )
    if as_json:
        print_json(
            {
                "format": form,
                "sessions": taken.sessions,
                "records": taken.records,
                "known": taken.known,
                "forks": taken.forks,
                "problems": problems,
                "differences": [
                    {"what": what, "where": [_place(diagnostic) for diagnostic in diagnostics]}
                    for what, diagnostics in differences.items()
                ],
            }
        )
        return
    for problem in problems[:MOST]:
        say(f"{problem.where}: {problem.what}")
    if len(problems) > MOST:
        say(f"... and {len(problems) - MOST} more problems")
    for what, diagnostics in differences.items():
        more = f", and {len(diagnostics) - _SHOWN} more" if len(diagnostics) > _SHOWN else ""
        say(f"note: {what} ({_places(diagnostics[:_SHOWN])}{more})")
    parts = [f"imported {quantity(taken.records, 'record')}"]
    if taken.known:
        parts.append(f"{quantity(taken.known, 'record')} there already")
    if problems:
        parts.append(quantity(len(problems), "problem"))
    forks = f" and {quantity(taken.forks, 'fork')}" if taken.forks else ""
    say(f"{', '.join(parts)}; {quantity(taken.sessions, 'session')}{forks} read as {form}")


def _grouped(diagnostics: Iterable[Diagnostic]) -> dict[str, list[Diagnostic]]:
    found: dict[str, list[Diagnostic]] = {}
    for diagnostic in diagnostics:
        found.setdefault(diagnostic.what, []).append(diagnostic)
    return found


def _places(diagnostics: Sequence[Diagnostic]) -> str:
    """The places of diagnostics, with the file that several lie in named once."""
    places: list[str] = []
    before = ""
    for diagnostic in diagnostics:
        file, comma, inside = diagnostic.where.rpartition(", ")
        if comma:
            places.append(inside if file == before else diagnostic.where)
            before = file
        else:
            places.append(_place(diagnostic))
    return ", ".join(places)


def _place(diagnostic: Diagnostic) -> str:
    return (
        diagnostic.where
        if diagnostic.session is None
        else f"{diagnostic.session} {diagnostic.where}"
    )
