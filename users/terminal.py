"""A real person in the human's seat: what they type becomes what they say and do.

Where the person sits (a terminal, a test) is a ``Seat``; this is the actor between it and the desk.
A line is a message; one that begins with a slash is a command, see ``HELP``.
"""

from __future__ import annotations

import json
import shlex
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol, final

import anyio

from ..engine.errors import InvalidInput, StaleBase
from ..engine.events import JSON
from ..engine.records import Record
from ..engine.session.desk import Desk
from ..engine.session.environment import ActionSpec
from ..engine.session.view import View

__all__ = ("HELP", "Person", "Seat")

HELP = """\
What you type is said to the agent. A line that begins with a slash does something else:
  /edit              change the output in your editor ($VISUAL or $EDITOR), and put it up
  /submit FILE       put up what is in a file
  /do NAME KEY=VALUE take an action; /actions lists them
  /yes, /no [WHY]    answer what you were asked to approve
  /rate 1..5 [WHY]   rate how far the agent has brought you since you last spoke
  /output            show the whole output
  /wishes            show what you want, as your part has it
  /finish [WHY]      end the session: you are done
  /quit              leave; the session stays open, and can be resumed"""

_LONG = 3600.0
"""Seconds of waiting at a time: a person who thinks is never taken for one who waits."""


class Seat(Protocol):
    """Where a person sits: shows what happens, and gives what the person types."""

    async def line(self) -> str | None:
        """The next line; None when there will be none."""
        ...

    def show(self, view: View, fresh: Sequence[Record]) -> None:
        """Shows what came since the last time."""
        ...

    def tell(self, text: str) -> None:
        """Tells the person something that nobody else needs to know."""
        ...

    async def edit(self, text: str) -> str | None:
        """Lets the person change a text; None where that cannot be done here."""
        ...


