"""A second implementation of the numbers of a report, to hold the first one and others to.

It is written from the definitions (``docs/measures.md``) in the standard library alone, and shares no code with
the rest of Duolog. It is slow and plain: each function is one definition. From the records that ``duolog export``
writes, it gives utility, gain and drop of the report's table; ``reference_effort`` gives the effort::

    duolog export study.db > study.jsonl
    python reference.py study.jsonl

``tests/golden`` holds logs and their numbers. Intervals are not covered, nor are ratings by a judge that counts rounds
otherwise than the report does.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum
from typing import Any, Literal

__all__ = ("Session", "read_session", "report")

Convention = Literal["formal", "paper"]
Json = dict[str, Any]
Numbers = list[float | None]
How = tuple[Convention, str | None, str]  # the convention, and whose utility and ratings count

ACTS = ("MessageSent", "ActionTaken", "SnapshotTaken", "ApprovalAsked", "ApprovalGiven")
PENDING = 0  # in the place of a rating that is still to come
NEVER, LEFT = 100, ("abandoned", "tolerance")  # a tolerance without end; how a human leaves


@dataclass
class Session:
    """The facts read from a session's records. Lists hold an item per round, from round 1."""

    opened: Json
    config: Json  # the settings in its opening
    convention: Convention
    rounds: Mapping[int, int]  # by version of the trace
    state: str = "open"
    origin: str | None = None  # of a fork
    baseline: bool = False  # an automated run
    output: bool = True  # it poses a shared output
    evaluated: bool = True
    closing: bool = False  # its last round is closing
    lost: bool = False  # events could not be recorded
    utility: Numbers = field(default_factory=list)  # U_k; None if every score failed
    value: Numbers = field(default_factory=list)  # new measurements
    stale: list[bool] = field(default_factory=list)  # the output changed, its score is missing
    updated: list[bool] = field(default_factory=list)  # an agent updated the output
    rating: list[int | None] = field(default_factory=list)  # None is missing, see also PENDING

    @property
    def last(self) -> int:
        """K, the last round that counts."""
        return len(self.utility) - self.closing


def is_act(one: Json) -> bool:
    """Whether a record of the trace is an act."""
    return one["kind"] in ACTS and one["role"] in ("human", "agent")


def place_rounds(trace: Sequence[Json], opened: Json, convention: Convention) -> dict[int, int]:
    """The round of each version of the trace."""
    requested = bool((opened.get("request") or "").strip())
    acts = [one for one in trace if is_act(one)]
    first = next((at for at, one in enumerate(acts) if one["role"] == "human"), len(acts))
    greets = not requested and all(one["kind"] == "MessageSent" for one in acts[:first])
    greeting = {one["version"] for one in acts[:first]} if greets else set()
    number, handed_over, begun = 1, False, requested
    found: dict[int, int] = {}
    for one in trace:
        if is_act(one) and one["role"] == "agent":
            handed_over = handed_over or one["version"] not in greeting
            begun = True
        elif is_act(one):
            opens = handed_over
            if convention == "paper":
                words = one["kind"] in ("MessageSent", "ApprovalAsked", "ApprovalGiven")
                turn = words or one["body"].get("collaborative", False)
                opens = turn and (begun or one["kind"] != "MessageSent")
            number += opens
            handed_over, begun = handed_over and not opens, True
        found[one["version"]] = number
    return found


def about(measured: Json, rounds: Mapping[int, int], convention: Convention) -> int | None:
    """The round that a score or a rating is about: by a version of the trace, else by its number."""
    for version in (measured.get("snapshot"), measured.get("until")):
        if version is not None:
            return rounds.get(version)
    number = measured.get("round") or 0
    usual = "handoff" if convention == "formal" else "human-turn"
    same = measured.get("rounds", "handoff") == usual
    return number if same and 1 <= number <= max(rounds.values()) else None


def is_blank(snapshot: Json) -> bool:
    """Whether an output holds nothing."""
    if snapshot.get("files") is not None:
        return not snapshot["files"]
    content = snapshot.get("content")
    return not content.strip() if isinstance(content, str) else not content and content != 0


def name_of(stream: str) -> str:
    """The scorer's name: all before the last @."""
    return stream.rpartition("@")[0] or stream


