"""``duolog fork``: continues a recorded session from a point, with another agent, user or seed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ...engine.errors import InvalidInput
from ..app import app
from ..arguments import example
from ..lookup import existing_log, find_session, log_at
from ..output import print_json
from ..runtime import run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...engine.events import SessionOpened
    from ...engine.records import Record
    from ...engine.session.runner import Session, SessionResult

__all__ = ("fork_command",)


@app.command(
    "fork",
    short_help="Continues a session from a point with another agent, user or seed.",
    epilog=example(
        "duolog fork demo.db travel-3-one-stage --at-round 3 --agent two-stage",
        "duolog fork demo.db travel-3-one-stage --at-version 40 --seed 8 --log forks.db",
        note="duolog report LOG --forks compares each fork with its origin.",
    ),
)
def fork_command(
    log: Annotated[str, typer.Argument(metavar="LOG", help="Path or URL of the log.")],
    session: Annotated[str, typer.Argument(metavar="SESSION", help="Its id, or how it begins.")],
    at_round: Annotated[
        int | None, typer.Option(min=2, help="Play this round, and what follows, again.")
    ] = None,
    at_version: Annotated[
        int | None, typer.Option(min=2, help="Keep the trace up to this version.")
    ] = None,
    agent: Annotated[str | None, typer.Option(help="Kind of agent that takes over.")] = None,
    user: Annotated[str | None, typer.Option(help="Kind of user that takes over.")] = None,
    seed: Annotated[
        int | None,
        typer.Option(help="Seed of the randomness after that point; else that of the origin."),
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(help="The data that the origin was run on, if any.")
    ] = None,
    into: Annotated[
        str | None, typer.Option("--log", help="Log for the fork; else the origin's own.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, for programs.")] = False,
) -> None:
    """Continues a recorded session from a point with another agent, user or seed.

    The fork is a session of its own, which names its origin and begins with the origin's records up
    to that point. The origin is not changed.
    """
    if (at_round is None) == (at_version is None):
        raise InvalidInput("say where to fork: either --at-round or --at-version")

    async def main() -> tuple[str, SessionResult]:
        from ...engine.session.fork import end_before_round, fork
        from ...engine.session.runner import run_session

        async with existing_log(log) as source:
            name = (await find_session(source, session)).session
            trace = [record async for record in source.read(name)]
            planned = _session(_opening(trace), agent, user, seed, dataset)
            version = at_version or end_before_round(trace, at_round or 0)
            forked = fork(planned, trace, version)
            if into is None:
                return name, await run_session(source, forked)
        async with log_at(into, create=True) as target:
            return name, await run_session(target, forked)

    origin, result = run(main)
    if as_json:
        print_json({"origin": origin, "fork": result})
        return
    utility = "none" if result.utility is None else f"{result.utility:.3f}"
    typer.echo(f"{result.session}\n{result.reason} after {result.rounds} rounds, utility {utility}")


def _opening(trace: Sequence[Record]) -> SessionOpened:
    from ...engine.events import SessionOpened

    opened = trace[0].event if trace else None
    if not isinstance(opened, SessionOpened):
        raise InvalidInput("the session has no opening that can be read: it cannot be forked")
    return opened


def _session(
    opened: SessionOpened,
    agent: str | None,
    user: str | None,
    seed: int | None,
    dataset: str | None,
) -> Session:
    """The fork's session: set up like the origin, but for what was given to be different."""
    import msgspec

    from ...engine.session.limits import Limits
    from ...engine.session.timing import Timing
    from ...engine.task import Cell, Setting, find_task

    try:
        cell = msgspec.convert(opened.config.get("cell"), Cell)
        setting = Setting(
            timing=msgspec.convert(opened.config.get("timing", {}), Timing),
            limits=msgspec.convert(opened.config.get("limits", {}), Limits),
        )
    except msgspec.ValidationError as error:
        raise InvalidInput(
            f"the session does not record how it was set up, so it cannot be forked: {error}"
        ) from error
    task = find_task(opened.task, dataset)
    for kind, name, known in (("agent", agent, task.agents), ("user", user, task.users)):
        if name is not None and name not in known:
            raise InvalidInput(f"there is no {kind} {name!r}; there are: {', '.join(known)}")
    changes = {"agent": agent, "user": user}
    cell = msgspec.structs.replace(cell, **{k: v for k, v in changes.items() if v is not None})
    planned = task.session(cell, setting)
    if planned.opened.config.get("source") != opened.config.get("source"):
        raise InvalidInput("the session was run on other data: name them with --dataset")
    if seed is None:
        return planned
    return msgspec.structs.replace(
        planned, opened=msgspec.structs.replace(planned.opened, seed=seed)
    )
