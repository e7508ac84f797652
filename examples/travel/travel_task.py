"""Travel planning as a task: its instances, on an invented world or on TravelPlanner's files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final, final

import msgspec

from ...agents.habits import Habits
from ...agents.rules_file import shipped_rules
from ...engine.errors import InvalidInput, ModelRefused
from ...engine.events import JSON, SessionOpened, SnapshotTaken
from ...engine.models.prompting.conversation import ModelConversation, UnreadableReply, reply_text
from ...engine.models.prompting.prompts import load_prompts
from ...engine.models.protocol import Message, ModelReply
from ...engine.scorers.protocol import Scorer
from ...engine.task import Brief
from ...scoring.display.cards import Part
from ...scoring.scorers.utility import Missing, Score, SnapshotUtility, unreadable
from ...tasks.kit import Case, KitTask, TaskScorer, TaskSpec
from ...users.audit import CHECKS, Check, Fault, Utterance
from .actions import ACTIONS
from .data.sources import DatasetInstances, InstanceSource, InventedInstances
from .data.tables import Sandbox, Trip
from .evaluation import Variant, evaluate
from .language.facts import ANY, Fact
from .language.hints import hinted
from .language.messages import understand_message, understand_question
from .plan.plan import Plan
from .plan.text import PlanConverter, parse_plan, read_plan
from .rule_agent import travel_agent
from .rule_user import changing_traveller, human_alone, travel_user
from .second_thoughts import trip_as_changed, wishes_of

__all__ = (
    "TRAVEL_BRIEF",
    "TRAVEL_CHECKS",
    "ModelConverter",
    "asking_travel_utility",
    "find_strange_wishes",
    "find_too_much",
    "travel_scorer",
    "travel_task",
)

PROMPTS = load_prompts(__package__)
"""The templates of this task."""

TRAVEL_BRIEF = Brief(description=PROMPTS.fill("task"), output=PROMPTS.fill("output"))
"""The description of the task for actors that call models."""


# --- the utility of a travel plan -----------------------------------------------------------------


if TYPE_CHECKING:  # only if a model is named
    from ...engine.models.gateway import Models
    from ...engine.models.prompting.conversation import ModelUse
    from ...engine.models.protocol import Caller


TRAVEL = "travel"
"""Name of the scorer; in a session's private part, the owner of the evaluator's data."""

_VERSION = "2"


def travel_utility(
    sandbox: Sandbox,
    variant: Variant = "published",
    *,
    convert: PlanConverter | None = None,
    version: str = _VERSION,
    config: JSON = None,
) -> Scorer:
    """The scorer of travel plans.

    A plan that cannot be read has 0, and one that satisfies nothing has too. If ``convert`` fails, the
    score is missing.

    Args:
        sandbox: the tables that plans are evaluated with.
        variant: the rules of evaluation, see ``evaluation.Variant``.
        convert: reads the plans that the parser cannot read.
        version: the version of the scorer.
        config: settings of ``convert``.
    """

    def judge(plan: Plan, trip: Trip) -> Score:
        judged = evaluate(plan, trip, sandbox, variant)
        return Score(
            judged.performance,
            {
                "commonsense": judged.commonsense_pass_rate,
                "preference": judged.preference_pass_rate,
            },
        )

    def score(snapshot: SnapshotTaken, opened: SessionOpened) -> Score | Missing:
        posed = _posed(snapshot, opened)
        if not isinstance(posed, tuple):
            return posed
        text, trip = posed
        try:
            return judge(parse_plan(text), trip)
        except InvalidInput:
            return unreadable()

    async def score_asking(snapshot: SnapshotTaken, opened: SessionOpened) -> Score | Missing:
        posed = _posed(snapshot, opened)
        if not isinstance(posed, tuple):
            return posed
        text, trip = posed
        try:
            return judge(await read_plan(text, convert), trip)
        except ConversionFailed as error:
            return Missing(str(error))
        except InvalidInput:
            return unreadable()

    settings: dict[str, JSON] = {"variant": variant}
    if config is not None:
        settings["convert"] = config
    # Without a model nothing is awaited, so that the engine may compute it in a thread.
    scoring = score if convert is None else score_asking
    return SnapshotUtility(TRAVEL, version, scoring, config=settings)


def _posed(snapshot: SnapshotTaken, opened: SessionOpened) -> tuple[str, Trip] | Score | Missing:
    """A plan and the trip that it is judged by, as the human wants it now; else why it cannot be judged."""
    private = opened.private.get(TRAVEL)
    if not isinstance(private, Mapping) or "trip" not in private:
        return Missing("the session says nothing of the trip that its plans are judged by")
    if not isinstance(snapshot.content, str):
        return unreadable()
    trip = msgspec.convert(private["trip"], Trip)
    for one in opened.participants:
        if one.role == "human":  # the human may have changed their mind
            trip = trip_as_changed(trip, opened.private.get(one.name))
    return snapshot.content, trip


def asking_travel_utility(
    sandbox: Sandbox, models: Models, use: ModelUse, variant: Variant = "published"
) -> Scorer:
    """The scorer of travel plans that has a model convert what the parser cannot read.

    Its version depends on the model; the model calls are in its stream.

    Args:
        sandbox: the tables that plans are evaluated with.
        models: access to the model.
        use: which model, and how it is called.
        variant: the rules of evaluation, see ``evaluation.Variant``.
    """
    from ...engine.models.prompting.conversation import ModelConversation
    from ...scoring.scorers.model_scorer import ModelScorer, version_of
    from .travel_task import PROMPTS, ModelConverter

    config = {"use": msgspec.to_builtins(use), "prompts": PROMPTS.digest}
    version = version_of(_VERSION, use, PROMPTS.digest)

    def make(caller: Caller) -> Scorer:
        convert = ModelConverter(ModelConversation(caller, use))
        return travel_utility(sandbox, variant, convert=convert, version=version, config=config)

    return ModelScorer(models, make)


# --- travel planning as a task --------------------------------------------------------------------


_CONTROL: Final = shipped_rules(__package__)


def travel_task(dataset: str | None = None) -> KitTask[Sandbox]:
    """Plan a trip: a short request, hidden preferences, searches, and a shared plan (paper, 4.1).

    Args:
        dataset: a file or directory with TravelPlanner's instances and tables; None for an invented
            world, which the seed decides.

    Raises:
        InvalidInput: the data set cannot be used.
    """
    files = None if dataset is None else DatasetInstances(dataset)
    generated = lru_cache(maxsize=4)(InventedInstances)

    def source(seed: int) -> InstanceSource:
        return files or generated(seed)

    def case(name: str, seed: int) -> Case[Sandbox]:
        instance, sandbox = source(seed).instance(name)
        return Case(
            request=instance.request,
            private={"profile": list(instance.preferences)},
            truth={"trip": msgspec.to_builtins(instance.trip)},
            world=sandbox,
        )

    return KitTask(
        TaskSpec(
            name=TRAVEL,
            description="plan a trip together: hidden preferences, searches, a shared day-by-day plan",
            brief=TRAVEL_BRIEF,
            part=Part(
                role="You want to go on a trip. An agent plans it, and may ask you about it.",
                goal="A plan that has all that you want, for as little of your time as possible.",
            ),
            case=case,
            environment=ACTIONS.environment,
            utility=travel_utility,
            asking=asking_travel_utility,
            agent=travel_agent,
            control=_CONTROL,
            habits=Habits(goals=False),
            user=travel_user,
            alone=human_alone,
            changing=changing_traveller,
            best_output=lambda name, seed: source(seed).best_output(name),
            names=lambda count, seed: source(seed).names(count),
            source=lambda seed: source(seed).name,
            audit=_audit,
        )
    )


def _audit() -> Sequence[Scorer]:
    from ...users.audit import SimulatorAudit  # rules need nothing of it
    from .travel_task import TRAVEL_CHECKS

    return (SimulatorAudit(TRAVEL_CHECKS),)


# --- converts a plan that the parser cannot read, by asking a model for it in the parser's form ---


class ConversionFailed(InvalidInput):
    """The model that was to convert a plan refused, or its replies cannot be read."""


@final
class ModelConverter:
    """Converts plans by asking a model; a ``PlanConverter``.

    Args:
        conversation: what the model is asked through.
    """

    def __init__(self, conversation: ModelConversation) -> None:
        self._conversation = conversation

    async def __call__(self, text: str) -> Plan:
        """Convert.

        Raises:
            InvalidInput: the model finds no plan in the text.
            ConversionFailed: it refuses, or its replies cannot be read.
        """
        prompt = PROMPTS.fill("convert", form=TRAVEL_BRIEF.output, text=text)
        try:
            found = await self._conversation.ask(
                "convert the plan", lambda tokens: (Message(role="user", content=prompt),), _read
            )
        except ModelRefused as error:
            raise ConversionFailed(f"the plan could not be converted: {error}") from error
        if isinstance(found, UnreadableReply):
            raise ConversionFailed(f"the plan could not be converted: {found.why}")
        if not found:
            raise InvalidInput(f"{self._conversation.use.model} finds no plan in this text")
        return found


def _read(reply: ModelReply) -> Plan:
    """The plan in a reply; an empty one if the model says that there is none."""
    text = reply_text(reply)
    return () if text.strip(" .`*\"'").lower() == "no plan" else parse_plan(text)


# --- audits simulated travellers ------------------------------------------------------------------


_AT_ONCE = 2
"""Slots of which a user that reveals one wish at a time mentions one per message."""


def find_strange_wishes(said: Utterance) -> Iterator[Fault]:
    """Wishes, as far as they can be read, that the profile does not have, or has otherwise.

    Not those that others mentioned before: to accept a proposal is no invention. Nor is a hint, which
    says less than it may be read as.
    """
    wishes = {fact.slot: fact for fact in wishes_of(said.profile)}
    proposed = {fact for text in said.known for fact in understand_message(text)}
    meant = hinted(said.text, wishes.values())
    for fact in understand_message(said.text):
        wish = wishes.get(fact.slot)
        if fact.value == ANY or fact in proposed or _is_part(fact, wish) or fact.slot in meant:
            continue
        if wish is None:
            yield Fault("invention", f"the profile says nothing of {fact.slot}: {fact.value}")
        else:
            yield Fault("contradiction", f"{fact.slot} is {wish.value}, and not {fact.value}")


def find_too_much(said: Utterance) -> Iterator[Fault]:
    """Several wishes in one message, none of which was told before or asked about."""
    wishes = set(wishes_of(said.profile))
    due = {fact.slot for text in said.before for fact in understand_message(text)}
    due |= {slot for text in said.known for slot in understand_question(text)}
    fresh = [f.slot for f in understand_message(said.text) if f in wishes and f.slot not in due]
    if len(fresh) >= _AT_ONCE:
        yield Fault("several at once", f"tells {', '.join(fresh)} in one message")


TRAVEL_CHECKS: tuple[Check, ...] = (*CHECKS, find_strange_wishes, find_too_much)
"""The checks for simulated travellers."""


def _is_part(fact: Fact, wish: Fact | None) -> bool:
    """Whether a fact says no more than a wish does: one of its cuisines, say."""
    if wish is None:
        return False
    if isinstance(fact.value, tuple) and isinstance(wish.value, tuple):
        return set(fact.value) <= set(wish.value)
    return fact.value == wish.value


# --- the scorer of travel plans for recorded sessions, as ``duolog.scorers`` offers it ------------


def travel_scorer() -> TaskScorer:
    """Scores the plans of travel sessions that Duolog ran."""
    return TaskScorer(
        travel_task(),
        "duolog travel evaluate judges plans with TravelPlanner's own data, and duolog import takes "
        "the results of a published evaluation",
    )
