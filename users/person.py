"""A real person in the human's seat: their typed lines become messages and acts.

A ``Seat`` is the person's terminal, pipe or test; ``Person`` is the actor between it and the context. A
line is a message, unless it begins with a slash: then it is a command.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol, final

import anyio

from ..engine.errors import ContextError, InvalidInput, StaleBase
from ..engine.records import Record
from ..engine.session.context import ActorContext
from ..engine.session.decisions import Approve
from ..engine.session.view import View
from .person_commands import HELP, action_help, parse_action, private_text

__all__ = ("Person", "Seat")

_LONG = 3600.0
"""Seconds of one wait: a person who thinks is never taken for one who waits."""

_TO_OTHERS = frozenset({"do", "edit", "no", "submit", "yes"})
"""Commands after which the others have something to answer."""


class Seat(Protocol):
    """A person's terminal, pipe or test: shows what happens, and reads what the person types."""

    async def read_line(self) -> str | None:
        """The next line or message; None when there will be none."""
        ...

    def show(self, view: View, fresh: Sequence[Record]) -> None:
        """Shows the records that came since the last call."""
        ...

    def notify(self, text: str) -> None:
        """Shows a text that is for the person alone, and is not recorded."""
        ...

    async def edit(self, text: str) -> str | None:
        """Lets the person change a text; None if this seat does not support it."""
        ...


