"""A session as Markdown: its results, and its transcript by rounds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, final

from ....engine.log.contract import SessionSummary
from ....engine.records import Record
from ....engine.rounds import RoundProjector, Rounds
from ....engine.text import quantity
from ....scoring.display.records import Description, Narrator, Passage
from ....scoring.display.texts import clean, dollars, duration, inert, number, one_line
from ....scoring.index.lines import SessionLine
from ..sessions.rows import OUTCOMES, title_of

__all__ = ("SessionMarkdown",)

_FENCE: Final = "```"


@final
class SessionMarkdown:
    """Writes a session in Markdown, record by record.

    Texts of the session are quoted, so that they do not change the document around them.

    Args:
        rounds: how rounds are counted.
    """

    def __init__(self, rounds: Rounds) -> None:
        self._narrator = Narrator()
        self._projector = RoundProjector(rounds)
        self._round = 0

    def head(self, summary: SessionSummary, line: SessionLine) -> str:
        """The title and the results.

        Args:
            summary: the summary of the session.
            line: its line in lists.
        """
        return f"# {_inline(title_of(summary))}\n\n" + "\n".join(_results(summary, line)) + "\n"

    def told(self, record: Record) -> str:
        """The next record, as far as the reader may see it."""
        text = ""
        try:
            self._projector.feed(record)
            if self._projector.number != self._round:
                self._round = self._projector.number
                text = f"\n## Round {self._round}\n"
            told = _told(self._narrator.describe(record))
        except Exception as error:  # noqa: BLE001  (one record never ends the file)
            told = f"*record {record.version} cannot be shown: {_inline(str(error))}*"
        return f"{text}\n{told}\n"


def _results(summary: SessionSummary, line: SessionLine) -> Iterator[str]:
    yield f"- Session: {_inline(summary.session)}"
    for name, value in {"task": summary.task, **summary.group}.items():
        if value:
            yield f"- {_inline(name).capitalize()}: {_inline(value)}"
    outcome = OUTCOMES.get(summary.state, summary.state)
    yield f"- Outcome: {outcome.lower()}, {quantity(line.rounds, 'round')}"
    by = f" by {_inline(line.row.scorer)}" if line.row.scorer else ""
    missing = f" ({_inline(line.missing)})" if line.missing else by
    yield f"- Utility: {number(line.utility)}{missing}"
    seconds = [one for one in line.efforts("seconds") if one is not None]
    yield f"- Time of the human: {duration(sum(seconds)) if seconds else '–'}"
    yield f"- Cost of the agent: {'–' if line.cost is None else dollars(line.cost)}"
    yield f"- Median reply: {'–' if line.latency is None else duration(line.latency)}"


def _told(told: Description) -> str:
    who = f"**{_inline(told.actor)}**" if told.actor else ""
    head = " ".join(one for one in (who, _inline(told.does)) if one)
    if told.call:
        call = one_line(told.call).replace("`", "'")
        head += f" `{call}`"
    if told.value:
        head += f": {_inline(told.value)}"
    if told.failed:
        head += " (failed)"
    passages = [Passage(text=told.text, kind=told.kind), *told.details]
    texts = [_quoted(one) for one in passages if _counts(one)]
    return "\n\n".join(one for one in (head, *texts) if one)


def _counts(passage: Passage) -> bool:
    """Whether a passage says something that a reader wants: not what a program got."""
    return bool(passage.text or passage.lines) and passage.depth != "source"


def _quoted(passage: Passage) -> str:
    title = f"*{_inline(passage.title)}*\n\n" if passage.title else ""
    if passage.kind in ("json", "diff"):
        text = passage.text or "\n".join(f"{one.mark} {one.text}" for one in passage.lines)
        text = clean(text).replace(_FENCE, "'''")
        return f"{title}{_FENCE}{passage.kind}\n{text}\n{_FENCE}"
    lines = _harmless(clean(passage.text)).splitlines()
    return title + "\n".join(f"> {line}".rstrip() for line in lines)


def _inline(text: str) -> str:
    return _harmless(one_line(text))


def _harmless(text: str) -> str:
    """A text that does nothing in the document."""
    return inert(text.replace("&", "&amp;"))
