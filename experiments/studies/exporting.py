"""The export of a study: tidy tables, a codebook of their columns, and a data card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, final

import anyio.to_thread

from ..._version import __version__
from ...engine.errors import InvalidInput
from ...engine.log.contract import EventLog
from ...engine.log.exchange.output_file import OutputRules, output_file
from ...engine.text import quantity
from ...scoring.columns.log import folded
from ...scoring.columns.rows import trajectory_of
from ...scoring.report.tidy import tidy_rows, write_csv
from .assigning import orders
from .instruments import Item, scores_of
from .people import People, Person
from .plan import Study

__all__ = ("Export", "export_study")

_NEW: Final = OutputRules((), replace=False)
_DIGITS: Final = 3

Cell = str | int | float | bool | None
Row = dict[str, Cell]

_SESSION: Final = {
    "session": "id of the session, in the study's log",
    "agent": "kind of agent",
    "user": "who sat in the human's seat",
    "model": "model behind the agent; rules if there was none",
    "task": "task of the session",
    "persona": "persona of a simulated user; empty for people",
    "instance": "instance of the task",
    "problem": "digest of what the session was about; equal for the same problem",
    "seed": "seed of the world",
    "baseline": "whether it ran without a person; always false here",
    "state": "how it ended: finished (the participant was satisfied), abandoned, limit (time was up), open, ...",
    "rounds": "rounds, by handoff",
    "evaluated": "whether utility was measured",
    "first": "utility at the agent's first version of the output, 0 to 1",
    "final": "utility at the end, 0 to 1",
    "overall": "greatest utility, 0 to 1",
    "gain": "overall less first",
    "stale_rounds": "rounds whose version of the output was not scored",
    "ratings": "rounds that the person rated",
    "mean_rating": "mean of these ratings, 1 (a step back) to 5 (a great deal)",
    "estimated_tokens": "whether token counts are estimated from texts",
}
_SCORES: Final = {
    "raw": "raw NASA-TLX: mean of the six scales, 0 to 100 (Hart 2006); empty if a scale was skipped",
    "weighted": "weighted NASA-TLX: scales weighted by the 15 pairs, 0 to 100 (Hart and Staveland 1988); "
    "empty if a scale or pair was skipped or the pairs were not asked",
    "mean": "mean of the ASQ's three items, 1 (satisfied) to 7 (Lewis 1991); empty if one was skipped",
}


@final
class Export(NamedTuple):
    """What was written: the files, and how many participants and answers they hold."""

    files: tuple[Path, ...]
    participants: int
    answers: int


async def export_study(
    people: People, sessions: EventLog, directory: Path, rules: OutputRules = _NEW
) -> Export:
    """Writes the tables of a study, without recruiters' ids and without those who withdrew.

    ``participants.csv`` has a row per participant, ``conditions.csv`` one per participant and condition,
    ``answers.csv`` one per answer. ``codebook.csv`` says what each column and item means, and ``DATA_CARD.md``
    how the data came about.

    Args:
        people: the participants, read.
        sessions: the log of their sessions.
        directory: where the files go; it is made if it is not there.
        rules: what may be replaced.

    Raises:
        InvalidInput: nobody took part yet, or a file cannot be written.
    """
    study = people.study
    there = [one for one in people.all() if one.assigned is not None and not one.withdrew]
    if not there:
        raise InvalidInput("there is nothing to export: participants have yet to agree")
    begun = [event.session for one in there for event in one.begun.values()]
    found = [one async for one in folded(sessions, sessions=begun)]
    seeds = {one.session.session: one.session.seed for one in found}
    tidy = tidy_rows([trajectory_of(one) for one in found], "sessions", seeds=seeds)
    outcomes = {str(row["session"]): row for row in tidy}
    lasted = {one.session: max(one.last - one.opened, 0.0) async for one in sessions.sessions()}
    participants = [await _participant(people, one) for one in there]
    conditions = [row for one in there for row in _conditions(study, one, outcomes, lasted)]
    conditions = _same_columns(conditions)
    answers = [row for one in there for row in _answers(study, one)]
    tables: dict[str, Sequence[Mapping[str, Cell]]] = {
        "participants.csv": participants,
        "conditions.csv": conditions,
        "answers.csv": answers or [dict.fromkeys(_ANSWERS)],
    }
    tables["codebook.csv"] = _codebook(study, tables)
    card = _card(people, len(participants), len(answers))
    files = await anyio.to_thread.run_sync(_write, directory, tables, card, rules)
    return Export(files, len(participants), len(answers))


def _write(
    directory: Path,
    tables: Mapping[str, Sequence[Mapping[str, Cell]]],
    card: str,
    rules: OutputRules,
) -> tuple[Path, ...]:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"cannot make {directory}: {error.strerror or error}") from error
    written = []
    for name, rows in tables.items():
        with output_file(directory / name, rules) as file:
            write_csv([dict(row) for row in rows], file)
        written.append(directory / name)
    with output_file(directory / "DATA_CARD.md", rules) as file:
        file.write(card.encode())
    return (*written, directory / "DATA_CARD.md")


async def _participant(people: People, one: Person) -> Row:
    assigned = one.assigned
    step = await people.step(one.name)
    last = max((answered.at for answered in one.answers.values()), default=None)
    done = step.kind == "done"
    return {
        "participant": one.name,
        "order": " > ".join(assigned.conditions if assigned else ()),
        "finished": done,
        "steps_done": step.at,
        "steps": step.of,
        "minutes": round((last - one.since) / 60, _DIGITS) if done and last is not None else None,
    }


def _conditions(
    study: Study,
    one: Person,
    outcomes: Mapping[str, Mapping[str, Cell]],
    lasted: Mapping[str, float],
) -> list[Row]:
    assigned = one.assigned
    assert assigned is not None
    rows: list[Row] = []
    for place, name in enumerate(assigned.conditions, start=1):
        begun = one.begun.get(place)
        row: Row = {
            "participant": one.name,
            "place": place,
            "condition": name,
            "begun": begun is not None,
            "minutes": None,
        }
        if begun is not None:
            row |= outcomes.get(begun.session, {})
            row["minutes"] = round(lasted.get(begun.session, 0.0) / 60, _DIGITS)
        for asked in study.asked("condition"):
            given = one.answers.get((asked.name, place))
            for score, value in scores_of(asked.kind, given.event.answers if given else {}).items():
                row[f"{asked.name}_{score}"] = None if value is None else round(value, _DIGITS)
        rows.append(row)
    return rows


def _same_columns(rows: Sequence[Row]) -> list[Row]:
    """The rows with all columns of each, scores of questionnaires last."""
    columns = list(
        dict.fromkeys(name for row in sorted(rows, key=len, reverse=True) for name in row)
    )
    return [{name: row.get(name) for name in columns} for row in rows]


_ANSWERS: Final = {
    "participant": "pseudonym",
    "questionnaire": "name of the questionnaire",
    "when": "before, condition (after a condition) or end",
    "place": "number of the condition that it is about; empty if it is about none",
    "condition": "name of that condition",
    "item": "name of the item",
    "value": "the answer; empty if it was skipped",
    "minute": "minutes from consent to the answer",
}


def _answers(study: Study, one: Person) -> list[Row]:
    assert one.assigned is not None
    kinds = {asked.name: asked for asked in study.questionnaire}
    rows: list[Row] = []
    for (name, place), answered in sorted(one.answers.items(), key=lambda pair: pair[1].at):
        asked = kinds.get(name)
        known = [item.name for item in asked.items] if asked else []
        given = answered.event.answers
        for item in dict.fromkeys([*known, *given]):
            value = given.get(item)
            rows.append(
                {
                    "participant": one.name,
                    "questionnaire": name,
                    "when": asked.when if asked else "",
                    "place": place,
                    "condition": one.assigned.conditions[place - 1] if place else None,
                    "item": item,
                    "value": value if isinstance(value, str | int | float) else None,
                    "minute": round((answered.at - one.since) / 60, _DIGITS),
                }
            )
    return rows


_PARTICIPANTS: Final = {
    "participant": "pseudonym",
    "order": "conditions in the order in which they were met",
    "finished": "whether all steps were done",
    "steps_done": "steps that were done",
    "steps": "steps that there were",
    "minutes": "minutes from consent to the last answer, of those who finished",
}
_CONDITIONS: Final = {
    "participant": "pseudonym",
    "place": "which part of their participation it was, from 1",
    "condition": "name of the condition",
    "begun": "whether it was begun",
    "minutes": "minutes from the opening of the session to its last event",
}


def _codebook(study: Study, tables: Mapping[str, Sequence[Mapping[str, Cell]]]) -> list[Row]:
    rows: list[Row] = []

    def add(table: str, name: str, meaning: str, values: str = "") -> None:
        rows.append({"table": table, "name": name, "meaning": meaning, "values": values})

    for table, own in (("participants", _PARTICIPANTS), ("answers", _ANSWERS)):
        for name, meaning in own.items():
            add(table, name, meaning)
    scores = {
        f"{asked.name}_{score}": text
        for asked in study.asked("condition")
        for score, text in _SCORES.items()
    }
    for name in tables["conditions.csv"][0]:
        effort = f"effort of the person: {name[7:].replace('_', ' ')}, over the session"
        usual = effort if name.startswith("effort_") else "a label of the session"
        known = _CONDITIONS.get(name) or _SESSION.get(name) or scores.get(name) or usual
        add("conditions", name, known)
    for asked in study.questionnaire:
        for item in asked.items:
            add(f"answers: {asked.name}", item.name, item.text, _values(item))
    return rows


def _values(item: Item) -> str:
    if item.type == "scale":
        ends = f" ({item.labels[0]} to {item.labels[1]})" if item.labels else ""
        step = f" in steps of {item.step}" if item.step > 1 else ""
        return f"{item.points[0]} to {item.points[-1]}{step}{ends}"
    if item.type == "choice":
        return " | ".join(item.choices)
    return item.type


def _card(people: People, participants: int, answers: int) -> str:
    study, counts = people.study, people.counts()
    design = (
        "each participant met all conditions"
        if study.design == "within"
        else "each met one condition"
    )
    drawn = (
        "orders of a balanced Latin square in turn"
        if study.assignment != "random"
        else ("drawn at random among the orders used least so far")
    )
    used = "\n".join(
        f"- {' > '.join(order)}: {counts.orders.get(', '.join(order), 0)}"
        for order in orders(study)
    )
    conditions = "\n".join(
        f"- `{one.name}`: task {one.task}, agent {one.agent}, "
        f"{f'model {one.model}' if one.model else 'on rules'}, "
        f"{f'at most {one.minutes:g} minutes' if one.minutes else 'no time limit'}; "
        f"begun {quantity(counts.begun.get(one.name, 0), 'time')}"
        for one in study.condition
    )
    asked = "\n".join(
        f"- `{one.name}` ({one.kind}, {quantity(len(one.items), 'item')}): {_WHEN[one.when]}"
        for one in study.questionnaire
    )
    return f"""# Data card: {study.title}

Study `{study.name}`, exported by Duolog {__version__}.

## What there is

{quantity(participants, "participant")} who agreed and did not withdraw ({counts.finished} of them finished),
{quantity(answers, "answer")}. {counts.declined} declined, and {counts.withdrawn} withdrew: what was recorded of them is
erased, and nothing of it is here.

| file | a row is |
|---|---|
| `participants.csv` | a participant |
| `conditions.csv` | a participant in a condition, with outcome, effort and scores |
| `answers.csv` | an answer; skipped items have an empty value |
| `codebook.csv` | the meaning of a column or item |

## Design

{len(study.condition)} conditions; {design}. Assignment: {drawn}. Seed {study.seed}.

{conditions}

Participants by order of conditions:

{used}

Questionnaires:

{asked or "- none"}

## Privacy

Participants are named by pseudonyms. The ids by which they were recruited are not in these files, and neither is
what they wrote in sessions. Answers in words may name people: read them before you share them.

## What participants agreed to

{_quoted(study.consent)}
"""


_WHEN: Final = {
    "before": "before the first condition",
    "condition": "after each condition",
    "end": "at the end",
}


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.strip().splitlines())
