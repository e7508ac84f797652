"""A model that plays travel planning sensibly: it reads prompts, and knows nothing but them.

From what a prompt shows it makes the view that a mind on rules would have, lets that decide, and
answers as a model would. So a whole experiment runs over HTTP; and since the rules need to see what
was asked for, said, done and found, it also shows that the prompts tell all of that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping
from typing import Any, TypeVar

from duolog.agents.habits import USUAL
from duolog.agents.mind import AgentMind
from duolog.engine import codec
from duolog.engine.events import (
    ActionResolved,
    ActionTaken,
    Event,
    MessageSent,
    Nudged,
    Participant,
    ProfileChanged,
    Role,
    SessionOpened,
    SnapshotTaken,
    TurnYielded,
)
from duolog.engine.models.rehearsal import encode_verbs
from duolog.engine.records import TRACE, Record
from duolog.engine.session.decisions import Decision, Say
from duolog.engine.session.environment import ActionSpec
from duolog.engine.session.view import View
from duolog.examples.travel.actions import ACTIONS
from duolog.examples.travel.plan.text import parse_plan, render_plan
from duolog.examples.travel.rule_agent import travel_agent
from duolog.examples.travel.rule_user import travel_user
from duolog.users.personas import PERSONAS, Persona
from openai_server import Answer, Body

T = TypeVar("T")

_SPECS = {name: ActionSpec(name=name, description="") for name in ACTIONS.specs}
_SECTION = re.compile(r"^# (.+)$", re.MULTILINE)
_ENTRY = re.compile(r"^\[(\d+)\] (.*)$")
_FINISH = re.compile(r"^(\d)\. Finish", re.MULTILINE)
_ROLES: Mapping[str, Role] = {"user": "human", "agent": "agent"}


def play(body: Body, agent: Callable[[], AgentMind] = lambda: travel_agent(USUAL)) -> Answer:
    """The model's reply to a request of any actor; ``agent`` makes the mind behind an agent's replies."""
    messages = body["messages"]
    prompt: str = messages[1]["content"] if len(messages) > 1 else messages[0]["content"]
    if "While you were at that, there was news" in prompt:
        return Answer(text="Go on")
    if messages[0]["role"] == "system":
        tools = [tool["function"]["name"] for tool in body.get("tools") or ()]
        person = messages[0]["content"].startswith("You play ")
        if person:
            return _play_user(messages[0]["content"], prompt, tools)
        return _play_agent(messages[0]["content"], prompt, tools, agent())
    if prompt.startswith("Somebody wrote down"):
        return _convert(prompt)
    return judge(prompt)


def play_briefly(body: Body) -> Answer:
    """The reply of a model whose travellers are content with the first plan, so that sessions are short."""
    prompt: str = body["messages"][-1]["content"]
    finish = _FINISH.search(prompt)
    if finish and _output(prompt).startswith("Version"):
        return Answer(text=finish[1])
    return play(body)


def _play_agent(system: str, prompt: str, tools: Collection[str], mind: AgentMind) -> Answer:
    alone = "You work alone" in system
    view = _view("agent", prompt, None, alone=alone)
    planned = _now(mind.plan(view))  # which also reads the search results
    if '"Plan:"' in prompt:
        number = {"message": 1, "act": 2, "wait": 3}[planned]
        return Answer(text=f"Thought: That is best.\nPlan: {number}")
    if '"Message:"' in prompt:
        decision = _now(mind.message(view))
        return Answer(text=f"Thought: They should know.\nMessage: {_text(decision)}")
    whole_step = alone or re.search(r"^- wait: ", prompt, re.MULTILINE) or "wait" in tools
    decided = mind.step(view, alone=alone) if whole_step else mind.act(view)
    return _put(_now(decided), as_text=not tools)


def _play_user(system: str, prompt: str, tools: Collection[str]) -> Answer:
    profile = [
        line[2:] for line in part(system, "What only you know").split("\n") if line[:2] == "- "
    ]
    persona = _persona(system)
    view, mind = _view("user", prompt, profile, alone=False), travel_user()
    chosen = _now(mind.choose(view, persona))  # which also reads the search results
    if "Your choices are:" in prompt:
        titles = {"answer": "Answer", "feedback": "Offer feedback", "act": "Take an action"}
        titles |= {"finish": "Finish", "nothing": "Do nothing"}
        title = titles[chosen]
        found = re.search(rf"^(\d)\. {title}", prompt, re.MULTILINE)
        return Answer(text=found[1] if found else "Do nothing")
    if "You were asked something" in prompt:
        return Answer(text=_text(_now(mind.compose(view, persona, "answer"))))
    if "tell the others something" in prompt or "not happy with the output" in prompt:
        said = _text(_now(mind.compose(view, persona, "feedback")))
        return Answer(text=said or "It is fine.")
    if "how far have the others brought you" in prompt:
        rating = _now(mind.rate(view, persona))
        assert rating is not None
        return Answer(text=f"{rating.rating}\n{rating.explanation}")
    return _put(_now(mind.compose(view, persona, "act")), as_text=not tools)


def judge(prompt: str) -> Answer:
    """Rates progress by the output and the person's next message."""
    rating = 4 if "put up a new version" in prompt else 3
    if re.search(r"not |n't |wrong|instead", part(prompt, "What the person said next")):
        rating -= 2
    return Answer(text=f"Rating: {rating}\nThat is how the person takes it.")


