"""The synchronous face of the log: the same verbs, from any thread, one loop in the background."""

from __future__ import annotations

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anyio
import duolog
import pytest
from duolog.engine.errors import InvalidInput, LogClosed, LogNotFound, NotRecorded, StaleBase
from duolog.engine.events import MessageSent, StopAdvised
from duolog.scoring.scorers.progress import rule_judge
from duolog.scoring.trajectory.updates import StopAdvice, Update
from duolog.telemetry.receipt import Receipt
from duolog.telemetry.session import Recording

BAD = "That is still wrong, as I said before."


def quarrel(s: Recording[Receipt], rounds: int = 3) -> None:
    s.human.says("Please mend the parser.")
    for number in range(rounds):
        with s.agent.saying() as message:
            message.write("I have tried ")
            message.write(f"{number} times.")
        s.human.says(BAD)


def test_the_same_verbs_without_await(tmp_path: Path) -> None:
    with duolog.open_sync(f"sqlite:///{tmp_path}/t.db") as log:
        assert log.url == f"sqlite:///{tmp_path}/t.db"
        s = log.session("conversation-42", task="support", agent="v7")
        s.human.says("My order has not come.")
        s.agent.acts("search", {"order": 7}, result={"state": "lost"})
        draft = s.agent.submits("Dear customer")
        s.human.edits("Dear Ann", base=draft)
        with pytest.raises(StaleBase):
            s.agent.submits("Dear all", base=draft)
        s.human.rates(4)
        log.wait(s.human.feedback(thumbs="up"))
        s.close(durable=True)
        summary = log.summary("conversation-42")
        assert (summary.task, summary.state) == ("support", "ended")
        assert [record.kind for record in log.read("conversation-42")][:3] == [
            "SessionOpened",
            "MessageSent",
            "ActionTaken",
        ]
        statistics = log.statistics()
        assert (statistics.accepted, statistics.refused) == (9, 1)
    assert log.unwritten == ()


def test_a_name_that_nobody_knows_is_refused() -> None:
    unknown = "unknown label or option 'tsk'; did you mean 'task'"
    with duolog.open_sync("memory://") as log, pytest.raises(InvalidInput, match=unknown):
        log.session("s", tsk="support")  # type: ignore[call-arg]


def test_many_threads_may_record_the_same_session() -> None:
    with duolog.open_sync("memory://") as log:

        def talk(name: str) -> list[int | None]:
            s = log.session("s", humans=("a", "b", "c", "d"))
            receipts = [s.actor(name).says(f"{name}{number}") for number in range(200)]
            log.wait(receipts[-1])
            return [receipt.version for receipt in receipts]

        with ThreadPoolExecutor(4) as pool:
            versions = list(pool.map(talk, "abcd"))
        events = [(record.actor, record.event) for record in log.read("s")]
    assert sorted(v for part in versions for v in part if v is not None) == list(range(2, 802))
    for name in "abcd":
        said = [e.text for actor, e in events if actor == name and isinstance(e, MessageSent)]
        assert said == [f"{name}{number}" for number in range(200)]


def test_callbacks_run_beside_and_may_record() -> None:
    told: list[tuple[str, int]] = []
    threads: set[int] = set()
    with duolog.open_sync("memory://") as log:

        def stop(advice: StopAdvice) -> None:
            threads.add(threading.get_ident())
            told.append((advice.session, advice.tau))
            log.session(advice.session).agent.notes("the human is about to leave", durable=True)

        updates: list[Update] = []
        watch = log.watch(scorers=[rule_judge()], on_stop=stop, on_update=updates.append)
        s = log.session("s", judge="rule-judge")
        quarrel(s)
        log.wait(s.human.says("So much for that."))
        watch.settle()
        assert told == [("s", 1), ("s", 2), ("s", 3)]
        assert threading.get_ident() not in threads
        assert [r.kind for r in log.read("s")].count("NoteTaken") == 3
        assert watch.statistics().stops == 3
        watch.close()
        quarrel(s)
        s.close(durable=True)
        assert told == [("s", 1), ("s", 2), ("s", 3)]


