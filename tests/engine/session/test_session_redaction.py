"""Secrets in a simulation: no actor sees one, and a session that is resumed is the same."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import msgspec
import pytest
from duolog.engine.errors import InvalidInput
from duolog.engine.events import MessageSent, ModelCalled, SessionOpened, SnapshotTaken, Unknown
from duolog.engine.log.open import open_log
from duolog.engine.records import Draft, Record, Redact
from duolog.engine.redacting import (
    OFF,
    redact_secrets,
    redaction_in,
    redaction_of,
    said_of,
)
from duolog.engine.redaction import REMOVED
from duolog.engine.session.context import ActorContext, Reply
from duolog.engine.session.runner import Session, run_session
from duolog.testing import a_session, agent, human, put_records

KEY = "sk-proj-abcDEF1234567890"


def session(seen: list[str], *, redact: bool = True) -> Session:
    """A session in which a person, a model and an agent say a key."""

    async def ann(context: ActorContext) -> None:
        await context.say(f"Use {KEY} for it.")
        await context.news()
        seen.extend(
            record.event.text
            for record in context.view.records
            if isinstance(record.event, MessageSent)
        )
        await context.finish("done")

    async def helper(context: ActorContext) -> None:
        await context.news()

        async def send() -> Reply:
            return Reply(reply={"text": f"I keep {KEY}"})

        reply = await context.models.call(model="m", purpose="act", request="r", send=send)
        seen.append(str(reply.reply))
        assert isinstance(reply.reply, dict)
        await context.submit(f"the draft with {KEY}")
        await context.say(str(reply.reply["text"]))

    made = a_session(human(ann), agent(helper))
    return made if redact else msgspec.structs.replace(made, redact=None)


async def played(
    made: Session, before: list[Record] | None = None, redact: Redact | None = None
) -> list[Record]:
    async with open_log("memory://", redact=redact) as log:
        if before:
            await put_records(log, before)
        await run_session(log, made)
        return [record async for record in log.read(made.id)]


@pytest.mark.parametrize("redact", [None, redact_secrets, partial(redact_secrets)])
async def test_no_actor_sees_a_secret_and_none_is_recorded(redact: Redact | None) -> None:
    """The log redacts nothing, redacts as the session does, or has another hook."""
    seen: list[str] = []
    records = await played(session(seen), redact=redact)
    assert seen
    assert KEY not in str(seen)
    assert REMOVED in str(seen)
    assert not any(KEY.encode() in (record.body or b"") for record in records)
    kinds = {record.kind for record in records if REMOVED.encode() in (record.body or b"")}
    assert {"MessageSent", "ModelCalled", "SnapshotTaken"} <= kinds


async def test_a_session_without_redaction_keeps_all() -> None:
    seen: list[str] = []
    records = await played(session(seen, redact=False))
    assert KEY in str(seen)
    assert any(KEY.encode() in (record.body or b"") for record in records)


@pytest.mark.parametrize("redact", [None, redact_secrets])
async def test_a_session_with_secrets_is_resumed_from_every_record(redact: Redact | None) -> None:
    whole = await played(session([]), redact=redact)
    for cut in range(1, len(whole)):
        seen: list[str] = []
        again = await played(session(seen), whole[:cut], redact)
        assert [(one.kind, one.body) for one in again] == [(one.kind, one.body) for one in whole]
        assert KEY not in str(seen)


def draft(event: object) -> Draft:
    return Draft(event, "ann", "human", 0.0)  # type: ignore[arg-type]


def test_what_holds_no_secret_stays_the_same_object() -> None:
    plain = draft(MessageSent(text="token = next(tokens)"))
    assert redact_secrets(plain) is plain


def test_every_kind_of_event_is_cleaned_and_cleaned_once() -> None:
    for event in (
        MessageSent(text=KEY),
        ModelCalled(model="m", purpose="p", request="r", reply={KEY: [KEY]}),
        SnapshotTaken(content={"a": KEY}, digest=""),
        SessionOpened(
            task="t", instance="i", clock="utc", participants=(), private={"ann": {"key": KEY}}
        ),
        Unknown("Other", 1, msgspec.json.encode({"kind": "Other", "x": [KEY]})),
    ):
        clean = redact_secrets(draft(event))
        assert KEY not in str(clean.event)
        assert REMOVED in str(clean.event)
        assert redact_secrets(clean) == clean


def test_patterns_come_out_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "patterns"
    file.write_text("# of our own\n\nACME-\\d+\n", encoding="utf-8")
    redact = redaction_of(str(file))
    assert redact is not None
    cleaned = redact(draft(MessageSent(text=f"ACME-12 and {KEY}")))
    assert cleaned.event == MessageSent(text=f"{REMOVED} and {REMOVED}")
    said = said_of(str(file))
    assert said == ["ACME-\\d+"]
    again = redaction_in(said)
    assert again is not None
    assert again(draft(MessageSent(text="ACME-7"))).event == MessageSent(text=REMOVED)
    assert (redaction_of("default"), redaction_of(OFF)) == (redact_secrets, None)
    assert (said_of("default"), said_of(OFF)) == (None, OFF)
    assert (redaction_in(None), redaction_in(OFF)) == (redact_secrets, None)
    file.write_text("(", encoding="utf-8")
    with pytest.raises(InvalidInput, match=re.escape("pattern 1: '(' is not valid")):
        redaction_of(str(file))
    with pytest.raises(InvalidInput, match="expects default, off or a file of patterns"):
        redaction_of(str(tmp_path / "none"))
