r"""A chat service with telemetry: a FastAPI app in which a person and an agent work on a letter.

    pip install duolog fastapi uvicorn
    python examples/chat_service.py telemetry.db 8000 &
    curl -X POST 127.0.0.1:8000/chats/7/messages -H 'Content-Type: application/json' \\
        -d '{"id": "m1", "text": "Invite the team to lunch."}'
    curl -X PUT 127.0.0.1:8000/chats/7/draft -H 'Content-Type: application/json' \\
        -d '{"text": "Lunch on Thursday!"}'
    curl -N 127.0.0.1:8000/chats/7/advice

The last one is a stream: the utility of the draft, the effort of the person, advice on what the agent
should do next, and a warning when the person is about to give up. Recording takes microseconds of a
request, and scoring runs concurrently. Afterwards: ``duolog report telemetry.db``.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import duolog
import msgspec
import uvicorn
from duolog.scoring.trajectory.updates import EffortUpdated, UtilityUpdated
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

__all__ = ("PostedDraft", "PostedMessage", "make_app")


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
    answers: dict[tuple[str, str], dict[str, str]] = {}

    @asynccontextmanager
    async def running(app: FastAPI) -> AsyncIterator[None]:
        async with log:
            log.watch(scorers=[duolog.rule_judge(), duolog.RetentionUtility()]).start()
            yield

    app = FastAPI(title="Letters", lifespan=running)

    @app.post("/chats/{chat}/messages")
    async def post_message(chat: str, message: PostedMessage) -> dict[str, str]:
        if found := answers.get((chat, message.id)):
            return found
        session = await log.session(chat, task="letters", agent="rules-v1")
        await session.human.says(message.text, id=message.id)
        reply, draft = answer(message.text, drafts.get(chat, ""))
        if draft is not None:
            drafts[chat] = draft
            await session.agent.submits(draft, id=f"{message.id}/draft")
        await session.agent.says(reply, id=f"{message.id}/reply")
        answers[chat, message.id] = found = {"reply": reply, "draft": drafts.get(chat, "")}
        return found

    @app.put("/chats/{chat}/draft")
    async def put_draft(chat: str, draft: PostedDraft) -> dict[str, str]:
        session = await log.session(chat, task="letters", agent="rules-v1")
        drafts[chat] = draft.text
        await session.human.edits(draft.text)
        return {"draft": draft.text}

    @app.post("/chats/{chat}/end")
    async def end(chat: str) -> dict[str, str]:
        session = await log.session(chat)
        await session.close(by="human", durable=True)
        return {"ended": chat}

    @app.get("/chats/{chat}/advice")
    async def advice(chat: str) -> StreamingResponse:
        return StreamingResponse(advise(log, chat), media_type="text/event-stream")

    return app


async def advise(log: duolog.Log, chat: str) -> AsyncIterator[bytes]:
    """The updates of scoring for a chat, from its beginning and then live."""
    controller = duolog.Controller(chat)
    async with log.watch(session=chat, after_position=0) as updates:
        async for update in updates:
            if isinstance(update, UtilityUpdated | EffortUpdated | duolog.StopAdvice):
                yield event(type(update).__name__, update)
            move = controller.feed(update)
            if move is not None:
                yield event("Advice", move)


def answer(text: str, draft: str) -> tuple[str, str | None]:
    """The agent, which can do two things with a letter."""
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
