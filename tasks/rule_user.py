"""The mind of a simulated user on rules: when to answer, to comment, to act and to leave, for every task.

Each task has a `Person` that decides what the user wants, sees and says. If what they saw changes their
goals, the change is recorded as ``ProfileChanged`` before their next act.
"""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Final, Generic, NamedTuple, Protocol, TypeVar, final

from ..engine.events import JSON
from ..engine.session.decisions import NOTHING, Approve, ChangeProfile, Decision, Finish, Rate, Say
from ..engine.session.view import View
from ..engine.text import text_of
from ..users.deferrals import is_deferral, say_deferral
from ..users.judgement import Felt, is_loss, rated
from ..users.manner import SATISFIED, fresh, plain
from ..users.personas import Persona
from ..users.simulated import Changing, UserIntent
from .views import (
    Kept,
    asked_last,
    awaits_reaction,
    in_vain,
    is_busy,
    is_working,
    nudged,
    output_before,
    own_messages,
    unannounced,
    words_of,
)

__all__ = ("VAGUE", "HumanAlone", "Person", "RuleUser", "changing")

S = TypeVar("S")

VAGUE = (
    "Hmm, that is not quite what I had in mind. Can you improve it?",
    "I'm not sure about this one. Could you make it better?",
    "Not really convinced. Please have another look.",
)
"""Messages of a user who is not content and gives no reason."""

_ANY_NEWS = (
    "How far are you?",
    "Is there anything to look at yet?",
    "Are you still there?",
    "Any news?",
    "When can I see something?",
)
"""Questions of a user who waits."""

_VOLUNTEERS = 0.6
"""Share of the sessions in which a user who volunteers adds something before any output."""

_SOON, _LATE = 3.0, 20.0
"""Seconds after which they do."""


_SETTLED: Final = "settles for it, with something left open"

_IN_VAIN: Final = 10
"""Messages on an unchanged output after which a person gives up."""


class Person(Protocol[S]):
    """Decides what a user wants from a task, sees of it and says about it; one object per session.

    ``S`` is their state of mind. It depends only on the view and the current hidden profile.
    """

    def see(self, view: View, profile: JSON) -> S:
        """The person's current knowledge and wishes."""
        ...

    def wrong(self, state: S, output: str) -> float:
        """How much they see to be wrong with an output, e.g. how many wishes it fails; 0 for nothing."""
        ...

    def comment(self, state: S, persona: Persona, words: Random) -> str | None:
        """Their next unprompted message; None if they have nothing to say.

        They first explain a change that they made to the output. Otherwise they say what is wrong with it,
        or mention a wish that they have not told yet. Before any output, users who volunteer add something.
        """
        ...

    def answer(self, state: S, question: str, persona: Persona, words: Random) -> str:
        """Their answer to a message that asks something."""
        ...

    def work(self, state: S, persona: Persona, words: Random) -> Decision | None:
        """Their own look-ups and changes, if the persona makes any; None otherwise."""
        ...

    def content(self, state: S, persona: Persona) -> bool | str:
        """Whether they leave it at the output that there is; a text says why, if not for satisfaction."""
        ...

    def rate(self, state: S, view: View) -> Felt | None:
        """The worth of the agent's last round to them; see ``users.judgement``. None for no opinion."""
        ...

    def change(self, state: S) -> ChangeProfile | None:
        """A change of mind caused by what they saw and not recorded yet; usually None.

        It has the complete new profile; its reason is what they saw or heard.
        """
        ...

    def alone(self, state: S, words: Random) -> Decision | None:
        """Their next act when they do the whole task by themselves; None when they are done."""
        ...


