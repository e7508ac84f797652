"""The scorers that Duolog offers under ``duolog.scorers``, but for those of its tasks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from ...engine.errors import InvalidInput
from ...engine.models.gateway import Models
from ...engine.models.prompting.conversation import ModelUse
from ...engine.scorers.protocol import Scorer
from .criterion import Criterion
from .feedback import FeedbackUtility
from .model_annotator import model_labels_judge
from .model_judge import model_judge
from .progress import rule_judge
from .registry import ScorerPlugin, ScoringSetting
from .resolution import ResolutionUtility
from .retention import RetentionUtility
from .rubric import conversation_rubric, rubric_utility

__all__ = (
    "CHAT_RUBRIC",
    "RUBRIC",
    "chat_rubric",
    "feedback",
    "judge_by_labels",
    "judge_by_model",
    "judge_by_rules",
    "resolution",
    "retention",
    "rubric",
)

RUBRIC: Final = (
    Criterion(name="request", description="It does what the request asks for."),
    Criterion(name="complete", description="Nothing that is needed is missing."),
    Criterion(name="correct", description="What it says is right, and fits together."),
    Criterion(name="usable", description="The human could use it as it stands."),
)
"""The default rubric."""

CHAT_RUBRIC: Final = (
    Criterion(name="settled", description="What the person came for is dealt with by now."),
    Criterion(name="correct", description="What the agent says is right, and fits together."),
    Criterion(name="to the point", description="The agent answers what it was asked, clearly."),
    Criterion(
        name="sparing", description="The person had to explain and repeat no more than needed."
    ),
)
"""The default rubric for conversations without an output."""


@final
class _Plugin:
    def __init__(
        self, make: Callable[[ScoringSetting], Scorer], *, asks_model: bool = False
    ) -> None:
        self._make = make
        self.asks_model = asks_model

    def make(self, setting: ScoringSetting) -> Scorer:
        return self._make(setting)


def feedback() -> ScorerPlugin:
    """Thumbs, and the share of the agent's work that people kept."""
    return _Plugin(lambda setting: FeedbackUtility())


def retention() -> ScorerPlugin:
    """How much of the agent's draft survives the human's later edits."""
    return _Plugin(lambda setting: RetentionUtility())


def resolution() -> ScorerPlugin:
    """Whether the human's words say that the request is settled."""
    return _Plugin(lambda setting: ResolutionUtility(rounds=setting.rounds))


def judge_by_rules() -> ScorerPlugin:
    """Progress of each round, by rules."""
    return _Plugin(lambda setting: rule_judge(setting.rounds))


def judge_by_model() -> ScorerPlugin:
    """Progress of each round, by a model."""

    def make(setting: ScoringSetting) -> Scorer:
        models, use = _model(setting)
        return model_judge(models, use, rounds=setting.rounds)

    return _Plugin(make, asks_model=True)


def judge_by_labels() -> ScorerPlugin:
    """Progress of each round, by labels that a model gives the human's next message."""

    def make(setting: ScoringSetting) -> Scorer:
        models, use = _model(setting)
        return model_labels_judge(models, use, rounds=setting.rounds)

    return _Plugin(make, asks_model=True)


def rubric() -> ScorerPlugin:
    """The utility of each snapshot by a rubric, by a model."""

    def make(setting: ScoringSetting) -> Scorer:
        models, use = _model(setting)
        return rubric_utility(setting.criteria or RUBRIC, models, use)

    return _Plugin(make, asks_model=True)


def chat_rubric() -> ScorerPlugin:
    """The utility of a conversation without an output by a rubric, by a model."""

    def make(setting: ScoringSetting) -> Scorer:
        models, use = _model(setting)
        criteria = setting.criteria or CHAT_RUBRIC
        return conversation_rubric(criteria, models, use, rounds=setting.rounds)

    return _Plugin(make, asks_model=True)


def _model(setting: ScoringSetting) -> tuple[Models, ModelUse]:
    if setting.models is None or setting.use is None:
        raise InvalidInput("this scorer asks a model, and none is named")
    return setting.models, setting.use