def _convert(prompt: str) -> Answer:
    text = prompt.partition("# The text\n")[2].partition("\n\nReply with the plan")[0]
    days = [line for line in text.split("\n") if line.startswith("On day")]
    if not days:
        return Answer(text="no plan")
    plan = "\n\n".join(f"Day {n}:\nCurrent City: {d.split()[-1]}" for n, d in enumerate(days, 1))
    return Answer(text=render_plan(parse_plan(plan)))


# --- what a prompt shows -------------------------------------------------------------------------


def _view(me: str, prompt: str, profile: list[str] | None, *, alone: bool) -> View:
    request = part(prompt, "The request") or part(prompt, "Your request")
    view = View(me, _ROLES[me], seed=len(request), actions_available=_SPECS)
    names = ["agent"] if alone else ["user", "agent"]
    opened = SessionOpened(
        task="travel",
        instance="",
        participants=tuple(Participant(name=name, role=_ROLES[name]) for name in names),
        clock="virtual",
        request=request if alone else None,
        private={} if profile is None else {me: {"profile": list(profile)}},
    )
    events: dict[int, tuple[str, Event]] = {1: ("engine", opened)}
    events |= _chat(me, prompt)
    events |= _done(me, prompt)
    events |= _others(prompt)
    output = re.match(r"Version \[(\d+)\], by (\w+):\n(.*)", _output(prompt), re.DOTALL)
    if output:
        by = me if output[2] == "you" else output[2]
        events[int(output[1])] = by, _snapshot(output[3])
    for version in sorted(events):
        actor, event = events[version]
        view.feed(_record(version, actor, event, seen=version - 1))
        if isinstance(event, ActionTaken) and actor == me:
            view.feed(_record(version, "environment", _outcomes(prompt)[version]))
        if event is opened and profile is not None:  # a prompt shows only how goals are now
            now = ProfileChanged(owner=me, profile={"profile": list(profile)}, reason="")
            view.feed(_record(version, me, now))
    news: tuple[Record, ...] = ()
    if "Everybody is waiting" in prompt:
        news = (_record(view.version + 1, "engine", Nudged(to=me)),)
    view.next_decision(news, None, False)
    return view


def _chat(me: str, prompt: str) -> dict[int, tuple[str, Event]]:
    found: dict[int, tuple[str, Event]] = {}
    for version, line in entries(part(prompt, "The chat")):
        actor, _, text = line.partition(": ")
        found[version] = actor.removesuffix(" (you)"), MessageSent(text=text)
    return found


