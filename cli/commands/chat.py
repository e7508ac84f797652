"""``duolog chat``: you in the human's seat, with an agent on rules or on a model."""

from __future__ import annotations

import shlex
import signal
from typing import TYPE_CHECKING, Annotated

import typer

from ...engine.errors import InvalidInput
from .. import options
from ..arguments import example, for_model, numbers
from ..lookup import find_session, log_at
from ..output import say
from ..root import app
from ..runtime import run

if TYPE_CHECKING:
    from ...engine.session.runner import SessionResult

__all__ = ("chat_command",)

_BY_SIGNAL = 128  # added to a signal's number, as shells have it


@app.command(
    "chat",
    short_help="Puts you in the human's seat, with an agent at work.",
    epilog=example(
        "duolog chat travel --agent one-stage --seed 7 --instance 3",
        "duolog chat travel --agent two-stage --model gpt-4o",
        "duolog chat shop.py:Shop",
        "duolog chat travel --resume travel-3",
        note="Type /help there. A session that you leave with /quit stays open; --resume continues it. "
        "The whole screen needs the extra duolog[tui]; without it, and at a pipe, chat is lines of "
        "text.",
    ),
)
def chat_command(
    task: Annotated[str, typer.Argument(help="The task, e.g. travel; or yours, as file.py:Name.")],
    agent: options.Agent = None,
    agent_timeout: options.AgentTimeout = None,
    agent_env: options.AgentEnv = None,
    redact: options.Redact = None,
    model: options.Model = None,
    api_base: options.ApiBase = None,
    text_actions: options.TextActions = None,
    instance: Annotated[
        str | None,
        typer.Option(metavar="INSTANCE", help="Instance to play.", show_default="the first"),
    ] = None,
    dataset: options.Dataset = None,
    seed: options.Seed = None,
    log: Annotated[
        str,
        typer.Option(metavar="LOG", help="Path or URL of the log; created if it does not exist."),
    ] = "chats.db",
    resume: Annotated[
        str | None, typer.Option(metavar="SESSION", help="Id of an open chat session to continue.")
    ] = None,
    tau: options.Taus = "1,2,3",
    plain: Annotated[
        bool, typer.Option("--plain", help="Print lines of text instead of using the whole screen.")
    ] = False,
) -> None:
    """Works on a task with an agent, in the human's part, and records it like any other session."""
    from ...agents.external.address import ExternalTerms
    from ...experiments.chat import ChatSession, result_text

    taus = numbers(tau, "--tau")
    chat = ChatSession(
        task,
        agent=agent,
        terms=ExternalTerms(agent_timeout, tuple(agent_env or ())),
        redact=redact,
        instance=instance,
        seed=seed or 0,
        model=model,
        dataset=dataset,
        api_base=api_base,
        text_actions=for_model(text_actions, model),
        taus=taus,
    )

    async def main() -> SessionResult | None:
        if resume is None:
            chat.set_up()  # so that what is wrong shows before a log is made
        async with log_at(log, create=resume is None) as opened:
            if resume is not None:
                summary = await find_session(opened, resume)
                if summary.state != "open":
                    raise InvalidInput(f"session {summary.session} is {summary.state}")
                await chat.take_over(opened, summary.session)
                chat.set_up()
            from ..chat.seat import open_seat

            return await chat.play(opened, open_seat(plain=plain))

    def say_how_to_resume() -> None:
        if chat.began:
            given = {
                "--agent-timeout": None if agent_timeout is None else f"{agent_timeout:g}",
                "--api-base": api_base,
                "--dataset": dataset,
                "--log": log,
            }
            options = [f"{name} {shlex.quote(value)}" for name, value in given.items() if value]
            options += [f"--agent-env {name}" for name in agent_env or ()]
            again = " ".join([task, *options, "--resume", chat.name])
            say(f"The session stays open: duolog chat {again}")

    try:
        result = run(main)
    except KeyboardInterrupt:
        say_how_to_resume()
        raise
    if result is not None:
        say(result_text(result))
        say(f"duolog show {log} {chat.name} shows how it went.")
        return
    if chat.interrupted:
        say(f"duolog: {chat.interrupted}")
    say_how_to_resume()
    if chat.ended_by == signal.SIGINT:
        raise KeyboardInterrupt
    if chat.ended_by is not None:
        raise typer.Exit(_BY_SIGNAL + chat.ended_by)
