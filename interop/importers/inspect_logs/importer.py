"""The importer for logs of Inspect, as archives (``.eval``) or JSON: a session for each sample and
epoch.

What the user says, the sample's input first, are messages of the human. The scores of the
evaluation are measurements of its scorers. A sample in a log is over.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, final

from ....engine.errors import InvalidInput
from ....engine.events import JSON
from ..conversation.cast import Cast
from ..conversation.steps import AGENT, HUMAN, Step
from ..conversation.transcript import Entry, Transcript, read_transcript
from ..json_sniff import Shape
from ..protocol import Found, Reading, Remark
from ..timestamps import seconds_of
from .files import Evaluation, Sample, is_archive, samples_in
from .samples import (
    ending_of,
    messages_in,
    scores_of,
    steps_of_message,
    times_of,
    usage_of_sample,
)

__all__ = ("InspectImporter",)

_NAME: Final = "inspect"


@final
class InspectImporter:
    """Reads logs of Inspect."""

    @property
    def name(self) -> str:
        """``inspect``."""
        return _NAME

    @property
    def about(self) -> str:
        """In a few words."""
        return "logs of Inspect (.eval or JSON)"

    def recognises(self, source: Path, shape: Shape | None) -> bool:
        """Whether a file is an archive of Inspect, or begins like its JSON."""
        if shape is None:
            return source.is_file() and is_archive(source)
        return shape.form == "object" and {"version", "status", "eval"} <= shape.keys

    def read(self, source: Path, reading: Reading) -> Iterator[Found]:
        """Reads the samples in a file.

        Raises:
            InvalidInput: it cannot be read.
            MissingExtra: it is compressed with Zstandard, and nothing here reads that.
        """
        for found in samples_in(source):
            if isinstance(found, Remark):
                yield found
            else:
                yield from _read(*found, reading)


def _read(evaluation: Evaluation, sample: Sample, where: str, reading: Reading) -> Iterator[Found]:
    run = evaluation.run_id or evaluation.eval_id or _NAME
    session = f"{run}-{sample.id}-{sample.epoch}"
    times = {key: seconds_of(stamp, reading.zone) for key, stamp in times_of(sample).items()}
    start = times.get("")
    if start is None:
        start = seconds_of(evaluation.created, reading.zone)
    entries: list[Entry] = []
    messages = messages_in(sample)
    for number, message in enumerate(messages, start=1):
        place = f"{where}, message {number}"
        try:
            steps = tuple(steps_of_message(message, sample.attachments or {}))
        except InvalidInput as error:
            yield Remark("problem", f"no message: {error}", place, session)
            continue
        key = message.get("tool_call_id", message.get("id"))
        entries.append(Entry(number, place, times.get(str(key)), steps))
    used: tuple[Step, ...] = tuple(usage_of_sample(evaluation, sample))
    entries.append(Entry(len(messages) + 1, where, None, (*used, ending_of(sample))))
    config: dict[str, JSON] = {"sample": f"{sample.id}/{sample.epoch}"}
    if sample.metadata:
        config["metadata"] = sample.metadata
    transcript = Transcript(
        session=session,
        format=_NAME,
        where=where,
        entries=entries,
        cast=Cast((step for entry in entries for step in entry.steps), (HUMAN, AGENT)),
        start=start,
        task=evaluation.task,
        instance=str(sample.id),
        models={AGENT: evaluation.model},
        config=config,
        scores=scores_of(sample),
    )
    yield from read_transcript(transcript, reading)
