"""The mind of an agent on rules: when to work, to ask and to report, the same for every task.

Each task has a `Planner` that decides what to do, ask and report. The planner reads all its knowledge
from the view: the request, the messages, the outcomes of its own actions, and the output.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Generic, Literal, Protocol, TypeAlias, TypeVar, final

import msgspec

from ..agents.mind import Intent
from ..engine.session.decisions import NOTHING, Decision, Finish, Say, Submit
from ..engine.session.view import View
from ..users.manner import is_query
from .phrases import sentences
from .views import Kept, announced, awaits_answer, nudged, owes_reply, unannounced, words_of

__all__ = (
    "HAND_OVER",
    "LOOK",
    "SETTLED",
    "Planner",
    "Question",
    "RuleAgent",
    "Standing",
    "explained",
)

K = TypeVar("K")

_ANYTHING = (
    "Is there anything else that I should know?",
    "Do you have any other wishes for this?",
)
LOOK = (
    "Please have a look, and tell me if anything should be different.",
    "Have a look, and tell me what you would like to change.",
    "Please see whether that is what you want, and tell me if not.",
    "Take a look, please, and say if something is not right yet.",
    "Please check it, and let me know if anything is wrong or missing.",
)
"""Ends a report on a new output that asks no question."""
SETTLED = (
    "Tell me if anything should be different.",
    "Let me know if you want anything changed.",
    "If something is missing, just tell me.",
    "Say so if there is something else that I can do.",
)
"""Ends a report that asks no question, if the output is still the same."""
HAND_OVER = "That is as far as I get; please take it from here, and change whatever you like."
"""Ends a report that leaves the rest to the human."""

_DRAFT = (
    "There is a first draft now.",
    "A first version is there to look at.",
    "I have put up a first draft.",
)
"""Before a question, if a draft was not announced yet."""

_MEANT = ("I mean this:", "Let me ask it again:", "What I would like to know:", "In short:")
"""Openings of a question that was not understood."""

_DONE = Decision((Finish("there is nothing left to do"),))

Standing: TypeAlias = Literal["first", "changed", "unchanged"]
"""The output since the agent's last message: the first one, a changed one, or the same."""


class Question(msgspec.Struct, frozen=True):
    """A question worth asking.

    Attributes:
        text: ends in a question mark, by which an agent's question is known.
        first: worth asking before there is any output; a two-stage agent does.
        further: the questions after it, of the same kind, that may be asked in the same message.
    """

    text: str
    first: bool = False
    further: tuple[str, ...] = ()

    def asked(self, questions: int) -> str:
        """Its text, with at most so many questions in all."""
        return " ".join((self.text, *self.further[: questions - 1]))


class Planner(Protocol[K]):
    """Decides what an agent knows about a task and does about it; one object per session.

    ``K`` is its knowledge: a typed state that depends only on the view.
    """

    def know(self, view: View) -> K:
        """Everything the agent knows so far."""
        ...

    def work(self, known: K, view: View) -> Decision | None:
        """The next actions or the next output; None if there is nothing to do for now."""
        ...

    def question(self, known: K, words: Random) -> Question | None:
        """The next question worth asking that was not asked before; None if there is none."""
        ...

    def estimate(self, known: K) -> float:
        """The agent's own estimate of the output's utility, from 0 to 1."""
        ...

    def report(self, known: K, words: Random, standing: Standing) -> str:
        """A status report without a question. It says what was understood, so the human can correct it."""
        ...


