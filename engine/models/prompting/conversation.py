"""Asks a model until its reply can be parsed; a reply that cannot be is answered with the error.

Every reply is in the log. When the tries are used up, the actor waits: nothing in an unreadable reply
is ever carried out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeVar, final

import msgspec

from ...errors import InvalidInput, ModelRefused
from ...events import JSON
from ...session.actors import Policy
from ...session.decisions import NOTHING, Decision, Wait
from ...session.view import View
from ..protocol import Caller, Message, ModelReply, ModelRequest, Tool
from .prompt_context import CHARACTERS_PER_TOKEN

__all__ = (
    "ModelConversation",
    "ModelPolicy",
    "ModelUse",
    "UnreadableReply",
    "read_choice",
    "reply_text",
)

T = TypeVar("T")
Key = TypeVar("Key", bound=str)

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
                    f"{name} of model {self.model!r} has to be at least {least}, not {value}"
                )


@final
class UnreadableReply(msgspec.Struct, frozen=True):
    """No reply could be parsed; why not the last one."""

    why: str


@final
class ModelConversation:
    """Asks one model for one actor or scorer.

    Args:
        caller: what it is asked through.
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
            read: reads a reply; raises ``InvalidInput``, for the model to read, where it cannot.
            tools: what the model may call.

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
    others, say, does not. While an action of the actor's own is under way, it waits for the outcome.

    Args:
        policy: what decides.
        conversation: what its mind asks the model through.
    """

    def __init__(self, policy: Policy, conversation: ModelConversation) -> None:
        self._policy = policy
        self._conversation = conversation

    async def decide(self, view: View) -> Decision:
        """The next decision; a wait that says why, where the model's replies could not be read."""
        if view.pending is not None and not _concerns(view):
            return view.pending
        if view.in_flight:
            return NOTHING
        self._conversation.begin()
        decision = await self._policy.decide(view)
        if decision == NOTHING and self._conversation.gave_up is not None:
            return Decision((Wait(reason=self._conversation.gave_up),))
        return decision


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
        text: of the reply.
        options: their keys, and their words as the model was given them, numbered from 1.
        label: what the line begins with, e.g. ``Plan``.

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
    """Whether there is news that may change what the actor is about to do."""
    return any(r.kind in _CONCERNING and r.actor != view.me for r in view.news)


def _size(tools: tuple[Tool, ...]) -> int:
    """About how many tokens the tools take."""
    return len(msgspec.json.encode(tools)) // CHARACTERS_PER_TOKEN if tools else 0


def _repeat(reply: ModelReply) -> str:
    """A reply in words. Calls are not repeated as calls: some that cannot be read cannot be sent."""
    calls = [
        f"(called {call.name} with {call.arguments or 'nothing'})" for call in reply.tool_calls
    ]
    return "\n".join(part for part in (reply.text.strip(), *calls) if part) or "(nothing)"
