"""One story, several doors: the context, the recorder, HTTP and transcripts record the same.

Each story is told through a session that is played, through the recorder of an open log, through a
server on loopback and, if a transcript can express it, through an import. The comparison leaves out
facts that a door cannot know: ids, times, and the actor's view.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import duolog
import pytest
from duolog.engine.errors import ContextError, InvalidInput, StaleBase
from duolog.engine.events import JSON, ActionResolved
from duolog.engine.log.contract import EventLog
from duolog.engine.log.open import open_log
from duolog.engine.records import Record
from duolog.engine.rounds import RoundProjector
from duolog.engine.session.context import ActorContext
from duolog.engine.session.environment import Action, ActionSpec, Outcome
from duolog.interop.importers.chat import ChatImporter
from duolog.interop.importers.protocol import Importer
from duolog.interop.importers.run import import_foreign
from duolog.interop.importers.tau import TauImporter
from duolog.scoring.live import score_records
from duolog.telemetry.receipt import Awaited, Receipt
from duolog.telemetry.session import Recording
from duolog.testing import a_session, agent, human, played
from http_server import Answer, serving

pytestmark = pytest.mark.slow

HUMAN, AGENT = "user", "assistant"
ROLES = {HUMAN: "human", AGENT: "agent"}


class Step(NamedTuple):
    """Something that happens.

    Attributes:
        verb: what is done.
        who: by whom; of an outcome, nobody in particular.
        text: what is said, asked, noted, put up, or what an action is called.
        label: names the event for later steps.
        of: the label of the event that it refers to.
        value: a rating, an answer, an outcome, a round.
        refused: it is refused: by an error alone, or as a failed action where it is a snapshot.
    """

    verb: str
    who: str = ""
    text: str = ""
    label: str = ""
    of: str = ""
    value: Any = None
    round: int | None = None
    refused: bool = False


def says(who: str, text: str) -> Step:
    return Step("say", who, text)


def acts(name: str, label: str, who: str = AGENT) -> Step:
    return Step("act", who, name, label)


def resolved(of: str, value: str) -> Step:
    return Step("resolve", text=value, of=of)


def failed(of: str, why: str) -> Step:
    return Step("resolve", text=why, of=of, value="failed")


def submits(who: str, text: str, label: str = "", *, stale: str = "") -> Step:
    return Step("submit", who, text, label, of=stale, refused=bool(stale))


def asks(text: str, label: str) -> Step:
    return Step("ask", AGENT, text, label)


def answers(of: str, value: bool, text: str = "") -> Step:
    return Step("approve", HUMAN, text, of=of, value=value)


def rates(value: int, *, round: int | None = None, refused: bool = False) -> Step:
    return Step("rate", HUMAN, "because", value=value, round=round, refused=refused)


CLOSE = Step("close", HUMAN, "user_stop")
ASK = says(HUMAN, "Plan a trip.")

STORIES: dict[str, list[Step]] = {
    "a question and an answer": [ASK, says(AGENT, "Where to?"), says(HUMAN, "Rome."), CLOSE],
    "an action and its outcome": [
        ASK,
        acts("search", "a"),
        resolved("a", "two trains"),
        says(AGENT, "There are two trains."),
        CLOSE,
    ],
    "an action that fails": [ASK, acts("book", "a"), failed("a", "sold out"), CLOSE],
    "outcomes in another order": [
        ASK,
        acts("search", "a"),
        acts("map", "b"),
        says(HUMAN, "Take your time."),
        resolved("b", "here"),
        resolved("a", "there"),
        CLOSE,
    ],
    "a close with actions in flight": [ASK, acts("search", "a"), acts("map", "b"), CLOSE],
    "an edit by the human": [
        ASK,
        submits(AGENT, "Day 1"),
        submits(HUMAN, "Day 1: Rome"),
        submits(AGENT, "Day 1: Rome. Day 2"),
        CLOSE,
    ],
    "a snapshot from an outdated base": [
        ASK,
        submits(AGENT, "Day 1", "first"),
        says(HUMAN, "I am looking at it."),
        submits(AGENT, "Day 2", "second"),
        submits(HUMAN, "Day 1, but better", stale="first"),
        submits(HUMAN, "Day 2, but better"),
        CLOSE,
    ],
    "an approval that is given": [ASK, asks("book", "q"), answers("q", True, "go on"), CLOSE],
    "an approval that is denied": [
        ASK,
        asks("book", "q"),
        answers("q", False, "too dear"),
        says(AGENT, "I see."),
        CLOSE,
    ],
    "notes": [ASK, Step("note", AGENT, "cheap ones first"), says(AGENT, "Well."), CLOSE],
    "goals that change": [
        ASK,
        submits(AGENT, "Day 1"),
        Step("change", HUMAN, "the sea", value="saw the map"),
        says(HUMAN, "Rather the sea."),
        CLOSE,
    ],
    "a rating of the round that is open": [ASK, submits(AGENT, "Day 1"), rates(4), CLOSE],
    "a rating after an edit": [
        ASK,
        submits(AGENT, "Day 1"),
        submits(HUMAN, "Day 1: Rome"),
        rates(4),
        CLOSE,
    ],
    "a rating before any agent has acted": [
        ASK,
        rates(1, refused=True),
        says(AGENT, "Yes?"),
        CLOSE,
    ],
    "a round that is rated twice": [ASK, says(AGENT, "Where to?"), rates(2), rates(5), CLOSE],
    "a rating that is corrected later": [
        ASK,
        says(AGENT, "Where to?"),
        rates(2),
        says(HUMAN, "To Rome."),
        rates(4),
        says(AGENT, "I see."),
        rates(1),
        CLOSE,
    ],
    "a rating of a round that is named": [
        ASK,
        says(AGENT, "Where to?"),
        says(HUMAN, "To Rome."),
        says(AGENT, "I see."),
        rates(3, round=1),
        rates(5, round=3, refused=True),
        CLOSE,
    ],
    "feedback": [ASK, says(AGENT, "Rome?"), CLOSE, Step("feedback", HUMAN, "nice", value="up")],
}

RATINGS: Mapping[str, list[int | None]] = {
    "a rating of the round that is open": [4],
    "a rating after an edit": [4, None],
    "a rating before any agent has acted": [None],
    "a round that is rated twice": [5],
    "a rating that is corrected later": [4, 1],
    "a rating of a round that is named": [None, None],  # it comes too late to count
}
"""What scoring makes of the ratings, by round."""


# --- the context --------------------------------------------------------------------------------------


class StoryEnvironment:
    """Gives actions the outcomes that a story has for them, when it has them: a second is a step."""

    def __init__(self, story: Sequence[Step]) -> None:
        self._story = story
        taken = {step.label: number for number, step in enumerate(story) if step.verb == "act"}
        self._outcomes = {
            story[taken[step.of]].text: (step, number - taken[step.of])
            for number, step in enumerate(story)
            if step.verb == "resolve"
        }

    @property
    def actions(self) -> Mapping[str, ActionSpec]:
        names = [step.text for step in self._story if step.verb == "act"]
        return {name: ActionSpec(name=name, description=name) for name in names}

    async def perform(self, action: Action) -> Outcome:
        step, seconds = self._outcomes.get(action.name, (Step("resolve"), 1000))
        error = step.text if step.value == "failed" else None
        return Outcome(observation=step.text, error=error, seconds=float(seconds))

    def recall(self, action: Action, resolved: ActionResolved) -> None:
        raise AssertionError("nothing is resumed")


async def with_the_context(
    context: ActorContext, step: Step, labels: Mapping[str, int]
) -> Record | None:
    match step.verb:
        case "say":
            return await context.say(step.text)
        case "act":
            return await context.act(step.text, {"of": step.label})
        case "submit":
            return await context.submit(step.text)
        case "ask":
            return await context.ask(f"{step.text}()", action=step.text)
        case "approve":
            return await context.approve(labels[step.of], approved=step.value, comment=step.text)
        case "note":
            return await context.note(step.text)
        case "change":
            return await context.change_profile(step.text, step.value)
        case "rate":
            return await context.rate(step.value, step.text, round=step.round)
    await context.finish(step.text)
    return None


async def through_the_context(story: Sequence[Step]) -> list[Record]:
    labels: dict[str, int] = {}

    async def live(context: ActorContext) -> None:
        for number, step in enumerate(story):
            if step.who != context.name:
                continue
            await context.pause(number - context.now)
            if step.verb != "submit" or not step.refused:
                context.look()
            if step.refused:
                with pytest.raises(ContextError):
                    await with_the_context(context, step, labels)
            elif (record := await with_the_context(context, step, labels)) is not None:
                labels[step.label] = record.version

    players = human(live, HUMAN), agent(live, AGENT)
    return (await played(a_session(*players, environment=StoryEnvironment(story)))).trace


# --- the recorder ----------------------------------------------------------------------------------


async def recorded(
    session: Recording[Awaited], step: Step, labels: Mapping[str, Receipt]
) -> Receipt:
    actor = session.actor(step.who or AGENT)
    match step.verb:
        case "say":
            return await actor.says(step.text)
        case "act":
            return await actor.acts(step.text, {"of": step.label})
        case "resolve":
            error = step.text if step.value == "failed" else None
            return await actor.resolves(labels[step.of], step.text, error=error)
        case "submit":
            return await actor.submits(step.text, base=labels.get(step.of))
        case "ask":
            return await actor.asks(f"{step.text}()", action=step.text)
        case "approve":
            return await actor.approves(labels[step.of], approved=step.value, comment=step.text)
        case "note":
            return await actor.notes(step.text)
        case "change":
            return await actor.changes_profile(step.text, step.value)
        case "rate":
            return await actor.rates(step.value, step.text, round=step.round)
        case "feedback":
            return await actor.feedback(thumbs=step.value, comment=step.text)
    return await session.close(step.value or "finished", by=step.who, detail=step.text)


async def through_the_recorder(story: Sequence[Step]) -> list[Record]:
    labels: dict[str, Receipt] = {}
    async with duolog.open("memory://", durable=True) as log:
        session = await log.session("s", humans=[HUMAN], agents=[AGENT])
        for step in story:
            if step.refused:
                with pytest.raises((InvalidInput, StaleBase)):
                    await recorded(session, step, labels)
                continue
            receipt = await recorded(session, step, labels)
            if step.label:
                labels[step.label] = receipt
        return [record async for record in log.read("s")]


# --- HTTP ------------------------------------------------------------------------------------------

KINDS = {
    "say": "MessageSent",
    "act": "ActionTaken",
    "resolve": "ActionResolved",
    "submit": "SnapshotTaken",
    "ask": "ApprovalAsked",
    "approve": "ApprovalGiven",
    "note": "NoteTaken",
    "change": "ProfileChanged",
    "rate": "ProgressRated",
    "feedback": "FeedbackGiven",
    "close": "SessionClosed",
}


def body_of(step: Step, labels: Mapping[str, int]) -> dict[str, JSON]:
    """A client's post, without the fields that the server can fill in."""
    match step.verb:
        case "act":
            return {"name": step.text, "arguments": {"of": step.label}}
        case "change":
            return {"owner": step.who, "profile": step.text, "reason": step.value}
        case "resolve":
            bare: dict[str, JSON] = {"action": labels[step.of], "observation": step.text}
            if step.value == "failed":
                return bare | {"outcome": "failed", "error": step.text}
            return bare | {"outcome": "ok"}
        case "submit":
            return {"content": step.text} | ({"base": labels[step.of]} if step.of else {})
        case "ask":
            return {"question": f"{step.text}()", "action": step.text}
        case "approve":
            return {"asked": labels[step.of], "approved": step.value, "comment": step.text}
        case "rate":
            named: dict[str, JSON] = {} if step.round is None else {"round": step.round}
            return {"rating": step.value, "explanation": step.text} | named
        case "feedback":
            return {"thumbs": step.value, "comment": step.text}
        case "close":
            return {"reason": "finished", "by": step.who, "detail": step.text}
    return {"text": step.text}


