"""The records that followers of a log get, while others leave, wait or are behind."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import cast

import anyio

from ....engine.errors import (
    CheckpointConflict,
    InvalidInput,
    LogClosed,
    LogUnavailable,
)
from ....engine.log import subscriptions
from ....engine.log.backoff import Backoff
from ....engine.log.consumer import run_consumer
from ....engine.log.contract import Advance, EventLog, Subscription, Tap
from ....engine.log.follower import CheckpointKey, Follower, Output
from ....engine.records import TRACE, Draft, Record
from ...tools import collect, raises, require
from ..around import Away
from .ground import Ground, begun, populate, said, soon

__all__ = ("consume", "deliver", "hurry", "leave", "outrun", "resume")


async def _next(subscription: Subscription | Tap | Follower, count: int) -> list[Record]:
    return [await soon("a record is delivered", anext(subscription)) for _ in range(count)]


async def _nothing(waiting: Awaitable[object], what: str) -> None:
    with anyio.move_on_after(1.0):
        found = await waiting
        raise AssertionError(f"{what}: {found}")


async def leave(ground: Ground) -> None:
    """A reader that leaves takes nothing from the others; one that waits is woken by each append."""
    async with ground.open("left") as log:
        before = await populate(log)
        head = len(before)
        follow = log.subscribe
        one, two = (
            follow(session="a", after_position=head),
            follow(session="a", after_position=head),
        )
        other, whole = follow(session="b", after_position=head), follow(after_position=head)
        tap, tapped = log.tap(session="a"), log.tap()
        await raises(LogClosed, anext(one))
        async with two, other, whole, tapped:
            async with one, tap:
                stands = log.statistics()
                require((len(stands.subscriptions), len(stands.taps)) == (4, 2), f"{stands}")
                waiting = [begun(anext(each)) for each in (one, two, whole, tap, tapped)]
                await asyncio.sleep(0.5)
                [first] = await log.append("a", [said("first")])
                got = [await soon("one that waits is woken", each) for each in waiting]
                require(got == [first] * 5, f"each gets what was appended: {got}")
            require((await _left(one)) and (await _left(tap)), "who has left is told so")
            stands = log.statistics()
            require((len(stands.subscriptions), len(stands.taps)) == (3, 1), f"{stands}")
            [second] = await log.append("a", [said("second")])
            [third] = await log.append("c", [said("third")])
            require(await _next(two, 1) == [second], "the others of a session go on")
            require(await _next(whole, 2) == [second, third], "those of the whole log, too")
            require(await _next(tapped, 2) == [second, third], "and taps")
            held = (one.statistics().buffered, tap.statistics().buffered)
            require(held == (0, 0), f"nothing more is kept for those who have left: {held}")
            await _nothing(anext(other), "a subscription to a session gives only that one")
            again = follow(session="a")
            async with again:
                own = await collect(log.read_all(session="a"))
                require(await _next(again, len(own)) == own, "a new one begins at the beginning")
                waiting = [begun(anext(each)) for each in (two, again)]
                await asyncio.sleep(0.5)
                [fourth] = await log.append("a", [said("fourth")])
                got = [await soon("one that waits is woken", each) for each in waiting]
                require(got == [fourth] * 2, f"both get it: {got}")
        require(not log.statistics().subscriptions, "nobody follows any more")
        waits = log.subscribe(after_position=log.statistics().position)
        async with waits:
            waiting_one = begun(anext(waits))
            await asyncio.sleep(0.1)
            await log.aclose()
            await soon("a close wakes who waits", asyncio.wait([waiting_one]))
            require(isinstance(waiting_one.exception(), LogClosed), "and says that it is closed")


async def _left(reader: Subscription | Tap) -> bool:
    try:
        await soon("a reader that has left", anext(reader))
    except LogClosed:
        return True
    return False


async def outrun(ground: Ground) -> None:
    """A reader that is outrun loses nothing, or if it is a tap, counts what it loses."""
    most = subscriptions.BUFFER
    async with ground.open("outrun") as log:
        await log.append("a", [said("0")])
        slow, own = log.subscribe(), log.subscribe(session="a")
        tap, mine = log.tap(buffer=3), log.tap(session="b", buffer=2)
        async with slow, own, tap, mine:
            first = (await _next(slow, 1))[0]
            require(slow.statistics().position == first.position == 1, "it says where it is")
            wanted = [first]
            for number in range(1, most + 4):
                session = "ab"[number % 2]
                wanted += await log.append(session, [said(f"{number}.{at}") for at in range(2)])
            await asyncio.sleep(0.5)
            stands, head = slow.statistics(), len(wanted)
            require((stands.position, stands.lag) == (1, head - 1), f"it says how far: {stands}")
            require(stands.buffered <= most, f"it buffers {most} at most: {stands}")
            require(stands.fallbacks == 1, f"it has fallen back once: {stands}")
            dropped = (tap.statistics().dropped, mine.statistics().dropped)
            of_b = [record for record in wanted if record.session == "b"]
            require(dropped == (head - 1 - 3, len(of_b) - 2), f"taps count their losses: {dropped}")
            require(log.statistics().dropped == sum(dropped), "the log counts all of them")
            require(await _next(slow, head - 1) == wanted[1:], "it loses nothing")
            of_a = [record for record in wanted if record.session == "a"]
            require(await _next(own, len(of_a)) == of_a, "nor does one of a session")
            require(await _next(tap, 3) == wanted[-3:], "a tap keeps the newest")
            require(await _next(mine, 2) == of_b[-2:], "a tap of a session the newest of that")
            delivered = (tap.statistics().delivered, tap.statistics().buffered)
            require(delivered == (3, 0), f"a tap counts what it delivers: {delivered}")
            for each in (slow, own):
                waiting = begun(anext(each))
                await asyncio.sleep(0.1)
                more = await log.append("a", [said("more")])
                got = await soon("it is live again", waiting)
                while got.position < more[0].position:
                    got = (await _next(each, 1))[0]
                require(got == more[0], f"it is live again: {got}")
            require(slow.statistics().lag == 1, f"one is left: {slow.statistics()}")
            await _next(slow, 1)
            stands = slow.statistics()
            require((stands.lag, stands.buffered) == (0, 0), f"it has all: {stands}")
        later = log.subscribe(after_position=head + 4)
        async with later:
            more = [(await log.append("c", [said(f"later {at}")]))[0] for at in range(4)]
            wanted = [record for record in more if record.position > head + 4]
            require(await _next(later, len(wanted)) == wanted, "it begins at a position to come")
    async with ground.open("unordered") as log:
        await raises(InvalidInput, _refused(lambda: log.subscribe(after_position=-1)))
        await raises(InvalidInput, _refused(lambda: log.tap(buffer=0)))
        async with log.subscribe(after_position=2) as early, log.tap(buffer=1) as small:
            appended = await log.append("s", [said("1"), said("2"), said("3"), said("4")])
            require(await _next(early, 2) == appended[2:], "it begins where it was told to")
            require(await _next(small, 1) == appended[3:], "a small tap has the last")
            require(small.statistics().dropped == 3, "and has dropped the others")


async def _refused(call: object) -> None:
    call()  # type: ignore[operator]


async def hurry(ground: Ground) -> None:
    """Many callers at once: each is answered, in its turn, also if those before it are cancelled."""
    count = 24
    async with ground.open("hurried") as log:
        loop = asyncio.get_running_loop()
        tasks = [
            loop.create_task(log.append(f"s{at % 3}", [said(f"{at}", f"{at}")]))
            for at in range(count)
        ]
        for _ in range(ground.draw % 7):
            await asyncio.sleep(0)
        gone = {at for at in range(count) if ground.draw >> at & 1}
        for at in gone:
            tasks[at].cancel()
        await soon("each caller is answered", asyncio.wait(tasks))
        there = {record.caller_id: record for record in await collect(log.read_all())}
        for at, task in enumerate(tasks):
            if not task.cancelled():
                require(task.result() == [there[f"{at}"]], f"{at} is acknowledged, and there")
            require(task.cancelled() <= (at in gone), f"nobody cancelled {at}")
        stands = log.statistics()
        require((stands.waiting, stands.events) == (0, len(there)), f"nothing waits: {stands}")
        require(0 < stands.groups <= stands.events, f"events come in groups: {stands}")
        for session in ("s0", "s1", "s2"):
            own = [int(r.caller_id or 0) for r in there.values() if r.session == session]
            require(own == sorted(own), f"callers are served in their turn: {own}")
        large = "x" * 9000  # checked in a thread: those behind it wait for it
        mixed = [said(large if at % 3 == 0 else f"{at}") for at in range(9)]
        tasks = [loop.create_task(log.append("line", [draft])) for draft in mixed]
        tasks.append(loop.create_task(log.append("line", [said(large), said("both")])))
        await asyncio.sleep(0)
        tasks[4].cancel()
        await soon("large ones let others through", asyncio.wait(tasks))
        found = [record.event for record in await collect(log.read("line"))]
        wanted = [draft.event for at, draft in enumerate([*mixed, said(large), said("both")])]
        cancelled = [wanted[4]] if tasks[4].cancelled() and wanted[4] not in found else []
        kept = [event for event in wanted if event not in cancelled]
        require(found == kept, "a later append does not overtake a large one of its session")


async def resume(ground: Ground) -> None:
    """A follower continues behind its checkpoint; the checkpoint moves when all output is there."""
    key = CheckpointKey("reader", "1")
    async with ground.open("resumed") as log:
        records = await populate(log)
        head = len(records)
        async with Follower(log, key=key) as follower:
            require((follower.taken, follower.position, follower.head_at_start) == (0, 0, 0), "new")
            got = await soon("a follower takes", follower.take(3))
            got += (
                await soon("a follower takes", follower.take(3 - len(got))) if len(got) < 3 else []
            )
            require(follower.head_at_start == head, f"it began at {follower.head_at_start}")
            require(got == records[: len(got)], f"it begins with the first: {got}")
            require(follower.statistics().lag == head - len(got), f"{follower.statistics()}")
            await follower.commit()
            require(await log.checkpoint(*key) == 0, "nothing is processed yet")
            follower.done(got[1].position)
            require(follower.position == 0, "the first one is not processed")
            require(not follower.has_uncommitted, "so there is nothing to commit")
            follower.done(got[0].position)
            require(follower.position == 2, f"two are processed: {follower.position}")
            require(follower.has_uncommitted, "which can be committed")
            drafts = [[said("out", "o1")], [said("out", "o2"), said("too", "o3")]]
            outputs = [Output(f"out{at}", TRACE, each) for at, each in enumerate(drafts)]
            plain = [Output("out0", TRACE, [said("x")]), Output("out1", TRACE, [said("y")])]
            await raises(InvalidInput, follower.commit(plain))
            await follower.commit(outputs, upto=1)
            require(await log.checkpoint(*key) == 1, "it commits as far as it is told")
            await follower.commit([Output("none", TRACE, [])])
            require(await log.checkpoint(*key) == 2, "and then the rest")
            stand = follower.statistics()
            require((stand.checkpoint, stand.position) == (2, 2), f"it knows where: {stand}")
            require(not follower.has_uncommitted, "nothing is left to commit")
        await raises(LogClosed, anext(follower))
        require(follower.ended, "it has ended")
        for at, own_drafts in enumerate(drafts):
            texts = [record.event for record in await collect(log.read(f"out{at}"))]
            require(
                texts == [draft.event for draft in own_drafts], f"an output is there once: {texts}"
            )
        async with Follower(log, key=key) as one, Follower(log, key=key) as two:
            for reader in (one, two):
                [record] = await soon("a follower goes on", reader.take(1))
                require(record == records[2], f"behind its checkpoint: {record.position}")
                reader.done(record.position)
            await one.commit()
            error = await raises(CheckpointConflict, two.commit())
            require((error.expected, error.actual) == (2, 3), f"who is late is told: {error}")
            require(two.statistics().checkpoint == 3, "and knows where the other is")
        await _interrupted(log)
        await _away(log)
        async with Follower(log, session="b") as follower:
            own = await collect(log.read_all(session="b"))
            settled = begun(follower.settle())
            got = await _next(follower, len(own))
            require(got == own, "a follower of a session gets that one")
            for record in own[:-1]:
                follower.done(record.position)
            await asyncio.sleep(0.5)
            require(not settled.done(), "one is not processed yet")
            follower.done(own[-1].position)
            await soon("it settles when the last one is processed", settled)
            waits = begun(anext(follower))
            await asyncio.sleep(0.1)
            [more] = await log.append("b", [said("measured")], stream="judge@1")
            require(await soon("a follower is woken", waits) == more, "and gets what is new")
            settled = begun(follower.settle())
            await asyncio.sleep(0.1)
            require(not settled.done(), "which is to be processed")
        await soon("the end wakes who waits for a follower", settled)


async def _interrupted(log: EventLog) -> None:
    """A commit that ends between two outputs moves no checkpoint, and may be made again."""
    key = CheckpointKey("interrupted", "1")
    outputs = [Output(f"part{at}", TRACE, [said("half", f"h{at}")]) for at in range(3)]
    for fails_at in range(3):
        before = await log.checkpoint(*key)
        interrupted = cast(EventLog, _Interrupted(log, fails_at))
        async with Follower(interrupted, key=key) as follower:
            [record] = await soon("a follower takes", follower.take(1))
            require(record.position == before + 1, f"it begins behind {before}: {record.position}")
            follower.done(record.position)
            await raises(LogUnavailable, follower.commit(outputs))
            require(
                await log.checkpoint(*key) == before, "the checkpoint moves with the last output"
            )
            await follower.commit(outputs)
        require(await log.checkpoint(*key) == before + 1, "and when it is there")
    for output in outputs:
        require(len(await collect(log.read(output.session))) == 1, "each output is there once")


class _Interrupted:
    """A log that takes some appends, and then one less."""

    def __init__(self, log: EventLog, takes: int) -> None:
        self._log = log
        self._takes = takes

    async def append(
        self,
        session: str,
        drafts: Sequence[Draft],
        *,
        stream: str = TRACE,
        checkpoint: Advance | None = None,
    ) -> list[Record]:
        self._takes -= 1
        if self._takes == -1:
            raise LogUnavailable("it is away")
        return await self._log.append(session, drafts, stream=stream, checkpoint=checkpoint)

    def __getattr__(self, name: str) -> object:
        return getattr(self._log, name)


async def _away(log: EventLog) -> None:
    """If a log cannot be read for a while, its follower says so, waits longer each time, and continues."""
    told: list[float] = []
    away = cast(EventLog, Away(log, 3))
    backoff = Backoff(1.0, longest=3.0)
    clock = asyncio.get_running_loop().time
    began = clock()
    async with Follower(away, backoff=backoff, on_unavailable=lambda _, s: told.append(s)) as each:
        await soon("begins", each.begin())
        with anyio.fail_after(20.0):
            first = await anext(each)
        require(first.position == 1, f"it begins at the beginning: {first.position}")
        spans = [(low <= wait <= high) for wait, (low, high) in zip(told, _SPANS, strict=True)]
        require(all(spans), f"it waits longer each time: {told}")
        require(abs(clock() - began - sum(told)) < 0.5, "for as long as it says")
        require(each.statistics().failures == 3, f"and counts: {each.statistics()}")
        count = 0

        async def flaky() -> int:
            nonlocal count
            count += 1
            if count < 3:
                raise LogUnavailable("not now")
            return count

        with anyio.fail_after(20.0):
            require(await each.retry(flaky) == 3, "work is tried again")
        require(
            told[3] <= 1.0 < told[4] <= 2.0 or told[3] <= 1.0, f"from the first wait on: {told}"
        )
        require(each.statistics().failures == 5, "which is counted, too")


_SPANS = ((0.5, 1.0), (1.0, 2.0), (1.5, 3.0))


async def consume(ground: Ground) -> None:
    """A consumer gets every record once, in batches, and again what it failed at."""
    async with ground.open("consumed") as log:
        records = await populate(log)
        consumer = _Consumer()
        await raises(InvalidInput, run_consumer(log, consumer, batch=0))
        reached = await soon("runs", run_consumer(log, consumer, upto=4, batch=3))
        require(reached == 4, f"a consumer stops where it is told to: {reached}")
        require([r.position for r in consumer.got] == [1, 2, 3, 4], f"{consumer.got}")
        require(max(consumer.sizes) <= 3, f"batches are no larger than asked for: {consumer.sizes}")
        consumer.fails = True
        await raises(ZeroDivisionError, run_consumer(log, consumer, upto=len(records)))
        require(await log.checkpoint("c", "1") == 4, "what failed is not done")
        consumer.fails = False
        await soon("runs", run_consumer(log, consumer, upto=len(records), batch=3))
        require(consumer.got == records, "it gets all, once")
        out = await collect(log.read("out", stream="c@1"))
        texts = [record.caller_id for record in out]
        require(texts == [f"of {r.position}" for r in records], f"and its output is there: {texts}")
        require(await log.checkpoint("c", "1") == len(records), "its checkpoint is at the end")
        require(await run_consumer(log, consumer, upto=3) == len(records), "there is nothing to do")


class _Consumer:
    name = "c"
    version = "1"

    def __init__(self) -> None:
        self.got: list[Record] = []
        self.sizes: list[int] = []
        self.fails = False

    async def consume(self, records: Sequence[Record]) -> Sequence[Output]:
        if self.fails:
            raise ZeroDivisionError
        self.got += records
        self.sizes.append(len(records))
        drafts = [said(f"{r.position}", f"of {r.position}") for r in records]
        return [Output("out", "c@1", drafts)]


async def deliver(ground: Ground) -> None:
    """What another log on the same file writes is delivered, in order, to those who wait for it."""
    if ground.directory is None:
        return
    async with ground.open("shared") as other:
        await populate(other)
        await _deliver(ground, other)


async def _deliver(ground: Ground, other: EventLog) -> None:
    async with ground.open("shared") as log:
        head = (await collect(log.read_all()))[-1].position
        whole, own = log.subscribe(after_position=head), log.subscribe(session="a")
        async with whole, own, log.tap() as tap:
            mine = await collect(log.read_all(session="a"))
            require(await _next(own, len(mine)) == mine, "what was there before is read")
            waiting = [begun(anext(each)) for each in (whole, own, tap)]
            await asyncio.sleep(0.5)
            [first] = await other.append("a", [said("theirs")])
            got = [await soon("what others write is delivered", each) for each in waiting]
            require(got == [first] * 3, f"to all who wait: {got}")
            wanted = [first]
            for number in range(6):
                writer = log if number % 2 else other
                wanted += await writer.append("b", [said(f"by turns {number}")], stream="judge@1")
            require(await _next(whole, 6) == wanted[1:], "all in order, whoever wrote it")
            stands = whole.statistics()
            require((stands.lag, stands.buffered) == (0, 0), f"nothing is left: {stands}")
            counted = log.statistics().position
            require(counted == wanted[-1].position, f"a log knows how far it is: {counted}")
        move = await log.checkpoint("c", "1")
        require(move == 0, "no checkpoint was moved")