def newness(stream: str) -> tuple[list[tuple[int, int, str]], str]:
    """Sorts versions: numbers as numbers, words before the end of a version."""
    parts = re.findall(r"\d+|[^\W\d_]+", stream.rpartition("@")[2])
    key = [(2, int(one), "") if one.isdigit() else (0, 0, one.lower()) for one in parts]
    return [*key, (1, 0, "")], stream


def newest(streams: Iterable[str], wanted: str | None) -> str | None:
    """The exact stream that is wanted, else the newest version of the scorer, first by name."""
    fits = [one for one in streams if wanted in (None, one, name_of(one))]
    first = min(map(name_of, fits), default="")
    mine = [one for one in fits if name_of(one) == first]
    return wanted if wanted in fits else max(mine, key=newness, default=None)


def value_of(score: Json) -> float | None:
    """The value of a score, if it is a utility."""
    value: float | None = score.get("value")
    return value if value is not None and 0 <= value <= 1 else None


def own_utility(scores: Sequence[Json], drafts: Sequence[int]) -> tuple[float | None, bool]:
    """A round's utility by its scores and those of its drafts, and whether that is stale."""
    found: dict[bool, tuple[int, float]] = {}
    for one in scores:
        value, of_round = value_of(one), one.get("snapshot") is None
        at = (one.get("until") or 0) if of_round else one["snapshot"]
        if value is not None and (of_round not in found or at >= found[of_round][0]):
            found[of_round] = at, value
    whole = any(one.get("snapshot") is None for one in scores)
    if True in found:
        return found[True][1], False
    if not drafts:
        return None, whole
    if False not in found:
        return None, True
    return found[False][1], whole or found[False][0] != max(drafts)


def measure(session: Session, records: Sequence[Json], asked: str | None) -> None:
    """Fills in the utility of each round: of the scorer asked for, else named, else the only one."""
    rounds, config = session.rounds, session.config
    drafts = [one for one in records if one["kind"] == "SnapshotTaken" and is_act(one)]
    versions = {one["version"] for one in drafts}
    scores: dict[str, list[tuple[int, Json]]] = {}
    for one in records:
        if one["kind"] == "UtilityScored":
            at = about(one["body"], rounds, session.convention)
            if at is not None and one["body"].get("snapshot") in (None, *versions):
                scores.setdefault(one["stream"], []).append((at, one["body"]))
    named = config.get("utility") if isinstance(config.get("utility"), str) else None
    undecided = (asked or named) is None and len(set(map(name_of, scores))) > 1
    mine = [] if undecided else scores.get(newest(scores, asked or named) or "", [])
    configured = named is not None and asked in (None, named, name_of(named))
    output = any(not is_blank(one["body"]) for one in drafts)
    failed = all(value_of(score) is None for _, score in mine) if mine else output
    session.evaluated = bool(mine) or configured
    own = []
    for k in range(1, max(rounds.values()) + 1):
        here = [version for version in versions if rounds[version] == k]
        value, stale = own_utility([score for at, score in mine if at == k], here)
        own.append((value, stale and session.evaluated))
    if session.closing:  # measurements made in it belong to the round before
        own[-2] = own[-2] if own[-1][0] is None else (own[-1][0], False)
        own[-1] = None, False
    standing = 0.0 if session.evaluated and not failed else None
    for value, stale in own:
        standing = standing if value is None else value
        session.utility.append(standing)
        session.value.append(value)
        session.stale.append(stale)
    digest = None
    session.updated = [False] * len(own)
    for one in drafts:
        if one["role"] == "agent" and not is_blank(one["body"]) and one["body"]["digest"] != digest:
            session.updated[rounds[one["version"]] - 1] = True
        digest = one["body"]["digest"]


