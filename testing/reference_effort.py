"""A second implementation of the effort in a report's table; ``reference`` covers utility, gain and drop.

It is written from the definitions (``docs/measures.md``) in the standard library alone, and shares no code with
the rest of Duolog. From the records that ``duolog export`` writes, it gives minutes and tokens of each group::

    duolog export study.db > study.jsonl
    python reference_effort.py study.jsonl

If lines repeat, an edit may have several shortest diffs, so tokens that rest on such an edit may differ from the
report's by some percent; all else is equal to 1e-9. Not covered are faults of simulated users, and edits that take too
long to compare.
"""

from __future__ import annotations

import json
import re
import sys
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import fsum
from typing import Any

__all__ = ("Meter", "effort_of_session", "report_effort")

Json = dict[str, Any]
Chain = tuple[tuple[int, int], Any]  # a pair, and the chain before it or None
Files = dict[str, list[str]]  # the lines of an output by path; without files, the path is ""

ACTS = ("MessageSent", "ActionTaken", "SnapshotTaken", "ApprovalAsked", "ApprovalGiven")
TEXTS = {"MessageSent": "text", "ApprovalAsked": "question", "ApprovalGiven": "comment"}
LABELS = ("agent", "model", "user", "task")
CAP = 300.0  # seconds that count at most between two acts on a real clock


def tokens_of(text: str) -> int:
    """About how many tokens a text has, by its letters, digits and bytes."""
    size, gaps = len(text.encode("utf-8", "surrogatepass")), text.count(" ") + text.count("\n")
    others = len(re.findall(r"[!-@\[-`{-~]", text))
    letters = len(text) - others - gaps
    estimate = 0.3 * (gaps + 1) + 0.17 * letters + 0.62 * others + 0.35 * (size - len(text))
    return (int(estimate + 0.5) or 1) if text else 0


def words_of(text: str) -> int:
    """About how many words a text has, to be read or typed."""
    return text.count(" ") + text.count("\n") + 1 if text else 0


def is_edit(content: object) -> bool:
    """Whether a content is the edit of one file, as logs of earlier versions have it."""
    return isinstance(content, dict) and content.keys() == {"path", "text", "diff"}


def lines_of(snapshot: Json, before: Files) -> Files:
    """An output in lines, by path; files that a snapshot does not carry are as before."""
    content, files = snapshot["content"], snapshot.get("files")
    if files is not None:
        return {p: content[p].splitlines() if p in content else before.get(p, []) for p in files}
    if is_edit(content):
        kept = {path: lines for path, lines in before.items() if path}
        return kept | {content["path"]: content["text"].splitlines()}
    if not isinstance(content, str):
        content = json.dumps(content, indent=1, ensure_ascii=False)
    return {"": content.splitlines()}


