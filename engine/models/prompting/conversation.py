"""Asks a model until its reply can be parsed; a reply that cannot be is answered with the error.

Every reply is in the log. When the tries are used up, the actor waits: nothing in an unreadable reply
is ever carried out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias, TypeVar, final

import msgspec

from ...errors import InvalidInput, ModelRefused
from ...events import JSON
from ...session.actors import Policy
from ...session.decisions import NOTHING, Decision, Say, Submit, Verb, Wait
from ...session.view import View
from ..protocol import Caller, Message, ModelReply, ModelRequest, Tool
from .prompt_context import CHARACTERS_PER_TOKEN, draft_text

__all__ = (
    "RECONSIDER",
    "Compose",
    "ModelConversation",
    "ModelPolicy",
    "ModelUse",
    "UnreadableReply",
    "read_choice",
    "reply_text",
)

T = TypeVar("T")
Key = TypeVar("Key", bound=str)

Compose: TypeAlias = Callable[[View, str, int], tuple[Message, ...]]
"""Makes the messages to a model from a view, a prompt and a budget of tokens."""

RECONSIDER: Final[Mapping[str, str]] = {
    "ask": (
        "While you were at that, there was news: see above.{outdated}\n\n"
        "What now? Your choices are:\n{options}\n\n"
        "Reply with the number of your choice, and nothing else{unless}."
    ),
    "outdated": (
        " The output has changed since, so that what you were about to put up would be refused."
    ),
    "unless": ", but for a message that you change",
    "go on": "Go on with it: the news does not change it. You need not write it again.",
    "change": "Change it: it is still worth doing, in another way.",
    "reword": (
        "Change it: it is still worth saying, in other words. Write all of it as you would say it now, "
        "on the line after the number."
    ),
    "drop": "Drop it, since it is no longer needed.",
}
"""Asks an actor about news that came while it typed or worked; part of its prompts."""

_NEWS = 2_000  # tokens of the situation that are enough to reconsider a draft
_CUTS = 2
_CONCERNING = frozenset(
    {"MessageSent", "SnapshotTaken", "ApprovalAsked", "ApprovalGiven", "FeedbackGiven", "Nudged"}
)
_THINKING = re.compile(r"\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_AGAIN = (
    "Your reply could not be used: {why}. Nothing in it was carried out. Please reply again, in the "
    "form that was asked for, and with nothing else."
)


@final
class ModelUse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which model is asked, and how.

    Attributes:
        model: as LiteLLM names it.
        temperature: None for the provider's default.
        max_tokens: how much it may write at a time; None for the provider's default.
        context: about how many tokens it is shown; what is beyond is shortened, see ``context``.
        text_actions: it writes actions as text (ReAct), since it cannot call tools.
        tries: how often it may reply until a reply can be read.
        options: whatever else is passed on, see ``ModelRequest``.

    Raises:
        InvalidInput: a number that makes no sense.
    """

    model: str
    temperature: float | None = None
    max_tokens: int | None = None
    context: int = 32_000
    text_actions: bool = False
    tries: int = 3
    options: Mapping[str, JSON] = {}

    def __post_init__(self) -> None:
        if not self.model:
            raise InvalidInput("a model needs a name")
        for name, least in (("max_tokens", 1), ("context", 1000), ("tries", 1)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise InvalidInput(
                    f"{name} of model {self.model!r} must be at least {least}, got {value}"
                )


@final
class UnreadableReply(msgspec.Struct, frozen=True):
    """No reply could be parsed; why not the last one."""

    why: str


@final
class ModelConversation:
    """Asks one model for one actor or scorer.

    Args:
        caller: the caller through which to ask it.
        use: which model, and how.

    Attributes:
        gave_up: why no reply could be read, if that happened since it was last cleared.
    """

    def __init__(self, caller: Caller, use: ModelUse) -> None:
        self._caller = caller
        self.use = use
        self.gave_up: str | None = None

    def begin(self) -> None:
        """Forgets why it gave up before: another decision begins."""
        self.gave_up = None

    async def ask(
        self,
        purpose: str,
        compose: Callable[[int], tuple[Message, ...]],
        read: Callable[[ModelReply], T],
        *,
        tools: tuple[Tool, ...] = (),
    ) -> T | UnreadableReply:
        """Asks the model, and parses its reply.

        Args:
            purpose: what for, as a verb, e.g. ``act``; recorded.
            compose: makes the messages, given about how many tokens they may take.
            read: reads a reply; raises ``InvalidInput``, for the model to read, if it cannot.
            tools: the tools that the model may call.

        Raises:
            ModelRefused: the provider will not answer, not even a shorter request.
        """
        context = self.use.context - _size(tools)
        for _ in range(_CUTS):
            try:
                return await self._converse(purpose, compose(context), read, tools)
            except (
                ModelRefused
            ):  # too long, perhaps: providers say so in too many ways to recognise
                context //= 2
        return await self._converse(purpose, compose(context), read, tools)

    async def _converse(
        self,
        purpose: str,
        messages: tuple[Message, ...],
        read: Callable[[ModelReply], T],
        tools: tuple[Tool, ...],
    ) -> T | UnreadableReply:
        use = self.use
        why = ""
        for number in range(use.tries):
            request = ModelRequest(
                model=use.model,
                messages=messages,
                tools=tools,
                temperature=use.temperature,
                max_tokens=use.max_tokens,
                options=use.options,
            )
            reply = await self._caller.ask(
                request, purpose=f"{purpose} again" if number else purpose
            )
            try:
                if reply.finish == "length":
                    raise InvalidInput("it was cut off because it was too long")
                return read(reply)
            except InvalidInput as error:
                why = str(error)
            correction = _AGAIN.format(why=why)
            messages = (
                *messages,
                Message(role="assistant", content=_repeat(reply)),
                Message(role="user", content=correction),
            )
        self.gave_up = f"no reply of {use.model} could be used in {use.tries} tries: {why}"
        return UnreadableReply(self.gave_up)


@final
class ModelPolicy:
    """A policy on a model, asked only when there is something to consider.

    A decision whose working time is passing stands, unless something concerns it: waiting of the
    others, say, does not. What concerns it has the model asked, shortly, whether to go on, to change
    it or to drop it; a reply that cannot be read goes on. While an action of the actor's own is
    under way, it waits for the outcome.

    Args:
        policy: what decides.
        conversation: through which its mind asks the model.
        compose: makes the messages of that short question; None to decide again at such news.
    """

    def __init__(
        self, policy: Policy, conversation: ModelConversation, compose: Compose | None = None
    ) -> None:
        self._policy = policy
        self._conversation = conversation
        self._compose = compose

    async def decide(self, view: View) -> Decision:
        """The next decision; a wait that says why, if the model's replies could not be read."""
        pending, drops = view.pending, False
        if pending is not None and not _concerns(view):
            return pending
        if view.in_flight:
            return NOTHING
        self._conversation.begin()
        if pending is not None and self._compose is not None and draft_text(pending):
            choice, text = await self._reconsider(view, self._compose, pending)
            if choice == "go on":
                return pending
            if text:
                return Decision(_reworded(pending, text))
            drops = choice == "drop"
            if drops:
                view.pending = None
        decision = await self._policy.decide(view)
        if drops:
            decision = msgspec.structs.replace(decision, drops=True)
        if decision == NOTHING and self._conversation.gave_up is not None:
            return Decision((Wait(reason=self._conversation.gave_up),))
        return decision

    async def _reconsider(self, view: View, compose: Compose, pending: Decision) -> tuple[str, str]:
        """Keeps, changes or drops a draft, which the situation shows; with the new text of a message,
        if the model wrote it at once.
        """
        outdated = _outdated(view, pending)
        says = sum(isinstance(verb, Say) for verb in pending.verbs) == 1
        offered = {} if outdated else {"go on": RECONSIDER["go on"]}
        offered |= {
            "change": RECONSIDER["reword" if says else "change"],
            "drop": RECONSIDER["drop"],
        }
        prompt = RECONSIDER["ask"].format(
            outdated=RECONSIDER["outdated"] if outdated else "",
            options="\n".join(f"{n}. {words}" for n, words in enumerate(offered.values(), start=1)),
            unless=RECONSIDER["unless"] if says else "",
        )
        words = {key: key.capitalize() for key in offered}

        def read(reply: ModelReply) -> tuple[str, str]:
            try:
                first, _, rest = reply_text(reply).partition("\n")
                choice = read_choice(first, words, label="Choice")
            except InvalidInput:
                return next(iter(offered)), ""
            return choice, rest.strip() if says and choice == "change" else ""

        found = await self._conversation.ask(
            "reconsider",
            lambda tokens: compose(view, prompt, min(tokens, _NEWS)),
            read,
        )
        return (next(iter(offered)), "") if isinstance(found, UnreadableReply) else found


def reply_text(reply: ModelReply) -> str:
    """The text of a reply, without the thinking that some models write before it.

    Raises:
        InvalidInput: nothing.
    """
    text = _THINKING.sub("", reply.text, count=1).strip()
    if not text:
        raise InvalidInput("it says nothing")
    return text


def read_choice(text: str, options: Mapping[Key, str], *, label: str) -> Key:
    """Which of several numbered options a text chooses.

    Read is a line that begins with the label, or else the first line, if that is nothing but the
    choice: a number (``2``), the option's words, or both (``2. Take an action``). A number that
    merely occurs in the text chooses nothing.

    Args:
        text: the text of the reply.
        options: their keys, and their words as the model was given them, numbered from 1.
        label: the beginning of the line, e.g. ``Plan``.

    Raises:
        InvalidInput: no choice, or several.
    """
    line = re.compile(rf"^[ \t]*[*_#]*{label}[*_]*[ \t]*:[ \t]*(.*)$", re.IGNORECASE | re.MULTILINE)
    labelled = [found.group(1) for found in line.finditer(text)]
    if labelled:
        chosen = {_option(one, options) for one in labelled}
    else:
        first, *rest = [_option(one, options) for one in text.split("\n") if one.strip()] or [None]
        chosen = {first, *(one for one in rest if one is not None)}
    key = chosen.pop() if len(chosen) == 1 else None
    if key is None:
        listed = ", ".join(f"{n}. {words}" for n, words in enumerate(options.values(), start=1))
        raise InvalidInput(f'choose exactly one, with a line such as "{label}: 1", among: {listed}')
    return key


def _option(text: str, options: Mapping[Key, str]) -> Key | None:
    """The option that a text names with its number, its words or both; None for anything else."""
    plain = text.strip().strip("*_`\"'.").strip()
    found = re.fullmatch(r"\(?(\d+)\)?(?:[.:)\s-]+(.*))?", plain, re.DOTALL)
    number, words = (
        (int(found[1]), found[2] or "") if found and len(found[1]) < 4 else (None, plain)
    )
    words = words.lower().strip("*_`\"' ")
    by_words = [key for key, known in options.items() if words.startswith(known.lower())]
    if number is None:
        return by_words[0] if len(by_words) == 1 else None
    if not 1 <= number <= len(options):
        return None
    key = list(options)[number - 1]
    return key if not words or key in by_words else None


def _concerns(view: View) -> bool:
    """Whether there is news that may change the actor's pending decision."""
    return any(r.kind in _CONCERNING and r.actor != view.me for r in view.news)


def _outdated(view: View, pending: Decision) -> bool:
    """Whether a pending version of the output was made from one that is no longer the latest."""
    return any(isinstance(v, Submit) and not v.overwrite for v in pending.verbs) and any(
        record.kind == "SnapshotTaken" and record.actor != view.me for record in view.news
    )


def _reworded(decision: Decision, text: str) -> tuple[Verb, ...]:
    """The verbs of a decision with another text of its message."""
    return tuple(
        msgspec.structs.replace(verb, text=text) if isinstance(verb, Say) else verb
        for verb in decision.verbs
    )


def _size(tools: tuple[Tool, ...]) -> int:
    """About how many tokens the tools take."""
    return len(msgspec.json.encode(tools)) // CHARACTERS_PER_TOKEN if tools else 0


def _repeat(reply: ModelReply) -> str:
    """A reply in words. Calls are not repeated as calls: some that cannot be read cannot be sent."""
    calls = [
        f"(called {call.name} with {call.arguments or 'nothing'})" for call in reply.tool_calls
    ]
    return "\n".join(part for part in (reply.text.strip(), *calls) if part) or "(nothing)"
