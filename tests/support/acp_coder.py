"""A coding agent over the Agent Client Protocol, made with the protocol's own package.

It asks a question, then for a permission, and then writes what was ordered into the output's file.
Run as ``acp_coder.py die`` it dies in its first turn; as ``acp_coder.py env`` it says its environment.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any, cast

import acp
from acp import schema


def note(text: str) -> None:
    """Writes down what it was prompted with."""
    with Path("prompts").open("a", encoding="utf-8") as file:
        file.write(f"{text}\n")


def dies() -> bool:
    """Whether it is to die, which it does once."""
    if sys.argv[1:] != ["die"] or Path("died").exists():
        return False
    Path("died").touch()
    return True


def edit(path: Path, text: str) -> None:
    """Edits a file as an agent with its own tools does."""
    path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")


class Coder:
    """The agent of one session."""

    def __init__(self) -> None:
        self.client: Any = None
        self.folder = Path()

    def on_connect(self, client: object) -> None:
        """Takes the connection."""
        self.client = client

    async def initialize(self, protocol_version: int, **_: object) -> acp.InitializeResponse:
        """Agrees to the version."""
        return acp.InitializeResponse(protocol_version=protocol_version)

    async def new_session(self, cwd: str, **_: object) -> acp.NewSessionResponse:
        """Begins the session."""
        self.folder = Path(cwd)
        return acp.NewSessionResponse(session_id="s")

    async def say(self, text: str) -> None:
        """Says something in small pieces."""
        for start in range(0, len(text), 5):
            chunk = acp.update_agent_message_text(text[start : start + 5])
            await self.client.session_update(session_id="s", update=chunk)

    async def prompt(self, prompt: list[Any], **_: object) -> acp.PromptResponse:
        """One turn."""
        text = "".join(one.text for one in prompt)
        note(text)
        if dies():
            os._exit(7)
        if "Butter" in text:
            await self.toast()
        else:
            await self.say("What on it?")
        return acp.PromptResponse(stop_reason="end_turn")

    async def toast(self) -> None:
        """Asks for permission; reads and writes files through the client, and by itself."""
        call = schema.ToolCallUpdate(
            tool_call_id="1", title="toast the bread", kind="execute", raw_input={"bread": 2}
        )
        options = [
            schema.PermissionOption(option_id="n", name="No", kind="reject_once"),
            schema.PermissionOption(option_id="y", name="Yes", kind="allow_once"),
        ]
        answer = await self.client.request_permission(
            session_id="s", tool_call=call, options=options
        )
        output = self.folder / "output.txt"
        held = await self.client.read_text_file(session_id="s", path=str(output))
        try:
            await self.client.read_text_file(session_id="s", path="/etc/passwd")
        except acp.RequestError as error:
            note(f"{held.content!r}, {error}, {error.data}")
        chosen = getattr(answer.outcome, "option_id", "none")
        content = "toast with " if chosen == "y" else "bread"
        await self.client.write_text_file(session_id="s", path=str(output), content=content)
        edit(output, "butter")
        text = "Done."
        if sys.argv[1:] == ["env"]:
            text = " ".join(f"{name}={value}" for name, value in os.environ.items())
        message = {"name": "message", "arguments": {"text": text}}
        await self.say(f"\nAction: {json.dumps(message)}")


if __name__ == "__main__":
    asyncio.run(acp.run_agent(cast("Any", Coder())))
