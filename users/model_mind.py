"""The mind of a simulated user on a model; the hidden profile is in its own prompts, and no others.

When it chooses what, and when it rates, is in ``simulated``; a persona is described in words here, and
the part of it that is chance is drawn from the session's seed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import final

import msgspec

from ..engine import codec
from ..engine.errors import InvalidInput
from ..engine.events import JSON
from ..engine.models.prompting.actions import (
    ActionSpace,
    approve_action,
    task_actions,
)
from ..engine.models.prompting.conversation import (
    RECONSIDER,
    ModelConversation,
    UnreadableReply,
    read_choice,
    reply_text,
)
from ..engine.models.prompting.parse_rating import explanation_of, read_rating
from ..engine.models.prompting.prompt_context import CHARACTERS_PER_TOKEN, situation, teammates
from ..engine.models.prompting.prompts import load_prompts
from ..engine.models.protocol import Message, ModelReply
from ..engine.session.decisions import NOTHING, Decision, Finish, Rate, Say, Verb
from ..engine.session.view import View
from ..engine.task import Brief, output_action
from ..engine.text import text_of
from ..scoring.display.cards import KNOWN, card_of
from .cognition.perception import LEFT_OUT
from .personas import Cognition, Persona
from .simulated import UserIntent

__all__ = ("ModelUserMind", "profile_text", "prompt_digest", "titles", "user_messages")

_PROMPTS = load_prompts(__package__)

_CHOICES: Mapping[UserIntent, tuple[str, str, str]] = {
    "answer": (
        "Answer",
        "you were asked something, and it waits for you",
        (
            "if you were asked something and have not answered it yet, a question whether all is well "
            "included. If there is also something wrong with the output, that can wait."
        ),
    ),
    "feedback": (
        "Offer feedback",
        "tell the others something that you were not asked",
        (
            "if the output is wrong, or lacks something that you know and have not said. Not if the others "
            "are still at work on what you said last."
        ),
    ),
    "act": (
        "Take an action",
        "look something up, or change the output, yourself",
        "if it is quicker to do it yourself than to ask for it.",
    ),
    "finish": (
        "Finish",
        "you are content with the output as it is; this ends the work",
        (
            "if the output fits what you know, and nothing is left to be said or answered. If you are asked for your "
            "consent, answer instead of finishing. If all is as you want it, do finish; do not drag things "
            "out."
        ),
    ),
    "nothing": (
        "Do nothing",
        "let the others continue",
        "if the others are at work, or if it is their turn.",
    ),
    "leave": (
        "Give up",
        "you walk away without what you wanted; this ends the work",
        (
            "if you no longer expect to get what you want: nothing changes, however often you say it, or "
            "you have waited for too long."
        ),
    ),
}
"""Each decision: its title, its meaning, and the rule for choosing it."""

_MENU = 4
"""Version of the menu of decisions; part of the digest."""
_LABEL = re.compile(r"(?:message|answer|reply|feedback|user|me)\s*:\s*", re.IGNORECASE)
_QUOTES = (('"', '"'), ("'", "'"), ("“", "”"))


def prompt_digest(brief: Brief) -> str:
    """The digest of all that simulated users on models are shown, except their profile and persona,
    and what changes as they go on.
    """
    return codec.digest([_PROMPTS.digest, _CHOICES, _MENU, RECONSIDER, brief.prompts])


@final
class ModelUserMind:
    """Decides for one simulated user in one session by asking a model.

    Args:
        conversation: the conversation with the model.
        brief: describes the task.
    """

    def __init__(self, conversation: ModelConversation, brief: Brief) -> None:
        self._conversation = conversation
        self._brief = brief

    async def choose(self, view: View, persona: Persona) -> UserIntent:
        """Chooses the next act; nothing if the model's replies cannot be read."""
        offered, words = _offered(view), titles(view)
        listed = "\n".join(
            f"{number}. {title}: {means}."
            for number, (title, means, _) in enumerate(offered.values(), start=1)
        )
        rules = "\n".join(f"- {title} {when}" for title, _, when in offered.values())
        found = await self._conversation.ask(
            "choose",
            self._messages(view, persona, _PROMPTS.fill("choose", options=listed, rules=rules)),
            lambda reply: read_choice(reply_text(reply), words, label="Choice"),
        )
        return "nothing" if isinstance(found, UnreadableReply) else found

    async def compose(self, view: View, persona: Persona, intent: UserIntent) -> Decision:
        """Puts it into words, or into an action; nothing if the model's replies cannot be read."""
        match intent:
            case "answer" if view.open_approvals:
                return await self._act(view, persona, approval=view.open_approvals[0].version)
            case "answer":
                vague = view.random.random() < persona.vague
                return await self._say(view, persona, "answer", vague=vague)
            case "feedback":
                vague = not persona.gives_feedback and view.snapshot is not None
                return await self._say(view, persona, "feedback", vague=vague)
            case "act":
                return await self._act(view, persona)
            case "finish":
                return Decision((Finish("content with the output"),))
            case "leave":
                return Decision((Finish("gives up", "abandoned"),))
        return NOTHING

    async def rate(self, view: View, persona: Persona) -> Rate | None:
        """Rates the progress that the others made; None if the model's replies cannot be read."""
        own = [m.text for m in view.messages if m.actor == view.me]
        prompt = _PROMPTS.fill("rate", before=own[-1] if own else view.request)
        found = await self._conversation.ask(
            "rate", self._messages(view, persona, prompt), _read_rating
        )
        return None if isinstance(found, UnreadableReply) else found

    async def _say(self, view: View, persona: Persona, what: str, *, vague: bool) -> Decision:
        prompt = _PROMPTS.fill(f"{what}_vaguely" if vague else what)
        found = await self._conversation.ask(
            what, self._messages(view, persona, prompt), _read_line
        )
        return NOTHING if isinstance(found, UnreadableReply) else Decision((Say(found),))

    async def _act(self, view: View, persona: Persona, *, approval: int | None = None) -> Decision:
        """A task action or an edit, or an approval if one is asked for."""
        if approval is not None:
            space = ActionSpace([approve_action(approval)])
        else:
            output = output_action(self._brief)
            space = ActionSpace([*task_actions(view.actions_available), output])
        as_text = self._conversation.use.text_actions
        prompt = (
            _PROMPTS.fill("act_text", actions_available=space.description)
            if as_text
            else _PROMPTS.fill("act_tools")
        )

        def read(reply: ModelReply) -> tuple[Verb, ...]:
            if as_text:
                return space.read_text(reply_text(reply))
            return space.read_calls(reply.tool_calls)

        found = await self._conversation.ask(
            "act",
            self._messages(view, persona, prompt),
            read,
            tools=() if as_text else space.tools,
        )
        return NOTHING if isinstance(found, UnreadableReply) else Decision(found)

    def _messages(
        self, view: View, persona: Persona, prompt: str
    ) -> Callable[[int], tuple[Message, ...]]:
        return partial(user_messages, self._brief, persona, view, prompt)