@final
class Person:
    """The actor of a person who sits somewhere; its ``live`` is a ``Player``'s actor.

    Args:
        seat: where the person sits.
        media_type: of the output.

    Attributes:
        left: the person has left, and the session is open.
    """

    def __init__(self, seat: Seat, *, media_type: str = "text/plain") -> None:
        self.left = False
        self._seat = seat
        self._media_type = media_type
        self._typed: deque[str | None] = deque()
        self._waiting: anyio.CancelScope | None = None
        self._refused: str | None = None
        self._commands: Mapping[str, Callable[[Desk, str], Awaitable[bool]]] = {
            "actions": self._list_actions,
            "do": self._do,
            "edit": self._edit,
            "finish": self._finish,
            "help": self._help,
            "no": self._deny,
            "output": self._output,
            "quit": self._quit,
            "rate": self._rate,
            "submit": self._submit,
            "wishes": self._wishes,
            "yes": self._approve,
        }

    async def live(self, desk: Desk) -> None:
        """Carries out what the person types, until the session ends or the person leaves it."""
        desk.look()
        wishes = told(desk.view.private)
        if wishes:
            self._seat.tell(f"What you want, which only you know:\n{wishes}")
        self._seat.show(desk.view, desk.view.records)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._listen)
            while True:
                self._seat.show(desk.view, desk.look())
                if not self._typed:
                    await self._wait(desk)
                elif not await self._carry_out(desk, self._typed.popleft()):
                    break
            tasks.cancel_scope.cancel()

    async def _listen(self) -> None:
        """Takes what the person types, whatever the actor does meanwhile."""
        line: str | None = ""
        while line is not None:
            line = await self._seat.line()
            self._typed.append(line)
            if self._waiting is not None:
                self._waiting.cancel()

    async def _wait(self, desk: Desk) -> None:
        """Waits for news, or for a line."""
        with anyio.CancelScope() as self._waiting:
            await desk.news(within=_LONG)
        self._waiting = None

    async def _carry_out(self, desk: Desk, line: str | None) -> bool:
        """Does what a line says; False once the person is done."""
        if line is None:
            return await self._quit(desk, "")
        line = line.strip()
        try:
            if line.startswith("/"):
                name, _, rest = line[1:].partition(" ")
                command = self._commands.get(name)
                if command is None:
                    raise InvalidInput(f"there is no command /{name}; /help lists them")
                return await command(desk, rest.strip())
            if line:
                await desk.say(line)
        except (InvalidInput, StaleBase) as error:
            self._seat.tell(str(error))
        return True

    # --- commands --------------------------------------------------------------------------------

    async def _help(self, desk: Desk, rest: str) -> bool:
        self._seat.tell(HELP)
        return True

    async def _list_actions(self, desk: Desk, rest: str) -> bool:
        specs = desk.view.actions_available.values()
        self._seat.tell("\n".join(_described(spec) for spec in specs) or "There are no actions.")
        return True

    async def _do(self, desk: Desk, rest: str) -> bool:
        try:
            name, *given = shlex.split(rest)
        except ValueError as error:
            hint = "as in /do SearchFlights origin='New York' ..."
            raise InvalidInput(f"name an action and its arguments, {hint} ({error})") from None
        if name not in desk.view.actions_available:
            known = ", ".join(desk.view.actions_available) or "none"
            raise InvalidInput(f"there is no action {name!r}; there are: {known}")
        await desk.act(name, dict(_argument(one) for one in given))
        return True

    async def _edit(self, desk: Desk, rest: str) -> bool:
        before = self._refused or desk.view.snapshot_text
        after = await self._seat.edit(before)
        if after is None:
            raise InvalidInput("there is no editor here; write a file, and /submit it")
        if after.strip() == desk.view.snapshot_text.strip():
            self._seat.tell("Nothing is changed.")
            return True
        return await self._put_up(desk, after.strip())

    async def _submit(self, desk: Desk, rest: str) -> bool:
        try:
            content = await anyio.Path(rest).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput(f"cannot read {rest!r}: {error}") from None
        return await self._put_up(desk, content.strip())

    async def _put_up(self, desk: Desk, content: str) -> bool:
        self._refused = content  # kept for the next edit, if the agent was faster
        await desk.submit(content, media_type=self._media_type)
        self._refused = None
        return True

    async def _approve(self, desk: Desk, rest: str) -> bool:
        return await self._answer(desk, rest, approved=True)

    async def _deny(self, desk: Desk, rest: str) -> bool:
        return await self._answer(desk, rest, approved=False)

    async def _answer(self, desk: Desk, comment: str, *, approved: bool) -> bool:
        asked = desk.view.open_approvals
        if not asked:
            raise InvalidInput("nobody has asked for an approval")
        await desk.approve(asked[0].version, approved=approved, comment=comment)
        return True

    async def _rate(self, desk: Desk, rest: str) -> bool:
        number, _, why = rest.partition(" ")
        if number not in ("1", "2", "3", "4", "5"):
            raise InvalidInput(f"a rating is a number from 1 to 5, not {number!r}")
        await desk.rate(int(number), why.strip())
        return True

    async def _output(self, desk: Desk, rest: str) -> bool:
        self._seat.tell(desk.view.snapshot_text or "There is no output yet.")
        return True

    async def _wishes(self, desk: Desk, rest: str) -> bool:
        self._seat.tell(told(desk.view.private) or "Your part says nothing.")
        return True

    async def _finish(self, desk: Desk, rest: str) -> bool:
        await desk.finish(rest)
        return False

    async def _quit(self, desk: Desk, rest: str) -> bool:
        self.left = True
        desk.interrupt(f"{desk.name} has left it")


def told(private: JSON) -> str:
    """What only the person was told, in lines."""
    if isinstance(private, Mapping):
        return "\n".join(told(part) for part in private.values())
    if isinstance(private, list | tuple):
        return "\n".join(f"- {part}" for part in private)
    return "" if private is None else str(private)


def _described(spec: ActionSpec) -> str:
    properties = spec.parameters.get("properties")
    names = (
        " ".join(f"{name}=..." for name in properties) if isinstance(properties, Mapping) else ""
    )
    return f"/do {spec.name} {names}\n    {spec.description}"


def _argument(text: str) -> tuple[str, JSON]:
    """An argument as it was typed: JSON where it is some, else a text."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise InvalidInput(f"{text!r} is no argument: write NAME=VALUE")
    try:
        parsed: JSON = json.loads(value, parse_constant=_refuse)
    except ValueError:
        return name, value
    return name, parsed


def _refuse(constant: str) -> JSON:
    raise ValueError(f"{constant} is no value in JSON")
