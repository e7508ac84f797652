"""What actors on models are shown of a task, from text files beside its code."""

from __future__ import annotations

from collections.abc import Mapping

from ...engine.events import JSON
from ...engine.models.prompting.prompts import load_prompts
from ...engine.task import Brief

__all__ = ("load_brief",)


def load_brief(
    package: str, *, schema: Mapping[str, JSON] | None = None, media_type: str = "text/plain"
) -> Brief:
    """The brief of a task: ``prompts/task.md`` describes it, ``prompts/output.md`` its output.

    Args:
        package: of the task: ``__package__``.
        schema: JSON Schema of the output; None where it is a text.
        media_type: of the output.

    Raises:
        InvalidInput: one of the files is not there.
    """
    prompts = load_prompts(package)
    return Brief(
        description=prompts.fill("task"),
        output=prompts.fill("output"),
        schema={"type": "string"} if schema is None else schema,
        media_type=media_type,
    )