def user_messages(
    brief: Brief, persona: Persona, view: View, prompt: str, tokens: int
) -> tuple[Message, ...]:
    """The prompt for a simulated user's model, within about the given number of tokens."""
    system = _PROMPTS.fill(
        "person",
        me=view.me,
        team=teammates(view),
        description=brief.description,
        form=brief.output,
        profile=profile_text(view.private) or "(nothing)",
        manner=_manner(persona),
    )
    fixed = (len(system) + len(prompt)) // CHARACTERS_PER_TOKEN
    now = _PROMPTS.fill(
        "situation", **msgspec.structs.asdict(situation(view, max(tokens - fixed, 0)))
    )
    return (
        Message(role="system", content=system),
        Message(role="user", content=f"{now.rstrip()}\n\n{prompt}"),
    )


def titles(view: View) -> dict[UserIntent, str]:
    """The decisions offered to a user, in words: the paper's five, if they make sense yet, and giving up.

    There is nothing to answer until another participant has said something, and nothing to be content
    with until there is an output. Users may give up at any time.
    """
    return {intent: title for intent, (title, _, _) in _offered(view).items()}


def _offered(view: View) -> dict[UserIntent, tuple[str, str, str]]:
    offered = dict(_CHOICES)
    spoken = any(message.actor != view.me for message in view.messages)
    if not spoken and not view.open_approvals:
        del offered["answer"]
    if view.snapshot is None:
        del offered["finish"]
    return offered


