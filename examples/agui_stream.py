"""Records and scores an agent's AG-UI stream on its way to the front end.

    python examples/agui_stream.py telemetry.db

The agent below is a few lines of rules, and takes the place of any that speaks AG-UI. ``tap`` passes
its events on unchanged. Human and agent work on the draft, a part of the state that agent and front
end share; the human's changes to it arrive with the next request.
"""

from __future__ import annotations

import sys
import uuid
from collections.abc import AsyncIterator
from typing import Any

import anyio
import duolog
from duolog.interop.agui import AguiRecorder, stream_agui
from duolog.scoring.live import follow_updates

__all__ = ("main",)

Json = dict[str, Any]

TALK = (
    ("Invite the team to lunch.", None),
    ("Thursday, please.", "Lunch on Thursday at noon.\nPlease reply by Monday."),
    ("Thank you, that is fine.", "Lunch on Thursday at noon.\nPlease reply by Tuesday."),
)
"""Messages of the human, each with the draft if the human has changed it."""


async def agent(request: Json) -> AsyncIterator[Json]:
    """Answers a request with a stream of events: a tool call, a change of the draft, a message."""
    run = request["runId"]
    about = {"threadId": request["threadId"], "runId": run}
    draft = request["state"].get("draft", "")
    yield {"type": "RUN_STARTED", **about}
    if not draft:
        call = {"toolCallId": f"{run}-call"}
        yield {"type": "TOOL_CALL_START", **call, "toolCallName": "find_table"}
        for piece in ('{"seats"', ": 6}"):
            yield {"type": "TOOL_CALL_ARGS", **call, "delta": piece}
        yield {"type": "TOOL_CALL_END", **call}
        yield {"type": "TOOL_CALL_RESULT", **call, "messageId": f"{run}-result", "content": "noon"}
        yield {"type": "STATE_SNAPSHOT", "snapshot": {"draft": "Lunch on Friday at noon."}}
    elif "reply" in draft:
        change = {"op": "replace", "path": "/draft", "value": f"{draft}\nSee you there!"}
        yield {"type": "STATE_DELTA", "delta": [change]}
    message = {"messageId": f"{run}-message"}
    yield {"type": "TEXT_MESSAGE_START", **message, "role": "assistant"}
    for piece in ("The draft is ", "in front ", "of you."):
        yield {"type": "TEXT_MESSAGE_CONTENT", **message, "delta": piece}
    yield {"type": "TEXT_MESSAGE_END", **message}
    yield {"type": "RUN_FINISHED", **about}


async def main(path: str) -> None:
    """Records a thread, and prints the updates of scoring, again as AG-UI events."""
    async with duolog.open(f"sqlite:///{path}") as log:
        watch = log.watch(scorers=[duolog.rule_judge(), duolog.RetentionUtility()]).start()
        thread = f"thread-{uuid.uuid4().hex[:8]}"
        session = await log.session(thread, task="invitations", agent="rules")
        recorder = AguiRecorder(log, session, output="/draft")
        messages: list[Json] = []
        state: Json = {}
        for number, (said, draft) in enumerate(TALK, start=1):
            messages.append({"id": f"said-{number}", "role": "user", "content": said})
            if draft is not None:
                state = {"draft": draft}
            request: Json = {"threadId": thread, "runId": f"run-{number}"}
            request |= {"messages": messages, "state": state}
            async for event in recorder.tap(agent(request), request=request):
                front_end(event)
        await session.close(by="human", durable=True)
        await watch.settle()
        say("What scoring made of it, out of the session told as AG-UI events:")
        found: dict[int, str] = {}
        async for event in stream_agui(log, thread, live=False, follow=follow_updates):
            if event.get("name") == "duolog.utility":
                value: Any = event["value"]
                kept = "nothing yet" if value["value"] is None else f"{value['value']:.0%}"
                found[value["round"]] = kept
        for number, kept in sorted(found.items()):
            say(f"  round {number}: the human kept {kept} of the agent's draft")


def front_end(event: Json) -> None:
    """Takes the place of the browser, which gets the events unchanged."""
    say(f"  {event['type']:<22}{event.get('delta', event.get('snapshot', ''))}")


def say(text: str) -> None:
    """Prints a line."""
    sys.stdout.write(f"{text}\n")


if __name__ == "__main__":
    anyio.run(main, sys.argv[1] if len(sys.argv) > 1 else "telemetry.db")