async def through_http(story: Sequence[Step]) -> list[Record]:
    labels: dict[str, int] = {}
    async with open_log("memory://") as log, serving(log) as (client, _):

        async def post(kind: str, actor: str, body: dict[str, JSON]) -> Answer:
            role = ROLES.get(actor, "environment")
            return await client.post(
                "s", {"kind": kind, "actor": actor, "role": role, "body": body}
            )

        people: list[JSON] = [{"name": name, "role": role} for name, role in ROLES.items()]
        about: dict[str, JSON] = {"task": "t", "instance": "1", "clock": "utc"}
        await post("SessionOpened", "engine", about | {"participants": people})
        for step in story:
            answer = await post(KINDS[step.verb], step.who or "environment", body_of(step, labels))
            if step.refused:
                stale = step.verb == "submit"
                status = (answer.status, answer.json["error"])
                assert status == ((409, "stale-base") if stale else (400, "invalid"))
            else:
                assert answer.status == 200, answer.body
                labels[step.label] = answer.json["version"]
        return await trace_of(log)


async def trace_of(log: EventLog) -> list[Record]:
    return [record async for record in log.read_all() if record.stream == "trace"]


# --- transcripts -----------------------------------------------------------------------------------


async def imported(source: Path, importer: Importer) -> list[Record]:
    async with open_log("memory://") as log:
        taken = await import_foreign(log, source, importer)
        assert not taken.diagnostics
        return await trace_of(log)


