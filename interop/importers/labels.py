"""Labels that a person gives to imported sessions, to complete or correct the source. The person's
labels take precedence, since a source often names roles only (``assistant``). The source's own task
and instance stay in the session's ``config["imported"]["said"]``, and its agent in the
participants.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import final

import msgspec

from ...engine.errors import InvalidInput
from ...engine.events import JSON, SessionOpened
from .json_sniff import Shape
from .protocol import Foreign, Found, Importer, Reading

__all__ = ("LabelledImporter", "Labels", "labels_from")


@final
class Labels(msgspec.Struct, frozen=True, kw_only=True):
    """The labels of all sessions of a source.

    Attributes:
        task: name of the task; None for the source's own.
        instance: the task instance; None for the source's own.
        group: labels to group by: ``agent`` and any others.
    """

    task: str | None = None
    instance: str | None = None
    group: Mapping[str, str] = {}


def labels_from(texts: Sequence[str]) -> Labels | None:
    """The labels that options give, as ``key=value``; None if they give none.

    Raises:
        InvalidInput: a label without a key or a value, or given twice.
    """
    group: dict[str, str] = {}
    for text in texts:
        key, _, value = (part.strip() for part in text.partition("="))
        if not key or not value:
            raise InvalidInput(f"--label expects key=value, got {text!r}")
        if key in group:
            raise InvalidInput(f"--label gives {key!r} twice")
        group[key] = value
    if not group:
        return None
    task, instance = group.pop("task", None), group.pop("instance", None)
    return Labels(task=task, instance=instance, group=group)


@final
class LabelledImporter:
    """Reads what another importer reads, and labels its sessions.

    Args:
        importer: the other one.
        labels: the labels of all sessions.
    """

    def __init__(self, importer: Importer, labels: Labels) -> None:
        self._importer = importer
        self._labels = labels

    @property
    def name(self) -> str:
        """The format, as the other importer has it."""
        return self._importer.name

    @property
    def about(self) -> str:
        """The format in a few words."""
        return self._importer.about

    def recognises(self, source: Path, shape: Shape | None) -> bool:
        """Whether the other importer recognises a source."""
        return self._importer.recognises(source, shape)

    def read(self, source: Path, reading: Reading) -> Iterator[Found]:
        """Reads all sessions, with their openings labelled.

        Raises:
            InvalidInput: the source cannot be read.
        """
        for found in self._importer.read(source, reading):
            if isinstance(found, Foreign) and isinstance(found.draft.event, SessionOpened):
                opened = self._labelled(found.draft.event)
                yield found._replace(draft=msgspec.structs.replace(found.draft, event=opened))
            else:
                yield found

    def _labelled(self, opened: SessionOpened) -> SessionOpened:
        labels = self._labels
        config: dict[str, JSON] = dict(opened.config)
        if labels.group:
            config["group"] = {**_object(config.get("group")), **labels.group}
        task = opened.task if labels.task is None else labels.task
        instance = opened.instance if labels.instance is None else labels.instance
        said: dict[str, JSON] = {
            name: before
            for name, before, now in (
                ("task", opened.task, task),
                ("instance", opened.instance, instance),
            )
            if before != now
        }
        if said:
            config["imported"] = {**_object(config.get("imported")), "said": said}
        problem = opened.problem if labels.instance is None else labels.instance
        return msgspec.structs.replace(
            opened, task=task, instance=instance, problem=problem, config=config
        )


def _object(value: JSON) -> Mapping[str, JSON]:
    return value if isinstance(value, Mapping) else {}