@final
class Person:
    """The actor of a person who sits somewhere; its ``live`` is a ``Player``'s actor.

    Args:
        seat: the person's seat.
        media_type: the media type of the output.

    Attributes:
        left: the person has left, and the session is open.
        finished: the person has ended the session.
    """

    def __init__(self, seat: Seat, *, media_type: str = "text/plain") -> None:
        self.left = False
        self.finished = False
        self._seat = seat
        self._media_type = media_type
        self._typed: deque[str | None] = deque()
        self._waiting: anyio.CancelScope | None = None
        self._refused: str | None = None
        self._outages: list[anyio.Event] = []
        self._commands: Mapping[str, Callable[[ActorContext, str], Awaitable[None]]] = {
            "actions": self._list_actions,
            "do": self._do,
            "edit": self._edit,
            "finish": self._finish,
            "give-up": self._give_up,
            "help": self._help,
            "no": self._deny,
            "output": self._output,
            "quit": self._quit,
            "rate": self._rate,
            "retry": self._retry,
            "submit": self._submit,
            "wishes": self._wishes,
            "yes": self._approve,
        }

    async def live(self, context: ActorContext) -> None:
        """Runs the person's commands and messages until the session ends or the person leaves it."""
        context.look()
        wishes = private_text(context.view.private)
        if wishes:
            self._seat.notify(f"What you want, which only you know:\n{wishes}")
        self._seat.show(context.view, context.view.records)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._listen)
            while not self.finished:
                self._seat.show(context.view, context.look())
                if self._typed:
                    await self._carry_out(context, self._typed.popleft())
                else:
                    await self._wait(context)
            tasks.cancel_scope.cancel()

    async def outage(self, why: str) -> bool:
        """Says that a model of the others cannot be asked, and waits until it is to be asked again:
        when the person does something, or wants just that. See ``Models``.
        """
        self._seat.notify(
            f"The agent's model cannot be asked: {why}\n"
            "It is asked again when you write something, or with /retry. /quit leaves the session "
            "open."
        )
        again = anyio.Event()
        self._outages.append(again)
        await again.wait()
        return True

    def _ask_again(self) -> None:
        outages, self._outages = self._outages, []
        for again in outages:
            again.set()

    async def _listen(self) -> None:
        """Takes what the person types, whatever the actor does meanwhile."""
        line: str | None = ""
        while line is not None:
            line = await self._seat.read_line()
            self._typed.append(line)
            if self._waiting is not None:
                self._waiting.cancel()

    async def _wait(self, context: ActorContext) -> None:
        """Waits for news, or for a line."""
        with anyio.CancelScope() as self._waiting:
            await context.news(within=_LONG)
        self._waiting = None

    async def _carry_out(self, context: ActorContext, line: str | None) -> None:
        """Does what a line says."""
        if line is None:
            return await self._quit(context, "")
        line = line.strip()
        try:
            if line.startswith("/"):
                name, *rest = line[1:].split(maxsplit=1) or [""]
                command = self._commands.get(name)
                if command is None:
                    raise InvalidInput(f"unknown command /{name}; /help lists them")
                await command(context, "".join(rest).strip())
                if name in _TO_OTHERS:
                    self._ask_again()
            elif line:
                await context.say(line)
                self._ask_again()
        except (InvalidInput, StaleBase) as error:
            self._seat.notify(str(error))

    # --- commands --------------------------------------------------------------------------------

    async def _help(self, context: ActorContext, rest: str) -> None:
        self._seat.notify(HELP)

    async def _list_actions(self, context: ActorContext, rest: str) -> None:
        specs = context.view.actions_available.values()
        self._seat.notify("\n".join(map(action_help, specs)) or "There are no actions.")

    async def _do(self, context: ActorContext, rest: str) -> None:
        name, arguments = parse_action(rest, context.view.actions_available)
        await context.act(name, arguments)

    async def _edit(self, context: ActorContext, rest: str) -> None:
        before = self._refused or context.view.snapshot_text
        after = await self._seat.edit(before)
        if after is None:
            raise InvalidInput("no editor was found, or it failed; write a file and /submit it")
        if after.strip() == context.view.snapshot_text.strip():
            self._seat.notify("Nothing is changed.")
        else:
            await self._put_up(context, after.strip())

    async def _submit(self, context: ActorContext, rest: str) -> None:
        try:
            content = await anyio.Path(rest).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput(f"cannot read {rest!r}: {error}") from None
        await self._put_up(context, content.strip())

    async def _put_up(self, context: ActorContext, content: str) -> None:
        self._refused = content  # kept for the next edit, if the agent was faster
        await context.submit(content, media_type=self._media_type)
        self._refused = None

    async def _approve(self, context: ActorContext, rest: str) -> None:
        await self._answer(context, rest, approved=True)

    async def _deny(self, context: ActorContext, rest: str) -> None:
        await self._answer(context, rest, approved=False)

    async def _answer(self, context: ActorContext, comment: str, *, approved: bool) -> None:
        asked = context.view.open_approvals
        if not asked:
            raise InvalidInput("no approval was requested")
        await context.emit(Approve(asked[0].version, approved, comment, "person"))

    async def _rate(self, context: ActorContext, rest: str) -> None:
        number, *why = rest.split(maxsplit=1) or [""]
        if number not in ("1", "2", "3", "4", "5"):
            raise InvalidInput(f"a rating is a number from 1 to 5, not {number!r}")
        try:
            await context.rate(int(number), "".join(why))
        except ContextError as error:  # there is nothing to rate yet
            raise InvalidInput(str(error)) from None

    async def _retry(self, context: ActorContext, rest: str) -> None:
        if not self._outages:
            raise InvalidInput("no model has failed: there is nothing to try again")
        self._seat.notify("The model is asked again.")
        self._ask_again()

    async def _output(self, context: ActorContext, rest: str) -> None:
        self._seat.notify(context.view.snapshot_text or "There is no output yet.")

    async def _wishes(self, context: ActorContext, rest: str) -> None:
        self._seat.notify(private_text(context.view.private) or "Your part says nothing.")

    async def _finish(self, context: ActorContext, rest: str) -> None:
        await context.finish(rest)
        self.finished = True

    async def _give_up(self, context: ActorContext, rest: str) -> None:
        await context.finish(rest, "abandoned")
        self.finished = True

    async def _quit(self, context: ActorContext, rest: str) -> None:
        self.left = True
        context.interrupt(f"{context.name} has left it")
