"""Scorers in a separate process, so that they take no time of the product's interpreter.

The parent starts this module as a program and sends it one pickle: how to open the log, and the scorers. Then
both write lines of JSON. The program ends when its standard input does, so it never outlives the product.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, cast, final

import anyio
import msgspec
from anyio import to_thread
from anyio.abc import ByteSendStream, Process
from anyio.streams.buffered import BufferedByteReceiveStream

from ..engine.errors import InvalidInput, LogClosed
from ..engine.log.backoff import Backoff
from ..engine.log.contract import Store
from ..engine.log.leases import Leasing
from ..engine.logger import get_logger
from ..engine.scorers.driver import Pace, ScorerPool, ScorerStatistics
from ..engine.scorers.protocol import Scorer, stream_of
from .deliveries import TERMS

__all__ = ("ScorerProcess",)

_LOOK: Final = 0.01  # seconds between looks how far the log has come
_TELL: Final = 0.5  # seconds between two reports of the program
_END: Final = 5.0  # seconds that the program has to end by itself
_LINE: Final = 1 << 20
_NEAR: Final = 10_000  # sessions that this process wrote last, of which the program is told
_GATHER: Final = 0.02  # seconds for which what it is told is gathered


class _Work(NamedTuple):
    """The work of the program; sent as a pickle."""

    make_store: Callable[[], Store]
    scorers: tuple[Scorer, ...]
    session: str | None
    pace: Pace
    divided: bool


class _Order(msgspec.Struct, frozen=True):
    """A line to the program: to say when the log is measured up to a position; or, with the number 0,
    which sessions the product wrote last, and which of them another process has written since.
    """

    number: int = 0
    position: int = 0
    near: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


class _Report(msgspec.Struct, frozen=True):
    """A line of the program: an order that is done, or the state of its scorers."""

    done: int = 0
    scorers: tuple[ScorerStatistics, ...] = ()


@final
class ScorerProcess:
    """Runs scorers in another process, which is started again if it dies.

    Args:
        make_store: opens the log once more.
        scorers: to run there; sent as pickles.
        session: only this one; None for all.
        pace: the limits of each scorer.
        divided: whether processes divide the sessions by leases.

    Raises:
        InvalidInput: something cannot be sent to another process.
    """

    def __init__(
        self,
        make_store: Callable[[], Store],
        scorers: Sequence[Scorer],
        *,
        session: str | None,
        pace: Pace,
        divided: bool,
    ) -> None:
        for scorer in scorers:
            _sent(scorer, f"the scorer {stream_of(scorer.ref)}")
        _sent(make_store, "the redaction hook of the log")
        work = _Work(make_store, tuple(scorers), session, pace, divided)
        self._payload = pickle.dumps((list(sys.path), pickle.dumps(work)))
        self._orders: dict[int, _Order] = {}
        self._done: dict[int, anyio.Event] = {}
        self._count = 0
        self._near: dict[str, None] = {}  # the one told last comes last
        self._left: dict[str, None] = {}
        self._untold: dict[str, None] = {}
        self._news = anyio.Event()
        self._input: ByteSendStream | None = None
        self.scorers: tuple[ScorerStatistics, ...] = ()

    async def run(self) -> None:
        """Measures until it is cancelled."""
        backoff = Backoff()
        while True:
            command = [sys.executable, "-P", "-m", __name__]
            with anyio.CancelScope(shield=True):  # else nothing would end one that has just begun
                process = await anyio.open_process(command, stderr=None, stdout=subprocess.PIPE)
            try:
                await self._talk(process, backoff)
            finally:
                self._input = None
                with anyio.CancelScope(shield=True):
                    await _end(process)
            seconds = backoff.next()
            get_logger("telemetry").warning(
                "the process of the scorers ended; starting it again",
                code=process.returncode,
                seconds=seconds,
            )
            await anyio.sleep(seconds)

    async def _talk(self, process: Process, backoff: Backoff) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            await process.stdin.send(len(self._payload).to_bytes(8, "big") + self._payload)
            self._input = process.stdin
            for order in tuple(self._orders.values()):
                await self._order(order)
            self._untold = dict(self._near)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._tell_often)
                await self._listen(BufferedByteReceiveStream(process.stdout), backoff)
                tasks.cancel_scope.cancel()
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return  # it died

    async def _listen(self, lines: BufferedByteReceiveStream, backoff: Backoff) -> None:
        """Takes the lines of the program until it dies."""
        try:
            while True:
                line = await lines.receive_until(b"\n", _LINE)
                report = msgspec.json.decode(line, type=_Report)
                backoff.reset()
                if report.done:
                    self._orders.pop(report.done, None)
                    done = self._done.pop(report.done, None)
                    if done is not None:
                        done.set()
                else:
                    self.scorers = report.scorers
        except (
            anyio.BrokenResourceError,
            anyio.ClosedResourceError,
            anyio.EndOfStream,
            anyio.IncompleteRead,
        ):
            return  # it died

    def note(self, session: str, *, near: bool) -> None:
        """Notes whether this process wrote a session last, for the program."""
        was = session in self._near
        self._near.pop(session, None)
        if near:
            self._near[session] = None
            if len(self._near) > _NEAR:
                del self._near[next(iter(self._near))]
        if near != was:
            self._untold.pop(session, None)
            self._left.pop(session, None)
            (self._untold if near else self._left)[session] = None
            self._news.set()

    async def _tell_often(self) -> None:
        """Tells the program what was noted."""
        while True:
            near, self._untold = tuple(self._untold), {}
            left, self._left = tuple(self._left), {}
            try:
                if near or left:
                    await self._order(_Order(near=near, left=left))
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                return  # it died, as its reader notices
            await self._news.wait()
            self._news = anyio.Event()
            await anyio.sleep(_GATHER)

    async def _order(self, order: _Order) -> None:
        if self._input is not None:
            await self._input.send(msgspec.json.encode(order) + b"\n")

    async def settle(self, position: int) -> None:
        """Waits until the log is measured up to a position."""
        self._count += 1
        order = self._orders[self._count] = _Order(self._count, position)
        done = self._done[self._count] = anyio.Event()
        try:
            await self._order(order)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass  # it is sent again to the next one
        await done.wait()


def _sent(value: object, what: str) -> None:
    """Checks that a value can be sent to another process. Raises InvalidInput."""
    try:
        data = pickle.dumps(value)
    except Exception as error:
        raise InvalidInput(
            f"{what} cannot run in another process: {type(error).__name__}: {error}; define it in a "
            "module, at the top, or use where='thread'"
        ) from error
    if b"__main__" in data:
        raise InvalidInput(
            f"{what} is defined in the program itself, which another process cannot import; define it "
            "in a module, or use where='thread'"
        )


async def _end(process: Process) -> None:
    """Lets the program end, and kills it if it does not."""
    if process.stdin is not None:
        await process.stdin.aclose()
    with anyio.move_on_after(_END):
        await process.wait()
    if process.returncode is None:
        process.kill()
    await process.aclose()


# --- the program ----------------------------------------------------------------------------------


def _read_work() -> _Work:
    size = int.from_bytes(sys.stdin.buffer.read(8), "big")
    path, data = cast("tuple[list[str], bytes]", pickle.loads(sys.stdin.buffer.read(size)))
    sys.path.extend(one for one in path if one not in sys.path)
    return cast("_Work", pickle.loads(data))


def _tell(report: _Report) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(report) + b"\n")
    sys.stdout.buffer.flush()


async def _score(work: _Work) -> None:
    near: dict[str, None] = {}  # sessions that the product wrote last
    async with work.make_store() as store:
        pool = ScorerPool(
            store,
            work.scorers,
            session=work.session,
            pace=work.pace,
            leases=store.leases() if work.divided and isinstance(store, Leasing) else None,
            terms=TERMS,
            is_near=lambda session, version: session in near,
        )
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_report_often, pool)
            tasks.start_soon(_obey, store, pool, near, tasks.cancel_scope)
            await pool.run()
            tasks.cancel_scope.cancel()


async def _report_often(pool: ScorerPool) -> None:
    while True:
        await to_thread.run_sync(_tell, _Report(scorers=pool.statistics()))
        await anyio.sleep(_TELL)


async def _obey(
    store: Store, pool: ScorerPool, near: dict[str, None], scope: anyio.CancelScope
) -> None:
    """Carries out orders until the input ends, and then ends the program."""
    async with anyio.create_task_group() as tasks:
        while line := await to_thread.run_sync(sys.stdin.buffer.readline, abandon_on_cancel=True):
            order = msgspec.json.decode(line, type=_Order)
            for session in order.left:
                near.pop(session, None)
            near.update(dict.fromkeys(order.near))
            while len(near) > _NEAR:
                del near[next(iter(near))]
            if order.number:
                tasks.start_soon(_settle, store, pool, order)
        scope.cancel()


async def _settle(store: Store, pool: ScorerPool, order: _Order) -> None:
    try:
        # Records of other connections come when the store looks for them.
        while store.statistics().position < order.position:  # noqa: ASYNC110
            await anyio.sleep(_LOOK)
        await pool.settle()
    except LogClosed:
        return
    await to_thread.run_sync(_tell, _Report(done=order.number))


if __name__ == "__main__":
    anyio.run(_score, _read_work())