def test_stops_are_recorded(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/t.db"
    with duolog.open_sync(url) as log:
        log.watch(scorers=[rule_judge()], after_position=0)
        quarrel(log.session("s", judge="rule-judge"))

    async def stops() -> int:
        async with duolog.open(url) as again:
            records = [record async for record in again.read("s", stream="tolerance@1")]
            return sum(isinstance(record.event, StopAdvised) for record in records)

    assert anyio.run(stops) == 3


def test_what_finds_no_room_is_dropped_or_waits() -> None:
    with duolog.open_sync("memory://", room=1) as log:
        s = log.session("s")
        receipts = [s.human.says(str(number)) for number in range(2000)]
        lost = [receipt for receipt in receipts if receipt.settled and receipt.error is not None]
        statistics = log.statistics()
        assert statistics.dropped == len(lost)
        with pytest.raises(NotRecorded):
            log.wait(lost[0])
    with duolog.open_sync("memory://", room=1, on_full="block") as log:
        s = log.session("s")
        for number in range(300):
            s.human.says(str(number))
        s.close(durable=True)
        assert log.statistics().dropped == 0
        texts = [r.event.text for r in log.read("s") if isinstance(r.event, MessageSent)]
        assert texts == [str(number) for number in range(300)]


def test_durable_may_be_the_rule() -> None:
    with duolog.open_sync("memory://", durable=True) as log:
        s = log.session("s")
        assert s.human.says("now").version == 2


def test_before_and_after() -> None:
    log = duolog.open_sync("memory://")
    with pytest.raises(LogClosed, match="open the log with 'with'"):
        log.session("s")
    with log:
        s = log.session("s")
    with pytest.raises(LogClosed):
        s.human.says("too late")
    with pytest.raises(LogClosed):
        log.session("t")
    with pytest.raises(LogClosed), log:
        pass
    log.close()


def test_it_may_be_closed_without_a_with() -> None:
    log = duolog.open_sync("memory://").__enter__()
    s = log.session("s")
    receipt = s.human.says("hello")
    log.close()
    assert receipt.version == 2


def test_what_cannot_be_opened_says_so_and_leaves_no_thread() -> None:
    before = set(threading.enumerate())
    with (
        pytest.raises(InvalidInput, match="at least one event"),
        duolog.open_sync("memory://", room=0),
    ):
        pass
    with pytest.raises(LogNotFound), duolog.open_sync("/nowhere/at/all.db", create=False):
        pass
    begun = set(threading.enumerate()) - before
    for thread in begun:  # it may be on its way out
        thread.join(300)
    assert not any(thread.is_alive() for thread in begun)


def test_nothing_waits_in_the_loop_itself() -> None:
    with duolog.open_sync("memory://") as log:
        s = log.session("s")
        errors: list[Exception] = []

        async def within() -> None:
            try:
                s.human.says("x", durable=True)
            except InvalidInput as error:
                errors.append(error)

        log._call(within)
        assert "use the asynchronous one there" in str(errors[0])
        s.human.says("y", durable=True)


def test_an_error_in_the_block_comes_out_as_it_is() -> None:
    def product() -> None:
        with duolog.open_sync("memory://") as log:
            log.session("s").human.says("kept")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        product()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"scorers": ["rule_judge"]}, "'rule_judge' is not a scorer"),
        ({"scorers": rule_judge()}, "scorers is a sequence of scorers"),
        ({"scorers": "rule_judge"}, "scorers is a sequence of scorers, not 'rule_judge'"),
        ({"on_stop": 3}, "on_stop is a function, not 3"),
        ({"on_update": "print"}, "on_update is a function, not 'print'"),
    ],
)
def test_a_watch_refuses_at_once_what_it_cannot_use(given: dict[str, Any], message: str) -> None:
    with (
        duolog.open_sync("memory://") as log,
        pytest.raises(InvalidInput, match=re.escape(message)),
    ):
        log.watch(**given)


@pytest.mark.parametrize("reason", ["gave-up", 3, None])
def test_an_unknown_reason_to_close_is_refused_at_the_call(reason: object) -> None:
    with duolog.open_sync("memory://") as log:
        session = log.session("s")
        session.human.says("hello")
        with pytest.raises(InvalidInput, match="closes as one of finished, abandoned"):
            session.close(reason)  # type: ignore[arg-type]
        session.close("abandoned", by="human", durable=True)
        assert log.summary("s").state == "abandoned"
