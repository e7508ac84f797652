"""``duolog chat``: you in the human's seat, with an agent on rules or on a model."""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from ...engine.errors import InvalidInput
from ..app import app
from ..arguments import example
from ..lookup import find_session, log_at
from ..output import say
from ..runtime import run

if TYPE_CHECKING:
    from ...engine.log.contract import EventLog
    from ...engine.session.desk import Desk
    from ...engine.session.runner import Session, SessionResult
    from ...engine.task import Cell
    from ...users.terminal import Person
    from ..chat_terminal import ChatSeat

__all__ = ("chat_command",)

_PERSON = "person"


@app.command(
    "chat",
    short_help="Puts you in the human's seat, with an agent at work.",
    epilog=example(
        "duolog chat travel --agent one-stage --seed 7 --instance 3",
        "duolog chat travel --agent two-stage --model gpt-4o",
        "duolog chat travel --resume travel-3",
        note="Type /help there. What you leave with /quit stays open, and --resume goes on with it.",
    ),
)
def chat_command(
    task: Annotated[str, typer.Argument(help="The task, e.g. travel.")],
    agent: Annotated[str, typer.Option(help="Kind of agent.")] = "one-stage",
    model: Annotated[
        str | None, typer.Option(help="Model behind the agent.", show_default="rules")
    ] = None,
    api_base: Annotated[
        str | None, typer.Option(metavar="URL", help="Where the model is reached, if yours.")
    ] = None,
    text_actions: Annotated[
        bool, typer.Option("--text-actions", help="The model cannot call tools.")
    ] = False,
    instance: Annotated[str, typer.Option(help="Which instance.")] = "0",
    dataset: Annotated[
        str | None, typer.Option(help="File or directory with data of the task's own kind.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Decides the world.")] = 0,
    log: Annotated[
        str, typer.Option(help="Path or URL of the log; it is made where there is none.")
    ] = "chats.db",
    resume: Annotated[
        str | None, typer.Option(metavar="SESSION", help="Go on with this one instead.")
    ] = None,
    plain: Annotated[
        bool, typer.Option("--plain", help="Lines of text instead of the whole screen.")
    ] = False,
) -> None:
    """Works on a task with an agent, in the human's part, and records it like any other session."""
    from ...engine.task import Cell

    cell = Cell(agent=agent, user=_PERSON, instance=instance, seed=seed, model=model)
    chat = _Chat(task, cell, dataset, api_base, text_actions=text_actions, plain=plain)

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
            return await chat.play(opened)

    def tell_how_to_resume() -> None:
        if chat.began:
            given = {"--api-base": api_base, "--dataset": dataset, "--log": log}
            options = [f"{name} {shlex.quote(value)}" for name, value in given.items() if value]
            again = " ".join([task, *options, "--resume", chat.name])
            say(f"The session stays open: duolog chat {again}")

    try:
        result = run(main)
    except KeyboardInterrupt:
        tell_how_to_resume()
        raise
    if result is None:
        tell_how_to_resume()
        return
    utility = "" if result.utility is None else f", utility {result.utility:.3f}"
    from ..text.wording import count

    say(f"The session is {result.reason} after {count(result.rounds, 'round')}{utility}.")
    say(f"duolog show {log} {chat.name} tells how it went.")


class _Chat:
    """One session of a person with an agent, new or resumed.

    Attributes:
        began: the session is in the log.
    """

    def __init__(
        self,
        task: str,
        cell: Cell,
        dataset: str | None,
        api_base: str | None,
        *,
        text_actions: bool,
        plain: bool,
    ) -> None:
        self._task = task
        self._cell = cell
        self._dataset = dataset
        self._api_base = api_base
        self._text_actions = text_actions
        self._plain = plain
        self._started = int(time.time())
        self._session: Session | None = None
        self._person: Person | None = None
        self.began = False

    @property
    def name(self) -> str:
        """The id of the session, once it is set up."""
        return "" if self._session is None else self._session.id

    async def take_over(self, log: EventLog, name: str) -> None:
        """Goes on with a session as it was set up.

        Raises:
            InvalidInput: it was no chat.
        """
        import msgspec

        from ...engine.events import SessionOpened
        from ...engine.task import Cell

        async for record in log.read(name):
            opened = record.event
            started = opened.config.get("started") if isinstance(opened, SessionOpened) else None
            if not isinstance(opened, SessionOpened) or not isinstance(started, int):
                raise InvalidInput(f"session {name} was no chat: it has no person to go on with it")
            self._task, self._started = opened.task, started
            try:
                self._cell = msgspec.convert(opened.config.get("cell"), Cell)
            except msgspec.ValidationError as error:
                raise InvalidInput(
                    f"session {name} does not say how it was set up: {error}"
                ) from None
            models = opened.config.get("models")
            agent = models.get("agent") if isinstance(models, Mapping) else None
            if isinstance(agent, Mapping):
                self._text_actions = bool(agent.get("text_actions"))
            break

    async def play(self, log: EventLog) -> SessionResult | None:
        """Plays the session that was set up; no result where the person left it open."""
        import anyio

        from ...engine.errors import SessionInterrupted
        from ...engine.session.runner import run_session
        from ...users.terminal import Person
        from ..chat_terminal import chat_seat

        session = self._session
        if session is None:
            raise RuntimeError("a chat is set up before it is played")
        seat = chat_seat(plain=self._plain)
        person = self._person = Person(seat)
        result: SessionResult | None = None
        why = ""
        with seat.open():
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_watch, log, session.id, seat)
                self.began = True
                try:
                    result = await run_session(log, session)
                except SessionInterrupted as error:
                    why = str(error)
                tasks.cancel_scope.cancel()
        if result is None and not person.left:
            say(f"duolog: {why}")
        return result

    def set_up(self) -> None:
        """Makes the session, with the person in it.

        Raises:
            InvalidInput: an agent that works alone, or anything that the task does not have.
        """
        import msgspec

        from ...engine.session.limits import Limits
        from ...engine.task import find_task
        from ..experiment.spec import RULES, Experiment, ModelTable

        task, cell = find_task(self._task, self._dataset), self._cell
        if cell.agent in task.agents and task.automated(cell.agent):
            raise InvalidInput(f"agent {cell.agent!r} works alone: there is nobody to chat with")
        tables = {cell.model: ModelTable(text_actions=self._text_actions)} if cell.model else {}
        experiment = Experiment(
            task=self._task, models=(cell.model or RULES,), api_base=self._api_base, model=tables
        )
        setting = msgspec.structs.replace(
            experiment.setting(experiment.reach(None)),
            limits=Limits(rounds=None, actions=None),
            config={"started": self._started},
            person=self._live,
        )
        self._session = task.session(cell, setting)

    async def _live(self, desk: Desk) -> None:
        if self._person is None:
            raise RuntimeError("nobody sits in the human's seat")
        await self._person.live(desk)


async def _watch(log: EventLog, session: str, seat: ChatSeat) -> None:
    """Shows the utility as it is measured."""
    from ...engine.events import UtilityScored

    async with log.subscribe(session=session) as records:
        async for record in records:
            event = record.event if record.kind == "UtilityScored" else None
            if isinstance(event, UtilityScored):
                seat.score(event.value)