@final
class RuleAgent(Generic[K]):
    """An ``AgentMind`` on a planner; one for each session.

    Args:
        planner: the planner of the task.
        look: ways to end a report on a new output without a question.
        settled: ways to end one if the output is still the same.
        hand_over: ends the report that leaves the rest to the human.
    """

    def __init__(
        self,
        planner: Planner[K],
        *,
        look: Sequence[str] = LOOK,
        settled: Sequence[str] = SETTLED,
        hand_over: str = HAND_OVER,
    ) -> None:
        self._planner = planner
        self._look = look
        self._settled = settled
        self._hand_over = hand_over
        self._known = known = Kept(planner.know)
        self._work = Kept(lambda view: planner.work(known.on(view), view))

    async def step(self, view: View, *, alone: bool) -> Decision:
        """Works while there is something to do, then reacts."""
        if view.in_flight:
            return NOTHING
        known = self._known.on(view)
        if not alone and (meant := explained(view)) is not None:
            return meant
        work = self._work.on(view)
        if work is not None:
            if alone or not work.verbs or not isinstance(work.verbs[0], Submit):
                return work
            said = self._announcement(view, known, updated=True)
            return Decision((*work.verbs, Say(said)), work.seconds)
        if alone or _nudged_in_vain(view):
            return _DONE
        if owes_reply(view):
            return Decision((Say(self._announcement(view, known, updated=False)),))
        return NOTHING

    async def plan(self, view: View) -> Intent:
        """Asks what matters before the first output, acts on what is known, then reports."""
        if view.in_flight:
            return "wait"
        known = self._known.on(view)
        if explained(view) is not None:
            return "message"
        if awaits_answer(view):
            return "act" if nudged(view) else "wait"
        if view.own_snapshot is None:
            question = self._planner.question(known, words_of(view))
            if question is not None and question.first:
                return "message"
        if self._work.on(view) is not None:
            return "act"
        if owes_reply(view) or unannounced(view):
            return "message"
        return "act" if _nudged_in_vain(view) else "wait"

    async def message(self, view: View, *, questions: int = 1) -> Decision:
        """A question before the first output; a report and the next question after it."""
        known = self._known.on(view)
        if (meant := explained(view)) is not None:
            return meant
        if view.own_snapshot is None:
            words = words_of(view)
            question = self._planner.question(known, words)
            text = question.asked(questions) if question else words.choice(_ANYTHING)
            return Decision((Say(text),))
        said = self._announcement(view, known, updated=unannounced(view), questions=questions)
        return Decision((Say(said),))

    async def ask(self, view: View, *, questions: int = 1) -> Decision | None:
        """The last question once more if it was not understood, or one that is worth asking before any output."""
        if (meant := explained(view)) is not None:
            return meant
        question = self._planner.question(self._known.on(view), words_of(view))
        if question is None or not question.first:
            return None
        draft = f"{words_of(view).choice(_DRAFT)} " if unannounced(view) else ""
        return Decision((Say(f"{draft}{question.asked(questions)}"),))

    async def report(self, view: View, *, final: bool) -> Decision:
        """A report without a question."""
        known = self._known.on(view)
        if (meant := explained(view)) is not None:
            return meant
        standing = _standing(view, updated=unannounced(view))
        words = words_of(view)
        said = self._planner.report(known, words, standing)
        end = self._hand_over if final else self._end(standing, words)
        return Decision((Say(f"{said} {end}".rstrip()),))

    async def act(self, view: View) -> Decision:
        """The next actions or the next output, or the end."""
        return self._work.on(view) or _DONE

    def estimate(self, view: View) -> float | None:
        """The planner's estimate; 0 before the first output."""
        if view.snapshot is None:
            return 0.0
        return self._planner.estimate(self._known.on(view))

    def _announcement(self, view: View, known: K, *, updated: bool, questions: int = 1) -> str:
        """A report with the next questions."""
        words, standing = words_of(view), _standing(view, updated=updated)
        said = self._planner.report(known, words, standing)
        question = self._planner.question(known, words)
        end = question.asked(questions) if question else self._end(standing, words)
        return f"{said} {end}".rstrip()

    def _end(self, standing: Standing, words: Random) -> str:
        """The end of a report without a question."""
        return words.choice(self._settled if standing == "unchanged" else self._look)


def explained(view: View) -> Decision | None:
    """The agent's last question once more, if the human has just asked back what it means; else None."""
    last = view.messages[-1] if view.messages else None
    if last is None or last.role != "human" or not is_query(last.text):
        return None
    for message in reversed(view.messages):
        asked = [part for part in sentences(message.text) if part.endswith("?")]
        if message.actor == view.me and asked:
            again = " ".join(asked).removeprefix("Sorry, ")
            text = f"{words_of(view).choice(_MEANT)} {again[:1].upper()}{again[1:]}"
            return Decision((Say(text),))
    return None


def _standing(view: View, *, updated: bool) -> Standing:
    if not updated:
        return "unchanged"
    return "changed" if announced(view) else "first"


def _nudged_in_vain(view: View) -> bool:
    """Whether everyone is waiting and the agent has nothing more to say."""
    return nudged(view) and not owes_reply(view) and not unannounced(view)