def _done(me: str, prompt: str) -> dict[int, tuple[str, Event]]:
    found: dict[int, tuple[str, Event]] = {}
    for version, line in entries(_own(prompt)):
        name, _, rest = line.partition(" ")
        if line.startswith("submit: "):
            found[version] = me, _snapshot(f"(version {version})")
        elif name != "submit":
            arguments = json.loads(rest.split("\n")[0])
            found[version] = me, ActionTaken(name=name, arguments=arguments)
    return found


def _outcomes(prompt: str) -> dict[int, ActionResolved]:
    found: dict[int, ActionResolved] = {}
    for version, line in entries(_own(prompt)):
        if "\n  -> " not in line:
            continue
        outcome, _, seen = line.partition("\n  -> ")[2].partition(": ")
        if outcome == "ok":
            found[version] = ActionResolved(
                action=version, outcome="ok", observation=json.loads(seen)
            )
        else:
            found[version] = ActionResolved(action=version, outcome="failed", error=seen)
    return found


def _others(prompt: str) -> dict[int, tuple[str, Event]]:
    found: dict[int, tuple[str, Event]] = {}
    did = part(prompt, "What the others have done since your last step")
    did = did or part(prompt, "What the others have done since you last did something")
    for version, line in entries(did):
        actor, _, rest = line.partition(" ")
        if rest.startswith("takes the action "):
            found[version] = actor, ActionTaken(name=rest.split()[3])
        elif rest.startswith("puts up"):
            found[version] = actor, _snapshot(f"(version {version})")
        elif rest == "waits":
            found[version] = actor, TurnYielded()
    return found


def _own(prompt: str) -> str:
    return part(prompt, "Your actions so far") or part(prompt, "What you have done so far")


def _output(prompt: str) -> str:
    return part(prompt, "The current shared output")


def part(text: str, title: str) -> str:
    """The text below a heading."""
    found = list(_SECTION.finditer(text))
    for heading, after in zip(found, [*found[1:], None], strict=True):
        if heading[1] == title:
            return text[heading.end() : after.start() if after else len(text)].strip("\n")
    return ""


def entries(text: str) -> Iterator[tuple[int, str]]:
    """The numbered entries of a part, each with the lines that belong to it."""
    entry: tuple[int, list[str]] | None = None
    for line in text.split("\n"):
        found = _ENTRY.match(line)
        if found:
            if entry:
                yield entry[0], "\n".join(entry[1])
            entry = int(found[1]), [found[2]]
        elif entry and line.startswith("  "):
            entry[1].append(line)
        elif entry and not line:
            break
    if entry:
        yield entry[0], "\n".join(entry[1])


def _persona(system: str) -> Persona:
    manner = part(system, "What you are like")
    if "do not study the output" in manner:
        return PERSONAS["lazy"]
    return PERSONAS["proactive" if "change the output yourself" in manner else "feedback"]


def _snapshot(content: str) -> SnapshotTaken:
    return SnapshotTaken(content=content, digest=codec.digest(content))


def _record(version: int, actor: str, event: Event, seen: int | None = None) -> Record:
    kind, schema = codec.kind_of(event)
    role = _ROLES.get(actor, "environment")
    body = codec.encode_body(event)
    return Record(
        version, "s", TRACE, version, kind, schema, 0.0, actor, role, None, seen, None, body
    )


def _text(decision: Decision) -> str:
    return " ".join(verb.text for verb in decision.verbs if isinstance(verb, Say))


def _put(decision: Decision, *, as_text: bool) -> Answer:
    reply = encode_verbs(decision.verbs, as_text=as_text)
    calls = [(call.name, call.arguments) for call in reply.tool_calls]
    return Answer(text=reply.text, tool_calls=calls)


def _now(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that never really waits."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        value: T = done.value
        return value
    raise RuntimeError("a mind on rules has waited for something")
