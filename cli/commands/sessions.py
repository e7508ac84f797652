"""``duolog sessions``: lists the sessions of a log."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Sequence
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Annotated

import typer

from .. import options
from ..arguments import FILTERS, example
from ..lookup import existing_log, name_of
from ..output import print_text, say
from ..root import app
from ..runtime import run

if TYPE_CHECKING:
    from ...engine.log.contract import EventLog
    from ...scoring.index.contents import ContentSearch
    from ...scoring.index.lines import ListedSession
    from ...scoring.index.order import SessionOrder
    from ...scoring.index.query import SessionQuery
    from ...scoring.trajectory.options import Options

__all__ = ("sessions_command",)

_AT_ONCE = 1 << 16  # characters that are printed at once
_SNIPPETS = 100  # sessions whose texts are read at once
_AROUND = 4  # lines of a screen without a session
_LEAST = 10  # sessions, on the smallest screen


@app.command(
    "sessions",
    short_help="Lists the sessions of a log.",
    epilog=example(
        "duolog sessions demo.db",
        "duolog sessions demo.db agent=two-stage state=abandoned,tolerance tau=2",
        "duolog sessions demo.db --where tag=wrong-goal --where reviewer!=anna",
        "duolog sessions demo.db --search refund",
        "duolog sessions demo.db utility=..0.3 --sort utility --limit 20 --json",
        note=f"{FILTERS}\n\nMeasurements are kept in the log, so the next list is quick.",
    ),
)
def sessions_command(
    log: options.LogToRead,
    filters: options.Filters = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILTER", help="Only sessions that meet this filter; may be repeated."
        ),
    ] = None,
    search: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="Only sessions that hold all of these words; words in double quotes hold together.",
        ),
    ] = None,
    state: Annotated[
        str | None,
        typer.Option(
            metavar="STATES",
            help="Only sessions in these states, such as abandoned; as the filter state=STATES.",
        ),
    ] = None,
    utility: options.Utility = None,
    sort: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
            help="session, task, instance, state, rounds, events, utility, cost, latency, lasted, "
            "opened, last, written or a label; -KEY for the greatest first.",
            show_default="as they began",
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Maximum number of sessions to list.",
            show_default="all, or what fits on the screen of a terminal",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON array.")] = False,
) -> None:
    """Lists the sessions of a log: id, task, group, state, rounds, last utility, times.

    The list says why a utility is missing, --json as utility_missing. If several scorers measured utility,
    choose one with --utility.

    --search looks into messages, actions, outputs and comments, and shows the text around the first match. The
    first search of a log takes long, because it makes an index that the log keeps.
    """
    from ...scoring.index.order import parse_order
    from ...scoring.index.query import parse_query
    from ...scoring.trajectory.options import Options

    asked = [*(filters or ()), *(where or ()), *(() if state is None else (f"state={state}",))]
    query = parse_query(asked)
    order = None if sort is None else parse_order(sort)

    async def main() -> None:
        nonlocal query
        async with existing_log(log) as opened:
            contents = None
            if search is not None:
                contents, query = await _searched(opened, query, search)
            options = Options(utility=utility)
            if utility is not None:
                from ...experiments.sources import check_scorers

                await check_scorers(opened, options)
            fits = None if limit is not None or as_json else _lines_of_screen()
            asked_for = limit if fits is None else fits + 1  # one more tells whether there are more
            found = _found(opened, query, order, asked_for, options, log)
            if contents is not None and search is not None:
                found = _with_snippets(found, contents, search)
            if as_json:
                await _print_json(found)
            else:
                terms = [*asked, *(() if search is None else (f"--search {search}",))]
                await _print_table(found, opened, query, terms, fits)

    run(main)


def _lines_of_screen() -> int | None:
    """How many sessions fit on the screen; None if the output is not a terminal."""
    if not sys.stdout.isatty():
        return None
    return max(get_terminal_size().lines - _AROUND, _LEAST)


async def _found(
    log: EventLog,
    query: SessionQuery,
    order: SessionOrder | None,
    limit: int | None,
    options: Options,
    url: str,
) -> AsyncIterator[ListedSession]:
    from ...engine.log.process import cores
    from ...scoring.columns.log import Shared
    from ...scoring.index.select import select
    from ..text.progress import RecordProgress

    shared = Shared(url=url, processes=cores())
    with RecordProgress("reading sessions", None) as progress:
        found = select(
            log, query, order, limit=limit, options=options, reading=progress, shared=shared
        )
        async for one in found:
            yield one


async def _searched(
    log: EventLog, query: SessionQuery, text: str
) -> tuple[ContentSearch, SessionQuery]:
    """The search of a log's contents, and the query for the sessions that it found."""
    from msgspec.structs import replace

    from ...scoring.index.contents import search_contents
    from ..text.progress import RecordProgress

    with RecordProgress("reading contents", None) as progress:
        contents, found = await search_contents(log, text, progress=progress)
    return contents, replace(query, words=(text.casefold(),), contents=found.sessions)


async def _with_snippets(
    found: AsyncIterator[ListedSession], contents: ContentSearch, text: str
) -> AsyncIterator[ListedSession]:
    """The sessions with the text around the first match in each."""
    from msgspec.structs import replace

    waiting: list[ListedSession] = []

    async def shown() -> list[ListedSession]:
        snippets = await contents.snippets(text, [one.session for one in waiting])
        return [replace(one, snippet=snippets.get(one.session, "")) for one in waiting]

    async for one in found:
        waiting.append(one)
        if len(waiting) == _SNIPPETS:
            for listed in await shown():
                yield listed
            waiting = []
    for listed in await shown():
        yield listed


async def _print_json(found: AsyncIterator[ListedSession]) -> None:
    """Prints one array, a line per session, without holding all of them in memory."""
    import msgspec

    waiting, size = ["[\n"], 0
    async for one in found:
        text = msgspec.json.encode(one).decode()
        waiting += (text, ",\n")
        size += len(text)
        if size >= _AT_ONCE:  # a write for each line would be a switch to the reader for each
            print_text("".join(waiting[:-1]))
            waiting, size = waiting[-1:], 0
    print_text("[]\n" if waiting == ["[\n"] else "".join((*waiting[:-1], "\n]\n")))


async def _print_table(
    found: AsyncIterator[ListedSession],
    log: EventLog,
    query: SessionQuery,
    filters: Sequence[str],
    fits: int | None,
) -> None:
    from ...scoring.index.select import unmet
    from ..text.sessions import print_sessions

    name = name_of(log)
    listed = [line async for line in found]
    if listed:
        print_sessions(listed[:fits])
        if fits is not None and len(listed) > fits:
            say(f"there are more: --limit {10 * fits} shows more of them, and a pipe, | less, all")
    elif filters:
        say(f"no session of {name} meets {' '.join(filters)}{await unmet(log, query)}")
    else:
        say(f"{name} holds no sessions")
