"""``duolog export``: a log as records, or its conversations as messages for other programs."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, Literal

import typer

from ...engine.errors import InvalidInput
from .. import options
from ..arguments import choices, example
from ..lookup import existing_log, find_session
from ..output import output_rules, say
from ..root import app
from ..runtime import run

if TYPE_CHECKING:
    from ...engine.log.contract import EventLog, SessionSummary
    from ...engine.records import Record
    from ...interop.chat_export import ChatForm

__all__ = ("export_command",)

_PIPE = "-"


@app.command(
    "export",
    short_help="Writes a log as records, chat messages, trajectories or tidy tables.",
    epilog=example(
        "duolog export demo.db --output demo.jsonl",
        "duolog export demo.db --session travel-3-two-stage,travel-4-two-stage | less",
        "duolog export demo.db --format chat --output chats.jsonl",
        "duolog export demo.db --format otlp --output spans.jsonl",
        "duolog export demo.db --format trajectories --output trajectories.jsonl",
        "duolog export demo.db --format rounds --to parquet --output rounds.parquet",
        "duolog export demo.db --format parquet --output tables --follow",
        note="jsonl holds everything, and import restores it exactly. chat, responses and otlp hold what "
        "was said, and the agent's tool calls (otlp also times and model calls); a note on the standard error counts what they "
        "cannot express. trajectories is what duolog report reads; rounds and sessions are tables with "
        "one row each; an empty cell means that a value is missing. parquet writes closed sessions into a directory for "
        "duolog report; run again, it adds what was closed, scored or forgotten since.",
    ),
)
def export_command(
    log: options.LogToRead,
    form: Annotated[
        Literal[
            "jsonl", "chat", "responses", "otlp", "trajectories", "rounds", "sessions", "parquet"
        ],
        typer.Option(
            "--format",
            help="A line per record (jsonl); a line per session: messages of OpenAI's Chat "
            "Completions (chat), items of its Responses (responses), spans of OpenTelemetry (otlp), or its scored rounds "
            "(trajectories); a table with a row per round or per session; or a directory of tables that "
            "grows with the log (parquet).",
        ),
    ] = "jsonl",
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="csv|parquet",
            help="File format of a table (--format rounds or sessions).",
            show_default="csv",
        ),
    ] = None,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow", help="Keep exporting new records until interrupted (--format parquet)."
        ),
    ] = False,
    records: Annotated[
        bool,
        typer.Option(
            "--records", help="Write the records too, as another table (--format parquet)."
        ),
    ] = False,
    rounds: Annotated[
        Literal["handoff", "human-turn"] | None,
        typer.Option(
            help="When a round begins: after a handoff, or with each human turn.",
            show_default="handoff",
        ),
    ] = None,
    utility: options.Utility = None,
    judge: Annotated[
        str | None,
        typer.Option(
            metavar="SCORER",
            help="Whose ratings count: NAME, NAME@VERSION, human, none or auto.",
            show_default="auto",
        ),
    ] = None,
    session: options.SessionIds = None,
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE|DIR",
            help="Where to write; for --format parquet, a directory.",
            show_default="the standard output",
        ),
    ] = None,
    force: options.Force = False,
) -> None:
    """Writes a log, or some of its sessions.

    A file appears when it is complete. A log is never replaced, and another file only by --force.
    """
    names = None if session is None else choices(session, "--session")
    to_pipe = output is None or str(output) == _PIPE

    scored = form in ("trajectories", "rounds", "sessions", "parquet")
    if not scored and (rounds or utility or judge):
        raise InvalidInput(
            f"--rounds, --utility and --judge say how to score; --format {form} does not"
        )
    if form == "parquet":
        if names is not None or to is not None:
            given = "--to" if names is None else "--session"
            raise InvalidInput(
                f"--format parquet writes tables of all closed sessions: leave {given} out"
            )
        if output is None or to_pipe:
            raise InvalidInput("--format parquet writes a directory: name it with --output DIR")
        _export_directory(log, output, rounds, utility, judge, records=records, follow=follow)
        return
    if follow or records:
        raise InvalidInput("--follow and --records are for --format parquet")
    table = _table_file(form, to)

    async def export(opened: EventLog, file: BinaryIO) -> str:
        if form == "jsonl":
            return await _export_records(opened, file, names)
        if form == "trajectories" or form == "rounds" or form == "sessions":
            from ...scoring.trajectory.options import Options
            from ..exporting import export_trajectories

            options = Options(rounds=rounds or "handoff", utility=utility, judge=judge or "auto")
            return await export_trajectories(
                opened, file, names, form, source=log, options=options, to=table
            )
        return await _export_conversations(opened, file, names, form)

    async def main() -> str:
        async with existing_log(log) as opened:
            if output is None or to_pipe:
                sys.stdout.flush()
                return await export(opened, sys.stdout.buffer)
            from ...engine.log.exchange.output_file import output_file

            with output_file(output, output_rules(log, force=force)) as file:
                return await export(opened, file)

    amount = run(main)
    if not to_pipe:
        say(f"wrote {amount} to {output}")


def _table_file(form: str, to: str | None) -> Literal["csv", "parquet"]:
    """The file format of a table.

    Raises:
        InvalidInput: the format is unknown, or the export is not a table.
    """
    if to is not None and form not in ("rounds", "sessions"):
        raise InvalidInput("--to is for tables: --format rounds or sessions")
    if to is None or to == "csv":
        return "csv"
    if to == "parquet":
        return "parquet"
    raise InvalidInput(f"--to expects csv or parquet, got {to!r}")


def _export_directory(
    log: str,
    directory: Path,
    rounds: Literal["handoff", "human-turn"] | None,
    utility: str | None,
    judge: str | None,
    *,
    records: bool,
    follow: bool,
) -> None:
    from ...scoring.trajectory.options import Options
    from ..exporting import export_directory

    options = Options(rounds=rounds or "handoff", utility=utility, judge=judge or "auto")
    export_directory(log, directory, options, records=records, follow=follow)


async def _export_records(log: EventLog, file: BinaryIO, names: list[str] | None) -> str:
    from ...engine.log.exchange.jsonl_export import export_jsonl
    from ...engine.text import quantity
    from ..text.progress import RecordProgress

    if names is None:
        found = None
        total = sum([summary.events async for summary in log.sessions()])
    else:
        summaries = [await find_session(log, name) for name in names]
        found = [summary.session for summary in summaries]
        total = sum(summary.events for summary in summaries)
    with RecordProgress("exporting", total) as progress:
        records = await export_jsonl(log, file, sessions=found, progress=progress)
    return quantity(records, "record")


async def _export_conversations(
    log: EventLog, file: BinaryIO, names: list[str] | None, form: ChatForm | Literal["otlp"]
) -> str:
    """Writes a line per session; gives how many.

    Raises:
        InvalidInput: a session that was asked for by name holds nothing that the form can express.
    """
    from ...engine.text import quantity

    lines: list[bytes] = []
    left_out: Counter[str] = Counter()
    empty: list[str] = []
    number = 0
    async for summary in _chosen(log, names):
        records = [record async for record in log.read(summary.session)]
        line, missing = _conversation(summary.session, records, form)
        left_out.update(missing)
        if not line:
            if names is not None:
                raise InvalidInput(
                    f"session {summary.session} ({summary.state}) has nothing that --format {form} "
                    "can express"
                )
            empty.append(summary.session)
            continue
        number += 1
        if names is None:
            file.write(line)
        else:  # nothing is written before every name has been looked up
            lines.append(line)
    file.writelines(lines)
    if empty:
        more = f" and {len(empty) - 3} more" if len(empty) > 3 else ""
        say(
            f"{quantity(len(empty), 'session')} without messages left out: {', '.join(empty[:3])}{more}"
        )
    if left_out:
        kinds = ", ".join(f"{kind} ({times:,})" for kind, times in left_out.most_common())
        say(f"--format {form} cannot express, and leaves out: {kinds}")
    return quantity(number, "conversation")


def _conversation(
    session: str, records: Sequence[Record], form: ChatForm | Literal["otlp"]
) -> tuple[bytes, Mapping[str, int]]:
    """A session as a line, empty if the form cannot express any of it; and counts of omissions."""
    if form == "otlp":
        from ...interop.otlp_export import spans_of, trace_line

        trace = spans_of(session, records)
        return trace_line(trace) if trace.spans else b"", trace.left_out
    from ...interop.chat_export import conversation_line, write_conversation

    written = write_conversation(records, form)
    line = conversation_line(session, written, form) if written.items else b""
    return line, written.left_out


async def _chosen(log: EventLog, names: list[str] | None) -> AsyncIterator[SessionSummary]:
    if names is None:
        async for summary in log.sessions():
            yield summary
        return
    found = [await find_session(log, name) for name in names]
    for summary in {summary.session: summary for summary in found}.values():
        yield summary