def chat_item(step: Step) -> dict[str, JSON]:
    """A message or item of OpenAI's interfaces."""
    match step.verb:
        case "act":
            call = {
                "name": step.text,
                "arguments": json.dumps({"of": step.label}, separators=(",", ":")),
            }
            calls: list[JSON] = [{"id": step.label, "type": "function", "function": call}]
            return {"role": "assistant", "tool_calls": calls}
        case "resolve":
            return {"role": "tool", "tool_call_id": step.of, "content": step.text}
        case "ask":
            return {"type": "mcp_approval_request", "id": step.label, "name": step.text}
        case "approve":
            answer = {"approve": step.value, "reason": step.text}
            return {"type": "mcp_approval_response", "approval_request_id": step.of} | answer
        case "note":
            return {"role": "assistant", "reasoning_content": step.text}
    return {"role": step.who, "content": step.text}


async def through_a_chat(story: Sequence[Step], path: Path) -> list[Record]:
    source = path / "chat.json"
    source.write_text(json.dumps([chat_item(step) for step in story if step is not CLOSE]))
    return await imported(source, ChatImporter())


def tau_item(step: Step) -> dict[str, JSON]:
    """A message of τ²-bench."""
    match step.verb:
        case "act":
            arguments: dict[str, JSON] = {"of": step.label}
            calls: list[JSON] = [{"id": step.label, "name": step.text, "arguments": arguments}]
            return {"role": step.who, "content": None, "tool_calls": calls}
        case "resolve":
            error = step.value == "failed"
            return {"role": "tool", "id": step.of, "content": step.text, "error": error}
    return {"role": step.who, "content": step.text}


