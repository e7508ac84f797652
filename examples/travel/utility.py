"""The utility of a travel plan: mean of the commonsense and the preference pass rate (paper, 4.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from ...engine.errors import InvalidInput
from ...engine.events import JSON, SessionOpened, SnapshotTaken
from ...engine.scorers.protocol import Scorer
from ...scoring.scorers.utility import Missing, Score, SnapshotUtility
from .data.tables import Sandbox, Trip
from .evaluation import Variant, evaluate
from .plan.text import PlanConverter, read_plan
from .second_thoughts import trip_as_changed

if TYPE_CHECKING:  # only where a model is named
    from ...engine.models.gateway import Models
    from ...engine.models.prompting.conversation import ModelUse
    from ...engine.models.protocol import Caller

__all__ = ("TRAVEL", "asking_travel_utility", "travel_utility")

TRAVEL = "travel"
"""Name of the scorer; in a session's private part, the owner of the evaluator's data."""

_VERSION = "1"


def travel_utility(
    sandbox: Sandbox,
    variant: Variant = "published",
    *,
    convert: PlanConverter | None = None,
    version: str = _VERSION,
    config: JSON = None,
) -> Scorer:
    """The scorer of travel plans.

    A plan that cannot be read is missing a score, with the reason; one that satisfies nothing has 0.

    Args:
        sandbox: the tables that plans are evaluated with.
        variant: the rules of evaluation, see ``evaluation.Variant``.
        convert: reads the plans that the parser cannot read.
        version: of the scorer.
        config: settings of ``convert``.
    """

    async def score(snapshot: SnapshotTaken, opened: SessionOpened) -> Score | Missing:
        private = opened.private.get(TRAVEL)
        if not isinstance(private, Mapping) or "trip" not in private:
            return Missing("the session says nothing of the trip that its plans are judged by")
        trip = msgspec.convert(private["trip"], Trip)
        for one in opened.participants:
            if one.role == "human":  # who may have changed their mind
                trip = trip_as_changed(trip, opened.private.get(one.name))
        if not isinstance(snapshot.content, str):
            return Missing("the plan is no text")
        try:
            plan = await read_plan(snapshot.content, convert)
        except InvalidInput as error:
            return Missing(f"the plan cannot be read: {error}")
        judged = evaluate(plan, trip, sandbox, variant)
        return Score(
            judged.performance,
            {
                "commonsense": judged.commonsense_pass_rate,
                "preference": judged.preference_pass_rate,
            },
        )

    settings: dict[str, JSON] = {"variant": variant}
    if config is not None:
        settings["convert"] = config
    return SnapshotUtility(TRAVEL, version, score, config=settings)


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
    from .briefing import PROMPTS
    from .model_converter import ModelConverter

    config = {"use": msgspec.to_builtins(use), "prompts": PROMPTS.digest}
    version = version_of(_VERSION, use, PROMPTS.digest)

    def make(caller: Caller) -> Scorer:
        convert = ModelConverter(ModelConversation(caller, use))
        return travel_utility(sandbox, variant, convert=convert, version=version, config=config)

    return ModelScorer(models, make)
