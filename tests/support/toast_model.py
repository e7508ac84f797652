"""A model that plays the toast task of ``docs/experiments.md`` sensibly, from its prompts alone."""

from __future__ import annotations

import json
import re

from openai_server import Answer, Body
from travel_model import entries, judge, part


def play(body: Body) -> Answer:
    """The model's reply to a request of any actor."""
    messages = body["messages"]
    if messages[0]["role"] != "system":
        return judge(messages[0]["content"])
    system, prompt = messages[0]["content"], messages[1]["content"]
    if "While you were at that, there was news" in prompt:
        return Answer(text="Go on")
    if system.startswith("You play "):
        return _play_user(system, prompt)
    return _play_agent(prompt, alone="You work alone" in system)


def _play_agent(prompt: str, *, alone: bool) -> Answer:
    """Puts up whatever it was told, and says so."""
    told = [text for actor, text in _chat(prompt) if actor == "user"]
    toast = " ".join(told) or part(prompt, "The request")
    behind = toast not in part(prompt, "The current shared output")
    owes = not alone and _chat(prompt)[-1][0] == "user"
    if '"Plan:"' in prompt:
        return Answer(text=f"Plan: {2 if behind else 1 if owes else 3}")
    if '"Message:"' in prompt:
        return Answer(text="Message: Here it is. What else?")
    if behind:
        return Answer(tool_calls=[("submit", json.dumps({"content": toast}))])
    if owes:
        return Answer(tool_calls=[("message", json.dumps({"text": "Here it is. What else?"}))])
    return Answer(tool_calls=[("finish" if alone else "wait", "{}")])


def _play_user(system: str, prompt: str) -> Answer:
    """Tells one wish after the other, word for word, and is satisfied when all are met."""
    said = "\n".join(text for _, text in _chat(prompt))
    wishes = [line.removeprefix("- ") for line in part(system, "What only you know").split("\n")]
    left = [wish for wish in wishes if wish not in said and not wish.startswith("Nobody else")]
    asked = _chat(prompt)[-1][0] != "user"
    if "Your choices are:" in prompt:
        title = "Do nothing" if not asked else "Answer" if left else "Finish"
        found = re.search(rf"^(\d)\. {title}", prompt, re.MULTILINE)
        return Answer(text=found[1] if found else "Do nothing")
    if "how far have the others brought you" in prompt:
        return Answer(text="4\nIt takes shape.")
    return Answer(text=left[0] if left else "That is all.")


def _chat(prompt: str) -> list[tuple[str, str]]:
    """Who said what."""
    lines = (line.partition(": ") for _, line in entries(part(prompt, "The chat")))
    return [(actor.removesuffix(" (you)"), text) for actor, _, text in lines] or [("", "")]