def profile_text(private: JSON) -> str:
    """A hidden profile in words: that of a card, if it is one; else a list is a line each, an object is a
    line for each of its parts.
    """
    if private is None:
        return ""
    if isinstance(private, Mapping):
        if "profile" in private:
            return "\n\n".join(_section(*section) for section in card_of(private))
        return "\n".join(f"- {name}: {text_of(part)}" for name, part in private.items())
    if isinstance(private, list | tuple):
        return "\n".join(f"- {text_of(part)}" for part in private)
    return text_of(private)


def _section(title: str, lines: Sequence[str]) -> str:
    listed = "\n".join(f"- {line}" for line in lines)
    return listed if title == KNOWN else f"{title}:\n{listed}"


def _manner(persona: Persona) -> str:
    """A persona in words."""
    lines = [
        "You tell the others when the output does not fit what you know."
        if persona.gives_feedback
        else "You do not study the output. If it does not seem right, you say so, and not why.",
        "You also look things up yourself, and change the output yourself where that is quicker."
        if persona.acts
        else "You would rather leave the work to the others.",
    ]
    if persona.volunteers:
        lines.append("While the others work, you sometimes add something that comes to your mind.")
    else:
        lines.append("While the others work, you let them.")
    if persona.untold:
        lines.append("You often leave a wish unsaid if the output does not go against it.")
    if persona.contentment < 1.0:
        share = f"{persona.contentment:.0%}"
        lines.append(f"You are content once about {share} of what you want is met.")
    else:
        lines.append("You are content once all that you want is met, as far as you can see.")
    lines += _manners(persona)
    lines += _limits(persona.cognition)
    return "\n".join(f"- {line}" for line in lines)


def _manners(persona: Persona) -> Iterator[str]:
    """A persona's rates, in words: how often it asks back, repeats itself, refuses, contradicts, complains and praises."""
    rates = (
        (persona.questions, "put what you say as a question"),
        (persona.queries, "if you are asked something, first ask back what is meant"),
        (persona.overlooks, "of several questions in one message, answer the first only"),
        (persona.repeats, "say once more what you said last, since nothing came of it"),
        (persona.refuses, "turn down an offer or a request for approval, without a reason"),
        (
            persona.corrects,
            "contradict what is said about you or your work, if you believe otherwise",
        ),
        (persona.complains, "complain first, if the others have just got you nowhere"),
        (persona.praises, "praise or thank first, if the others have just helped you"),
        (persona.asides, "begin with a short sentence beside the point"),
    )
    for rate, what in rates:
        if rate:
            yield f"About {max(1, round(100 * rate))} times in 100: {what}."
    yield "If nothing changes any more, however often you say it, you do not go on: if you can live with the output, you finish; if not, you give up."


def _limits(cognition: Cognition) -> Iterator[str]:
    """A persona's limits, in words; they are applied to the view before the model sees it."""
    if cognition.attention is not None or cognition.memory is not None:
        yield (
            f"Where a message shows {LEFT_OUT}, you have not read that part, or no longer remember it, "
            "your own words included: go by the rest, and never say what stood there."
        )
    if cognition.misreads:
        yield "You take figures as you read them; if you are told that you misread one, believe it."
    if cognition.understanding < 1.0:
        yield "The matter is new to you. You use few of its terms at first, and more as it goes on."
    if cognition.trust_loss:
        yield "If the others got things wrong, you look twice at what they do next."


def _read_line(reply: ModelReply) -> str:
    """A message of one line, without the decoration that models add."""
    text = " ".join(reply_text(reply).split())
    label = _LABEL.match(text)
    text = text[label.end() :] if label else text
    for opening, closing in _QUOTES:
        inside = text[1:-1]
        if text.startswith(opening) and text.endswith(closing) and opening not in inside:
            text = inside.strip()
    if not text:
        raise InvalidInput("it says nothing")
    return text


def _read_rating(reply: ModelReply) -> Rate:
    text = reply_text(reply)
    rating = read_rating(text)
    if rating is None:
        raise InvalidInput("the first line lacks a single rating from 1 to 5")
    return Rate(rating, explanation_of(text))
