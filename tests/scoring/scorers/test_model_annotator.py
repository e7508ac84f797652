"""Labels by a model: they rate as the rules' labels do, and a reply that is none rates nothing."""

from __future__ import annotations

import pytest
from duolog.engine.errors import ModelRefused
from duolog.engine.events import ModelCalled, ProgressRated
from duolog.engine.models import ModelReply, ModelRequest, Models, ScriptedModel
from duolog.engine.models.prompting.conversation import ModelUse
from duolog.scoring.scorers.model_annotator import LABELS_JUDGE, model_labels_judge
from duolog.scoring.scorers.model_judge import model_judge
from duolog.testing.records import RecordWriter, run_scorer

USE = ModelUse(model="m")


async def rated(reply: str | ModelRefused, said: str) -> tuple[ProgressRated, list[str]]:
    prompts: list[str] = []

    def answer(request: ModelRequest) -> ModelReply | str:
        prompts.append(request.messages[0].content)
        if isinstance(reply, ModelRefused):
            raise reply
        return reply

    script = RecordWriter()
    script.opened()
    script.human("Rom bitte.")
    script.output("Ein Plan")
    script.agent("Hier ist er.")
    script.human(said)
    judge = model_labels_judge(Models(ScriptedModel(answer)), USE)
    measured = await run_scorer(judge, script.records)
    assert {type(one.event) for one in measured} <= {ModelCalled, ProgressRated}
    [found] = [one.event for one in measured if isinstance(one.event, ProgressRated)]
    return found, prompts


@pytest.mark.parametrize(
    ("reply", "rating"),
    [
        ("complaint, correction", 3),
        ("Labels: none", None),
        ("none", 4),
        ("praise", 5),
        ("halt, complaint, repeat\nbecause it says so", 1),
        ("", None),
        ("angry", None),
        ("none, praise", None),
    ],
)
async def test_a_round_is_rated_by_the_labels_of_the_reply(reply: str, rating: int | None) -> None:
    found, prompts = await rated(reply, "Das ist falsch.")
    assert found.rating == rating
    assert (found.missing is None) == (rating is not None)
    assert "Das ist falsch." in prompts[0]
    assert "Hier ist er." in prompts[0]
    assert found.scorer is not None
    assert found.scorer.name == LABELS_JUDGE


async def test_a_refusal_leaves_the_rating_missing() -> None:
    found, _ = await rated(ModelRefused("m", "no"), "Das ist falsch.")
    assert found.rating is None
    assert found.missing


def test_its_prompt_changes_no_other_judge() -> None:
    models = Models(ScriptedModel(lambda request: "3"))
    assert model_judge(models, USE).ref.version != model_labels_judge(models, USE).ref.version