def rate(session: Session, records: Sequence[Json], judge: str) -> None:
    """Fills in the rating of each round. A later rating of a round by its rater replaces the first."""
    rounds = session.rounds
    number = due = 0  # the current round, and the last of which a rating is due
    given: dict[str, dict[int, tuple[int, int | None, set[str]]]] = {"human": {}}
    broken: set[str] = set()
    for one in records:
        trace, event = one["stream"] == "trace", one["body"]
        if trace:
            number = rounds[one["version"]]
            if one["kind"] == "SessionClosed":
                due = number
            elif one["kind"] == "MessageSent" and one["role"] == "human":
                due = max(due, number - 1)
        if one["kind"] == "ScorerFailed":
            given.setdefault(one["stream"], {})
            broken.add(one["stream"])
        if one["kind"] != "ProgressRated" or (trace and one["role"] != "human"):
            continue
        known = {version: k for version, k in rounds.items() if k <= number}
        at = about(event, known, session.convention)
        mine = given.setdefault("human" if trace else one["stream"], {})
        before, _, raters = mine.get(at or 0, (0, None, set()))
        if at is None or (trace and at <= due and one["actor"] not in raters):
            continue  # too late: the human has answered already
        until = event.get("until") or before
        if at not in mine or until >= before:
            mine[at] = until, event.get("rating"), {*raters, one["actor"]}
    human, streams = given.pop("human"), given
    wanted = judge if judge not in ("auto", "human", "none") else None
    rated = [stream for stream, mine in streams.items() if mine]
    chosen = newest(rated, wanted) or newest(streams, wanted)
    found = streams.get(chosen or "", {}) if judge not in ("human", "none") else {}
    found |= human if judge in ("auto", "human") else {}  # the human's own come first
    for k in range(1, max(rounds.values()) + 1):
        absent = judge in ("auto", "none") or (k <= due and (judge == "human" or chosen in broken))
        session.rating.append(found[k][1] if k in found else None if absent else PENDING)


def labels_of(session: Session) -> dict[str, str]:
    """The labels of a session."""
    found = {"task": session.opened["task"]}
    for one in reversed(session.opened["participants"]):
        if one["role"] == "agent":
            found |= {"agent": one.get("policy") or one["name"], "model": one.get("model")}
        elif one["role"] == "human":
            found |= {"user": one.get("persona") or one.get("policy") or "person"}
    group = session.config.get("group")
    own = {name: str(value) for name, value in (group or {}).items() if value is not None}
    return {name: value for name, value in (found | own).items() if value is not None}


def read_session(records: Iterable[Json], how: How) -> Session | None:
    """Reads the records of one session; None if it was forgotten, or never opened."""
    convention, utility, judge = how
    records = sorted(records, key=lambda one: one["position"])
    trace = [one for one in records if one["stream"] == "trace"]
    if not trace or trace[0]["kind"] != "SessionOpened" or trace[0].get("body") is None:
        return None
    opened = trace[0]["body"]
    config, rounds = opened.get("config", {}), place_rounds(trace, opened, convention)
    session = Session(opened, config, convention, rounds)
    session.origin = (opened.get("forked_from") or {}).get("session")
    session.lost = any(one["kind"] == "RecordsLost" for one in records)
    acts = [one for one in trace if is_act(one)]
    said, parts = config.get("baseline"), opened["participants"]
    alone = said if isinstance(said, bool) else all(one["role"] != "human" for one in parts)
    session.baseline = alone and not any(one["role"] == "human" for one in acts)
    imported = config.get("imported")
    if "output" in config:
        session.output = config["output"] is not None
    elif isinstance(imported, dict) and imported.get("format") != "cogym":
        session.output = any(one["kind"] == "SnapshotTaken" for one in acts)
    for one in trace:
        if one["kind"] == "SessionClosed":
            session.state = one["body"]["reason"]
            last = [x for x in acts if rounds[x["version"]] == rounds[one["version"]] > 1]
            words = {(x["role"], x["kind"]) for x in last} == {("human", "MessageSent")}
            session.closing = convention == "formal" and words
    named = config.get("judge") if judge == "auto" else judge
    measure(session, records, utility)
    rate(session, records, named if isinstance(named, str) else judge)
    return session


def mean(values: Iterable[float | None]) -> float | None:
    """The mean of the values that there are."""
    known = [value for value in values if value is not None]
    return fsum(known) / len(known) if known else None


def share(part: float | None, whole: float | None) -> float | None:
    """A number relative to another one."""
    return part / whole if part is not None and whole else None


def reached(ratings: Sequence[int | None], tau: int) -> int | None:
    """k_τ: the round in which τ unproductive rounds in a row are reached. A pending rating waits."""
    run = 0
    for k, rating in enumerate(ratings, start=1):
        if rating == PENDING:
            return None
        run = run + 1 if rating is not None and rating < 3 else 0
        if run == tau:
            return k
    return None


