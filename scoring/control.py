"""Effort-utility control: turns the updates of scoring into advice for an agent on who leads next.

Utility responds to the human's effort, and that response should decide which side takes the
initiative (paper, section 3). This controller applies rules to three quantities, which are part of
each advice:

- *slope*: the rise of utility per unit of the human's effort, over the last few rounds. If utility
  is not measured, the agent's own estimate is used (``Controller.estimated``). Without an estimate,
  each round that updates the output counts as a rise by 1.
- *effort since the last gain*: the human's effort since utility last rose.
- *tolerance left*: how many more unproductive rounds the human is expected to tolerate.
  A round is unproductive if it is rated below 3. Without a rating, the human's reaction decides
  (``Controller.reacted``). If that is unknown too, a round with an output is unproductive if it
  gained nothing, and a round before the first output if the human deferred.

A session that declares no output, such as a chat, gets the rules of ``chat_control`` instead, and
*escalate* if no tolerance is left (by ratings) or the budget is exceeded. If a session declares nothing,
they apply until its first output, but only if the human is satisfied, wants no questions or wants a person.

For work on an output the rules are, the first that applies:

1. *hand over* if no tolerance is left, or if the effort since the last gain exceeds the budget.
2. Before the first output: *ask*, as long as questions are answered and within their limit; then
   *act* on the answers so far, since without an output there is nothing to judge. With the first
   output, *yield*: a human who sees something knows best what is wrong with it
   (``ControlRules.first`` changes that). With ``ControlRules.show`` an early draft is put up in between, and the questions
   continue with it: until they end, it does not count as the first output.
3. *Yield* if utility is high enough, if the human has spent as much effort as they should be
   asked for, or if they write less and less. Each applies only if the rules set a limit for it.
4. If the human defers (does not answer a question, asks for just "something better"): *act* if the
   agent had the lead; *ask* something concrete if the human had it. ``insist`` allows for more
   questions that go unanswered, and after ``keep`` deferrals the agent leads for good.
5. Win-stay, lose-shift. After a round that gained, keep the lead: *ask* if the agent has it, *yield*
   if the human has. After ``persist`` rounds in a row that gained nothing, change it. A round counts as
   soon as it has gained; or when it is over; or when the agent reports that it has no more to do in it
   (``Controller.work_done``), so that the advice applies to the message that ends its turn.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator
from itertools import takewhile
from typing import Literal, TypeAlias, final

from ..engine.errors import InvalidInput
from ..engine.rounds import is_unproductive
from ..engine.text import quantity
from .control_rules import Advice, ControlRules, Move
from .trajectory.updates import (
    ChatAdvised,
    EffortUpdated,
    RatingUpdated,
    RoundClosed,
    RoundOpened,
    SessionEnded,
    Update,
    UtilityUpdated,
)

__all__ = ("Controller", "advise")

Lead: TypeAlias = Literal["ask", "yield"]


@final
class _RoundState:
    """The state of a round.

    Attributes:
        effort: the human's effort, cumulative, by the measure of the rules.
        written: tokens that the human has written, cumulative.
        output: whether there was an output by its end.
        updated: whether the output was updated in it.
        deferred: whether the human deferred in it.
        deferrals: number of rounds up to it in which the human deferred.
        spent: effort when utility last rose, in it or before it; 0 if it never did.
        over: whether it is closed, or the agent has nothing left to do in it.
        utility: the utility after it.
        rating: the rating of its progress; None if there is none.
        reaction: the reaction of the human to it, in words: above 0 if pleased, below 0 if not.
        lead: the side that leads after it, if known.
        why: the reason for the lead.
    """

    __slots__ = (
        "deferrals",
        "deferred",
        "effort",
        "lead",
        "output",
        "over",
        "rating",
        "reaction",
        "spent",
        "updated",
        "utility",
        "why",
        "written",
    )

    def __init__(self, before: _RoundState | None) -> None:
        self.effort: float = before.effort if before else 0.0
        self.written: float = before.written if before else 0.0
        self.output: bool = before.output if before else False
        self.updated = False
        self.deferred = False
        self.deferrals: int = before.deferrals if before else 0
        self.spent: float = before.spent if before else 0.0
        self.over = False
        self.utility: float = before.utility if before else 0.0
        self.rating: int | None = None
        self.reaction = 0
        self.lead: Lead = "ask"
        self.why = ""


@final
class Controller:
    """Follows the updates of one session, and advises its agent on what to do next.

    It takes all updates in order: live, from ``Log.watch``, or from a fold of what an agent can see
    of its own session.

    For example::

        controller = duolog.Controller("conversation-42")
        async with log.watch(session="conversation-42", after_position=0) as updates:
            async for update in updates:
                advice = controller.feed(update)
                if advice is not None:
                    print(advice.move, "because", advice.why)

    Args:
        session: session id.
        rules: parameters of the rules.

    Attributes:
        session: session id.
        rules: parameters of the rules.
        advice: the current advice.
    """

    def __init__(self, session: str, rules: ControlRules | None = None) -> None:
        self.session = session
        self.rules = rules or ControlRules()
        self._rounds = [_RoundState(None)]
        self._scored = False
        self._estimated = False
        self._measured = False
        self._volunteered = False
        self._deferrals = 0.0
        self._asks = 0
        self._chatting = False  # the session is about no output
        self._chat: ChatAdvised | None = None  # about the human's latest message
        self._told: ChatAdvised | None = None  # the basis of the advice in a chat
        self.advice = self._advise()

    def feed(self, update: Update) -> Advice | None:
        """Takes the next update; returns the advice if its move or its round has changed.

        Raises:
            InvalidInput: the update is of another session.
        """
        if update.session != self.session:
            raise InvalidInput(
                f"an update of session {update.session!r} was given to the controller of "
                f"{self.session!r}"
            )
        self._converse(update)
        if isinstance(update, RoundOpened) and update.round > len(self._rounds):
            self._rounds.append(_RoundState(self._rounds[-1]))
        if not 1 <= update.round <= len(self._rounds):
            return None  # a round from before the first update
        self._take(update, self._rounds[update.round - 1])
        changed = self._reconsider(update.round - 1)
        return (
            None if isinstance(update, RoundClosed) else changed
        )  # the opening of the next says it

    def _converse(self, update: Update) -> None:
        """Takes what an update says of a session without an output."""
        if isinstance(update, ChatAdvised):
            self._chat = update
        elif isinstance(update, RoundOpened | EffortUpdated):
            if self._chat is not None and update.version > self._chat.version:
                self._chat = None  # the human has acted since
            if isinstance(update, RoundOpened):
                self._chatting = not update.output

    def submitted(self) -> Advice | None:
        """Notes that the agent has updated the output; returns the advice as ``feed`` does.

        Updates of scoring may say so later, or not at all if utility is not measured.
        """
        now = self._rounds[-1]
        now.updated = now.output = True
        return self._reconsider(len(self._rounds) - 1)

    def estimated(self, utility: float) -> Advice | None:
        """Takes the agent's current estimate of utility; returns the advice as ``feed`` does.

        It counts if utility is not measured: an agent does not see the scores of its own session.

        Args:
            utility: from 0 to 1.
        """
        self._estimated = True
        self._rounds[-1].utility = utility
        return self._reconsider(len(self._rounds) - 1)

    def reacted(self, reaction: int) -> Advice | None:
        """Takes how the human has reacted to the last closed round; returns the advice as ``feed`` does.

        It counts towards the tolerance left if the round is not rated.

        Args:
            reaction: above 0 if they are pleased, below 0 if they complain or repeat themselves.
        """
        if len(self._rounds) > 1:
            self._rounds[-2].reaction = reaction
        return self._reconsider(max(len(self._rounds) - 2, 0))

    def volunteered(self) -> Advice | None:
        """Notes that the human has said something unasked; returns the advice as ``feed`` does."""
        again, self._volunteered = self._volunteered, True
        return self._reconsider(len(self._rounds) - 1 if again else 0)

    def asked(self) -> Advice | None:
        """Notes that an agent has asked something; returns the advice as ``feed``."""
        self._asks += 1
        return self._reconsider(len(self._rounds) - 1)

    def work_done(self) -> Advice | None:
        """Notes that the agent has no more to do in the open round; returns the advice as ``feed``."""
        self._rounds[-1].over = True
        return self._reconsider(len(self._rounds) - 1)

    def _reconsider(self, changed: int) -> Advice | None:
        measured = self._scored or self._estimated
        for index in range(changed if measured is self._measured else 0, len(self._rounds)):
            self._sum_up(index)
        self._measured = measured
        for index in range(changed, len(self._rounds)):
            self._lead(index)
        before, self.advice = self.advice, self._advise()
        if self._chatting:
            told, self._told = self._told, self._chat
            if self._chat is None or self._chat.move is None:
                return None  # nothing was said, or nothing that the rules can read
            if self._chat is not told:
                return self.advice
        same = (before.round, before.move) == (self.advice.round, self.advice.move)
        return None if same else self.advice

    def _sum_up(self, index: int) -> None:
        """Adds up what is known of the rounds up to one."""
        now = self._rounds[index]
        before = self._rounds[index - 1] if index else None
        now.deferrals = now.deferred + (before.deferrals if before else 0)
        now.spent = now.effort if self._gained(index) else before.spent if before else 0.0

    def _take(self, update: Update, about: _RoundState) -> None:
        """Applies an update to its round."""
        if isinstance(update, RoundClosed):
            point = update.point
            about.effort = point.effort.get(self.rules.measure) or about.effort
            about.updated = about.updated or point.updated
            about.output = about.output or point.updated
            if not self._estimated:
                about.utility = point.utility or 0.0
            about.over = True
        elif isinstance(update, EffortUpdated):
            about.effort = update.effort.get(self.rules.measure) or about.effort
            about.written = update.effort.get("tokens_written") or about.written
            deferrals = update.effort.get("deferrals") or 0.0
            about.deferred = about.deferred or deferrals > self._deferrals
            self._deferrals = deferrals
        elif isinstance(update, RatingUpdated):
            about.rating = update.rating
        elif isinstance(update, UtilityUpdated):
            self._scored = self._scored or update.value is not None  # not if it says: missing
            about.output = about.output or update.value is not None
            for later in self._rounds[update.round - 1 : update.through]:
                later.utility = update.utility or 0.0

    # --- the three quantities ---------------------------------------------------------------------

    def _rise(self, index: int) -> float:
        """The rise of utility in a round."""
        one = self._rounds[index]
        if not self._scored and not self._estimated:
            return float(one.updated)
        return one.utility - (self._rounds[index - 1].utility if index else 0.0)

    def _gained(self, index: int) -> bool:
        rise = self._rise(index)
        return rise > 0 and rise >= self.rules.gain

    def _slope(self) -> float | None:
        last = len(self._rounds)
        first = max(0, last - self.rules.window)
        effort = self._rounds[-1].effort - (self._rounds[first - 1].effort if first else 0.0)
        return sum(map(self._rise, range(first, last))) / effort if effort > 0 else None

    def _left(self) -> int:
        """The tolerance less the number of closed unproductive rounds, in a row, up to now."""
        left = self.rules.tolerance
        for index in range(len(self._rounds) - 2, -1, -1):
            one = self._rounds[index]
            if one.rating is not None:
                unproductive = is_unproductive(one.rating)
            elif one.reaction:
                unproductive = one.reaction < 0
            elif self._chatting:
                unproductive = False
            elif one.output:
                unproductive = not self._gained(index)
            else:
                unproductive = one.deferred
            if not unproductive or not left:
                break
            left -= 1
        return left

    # --- the rules --------------------------------------------------------------------------------

    def _lead(self, index: int) -> None:
        """Decides which side leads after a round, from its result and the previous lead."""
        now = self._rounds[index]
        before = self._rounds[index - 1] if index else None
        if before is None or not before.output or self._shows(index - 1):
            now.lead, now.why = self._first(), "there is a first output to look at"
        elif self._is_passive(index):
            now.lead, now.why = "ask", "the human would rather be asked than lead"
        elif now.deferred:
            # A question that was not answered is not followed by another, unless the rules insist.
            asked = before.lead == "ask" and self._deferred(index) >= self.rules.insist
            now.lead, now.why = "yield" if asked else "ask", "the human would rather not lead"
        elif self._gained(index):
            now.lead = before.lead
            now.why = (
                "the last answer led to progress"
                if now.lead == "ask"
                else "what the human said led to progress"
            )
        elif not now.over or self._fruitless(index) < self.rules.persist:
            now.lead, now.why = before.lead, before.why
        elif before.lead == "ask":
            now.lead = "yield"
            now.why = "the last answer changed nothing; the human may know what matters"
        else:
            now.lead, now.why = "ask", "what the human said changed nothing"

    def _first(self) -> Lead:
        """The side that leads after the first output."""
        if self.rules.first == "follow":
            return "yield" if self._volunteered else "ask"
        return self.rules.first

    def _is_passive(self, index: int) -> bool:
        """Whether the human has deferred so often by a round that they are not to lead again."""
        keep = self.rules.keep
        return keep is not None and self._rounds[index].deferrals >= keep

    def _shows(self, index: int) -> bool:
        """Whether an output of a round is a draft with which questions continue."""
        rules = self.rules
        asking = index < rules.questions and self._deferred(index) < rules.unanswered
        return rules.show is not None and asking

    def _deferred(self, index: int) -> int:
        """How many rounds in a row up to this one the human deferred in."""
        rounds = reversed(self._rounds[: index + 1])
        return sum(1 for _ in takewhile(lambda one: one.deferred, rounds))

    def _fruitless(self, index: int) -> int:
        """How many rounds in a row up to this one gained nothing under the same lead."""
        count = 0
        for number in range(index, 0, -1):
            if (
                self._gained(number)
                or self._rounds[number - 1].lead != self._rounds[index - 1].lead
            ):
                break
            count += 1
        return count

    def _advise(self) -> Advice:
        left, since = self._left(), self._rounds[-1].effort - self._rounds[-1].spent
        move, why = self._choose(left, since)
        return Advice(
            session=self.session,
            round=len(self._rounds),
            move=move,
            why=why,
            slope=self._slope(),
            since_gain=since,
            left=left,
        )

    def _choose(self, left: int, since: float) -> tuple[Move, str]:
        rules = self.rules
        now = self._rounds[-1]
        leave: Move = "escalate" if self._chatting else "hand over"
        if not left:
            return leave, f"{quantity(rules.tolerance, 'unproductive round')} in a row"
        if rules.budget is not None and since > rules.budget:
            return leave, f"effort of {since:g} {rules.measure} since the last gain"
        if self._chatting or self._chat is not None:
            return self._in_chat()
        if not now.output or self._shows(len(self._rounds) - 1):
            return self._begin()
        before = self._rounds[-2] if len(self._rounds) > 1 else None
        asked = before is not None and before.output and before.lead == "ask"
        if asked and now.deferred and now.lead == "yield":
            return "act", "the human waved the question away"
        return self._spared() or (now.lead, now.why)

    def _in_chat(self) -> tuple[Move, str]:
        """The move by the rules of chats."""
        if self._chat is None:
            return "answer", "the human has said nothing since"
        return self._chat.move or "answer", self._chat.why

    def _spared(self) -> tuple[Move, str] | None:
        """The move that spares the human questions, if a limit is reached; None if none is."""
        rules, now = self.rules, self._rounds[-1]
        passive = self._is_passive(len(self._rounds) - 1)
        if rules.asks is not None and self._asks >= rules.asks and not passive:
            return "yield", "enough was asked, and the human knows what matters"
        if rules.enough is not None and now.utility >= rules.enough:
            return "yield", "the output is good enough, as far as is known"
        if rules.spent is not None and now.effort >= rules.spent:
            return "yield", f"the human has spent {now.effort:g} {rules.measure} on it"
        before = self._rounds[-2].written if len(self._rounds) > 1 else 0.0
        if before and now.written - before < rules.pace * before / (len(self._rounds) - 1):
            return "yield", "the human writes less and less"
        return None

    def _begin(self) -> tuple[Move, str]:
        """The move before the first output."""
        rules = self.rules
        if self._deferred(len(self._rounds) - 1) >= rules.unanswered:
            return "act", "the human waves questions away, and there is nothing to look at yet"
        if len(self._rounds) > rules.questions:
            return "act", "enough was asked, and there is nothing to look at yet"
        if rules.show is not None and len(self._rounds) > rules.show:
            return "ask", "an answer may shape the output, of which a draft can be seen"
        return "ask", "there is no output yet, and an answer may shape it"


async def advise(
    updates: AsyncIterable[Update], rules: ControlRules | None = None
) -> AsyncIterator[Advice]:
    """Advice for all sessions of a stream of updates, whenever it changes.

    A session is followed from its first update until it ends.
    """
    controllers: dict[str, Controller] = {}
    async for update in updates:
        session = update.session
        if isinstance(update, SessionEnded):
            controllers.pop(session, None)
        elif session in controllers or isinstance(update, RoundOpened):
            controller = controllers.setdefault(session, Controller(session, rules))
            advice = controller.feed(update)
            if advice is not None:
                yield advice
