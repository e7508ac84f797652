"""A coding agent that speaks the Agent Client Protocol, as a program; its prompts say what to do."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any, TypeAlias

import acp
import anyio
from acp import schema
from acp.helpers import SessionUpdate

Block: TypeAlias = (
    schema.TextContentBlock
    | schema.ImageContentBlock
    | schema.AudioContentBlock
    | schema.ResourceContentBlock
    | schema.EmbeddedResourceContentBlock
)
OPTIONS = [
    schema.PermissionOption(option_id="yes", name="Allow", kind="allow_once"),
    schema.PermissionOption(option_id="no", name="Reject", kind="reject_once"),
]


class ScriptedAgent:
    """Does as the prompt says: ``edit FILE``, ``big SIZE``, ``wait``, ``exit CODE``, else answers."""

    def __init__(self, resumable: bool) -> None:
        self._resumable = resumable
        self._sessions = 0
        self._directories: dict[str, Path] = {}
        self._cancelled = asyncio.Event()
        self._client: acp.Client

    def on_connect(self, conn: acp.Client) -> None:
        self._client = conn

    async def initialize(self, protocol_version: int, **_: object) -> schema.InitializeResponse:
        return schema.InitializeResponse(
            protocol_version=protocol_version,
            agent_info=schema.Implementation(name="scripted", version="1.0"),
            agent_capabilities=schema.AgentCapabilities(load_session=self._resumable),
        )

    async def new_session(self, cwd: str, **_: object) -> schema.NewSessionResponse:
        self._sessions += 1
        session = f"s{self._sessions}"
        self._directories[session] = Path(cwd)
        ask = schema.SessionMode(id="ask", name="Ask")
        code = schema.SessionMode(id="code", name="Code")
        modes = schema.SessionModeState(available_modes=[ask, code], current_mode_id="ask")
        return schema.NewSessionResponse(session_id=session, modes=modes)

    async def load_session(
        self, cwd: str, session_id: str, **_: object
    ) -> schema.LoadSessionResponse:
        self._directories[session_id] = Path(cwd)
        await self._send(session_id, acp.update_user_message_text("an old prompt"))
        await self._send(session_id, acp.update_agent_message_text("an old answer"))
        return schema.LoadSessionResponse()

    async def set_session_mode(self, session_id: str, mode_id: str, **_: object) -> None:
        update = schema.CurrentModeUpdate(
            session_update="current_mode_update", current_mode_id=mode_id
        )
        await self._send(session_id, update)

    async def cancel(self, session_id: str, **_: object) -> None:
        self._cancelled.set()

    async def prompt(
        self, session_id: str, prompt: list[Block], **_: object
    ) -> schema.PromptResponse:
        words = "".join(getattr(block, "text", "") for block in prompt).split(" ", 1)
        verb, rest = words[0], words[-1]
        reason: schema.StopReason = "end_turn"
        if verb == "exit":
            os._exit(int(rest))
        elif verb == "edit":
            await self._edit(session_id, self._directories[session_id] / rest)
        elif verb == "big":
            await self._send(session_id, acp.update_agent_message_text("x" * int(rest)))
        elif verb == "wait":
            await self._send(session_id, acp.update_agent_message_text("I begin"))
            await self._cancelled.wait()
            reason = "cancelled"
        else:
            for piece in ("You said", " ", verb):
                await self._send(session_id, acp.update_agent_message_text(piece))
        usage = schema.Usage(total_tokens=30, input_tokens=20, output_tokens=10)
        return schema.PromptResponse(stop_reason=reason, usage=usage)

    async def _edit(self, session: str, path: Path) -> None:
        """Thinks, plans, asks, edits a file, and says that it is done."""
        await self._send(session, acp.update_agent_thought_text("A greeting is "))
        await self._send(session, acp.update_agent_thought_text("missing."))
        entry = acp.plan_entry("greet", priority="high", status="in_progress")
        await self._send(session, acp.update_plan([entry]))
        title = f"Edit {path.name}"
        started = acp.start_tool_call(
            "call-1", title, kind="edit", status="pending", raw_input={"path": str(path)}
        )
        await self._send(session, started)
        call = schema.ToolCallUpdate(tool_call_id="call-1", title=title)
        answer = await self._client.request_permission(session, call, OPTIONS)
        if answer.outcome.outcome != "selected" or answer.outcome.option_id != "yes":
            await self._send(session, acp.update_tool_call("call-1", status="failed"))
            return
        file = anyio.Path(path)
        old = await file.read_text(encoding="utf-8") if await file.exists() else None
        new = f"{old or ''}print('hello, world')\n"
        await file.write_text(new, encoding="utf-8")
        diff = acp.tool_diff_content(str(path), new, old)
        done = acp.update_tool_call("call-1", status="completed", content=[diff])
        await self._send(session, done)
        await self._send(session, acp.update_agent_message_text("Done."))

    async def _send(self, session: str, update: SessionUpdate) -> None:
        await self._client.session_update(session, update)


if __name__ == "__main__":
    agent: Any = ScriptedAgent("--resumable" in sys.argv)
    asyncio.run(acp.run_agent(agent))