def numbers_of(one: Session, cut: int, taus: Iterable[int]) -> Json | None:
    """The numbers of a session; None without utility."""
    paper = one.convention == "paper"
    if not one.evaluated or (paper and not cut) or (not paper and one.utility[0] is None):
        return None
    walk = [0.0 if u is None else u for u in one.utility[: one.last]]
    first: float | None = walk[next((k for k, v in enumerate(one.value) if v is not None), 0)]
    if not paper:
        at = next((k for k, updated in enumerate(one.updated[: one.last]) if updated), None)
        first = 0.0 if at is None else None if one.stale[at] else walk[at]
        first = first if one.output else None
    best, end = max(walk), walk[-1]
    gain = None if first is None else best - first
    found = {"first": first, "final": end, "overall": best, "gain": gain}
    valued = [k for k, v in enumerate(one.value, start=1) if v is not None and k <= one.last]
    result_only = not one.output and one.last > 1 and valued == [one.last] and not any(one.updated)
    ratings = [r if r != PENDING or not paper else None for r in one.rating[: one.last]]
    rated = any(ratings)
    for tau in (*taus, NEVER):
        at = reached(ratings, tau)
        if paper:
            silent = len(walk) == 1
            at = min(len(walk), cut) if silent or at is None or at > cut else at - 1
            found[f"stop {tau}"] = walk[at - 1] if at else None
            continue
        stays = end if one.state not in LEFT and (rated or len(walk) <= tau) else None
        stop = walk[at - 1] if at is not None else stays
        found[f"stop {tau}"] = None if result_only or one.lost else stop
    return found | {"rated": rated}


def row(sessions: Sequence[Session], convention: Convention, taus: Sequence[int]) -> Json:
    """The numbers of one group of collaborating sessions."""
    paper = convention == "paper"
    lengths = sorted(len(one.utility) for one in sessions if len(one.utility) > 1)
    cut = max(lengths[int(len(lengths) * 0.05) : int(len(lengths) * 0.95)], default=0)
    found = [numbers_of(one, cut, taus) for one in sessions]
    mine = [one for one in found if one is not None]
    made = {name: mean(one[name] for one in mine) for name in ("first", "final", "overall", "gain")}
    drops = {}
    rated = any(one["rated"] for one in mine)
    for tau in taus:
        kept = [one for one in mine if rated and one[f"stop {tau}"] is not None]
        never = [one[f"stop {NEVER}"] for one in mine] if paper else [one["final"] for one in kept]
        at, end = mean(one[f"stop {tau}"] for one in kept), mean(never)
        drop = None if at is None or end is None else at - end
        drops[str(tau)] = {"abs": drop, "rel": share(drop, end), "sessions": len(kept)}
    return {
        "utility": {name: made[name] for name in ("first", "final", "overall")},
        "gain": {"abs": made["gain"], "rel": share(made["gain"], made["first"])},
        "drop": drops,
    }


def performance(one: Session) -> float | None:
    """The final utility of an automated run; None if the run broke off."""
    broken = one.baseline and one.state in ("failed", "cancelled", "open")
    return None if broken or not one.evaluated else one.utility[one.last - 1]


def report(
    records: Iterable[Json],
    convention: Convention = "formal",
    taus: Sequence[int] = (1, 2, 3),
    utility: str | None = None,
    judge: str = "auto",
) -> list[Json]:
    """The rows of a report: one per group of sessions with the same agent, model, user and task."""
    by_session: dict[str, list[Json]] = {}
    for one in records:
        by_session.setdefault(one["session"], []).append(one)
    read = [read_session(some, (convention, utility, judge)) for some in by_session.values()]
    sessions = [one for one in read if one is not None and one.origin not in by_session]
    names = ("agent", "model", "user", "task")
    groups: dict[tuple[bool, tuple[tuple[str, str], ...]], list[Session]] = {}
    for session in sessions:
        known = labels_of(session)
        labels = tuple((name, known[name]) for name in names if name in known)
        groups.setdefault((session.baseline, labels), []).append(session)
    rows = []
    for (baseline, labels), some in sorted(groups.items()):
        made: Json = {"group": dict(labels), "sessions": len(some), "baseline": baseline}
        if baseline:
            made["utility"] = {"final": mean(map(performance, some))}
        else:
            same = [pair for pair in labels if pair[0] not in ("agent", "user")]
            runs = [one for one in sessions if one.baseline]
            fits = [o for o in runs if all(labels_of(o).get(n, v) == v for n, v in same)]
            made |= row(some, convention, taus) | {"reference": mean(map(performance, fits))}
        made["all_rounds"] = mean(None if one.lost else len(one.utility) for one in some)
        rows.append(made)
    return rows


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as lines:
        sys.stdout.write(json.dumps(report(map(json.loads, lines)), indent=1) + "\n")
