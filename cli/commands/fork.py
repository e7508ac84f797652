"""``duolog fork``: continues a recorded session from a point, with another agent, user or seed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ...engine.errors import Divergence, InvalidInput
from .. import options
from ..arguments import choices, example
from ..lookup import existing_log, find_session, log_at
from ..output import print_json
from ..root import app
from ..runtime import run

if TYPE_CHECKING:
    from ...experiments.continuations import Forked

__all__ = ("fork_command",)


@app.command(
    "fork",
    short_help="Continues a session from a point with another agent, user or seed.",
    epilog=example(
        "duolog fork demo.db travel-3-one-stage --at-round 3 --agent two-stage",
        "duolog fork demo.db travel-3-one-stage --at-version 40 --seed 8 --log forks.db",
        "duolog fork models.db travel-3-one-stage --at-round 2 --model gpt-4o",
        note="duolog report LOG --forks compares all forks of a log with their origins. With the same "
        "agent, user and seed, a fork gives the rest of its origin.",
    ),
)
def fork_command(
    log: options.LogToRead,
    session: Annotated[
        str, typer.Argument(metavar="SESSION", help="Id of the session; its beginning is enough.")
    ],
    at_round: Annotated[
        int | None, typer.Option(metavar="N", min=2, help="Fork at the beginning of this round.")
    ] = None,
    at_version: Annotated[
        int | None, typer.Option(metavar="N", min=2, help="Fork after this version of the trace.")
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option(
            metavar="AGENT",
            help="Kind of agent, file.py:Name, openai:URL, acp:COMMAND or exec:COMMAND.",
            show_default="the same",
        ),
    ] = None,
    agent_timeout: options.AgentTimeout = None,
    agent_env: options.AgentEnv = None,
    user: Annotated[
        str | None,
        typer.Option(
            metavar="USER", help="Kind of user, or file.py:Name.", show_default="the same"
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="Model behind the agent.", show_default="the same"),
    ] = None,
    user_model: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="Model behind the user.", show_default="the same"),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Seed for all randomness after that point.", show_default="the same"
        ),
    ] = None,
    api_base: options.ApiBase = None,
    text_actions: options.TextActions = None,
    cache: options.Cache = None,
    dataset: options.Dataset = None,
    from_view: Annotated[
        bool,
        typer.Option(
            "--from-view",
            help="Let all actors begin at that point, knowing what they can see there; for sessions that "
            "another version of Duolog recorded.",
        ),
    ] = False,
    into: Annotated[
        str | None,
        typer.Option(
            "--log",
            metavar="LOG",
            help="Path or URL of the log; created if it does not exist.",
            show_default="the origin's log",
        ),
    ] = None,
    task: options.OfTask = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Continues a recorded session from a point with another agent, user or seed.

    The fork is a separate session, which names its origin and begins with the origin's records up
    to that point. The earlier acts are executed again against the record, without asking any
    model; the actors then have the state of that moment. The origin is not changed.
    """
    if (at_round is None) == (at_version is None):
        raise InvalidInput("say where to fork: either --at-round or --at-version")
    texts = () if text_actions is None else tuple(choices(text_actions, "--text-actions"))

    async def main() -> Forked:
        from contextlib import AsyncExitStack

        from ...agents.external.address import ExternalTerms
        from ...experiments.continuations import Changes, Continuations, play_fork

        async with AsyncExitStack() as logs:
            source = await logs.enter_async_context(existing_log(log))
            making = Continuations(
                source,
                dataset=dataset,
                api_base=api_base,
                cache=cache,
                text_actions=texts,
                task=task,
                terms=ExternalTerms(agent_timeout, tuple(agent_env or ())),
            )
            name = (await find_session(source, session)).session
            into_log = None
            if into is not None:
                into_log = await logs.enter_async_context(log_at(into, create=True))
            return await play_fork(
                making,
                name,
                Changes(agent=agent, user=user, model=model, user_model=user_model, seed=seed),
                at_round=at_round,
                at_version=at_version,
                from_view=from_view,
                into=into_log,
            )

    try:
        forked = run(main)
    except Divergence as error:
        if from_view:
            raise
        raise InvalidInput(
            f"{error}; with --from-view all actors begin at that point, and know what they can see there"
        ) from error
    if as_json:
        compared = forked.comparison
        print_json({"origin": compared.origin, "fork": forked.result, "comparison": compared})
        return
    from ...scoring.report import fork_document
    from ..reporting import print_document

    print_document(fork_document(forked.comparison, at_round=at_round))
