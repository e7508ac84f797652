"""Two actors that ask a model at every step: small, but they do all that a real mind does.

The replies decide: ``decide`` asks the model what to do, and does exactly what its text says. So any
answers of a server or a script make a collaboration.
"""

from __future__ import annotations

import re

from duolog.engine.errors import ModelRefused
from duolog.engine.events import Participant, Tokens
from duolog.engine.models import (
    Caller,
    Message,
    ModelReply,
    ModelRequest,
    Models,
    Tool,
    model_actor,
)
from duolog.engine.scorers.protocol import Scorer
from duolog.engine.session.actors import Player
from duolog.engine.session.decisions import Act, Decision, Finish, Say, Submit, Verb, Wait
from duolog.engine.session.limits import Limits
from duolog.engine.session.runner import Session
from duolog.engine.session.view import View
from duolog.testing import Workshop, a_session
from openai_server import Answer, Body, usage

MODEL = "openai/gpt-4o"


class Talker:
    """Plans, then does: two calls a decision. A refused request makes it say so, and wait.

    Args:
        caller: asks the model.
        model: which one.
    """

    def __init__(self, caller: Caller, model: str = MODEL) -> None:
        self._caller = caller
        self._model = model

    async def decide(self, view: View) -> Decision:
        heard = " | ".join(f"{m.actor}: {m.text}" for m in view.messages[-3:])
        try:
            plan = await self.ask(view, "plan", heard)
            reply = await self.ask(view, "act", f"{plan}; {heard}")
        except ModelRefused:
            return Decision((Say("I am lost for words"), Wait(30.0)))
        return Decision(tuple(_verb(word) for word in reply.split(", ")))

    async def ask(self, view: View, purpose: str, text: str) -> str:
        """The model's reply to a text, or the tools that it calls."""
        session = view.records[0].session
        request = ModelRequest(
            model=self._model,
            messages=(
                Message(role="system", content=f"You are {view.me} of {session}. {purpose}"),
                Message(role="user", content=f"step {_steps(view)}: {text}"),
            ),
            tools=(Tool(name="search", description="searches"),) if purpose == "act" else (),
        )
        reply = await self._caller.ask(request, purpose=purpose)
        return reply.text or ", ".join(call.name for call in reply.tool_calls)


def _steps(view: View) -> int:
    """How much has happened, but for how often a model had to be asked."""
    return sum(record.kind != "ModelCalled" for record in view.records)


def _verb(word: str) -> Verb:
    name, _, rest = word.partition(" ")
    match name:
        case "say":
            return Say(rest)
        case "submit":
            return Submit(rest, overwrite=True)
        case "search" | "look":
            return Act(name)
        case "finish":
            return Finish()
    return Wait(20.0)


def answer(body: Body, enough: int = 25) -> Answer:
    """The replies of the talkers' model: an agent that works and talks, a user that gets enough after some steps."""
    system, user = (message["content"] for message in body["messages"])
    found = re.match(r"step (\d+)", user)
    step = int(found.group(1)) if found else 0
    if system.endswith("plan"):
        return Answer(text=f"plan of {step}")
    if system.startswith("You are agent"):
        if step % 3 == 1:
            return Answer(tool_calls=[("search", '{"of": "fares"}')])
        return Answer(text=f"submit draft {step}, say here is draft {step}")
    return Answer(text="finish" if step > enough else f"say I want {step} more, wait")


def answering(request: ModelRequest, enough: int = 25) -> ModelReply:
    """The same without a server, in every respect but what tools are called and the price."""
    body = {"messages": [{"content": message.content} for message in request.messages]}
    said = answer(body, enough)
    prompt, completion = usage(body, said)
    return ModelReply(
        text=said.text or ", ".join(name for name, _ in said.tool_calls),
        tokens=Tokens(prompt=prompt, completion=completion),
    )


def a_conversation(
    models: Models,
    *,
    id: str = "session",
    seed: int = 7,
    limits: Limits | None = None,
    scorers: tuple[Scorer, ...] = (),
) -> Session:
    """A session of a user and an agent who ask these models."""
    return a_session(
        Player(
            Participant(name="user", role="human", model=MODEL),
            model_actor(models, Talker),
        ),
        Player(
            Participant(name="agent", role="agent", model=MODEL),
            model_actor(models, Talker),
        ),
        id=id,
        seed=seed,
        limits=limits,
        scorers=scorers,
        request=f"A trip, please (session {id})",
        environment=Workshop(),
    )
