"""The actors of one session with their contexts: their tasks, their ends, and their successors.

In a fork that executes its origin's trace again, the origin's players begin. At the cut, players
that are not in the fork are replaced: each successor begins there, from its view. All others keep
their state; from then on, their randomness is drawn from the fork's seed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import final

import anyio
import msgspec
from anyio.abc import TaskGroup

from .. import codec
from ..errors import first_error
from ..events import ActorFailed, Role, SessionOpened
from ..plugins import PluginCall, error_with_place, failure_of
from ..records import ENVIRONMENT, Record
from .actors import Player
from .context import ActorContext
from .environment import ActionSpec
from .inheritance import Phase
from .sequencer import Receiver, Sequencer
from .time.scheduler import RealTurns, VirtualTurns
from .view import View

__all__ = ("ActorTasks",)


class _Part:
    """A player with its context, until the session ends or another one takes over."""

    __slots__ = ("context", "player", "receiver", "scope")

    def __init__(self, player: Player, context: ActorContext, receiver: Receiver) -> None:
        self.player = player
        self.context = context
        self.receiver = receiver
        self.scope = anyio.CancelScope()


@final
class ActorTasks:
    """The players of a session, and their tasks.

    Args:
        phases: the players, phase after phase; those of the last phase play to the end.
        actions: the task actions, by name.
        sequencer: records everything.
        turns: the session's clock; a virtual one if there is more than one phase.
        settle: waits until the scorers have measured everything so far.
        hold: seconds of wall time that an actor may hold the turn.
        recorded: the trace from its opening, at least to the end of the last earlier phase.
    """

    def __init__(
        self,
        phases: Sequence[Phase],
        *,
        actions: Mapping[str, ActionSpec],
        sequencer: Sequencer,
        turns: VirtualTurns | RealTurns,
        settle: Callable[[], Awaitable[None]],
        hold: float | None,
        recorded: Sequence[Record],
    ) -> None:
        self._phases = phases
        self._phase = 0
        self._actions = actions
        self._sequencer = sequencer
        self._turns = turns
        self._settle = settle
        self._hold = hold
        self._recorded = recorded
        self._tasks: TaskGroup | None = None
        self._scopes: dict[str, anyio.CancelScope] = {}
        self._late: set[str] = set()
        self._left: set[str] = set()
        self._parts = {p.participant.name: self._part(p, phases[0]) for p in phases[0].players}

    # --- who plays -------------------------------------------------------------------------------

    @property
    def present(self) -> list[str]:
        """The names of those who have not left."""
        return [name for name in self._parts if name not in self._left]

    @property
    def cut(self) -> int | None:
        """The trace version after which other players take over next; None if none will."""
        return self._phases[self._phase].until

    def plays_until(self, actor: str) -> int | None:
        """The trace version after which another player takes an actor's part; None for never, and
        for actors that are not participants.
        """
        part = self._parts.get(actor)
        if part is not None:
            for before, after in zip(
                self._phases[self._phase :], self._phases[self._phase + 1 :], strict=False
            ):
                if part.player.participant not in [p.participant for p in after.players]:
                    return before.until
        return None

    def take_over(self) -> bool:
        """Lets the next phase's players take over when the trace has reached the cut; False if they
        play to the end.
        """
        self._phase += 1
        phase = self._phases[self._phase]
        seed = phase.opened.seed
        playing = {player.participant.name: player for player in phase.players}
        before = self._parts
        stay = {
            name: part
            for name, part in before.items()
            if name in playing and playing[name].participant == part.player.participant
        }
        if isinstance(self._turns, VirtualTurns):
            self._turns.recast(
                seed, frozenset({*playing, ENVIRONMENT}), frozenset(playing) - stay.keys()
            )
        for part in stay.values():
            part.context.view.seed = seed
            part.context.timing = phase.timing
        for name, part in before.items():
            if name not in stay:
                self._sequencer.disconnect(part.receiver)
                part.scope.cancel()
        self._parts = {}
        for name, player in playing.items():
            self._parts[name] = part = stay.get(name) or self._part(player, phase)
            if name in stay:
                continue
            for record in self._recorded[: self._sequencer.state.version]:
                part.receiver.deliver(record)
            if self._tasks is not None and (name not in before or name in self._left):
                self._left.discard(name)
                self._tasks.start_soon(self._act, name)
        return phase.until is not None

    def _part(self, player: Player, phase: Phase) -> _Part:
        participant = player.participant
        view = View(
            participant.name,
            participant.role,
            seed=phase.opened.seed,
            actions_available={
                name: spec for name, spec in self._actions.items() if participant.role in spec.roles
            },
        )
        context = ActorContext(participant, view, self._sequencer, self._turns, phase.timing)
        receiver: Receiver = context.inbox
        if len(self._phases) > 1:
            receiver = _OpeningFilter(context.inbox, phase.opened)
        self._sequencer.connect(receiver)
        return _Part(player, context, receiver)

    # --- their tasks -----------------------------------------------------------------------------

    def start(self, tasks: TaskGroup) -> None:
        """Starts a task for each actor."""
        self._tasks = tasks
        for name in self._parts:
            tasks.start_soon(self._act, name)

    def adopt(self, records: Sequence[Record]) -> None:
        """Delivers a recorded trace to all contexts, so that they continue from it (real clock)."""
        for part in self._parts.values():
            for record in records:
                part.receiver.deliver(record)

    async def _act(self, name: str) -> None:
        """The task of one part, for all of its players in order."""
        while True:
            part = self._parts[name]
            part.context.attach()
            with part.scope:
                await self.live(name, part.context.role, partial(part.player.actor, part.context))
            if self._parts.get(name) is part:
                return
            await self._settle()  # before the turn passes on, as after every append
            if name not in self._parts:
                self._leave(name)
                return

    async def live(self, name: str, role: Role, work: Callable[[], Awaitable[None]]) -> None:
        """Runs the work of an actor that takes turns; an error closes the session as failed."""
        part = self._parts.get(name)
        error: BaseException | None = None
        try:
            await self._turns.begin(name)
            try:
                with PluginCall(name), anyio.CancelScope() as scope:
                    self._scopes[name] = scope
                    await work()
            except Exception as raised:  # noqa: BLE001  (recorded as ActorFailed)
                error = failure_of(raised)
            if name in self._late:
                error = TimeoutError(
                    f"{name!r} held the turn for more than {self._hold} s of wall time"
                )
            if error is not None:
                await self._fail(name, role, error)
        finally:
            if self._parts.get(name) is part:  # else another player takes over
                self._leave(name)

    def _leave(self, name: str) -> None:
        self._left.add(name)
        self._turns.leave(name)

    async def _fail(self, name: str, role: Role, error: BaseException) -> None:
        if isinstance(error, BaseExceptionGroup):
            error = first_error(error)
        failed = ActorFailed(error=error_with_place(error), type=type(error).__name__)
        detail = f"{failed.type}: {failed.error}"
        await self._sequencer.close("failed", name, role, detail, first=[failed])

    def end_turn(self, name: str) -> None:
        """Ends the work of an actor that holds the turn for too long."""
        scope = self._scopes.get(name)
        if scope is not None:
            self._late.add(name)
            scope.cancel()


@final
class _OpeningFilter:
    """Delivers a trace under the opening of the session in which its actor began to play."""

    def __init__(self, receiver: Receiver, opened: SessionOpened) -> None:
        self._receiver = receiver
        self._opened = opened

    def deliver(self, record: Record) -> None:
        if record.version == 1:
            body = codec.encode_body(self._opened)
            record = msgspec.structs.replace(record, body=body, _event=self._opened)
        self._receiver.deliver(record)
