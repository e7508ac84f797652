r"""A chat service with telemetry: a FastAPI app in which a person and an agent work on a letter.

    pip install . fastapi uvicorn
    python examples/chat_service.py telemetry.db 8000 &
    curl -N 127.0.0.1:8000/chats/7/advice &
    post() { curl 127.0.0.1:8000/chats/7/messages -H 'Content-Type: application/json' \
        -d "{\"id\": \"$1\", \"text\": \"$2\"}"; }
    post m1 "Invite the team to lunch."
    post m2 "That is wrong, make it shorter."
    post m3 "No, still wrong."
    post m4 "You did not make it shorter."
    post m5 "Hello?"

The advice is a stream: the utility of the draft, the effort of the person, advice on what the agent
should do next, and a warning when the person is about to give up; with it, the agent offers a
colleague. Recording takes microseconds of a request, and scoring runs concurrently. Afterwards:
``duolog report telemetry.db``.

With several workers, each chat is scored by one of them, and the advice goes to the one that wrote the
chat last::

    cd examples && CHATS_LOG=sqlite:///telemetry.db uvicorn --factory chat_service:app --workers 2
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import duolog
import msgspec
import uvicorn
from duolog.engine.scorers.protocol import Scorer
from duolog.scoring.trajectory.updates import EffortUpdated, StopAdvice, UtilityUpdated
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

__all__ = ("PostedDraft", "PostedMessage", "app", "make_app")


PATIENCE = 2
"""Unproductive rounds in a row after which a colleague takes over."""


class PostedMessage(BaseModel):
    """A message of a person; with the client's id, so that it can be posted again without an answer."""

    id: str
    text: str


class PostedDraft(BaseModel):
    """The letter after the person has changed it."""

    text: str


def make_app(url: str) -> FastAPI:
    """The service, with its telemetry in the log at a URL."""
    log = duolog.open(url)
    # These take the place of the product's own database.
    drafts: dict[str, str] = {}
    stuck: set[str] = set()
    answers: dict[tuple[str, str], dict[str, str]] = {}

    def on_stop(stop: StopAdvice) -> None:
        if stop.tau == PATIENCE:
            stuck.add(stop.session)  # and call a colleague

    @asynccontextmanager
    async def running(service: FastAPI) -> AsyncIterator[None]:
        async with log:
            scorers: list[Scorer] = [duolog.rule_judge(), duolog.RetentionUtility()]
            log.watch(scorers=scorers, on_stop=on_stop, leases=True).start()
            yield

    service = FastAPI(title="Letters", lifespan=running)

    @service.post("/chats/{chat}/messages")
    async def post_message(chat: str, message: PostedMessage) -> dict[str, str]:
        if found := answers.get((chat, message.id)):
            return found
        session = await log.session(chat, task="letters", agent="rules-v1")
        await session.human.says(message.text, id=message.id)
        reply, draft = answer(message.text, drafts.get(chat, ""), helped=chat in stuck)
        if draft is not None:
            drafts[chat] = draft
            await session.agent.submits(draft, id=f"{message.id}/draft")
        await session.agent.says(reply, id=f"{message.id}/reply")
        answers[chat, message.id] = found = {"reply": reply, "draft": drafts.get(chat, "")}
        return found

    @service.put("/chats/{chat}/draft")
    async def put_draft(chat: str, draft: PostedDraft) -> dict[str, str]:
        session = await log.session(chat, task="letters", agent="rules-v1")
        drafts[chat] = draft.text
        await session.human.edits(draft.text)
        return {"draft": draft.text}

    @service.post("/chats/{chat}/end")
    async def end(chat: str) -> dict[str, str]:
        session = await log.session(chat)
        await session.close(by="human", durable=True)
        return {"ended": chat}

    @service.get("/chats/{chat}/advice")
    async def advice(chat: str) -> StreamingResponse:
        return StreamingResponse(advise(log, chat), media_type="text/event-stream")

    return service


def app() -> FastAPI:
    """The service with the log that the environment names, as each worker of uvicorn makes it."""
    return make_app(os.environ["CHATS_LOG"])


async def advise(log: duolog.Log, chat: str) -> AsyncIterator[bytes]:
    """The updates of scoring for a chat, from its beginning and then live."""
    controller = duolog.Controller(chat)
    async with log.watch(session=chat, after_position=0) as updates:
        async for update in updates:
            if isinstance(update, UtilityUpdated | EffortUpdated | StopAdvice):
                yield event(type(update).__name__, update)
            move = controller.feed(update)
            if move is not None:
                yield event("Advice", move)


def answer(text: str, draft: str, *, helped: bool) -> tuple[str, str | None]:
    """The agent, which can do two things with a letter, and knows when a person has to."""
    if helped:
        return "I cannot do that. I have asked a colleague, who will write to you here.", None
    if not draft:
        return "Here is a first draft.", f"Dear all,\n{text}\nRegards"
    if text.lower().startswith("add "):
        return "I have added that.", f"{draft}\n{text[4:]}"
    return "I can only add things: say 'add ...'.", None


def event(name: str, value: msgspec.Struct) -> bytes:
    """A server-sent event."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), msgspec.json.encode(value))


if __name__ == "__main__":
    path, port = sys.argv[1:3] if len(sys.argv) > 2 else ("telemetry.db", "8000")
    uvicorn.run(make_app(f"sqlite:///{path}"), port=int(port), timeout_graceful_shutdown=3)
