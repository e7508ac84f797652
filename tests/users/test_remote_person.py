"""A remote person: each of their acts is done once, and they are told its outcome."""

from __future__ import annotations

from contextlib import suppress

import anyio
import pytest
from duolog.engine.errors import SessionClosedError, SessionInterrupted
from duolog.engine.log.open import open_log
from duolog.engine.session.context import ActorContext
from duolog.engine.session.runner import run_session
from duolog.engine.session.time.clock import RealClock
from duolog.testing import agent, human
from duolog.testing.actors import Script
from duolog.testing.sessions import a_session
from duolog.users.remote_person import RemotePerson


async def test_calls_are_carried_out_in_order_and_answered() -> None:
    person = RemotePerson()
    session = a_session(
        human(person.live), agent(Script().hear().say("well").hear()), clock=RealClock()
    )
    async with open_log("memory://") as log, anyio.create_task_group() as tasks:
        tasks.start_soon(run_session, log, session)
        first = await person.call(lambda context: context.say("hello"))
        assert first.kind == "MessageSent"

        async def wrong(context: ActorContext) -> None:
            raise ValueError("no such thing")

        with pytest.raises(ValueError, match="no such thing"):
            await person.call(wrong)
        await person.call(lambda context: context.say("again"))
        with suppress(SessionClosedError):  # its actor ends with the session
            await person.call(lambda context: context.finish("done"))
        with pytest.raises(SessionClosedError):
            await person.call(lambda context: context.say("too late"))
        said = [r.event.text async for r in log.read(session.id) if r.kind == "MessageSent"]  # type: ignore[union-attr]
        assert [text for text in said if text != "well"] == ["hello", "again"]


async def test_who_leaves_leaves_the_session_open() -> None:
    person = RemotePerson()
    session = a_session(human(person.live), agent(Script().hear().hear().hear()), clock=RealClock())
    async with open_log("memory://") as log:
        async with anyio.create_task_group() as tasks:

            async def run() -> None:
                with pytest.raises(SessionInterrupted, match="gone for lunch"):
                    await run_session(log, session)

            tasks.start_soon(run)
            await person.call(lambda context: context.say("hello"))
            person.leave("gone for lunch")
        assert (await log.summary(session.id)).state == "open"
        with pytest.raises(SessionClosedError):
            await person.call(lambda context: context.say("hello?"))


async def test_an_outage_lasts_until_the_person_does_something() -> None:
    person = RemotePerson()
    session = a_session(human(person.live), agent(Script().hear().hear().hear()), clock=RealClock())
    async with open_log("memory://") as log, anyio.create_task_group() as tasks:
        tasks.start_soon(run_session, log, session)
        await person.call(lambda context: context.say("hello"))
        again: list[bool] = []

        async def failing() -> None:
            again.append(await person.outage("no credit"))

        tasks.start_soon(failing)
        await anyio.wait_all_tasks_blocked()
        assert (person.trouble, again) == ("no credit", [])
        await person.call(lambda context: context.say("and now?"))
        await anyio.wait_all_tasks_blocked()
        assert (person.trouble, again) == ("", [True])
        tasks.cancel_scope.cancel()