@final
class RuleUser(Generic[S]):
    """A ``UserMind`` on a person; one for each session.

    Args:
        person: the person of the task.
    """

    def __init__(self, person: Person[S]) -> None:
        self._person = person
        self._seen = Kept(partial(_see, person))

    async def choose(self, view: View, persona: Persona) -> UserIntent:
        """Answers a question; else reviews the output, if the agent has submitted one."""
        if view.in_flight:
            return "nothing"
        if view.open_approvals:
            return "answer"
        if is_busy(view):
            return "act"
        state = self._seen.on(view).state
        if self._person.work(state, persona, words_of(view)) is not None:
            return "act"
        if unannounced(view):
            return "feedback"
        if asked_last(view):
            leaves = view.snapshot is not None and self._leaves(view, state, persona)
            return "finish" if leaves else "answer"
        if view.snapshot is None:
            asks = nudged(view) or self._volunteers(view, state, persona)
            return "feedback" if asks else "nothing"
        if is_working(view) or awaits_reaction(view):
            return "nothing"
        return "finish" if self._leaves(view, state, persona) else "feedback"

    async def compose(self, view: View, persona: Persona, intent: UserIntent) -> Decision:
        """Composes the message or the action that was chosen."""
        if intent == "act" and view.pending is not None and is_busy(view):
            return view.pending
        if intent in ("answer", "feedback") and in_vain(view) >= _IN_VAIN:
            return Decision((Finish("talking changes nothing any more", "abandoned"),))
        return self._composed(view, self._seen.on(view).state, persona, intent)

    async def rate(self, view: View, persona: Persona) -> Rate | None:
        """Rates the agent's last round against their wishes during it."""
        one = self._person.rate(self._seen.on(view).before, view)
        return None if one is None else rated(one, view, persona)

    def changed(self, view: View) -> ChangeProfile | None:
        """How the person's goals have changed, as they have found out for this decision."""
        return self._seen.on(view).change

    def _composed(self, view: View, state: S, persona: Persona, intent: UserIntent) -> Decision:
        match intent:
            case "answer" if view.open_approvals:
                return Decision((self._allow(view, state, persona),))
            case "answer":
                return Decision((Say(self._answer(view, state, persona)),))
            case "feedback":
                return self._feedback(view, state, persona)
            case "act":
                return self._person.work(state, persona, words_of(view)) or NOTHING
            case "finish":
                why = self._person.content(state, persona)
                if isinstance(why, str) and why:
                    return Decision((Finish(why),))
                open_ = self._person.wrong(state, view.snapshot_text) > 0
                return Decision((Finish(_SETTLED if open_ else SATISFIED),))
        return NOTHING

    def _leaves(self, view: View, state: S, persona: Persona) -> bool:
        """Whether they are content; not just after a change that made it worse."""
        content = self._person.content(state, persona)
        if content is not True or view.snapshot_text == output_before(view):
            return bool(content)
        one = self._person.rate(state, view)
        return one is None or not is_loss(one)

    def _answer(self, view: View, state: S, persona: Persona) -> str:
        """An answer, or a deferral: never two in a row."""
        words = words_of(view)
        sent = own_messages(view)
        waved_away = bool(sent) and is_deferral(sent[-1])
        if persona.vague and words.random() < persona.vague and not waved_away:
            return say_deferral(words)
        return self._person.answer(state, asked_last(view), persona, words)

    def _volunteers(self, view: View, state: S, persona: Persona) -> bool:
        """Whether the person adds something while the agent works on the first output."""
        if not persona.volunteers or len(own_messages(view)) != 1:
            return False
        if words_of(view).random() >= _VOLUNTEERS:
            return False
        return self._person.comment(state, persona, words_of(view)) is not None

    def _feedback(self, view: View, state: S, persona: Persona) -> Decision:
        words = words_of(view)
        if view.snapshot is None and nudged(view):
            return self._wonders(view, words)
        if view.snapshot is not None and not unannounced(view) and not persona.gives_feedback:
            return Decision((Say(fresh(VAGUE, own_messages(view), words)),))
        text = self._person.comment(state, persona, words)
        if text is None:
            return Decision((Finish("nothing left to say"),))
        seconds = None if view.snapshot is not None else words.uniform(_SOON, _LATE)
        return Decision((Say(text),), seconds)

    def _wonders(self, view: View, words: Random) -> Decision:
        """Asks once, after a silence, how things are; then they leave."""
        sent = own_messages(view)
        if sent and plain(sent[-1]) in _ANY_NEWS:
            return Decision((Finish("waits in vain", "abandoned"),))
        return Decision((Say(fresh(_ANY_NEWS, sent, words)),))

    def _allow(self, view: View, state: S, persona: Persona) -> Approve:
        """Approves an output at least as good as the one it replaces, and approves ending when content."""
        asked = view.open_approvals[0]
        version, wanted = asked.version, asked.asked
        if wanted.action == "finish":
            content = bool(self._person.content(state, persona))
            return Approve(version, content, "" if content else "We are not there yet.")
        if wanted.action != "submit":
            return Approve(version)
        wrong = self._person.wrong(state, text_of(wanted.arguments.get("content")))
        if wrong <= self._person.wrong(state, view.snapshot_text):
            return Approve(version)
        return Approve(version, False, "Please keep what I have changed.")


@final
class HumanAlone(Generic[S]):
    """The policy of a person who does all of it by themselves: no agent takes part.

    Args:
        person: the person of the task.
    """

    def __init__(self, person: Person[S]) -> None:
        self._person = person

    async def decide(self, view: View) -> Decision:
        """The next step, or the end."""
        if view.in_flight:
            return NOTHING
        if is_busy(view) and view.pending is not None:
            return view.pending
        _, state, change = _see(self._person, view)
        step = self._person.alone(state, words_of(view))
        step = step or Decision((Finish("done, without any help"),))
        return Decision((change, *step.verbs), step.seconds) if change and step.verbs else step


def changing(person: Person[S]) -> Changing:
    """Derives changes of a person's goals, for users on rules and on models."""

    def changed(view: View) -> ChangeProfile | None:
        return person.change(person.see(view, view.private))

    return changed


class _Seen(NamedTuple, Generic[S]):
    """A person's state of mind.

    Attributes:
        before: their state of mind with the profile that is recorded.
        state: with the change that has just happened.
        change: that change; None if nothing has changed.
    """

    before: S
    state: S
    change: ChangeProfile | None


def _see(person: Person[S], view: View) -> _Seen[S]:
    before = person.see(view, view.private)
    change = person.change(before)
    return _Seen(before, before if change is None else person.see(view, change.profile), change)
