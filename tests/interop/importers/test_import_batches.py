"""An importer's batches: bounded, split by session and stream, and without secrets."""

from __future__ import annotations

from collections.abc import Iterator

from duolog.engine import codec
from duolog.engine.errors import InvalidInput
from duolog.engine.events import MessageSent, SessionOpened, Unknown
from duolog.engine.records import TRACE
from duolog.interop.importers.batches import BATCH, BYTES, Batch, Run, next_batch
from duolog.interop.importers.protocol import Diagnostic, Foreign, Found
from duolog.testing import by

OPENED = SessionOpened(task="t", instance="1", participants=(), clock="virtual")


def said(text: str, session: str = "s", stream: str = TRACE) -> Foreign:
    return Foreign(session, stream, by("human", MessageSent(text=text)))


def batches_of(found: Iterator[Found]) -> list[Batch]:
    return list(iter(lambda: next_batch(found), None))


def runs_of(batch: Batch) -> list[tuple[str, str, int]]:
    return [
        (part.session, part.stream, len(part.drafts))
        for part in batch.parts
        if isinstance(part, Run)
    ]


def test_a_batch_ends_by_events_and_by_bytes() -> None:
    many = batches_of(iter([said("x") for _ in range(BATCH + 1)]))
    assert [runs_of(batch) for batch in many] == [[("s", TRACE, BATCH)], [("s", TRACE, 1)]]
    large = batches_of(iter([said("x" * BYTES), said("y" * (BYTES // 2)), said("z")]))
    assert [runs_of(batch) for batch in large] == [[("s", TRACE, 1)], [("s", TRACE, 2)]]
    assert large[0].size > BYTES


def test_a_run_is_of_one_session_and_stream_and_an_opening_begins_one() -> None:
    diagnostic = Diagnostic("difference", "counted otherwise", "line 3")
    opened = Foreign("s", TRACE, by("environment", OPENED))
    found: list[Found] = [said("a"), said("b"), said("c", stream="j@1"), diagnostic]
    found += [said("d"), opened, said("e"), said("f", session="other")]
    batch = next_batch(iter(found))
    assert batch is not None
    assert runs_of(batch) == [
        ("s", TRACE, 2), ("s", "j@1", 1), ("s", TRACE, 1), ("s", TRACE, 2), ("other", TRACE, 1),
    ]  # fmt: skip
    assert batch.parts[2] == diagnostic
    openings = [part.opened for part in batch.parts if isinstance(part, Run)]
    assert openings == [None, None, None, OPENED, None]


def test_what_was_read_before_an_error_is_kept() -> None:
    def read() -> Iterator[Found]:
        yield said("a")
        raise InvalidInput("line 2: no record")

    first, *rest = batches_of(read())
    assert runs_of(first) == [("s", TRACE, 1)]
    assert str(first.error) == "line 2: no record"
    assert rest == []


def test_drafts_and_bodies_are_without_secrets_and_say_the_same() -> None:
    batch = next_batch(iter([said("the key is sk-proj-abcDEF123456"), said("no key")]))
    assert batch is not None
    (run,) = batch.parts
    assert isinstance(run, Run)
    texts = [draft.event.text for draft in run.drafts if isinstance(draft.event, MessageSent)]
    assert texts == ["the key is [removed]", "no key"]
    assert run.bodies == [codec.encode_body(draft.event) for draft in run.drafts]


def test_an_event_of_a_newer_schema_stays_one_without_its_secrets() -> None:
    newer = Unknown("MessageSent", 9, b'{"kind":"MessageSent","words":["sk-proj-abcDEF123456"]}')
    batch = next_batch(iter([Foreign("s", TRACE, by("human", newer))]))
    assert batch is not None
    (run,) = batch.parts
    assert isinstance(run, Run)
    body = b'{"kind":"MessageSent","words":["[removed]"]}'
    assert (run.drafts[0].event, run.bodies) == (Unknown("MessageSent", 9, body), [body])