def common(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """The pairs of lines that two texts have in common, in order.

    Lines that begin and end both are first, then lines that occur once in each, in the longest sequence that is in
    order in both; then the same between those. What is left there is a longest common sequence.
    """
    size = min(len(old), len(new))
    head = next((k for k in range(size) if old[k] != new[k]), size)
    rest = size - head
    tail = next((k for k in range(rest) if old[-1 - k] != new[-1 - k]), rest)
    found = [(k, k) for k in range(head)]
    a, b = old[head : len(old) - tail], new[head : len(new) - tail]
    once = [line for line, times in Counter(a).items() if times == 1 and b.count(line) == 1]
    pairs = longest([(a.index(line), b.index(line)) for line in once])
    if pairs:
        low = new_low = 0
        for at, new_at in [*pairs, (len(a), len(b))]:
            between = common(a[low:at], b[new_low:new_at])
            found += [(head + low + x, head + new_low + y) for x, y in between]
            found += [(head + at, head + new_at)] if at < len(a) else []
            low, new_low = at + 1, new_at + 1
    else:
        same = [(x, y) for x, line in enumerate(a) for y, other in enumerate(b) if line == other]
        found += [(head + x, head + y) for x, y in longest(same)]
    return found + [(len(old) - k, len(new) - k) for k in range(tail, 0, -1)]


def longest(pairs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest sequence of pairs that rise in both places."""
    ends: list[int] = []  # by length, the least end of a sequence that long
    chains: list[Chain] = []  # and the sequence, from its end on
    for x, y in sorted(pairs, key=lambda pair: (pair[0], -pair[1])):
        length = bisect_left(ends, y)
        ends[length : length + 1] = [y]
        chains[length : length + 1] = [((x, y), chains[length - 1] if length else None)]
    found = []
    chain = chains[-1] if chains else None
    while chain is not None:
        pair, chain = chain
        found.append(pair)
    return found[::-1]


def diff(old: Sequence[str], new: Sequence[str]) -> tuple[list[str], list[str]]:
    """The lines that a diff adds and removes, in order."""
    pairs = common(old, new)
    kept, new_kept = {x for x, _ in pairs}, {y for _, y in pairs}
    added = [line for y, line in enumerate(new) if y not in new_kept]
    return added, [line for x, line in enumerate(old) if x not in kept]


def added(old: Files, new: Files) -> list[str]:
    """The lines that a diff of two outputs adds, file by file: these have to be read."""
    return [line for path, lines in new.items() for line in diff(old.get(path, []), lines)[0]]


def written(old: Files, new: Files) -> str:
    """The words of added lines less those of removed ones, file by file: the text that was written."""
    texts = []
    for path, lines in new.items():
        fresh, gone = diff(old.get(path, []), lines)
        left, words = Counter(" ".join(gone).split()), []
        for word in " ".join(fresh).split():
            words += [] if left[word] > 0 else [word]
            left[word] -= 1
        texts.append(" ".join(words) if gone else "\n".join(fresh))
    return "\n".join(text for text in texts if text)


def shown_diffs(snapshot: Json, old: Files, new: Files) -> Files:
    """The lines that diffs add which the human was shown of an edit, by path."""
    content, diffs = snapshot["content"], snapshot.get("shown", {})
    if is_edit(content):
        diffs = diffs or {content["path"]: content["diff"]}
    found = {p: diffs[p].splitlines() for p in new if p in diffs and new[p] != old.get(p)}
    return {
        path: [line[1:] for line in lines if line[:1] == "+" and line[:4] != "+++ "]
        for path, lines in found.items()
        if any(line.startswith("@@") for line in lines)
    }


class Meter:
    """The effort of one session, act by act."""

    def __init__(self, opened: Json) -> None:
        people = [one["name"] for one in opened["participants"] if one["role"] == "human"]
        timing = opened.get("config", {}).get("timing") or {}
        self.people = {*people}
        self.virtual = opened.get("clock", "utc") == "virtual"
        self.alone = bool(people) and len(people) == len(opened["participants"])
        self.modelled = self.virtual and not self.alone  # reading and typing take modelled time
        self.per_read = 60 / timing.get("read_wpm", 238) if self.modelled else 0.0
        self.per_typed = 60 / timing.get("type_wpm", 52) if self.modelled else 0.0
        self.timed = self.modelled and "imported" not in opened.get("config", {})
        self.since = 0.0 if self.virtual and self.alone else None  # when the human's turn began
        self.began = self.now = 0.0  # when this stretch of time began, and the latest time
        self.acted: float | None = (
            None  # the time of the human's latest act, if nothing came after it
        )
        self.seen: Files = {}  # the output as a human last saw it
        self.latest: Files = {}
        self.digest = ""
        self.seconds, self.read, self.written = 0.0, 0, 0
        self.work = 0.0  # reading and typing since the last act of a human
        self.made: dict[tuple[str, str], int] = {}  # tokens of texts, by role and actor
        self.counted: dict[tuple[str, str], int] = {}  # tokens by the reports of model calls

    def reads(self, text: str) -> None:
        """A human reads a text."""
        self.read += tokens_of(text)
        self.work += words_of(text) * self.per_read

    def catches_up(self) -> None:
        """A human reads what is new in the output."""
        if self.seen != self.latest:
            self.reads("\n".join(added(self.seen, self.latest)))
        self.seen = self.latest

    def human(self, one: Json) -> str:
        """A human acts; returns what they wrote."""
        self.catches_up()
        if self.since is not None:
            waited = max(one["time"] - self.since, 0.0)
            self.seconds += waited if self.virtual else min(waited, CAP)
        self.since = one["time"] if self.alone else None
        text: str = one["body"].get(TEXTS.get(one["kind"], ""), "")
        if one["kind"] == "SnapshotTaken" and one["body"]["digest"] != self.digest:
            before, self.latest = self.latest, lines_of(one["body"], self.latest)
            self.digest, text = one["body"]["digest"], written(before, self.latest)
            self.seen = self.latest
        self.written += tokens_of(text)
        self.work += words_of(text) * self.per_typed
        return text

    def agent(self, one: Json) -> str:
        """An agent acts; returns what it wrote."""
        event = one["body"]
        self.since = self.since if self.virtual else one["time"]
        if one["kind"] != "SnapshotTaken":
            text: str = event.get(TEXTS.get(one["kind"], ""), "")
            to = {*event.get("to", ())}
            self.reads(text if not to or not self.people or to & self.people else "")
            return text
        if event["digest"] == self.digest:
            return ""
        before, self.latest = self.latest, lines_of(event, self.latest)
        self.digest = event["digest"]
        shown = shown_diffs(event, before, self.latest)
        rest = {path: lines for path, lines in self.latest.items() if path not in shown}
        for path, lines in shown.items():
            missed = diff(self.seen.get(path, []), before.get(path, []))[0]
            self.reads("\n".join(missed + lines))
            self.seen = self.seen | {path: self.latest[path]}
        return "\n".join([line for lines in shown.values() for line in lines] + added(before, rest))

    def spent(self) -> float:
        """The seconds so far: of reading and typing between two acts of humans, what that time allows."""
        until = self.now if self.acted is None else self.acted
        return self.seconds + (min(self.work, until - self.began) if self.timed else self.work)

    def passes(self, one: Json, by_human: bool) -> None:
        """Time passes up to an act; the first one after acts of humans begins another stretch of time."""
        if self.acted is not None and not (by_human and one["time"] <= self.acted):
            self.seconds = self.spent()
            self.work, self.began, self.acted = 0.0, self.acted, None
        self.now = max(self.now, one["time"])
        self.acted = self.now if by_human else None

    def take(self, one: Json) -> None:
        """Takes the next record of the trace."""
        event, who = one["body"], (one["role"], one["actor"])
        if one["kind"] == "SessionClosed" and self.acted is None:
            self.now = max(self.now, one["time"])
        if one["role"] not in ("human", "agent"):
            return
        if one["kind"] in ACTS:
            self.passes(one, one["role"] == "human")
            text = self.human(one) if one["role"] == "human" else self.agent(one)
            self.made[who] = self.made.get(who, 0) + tokens_of(text)
        elif one["kind"] == "ModelCalled":
            completion = (event.get("tokens") or {}).get("completion")
            if completion is not None:
                self.counted[who] = self.counted.get(who, 0) + completion
        elif one["kind"] == "DraftDropped" and one["role"] == "human":
            self.passes(one, False)
            self.work += event["seconds"] if self.modelled else 0.0

    def generated(self, role: str) -> int:
        """Tokens that one side generated: as its models counted them, else those of its texts."""
        return sum(n for (side, _), n in (self.made | self.counted).items() if side == role)


def effort_of_session(trace: Iterable[Json]) -> dict[str, float]:
    """The effort at the end of a session, from its trace in order."""
    records = list(trace)
    meter = Meter(records[0]["body"])
    for one in records:
        meter.take(one)
    meter.catches_up()
    return {
        "seconds": meter.spent(),
        "tokens_read": meter.read,
        "tokens_written": meter.written,
        "agent_tokens": meter.generated("agent"),
        "human_tokens": meter.generated("human"),
    }


def labels_of(opened: Json) -> tuple[tuple[str, str], ...]:
    """The labels that a report groups by."""
    found = {"task": opened["task"]}
    for one in reversed(opened["participants"]):
        if one["role"] == "agent":
            found |= {"agent": one.get("policy") or one["name"], "model": one.get("model")}
        elif one["role"] == "human":
            found |= {"user": one.get("persona") or one.get("policy") or "person"}
    group = opened.get("config", {}).get("group") or {}
    found |= {name: str(value) for name, value in group.items() if value is not None}
    return tuple((name, found[name]) for name in LABELS if found.get(name) is not None)


def is_baseline(trace: Sequence[Json]) -> bool:
    """Whether a session is an automated run."""
    said = trace[0]["body"].get("config", {}).get("baseline")
    parts = trace[0]["body"]["participants"]
    alone = said if isinstance(said, bool) else all(one["role"] != "human" for one in parts)
    return alone and not any(one["kind"] in ACTS and one["role"] == "human" for one in trace)


def mean(values: Sequence[float]) -> float | None:
    """The mean of the values; None if there are none."""
    return fsum(values) / len(values) if values else None


def row(some: Sequence[Mapping[str, float]]) -> Json:
    """The effort of a group of sessions."""
    names = ("seconds", "tokens_read", "tokens_written", "agent_tokens", "human_tokens")
    found = {name: mean([one[name] for one in some]) for name in names}
    agent, human = found.pop("agent_tokens"), found.pop("human_tokens")
    ratio = agent / human if agent is not None and human else None
    return {"agent_tokens": agent, "human_tokens": human, "ratio": ratio, "measures": found}


def report_effort(records: Iterable[Json]) -> list[Json]:
    """The effort of each row of a report; sessions with lost events are in none."""
    sessions: dict[str, list[Json]] = {}
    for one in sorted(records, key=lambda one: one["position"]):
        sessions.setdefault(one["session"], []).append(one)
    groups: dict[tuple[bool, tuple[tuple[str, str], ...]], list[dict[str, float]]] = {}
    for some in sessions.values():
        trace = [one for one in some if one["stream"] == "trace"]
        if not trace or trace[0]["kind"] != "SessionOpened" or trace[0].get("body") is None:
            continue
        origin = (trace[0]["body"].get("forked_from") or {}).get("session")
        if origin not in sessions:
            group = groups.setdefault((is_baseline(trace), labels_of(trace[0]["body"])), [])
            if not any(one["kind"] == "RecordsLost" for one in some):
                group.append(effort_of_session(trace))
    return [
        {"group": dict(labels), "baseline": baseline, "effort": row(some)}
        for (baseline, labels), some in sorted(groups.items())
    ]


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as lines:
        sys.stdout.write(json.dumps(report_effort(map(json.loads, lines)), indent=1) + "\n")
