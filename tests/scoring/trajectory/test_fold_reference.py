"""The fold, held to a slow reference that follows the definitions word by word, on traces made up by chance."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pytest
from duolog.engine.events import (
    ACTS,
    ActionTaken,
    ApprovalAsked,
    MessageSent,
    ModelCalled,
    SessionOpened,
    SnapshotTaken,
    UtilityScored,
)
from duolog.engine.records import TRACE, Record
from duolog.engine.rounds import Rounds
from duolog.engine.text import new_lines, new_words
from duolog.scoring.trajectory.fold import TrajectoryFold
from duolog.scoring.trajectory.options import Options
from duolog.scoring.trajectory.points import NO_SCORE, NOT_EVALUATED, undecided
from duolog.scoring.trajectory.token_estimate import estimate_tokens
from duolog.scoring.trajectory.updates import (
    RatingUpdated,
    RoundClosed,
    RoundOpened,
    StopAdvice,
    StopWithdrawn,
    Update,
    UtilityUpdated,
)
from duolog.scoring.turns import is_vague
from made_up import made_up

COLLABORATIVE = ("MessageSent", "ApprovalAsked", "ApprovalGiven")

# --- the definitions -----------------------------------------------------------------------------


class Expected(NamedTuple):
    """A round, as the definitions have it."""

    closing: bool
    updated: bool
    refined: bool
    value: float | None
    stale: bool
    utility: float | None
    effort: Mapping[str, float | None]


def acts_of(records: Sequence[Record], *roles: str) -> list[Record]:
    return [one for one in records if one.kind in ACTS and one.role in roles]


def rounds_of(trace: Sequence[Record], opened: SessionOpened, rounds: Rounds) -> dict[int, int]:
    """The round of each trace version."""
    requested = bool((opened.request or "").strip())
    acts = acts_of(trace, "human", "agent")
    first = next((at for at, act in enumerate(acts) if act.role == "human"), None)
    before = acts[:first]
    greets = not requested and first is not None and {one.kind for one in before} <= {"MessageSent"}
    greeting = {one.version for one in before} if greets else set[int]()
    number, found = 1, dict[int, int]()
    for record in trace:
        if record in acts_of([record], "human"):
            if rounds == "handoff":
                since = [one for one in acts if found.get(one.version) == number]
                opens = any(x.role == "agent" and x.version not in greeting for x in since)
            else:
                event = record.event
                shared = isinstance(event, ActionTaken) and event.collaborative
                nobody = not any(one.version < record.version for one in acts)
                asks_first = nobody and not requested and record.kind == "MessageSent"
                opens = (record.kind in COLLABORATIVE or shared) and not asks_first
            number += opens
        found[record.version] = number
    return found


def expected(records: Sequence[Record], rounds: Rounds) -> tuple[str | None, list[Expected]]:
    """Why utility is missing, and each round."""
    trace = [one for one in records if one.stream == TRACE]
    opened = trace[0].event
    assert isinstance(opened, SessionOpened)
    of = rounds_of(trace, opened, rounds)
    numbers = range(1, max(of.values()) + 1)
    parts = {k: [one for one in trace if of[one.version] == k] for k in numbers}
    closing = 0
    if rounds == "handoff" and trace[-1].kind == "SessionClosed" and len(numbers) > 1:
        last = acts_of(parts[numbers[-1]], "human", "agent")
        words = all(one.role == "human" and one.kind == "MessageSent" for one in last)
        closing = numbers[-1] if words else 0
    drafts = [(one, one.event) for one in trace if isinstance(one.event, SnapshotTaken)]
    updated = {
        of[one.version]
        for at, (one, event) in enumerate(drafts)
        if one.role == "agent"
        and str(event.content).strip()
        and (at == 0 or drafts[at - 1][1].digest != event.digest)
    }
    scores = [(one.stream, one.event) for one in records if isinstance(one.event, UtilityScored)]
    streams = {stream for stream, _ in scores}
    stream = "u@1" if "utility" in opened.config else "".join(streams) if len(streams) == 1 else ""
    mine = [event for name, event in scores if name == stream]
    output = any(str(event.content).strip() for _, event in drafts)
    missing = why_missing(mine, configured="utility" in opened.config, output=output)
    if not stream and streams:
        missing = undecided(["u", "v"])

    def own(k: int) -> tuple[float | None, bool]:
        whole = [one for one in mine if one.until is not None and of[one.until] == k]
        valued = [one for one in whole if one.value is not None]
        if valued:
            return max(enumerate(valued), key=lambda pair: (pair[1].until, pair[0]))[1].value, False
        last = max((one.version for one, _ in drafts if of[one.version] == k), default=None)
        if last is None:
            return None, bool(whole)
        if not mine:
            return None, "utility" in opened.config
        known = {one.snapshot: one.value for one in mine if one.value is not None and one.snapshot}
        here = [version for version in known if of[version] == k]
        if not here:
            return None, True
        return known[max(here)], bool(whole) or max(here) != last

    owned = {k: own(k) for k in numbers}
    if closing:
        if owned[closing][0] is not None:
            owned[closing - 1] = owned[closing]
        owned[closing] = None, False
    standing = None if missing else 0.0
    found: list[Expected] = []
    for k in numbers:
        value, stale = owned[k]
        standing = standing if value is None else value
        refined = any(number < k for number in updated)
        effort = effort_of(trace, opened, of, k)
        found.append(Expected(k == closing, k in updated, refined, value, stale, standing, effort))
    return missing, found


def why_missing(mine: Sequence[UtilityScored], *, configured: bool, output: bool) -> str | None:
    """The reason why utility is missing."""
    if mine:
        return NO_SCORE if all(event.value is None for event in mine) else None
    if not configured:
        return NOT_EVALUATED
    return NO_SCORE if output else None


def effort_of(
    trace: Sequence[Record], opened: SessionOpened, of: Mapping[int, int], upto: int
) -> dict[str, float | None]:
    """The effort at the end of a round, from all that happened until then."""
    part = [one for one in trace if of[one.version] <= upto]
    human = acts_of(part, "human")
    led = {of[one.version] for one in human} | ({1} if (opened.request or "").strip() else set())
    output: list[str] = []
    seen: list[str] = []
    written = read = vague = 0
    made = {"ann": 0, "bot": 0}
    for one in acts_of(part, "human", "agent"):
        event = one.event
        fresh = ""
        if one.role == "human":
            read += estimate_tokens(new_lines(seen, output))
        if isinstance(event, SnapshotTaken):
            after = str(event.content).splitlines()
            fresh = (new_words if one.role == "human" else new_lines)(output, after)
            output = after
        elif isinstance(event, MessageSent | ApprovalAsked):
            fresh = event.text if isinstance(event, MessageSent) else event.question
            read += estimate_tokens(fresh) if one.role == "agent" else 0
            vague += one.role == "human" and one.kind == "MessageSent" and is_vague(fresh)
        written += estimate_tokens(fresh) if one.role == "human" else 0
        made[one.actor] += estimate_tokens(fresh)
        seen = output if one.role == "human" else seen
    calls = [(one.actor, one.event) for one in part]
    counted = {
        who: [
            event.tokens.completion
            for actor, event in calls
            if isinstance(event, ModelCalled) and actor == who
            if event.tokens.completion is not None
        ]
        for who in made
    }
    tokens = {who: sum(counted[who]) if counted[who] else made[who] for who in made}
    return {
        "rounds": len(led),
        "acts": len(human),
        "tokens_written": written,
        "tokens_read": read + estimate_tokens(new_lines(seen, output)),
        "deferrals": vague,
        "agent_tokens": tokens["bot"],
        "human_tokens": tokens["ann"],
    }


# --- the fold ------------------------------------------------------------------------------------


@pytest.mark.parametrize("rounds", ["handoff", "human-turn"])
def test_the_fold_is_what_the_definitions_say(rounds: Rounds) -> None:
    for seed in range(400):
        records = made_up(random.Random(seed))
        fold = TrajectoryFold("s", Options(rounds=rounds), emit=False)
        for record in records:
            fold.feed(record)
        points = fold.trajectory().points
        missing, reference = expected(records, rounds)
        assert fold.utility_missing == missing, seed
        assert [
            Expected(
                point.closing,
                point.updated,
                point.stage == "refinement",
                point.value,
                point.stale,
                point.utility,
                {name: point.effort[name] for name in reference[0].effort},
            )
            for point in points
        ] == reference, seed


@pytest.mark.parametrize("rounds", ["handoff", "human-turn"])
def test_the_updates_add_up_to_the_trajectory_at_any_moment(rounds: Rounds) -> None:
    for seed in range(200):
        records = made_up(random.Random(seed))
        fold = TrajectoryFold("s", Options(rounds=rounds))
        known = Known()
        for record in records:
            for update in fold.feed(record):
                known.take(update)
            points = [point for point in fold.trajectory().points if not point.closing]
            assert [known.utility[p.round] for p in points] == [p.utility for p in points], seed
            ratings = [known.ratings.get(p.round, None) for p in points]
            assert ratings == [p.rating for p in points], seed
            assert known.stops == fold.stops, seed


class Known:
    """The state of a follower of the updates."""

    def __init__(self) -> None:
        self.utility: dict[int, float | None] = {}
        self.ratings: dict[int, int | None] = {}
        self.stops: dict[int, int] = {}

    def take(self, update: Update) -> None:
        match update:
            case RoundOpened():
                self.utility[update.round] = update.utility
            case RoundClosed():
                self.utility[update.round] = update.point.utility
            case UtilityUpdated():
                numbers = range(update.round, update.through + 1)
                self.utility |= dict.fromkeys(numbers, update.utility)
            case RatingUpdated():
                self.ratings[update.round] = update.rating
            case StopAdvice():
                assert update.tau not in self.stops
                self.stops[update.tau] = update.round
            case StopWithdrawn():
                assert self.stops.pop(update.tau) == update.round
            case _:
                pass
