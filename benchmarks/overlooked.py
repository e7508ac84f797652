"""How many of several questions in one message people leave unanswered: the table of ``docs/sensitivity.md``.

    python -P -m duolog.benchmarks.overlooked --multiwoz val.json test.json --star dialogues

- ``--multiwoz``: files of MultiWOZ 2.1 (MIT) with dialogue acts of both sides, as in ``data/multiwoz/*.json.zip``
  of thu-coai/ConvLab-2.
  Questions are the slots that a message of the clerk requests, and answers the slots that the next message informs about.
  The annotators missed some answers; times, days, numbers and "it doesn't matter" are therefore also found in the text.
- ``--star``: the directory ``dialogues`` of RasaHQ/STAR (MIT). ``overlooked.tsv`` has our labels of its messages: the number
  of the wizard's event, the questions in it, and how many of them the next message of the person answers.
- Labels of public logs of coding agents (specstoryai/getspecstory, Apache-2.0) are in the same file; no data are needed.

"I don't know", "any" and "you decide" are answers. Not counted: alternatives ("another day or time?"), open questions
("Any preferences?"), and questions whether there is anything else. A further question is any question in a message but one.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
from duolog.scoring.columns.table import Floats
from duolog.scoring.metrics.sample import draws, interval

__all__ = ("Asked", "main", "shares")

LABELS = Path(__file__).with_suffix(".tsv")
PLAYED = (["bank"], ["spaceship"])
"""Scenarios of STAR in which people act a character who has forgotten everything, or is about to suffocate."""

_RESAMPLES = 2000
_ALIASES = {"Leave": "Time", "Arrive": "Time"}
_ASKS: Mapping[str, str] = {
    "Area": "area|part|side|where|location",
    "Day": r"\bdays?\b|\bdate|\bnight\b|when",
    "Depart": "from|depart|leav|pick|place|station",
    "Dest": r"\bto\b|destination|going|headed|arriv|place|station",
    "Food": "food|cuisine|eat|type",
    "Internet": "internet|wifi",
    "Parking": "parking",
    "People": "people|party|size|guests|many|group",
    "Price": "price|cost|budget|expensive",
    "Stars": r"\bstars?\b|rating",
    "Stay": "night|long|days|stay|length",
    "Time": "time|when|leave|arriv|hour",
    "Type": "type|kind",
}
"""Words in a message that asks about a slot. An annotated request without them is an open question."""
_ANSWERS: Mapping[str, str] = {
    "Day": "monday|tuesday|wednesday|thursday|friday|saturday|sunday|same day",
    "Depart": r"pick me up|from the \w+",
    "Dest": r"drop me|to (get|go) to ",
    "People": r"\d+ (people|person|of us|guests)|(people|person|for me|just me|myself|alone)\b",
    "Stay": r"(\d+|one|two|three|four|five) (nights?|days?)",
    "Time": r"\d{1,2} ?: ?\d\d|(after|around|by|at|before) \d{1,2}\b",
}
_ANY = "matter|do n't care|don't care|no preference|not picky|do n't have a preference|any is fine|surprise me"
_ALTERNATIVES = re.compile(r"\bor\b|\w ?/ ?\w|\betc\b", re.IGNORECASE)


class Asked(msgspec.Struct, frozen=True):
    """A message with several questions to a person, and their reply.

    Attributes:
        group: The person or conversation that the message belongs to; intervals resample groups.
        asked: How many questions it asks, at least two.
        answered: How many of them the reply answers.
    """

    group: str
    asked: int
    answered: int

    @property
    def counts(self) -> tuple[int, int, int, int, int]:
        """What ``shares`` adds up: the message, its further questions, and of a reply that answers one, the reply, its
        further questions and those that it leaves unanswered.
        """
        further, replies = self.asked - 1, self.answered > 0
        return 1, further, replies, replies * further, replies * (self.asked - self.answered)


def shares(counts: Floats) -> Floats:
    """Shares of unanswered further questions, over all replies and over those that answer one, and of replies that answer none.

    Args:
        counts: ``Asked.counts`` of messages, added up; in the last of any number of dimensions.
    """
    messages, further, replies, engaged, missed = np.moveaxis(counts, -1, 0)
    with np.errstate(invalid="ignore"):  # a resample may lack replies that answer any
        parts = (missed + further - engaged) / further, missed / engaged, 1 - replies / messages
    return np.stack(parts, axis=-1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints a row for each source; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="overlooked", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--multiwoz", nargs="*", type=Path, default=[], help="val.json, test.json")
    parser.add_argument("--star", type=Path, help="the directory with the dialogues of STAR")
    given = parser.parse_args(arguments)
    try:
        _table(given.multiwoz, given.star)
    except (OSError, ValueError, LookupError) as error:
        parser.error(f"cannot read the data: {error}")
    return 0


def _table(multiwoz: Sequence[Path], star: Path | None) -> None:
    print("| source | messages | further questions | unanswered | if one is answered | none is |")
    print("|---|---|---|---|---|---|")
    if multiwoz:
        _row("MultiWOZ", [one for path in multiwoz for one in _multiwoz(path)])
    if star is not None:
        labelled = [*_star(star)]
        _row("STAR", [one for one, played in labelled if not played])
        _row("STAR, with played characters", [one for one, _ in labelled])
    _row("coding agents", [Asked(name, *numbers) for name, _, *numbers in _labels("specstory")])


def _row(name: str, messages: Sequence[Asked]) -> None:
    """Prints the shares with 95 % percentile bootstrap intervals over groups."""
    groups: dict[str, list[Asked]] = {}
    for one in messages:
        groups.setdefault(one.group, []).append(one)
    sums = np.array([np.sum([one.counts for one in group], axis=0) for group in groups.values()])
    drawn = np.concatenate(
        [shares(times @ sums) for times in draws(len(groups), _RESAMPLES, "overlooked")]
    )
    cells = []
    for value, resampled in zip(shares(sums.sum(axis=0)), drawn.T, strict=True):
        bounds = interval(resampled)
        around = "" if bounds is None else f" ({bounds[0]:.2f} to {bounds[1]:.2f})"
        cells.append(f"{value:.2f}{around}")
    print(f"| {name} | {len(messages)} | {sums[:, 1].sum()} | {' | '.join(cells)} |")


def _multiwoz(path: Path) -> Iterator[Asked]:
    """The messages of the clerk that request several slots, with the acts of the reply."""
    for name, dialogue in json.loads(path.read_text("utf-8")).items():
        turns = dialogue["log"]
        for clerk, person in zip(turns[1::2], turns[2::2], strict=False):
            said, reply = clerk["text"].lower(), person["text"].lower()
            slots = {
                slot
                for slot in _slots(clerk["dialog_act"], "-Request")
                if re.search(_ASKS.get(slot, "(?!)"), said)
            }
            if {"Day", "Time"} <= slots and not re.search(r"\bday|\bdate|time", said):
                slots.remove("Time")  # "When?" is one question
                reply = re.sub(_ANSWERS["Time"], "same day", reply)
            if len(slots) < 2 or _ALTERNATIVES.search(said):
                continue
            found = slots & _slots(person["dialog_act"], "-Inform")
            found |= {slot for slot in slots & {*_ANSWERS} if re.search(_ANSWERS[slot], reply)}
            if re.search(_ANY, reply):
                found = slots
            yield Asked(name, len(slots), len(found))


def _slots(acts: Mapping[str, Iterable[Sequence[str]]], kind: str) -> set[str]:
    return {
        _ALIASES.get(slot, slot)
        for act, pairs in acts.items()
        if act.endswith(kind)
        for slot, _ in pairs
    }


def _star(directory: Path) -> Iterator[tuple[Asked, bool]]:
    """The labelled messages of STAR by person, and whether the person acted a character."""
    for name, event, asked, answered in _labels("star"):
        dialogue = json.loads((directory / f"{name}.json").read_text("utf-8"))
        if dialogue["Events"][int(event)]["Agent"] != "Wizard":
            raise ValueError(f"{name}.json: event {event} is not a message of the wizard")
        played = dialogue["Scenario"]["Domains"] in PLAYED
        yield Asked(dialogue["AnonymizedUserWorkerID"], asked, answered), played


def _labels(source: str) -> Iterator[tuple[str, str, int, int]]:
    for line in LABELS.read_text("utf-8").splitlines()[1:]:
        of, name, message, asked, answered = line.split("\t")
        if of == source:
            yield name, message, int(asked), int(answered)


if __name__ == "__main__":
    raise SystemExit(main())