async def through_a_benchmark(story: Sequence[Step], path: Path) -> list[Record]:
    source = path / "results.json"
    messages = [tau_item(step) for step in story if step is not CLOSE]
    simulation = {"id": "1", "task_id": "1", "messages": messages, "termination_reason": CLOSE.text}
    source.write_text(json.dumps({"info": {}, "tasks": [], "simulations": [simulation]}))
    return await imported(source, TauImporter())


# --- the same --------------------------------------------------------------------------------------

TALK = {"say", "act", "resolve", "close"}
SAYS: Mapping[str, set[str]] = {
    "http": set(KINDS),
    "context": set(KINDS) - {"feedback"},
    "chat": TALK | {"ask", "approve", "note"},
    "benchmark": TALK,
}
"""The steps that each door can say."""


def can_say(door: str, story: Sequence[Step]) -> bool:
    if door == "chat" and any(step.value == "failed" for step in story):
        return False
    return all(step.verb in SAYS[door] for step in story)


def facts(trace: Sequence[Record]) -> list[tuple[object, ...]]:
    """The facts of a trace that every door knows: acts, actors, replies, and rounds."""
    projector = RoundProjector()
    found: list[tuple[object, ...]] = []
    for record in trace:
        projector.feed(record)
        envelope = (record.version, record.kind, record.actor, record.role, record.cause)
        found.append((*envelope, record.event, projector.number))
    return found[1:]  # the opening differs from door to door


@pytest.mark.parametrize(
    ("door", "story"),
    [(door, story) for door in SAYS for story in STORIES if can_say(door, STORIES[story])],
)
async def test_a_story_is_recorded_alike_through_every_door(
    door: str, story: str, tmp_path: Path
) -> None:
    steps = STORIES[story]
    expected = facts(await through_the_recorder(steps))
    match door:
        case "context":
            assert facts(await through_the_context(steps)) == expected
        case "http":
            assert facts(await through_http(steps)) == expected
        case "benchmark":
            # It says that the user stopped, and not that the user was satisfied.
            stopped = [step._replace(value="ended") if step is CLOSE else step for step in steps]
            expected = facts(await through_the_recorder(stopped))
            assert facts(await through_a_benchmark(steps, tmp_path)) == expected
        case "chat":  # a conversation never says that it has ended
            found = facts(await through_a_chat(steps, tmp_path))
            assert found == expected[: len(found)]
            assert {kind for _, kind, *_ in expected[len(found) :]} <= {
                "ActionResolved",
                "SessionClosed",
            }


DOORS: Sequence[Callable[[Sequence[Step]], Any]] = (
    through_the_context,
    through_the_recorder,
    through_http,
)


@pytest.mark.parametrize("story", RATINGS)
@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
async def test_a_rating_counts_for_the_same_round_through_every_door(
    door: Callable[[Sequence[Step]], Any], story: str
) -> None:
    points = score_records(await door(STORIES[story])).points
    assert [point.rating for point in points] == RATINGS[story]
