"""Files of trajectories, JSON Lines: one session a line, read and written as a stream.

A line looks like this, spread out here to be read::

    {"session": "s1", "group": {"agent": "one-stage", "model": "m"},
     "rounds": [{"utility": 0.5, "updated": true, "rating": 3},
                {"utility": null, "updated": false, "rating": null}],
     "tokens": {"agent": 2641, "human": 1271}, "final": 0.58, "baseline": false}

``session`` and ``rounds`` are required. In a round, ``utility`` is the newly evaluated utility, or
null if nothing new was evaluated. Null with ``"updated": true`` means that the output changed and
its score is missing: a stale point. Without ``updated``, a round counts as updated if it has a
utility. ``"final": null`` means that the final performance is missing; without ``final`` it is the
utility of the last round. ``"rounds": []`` means that the user never spoke: one pseudo-round, worth
``final``. ``"baseline": true`` marks an automated run.

More fields let a trajectory from a log pass through a file unchanged:

- in a round: ``effort`` (cumulative, by measure), ``pending``, ``stale``, ``closing``;
- in ``tokens``: ``estimated``;
- ``instance``, and ``problem``, which pairs sessions (the instance if left out, null if unknown);
- ``"silent": true`` (see ``Trajectory``);
- ``"evaluated": false`` if utility was not measured;
- ``"output": false`` if the session poses no shared output;
- ``scorer``, ``candidates``, ``judges``, ``state``, ``forked_from``, ``forked_at``;
- ``faults`` (of its simulated user, by kind), ``process`` (see ``Process``);
- ``lost`` (events that could not be recorded);
- ``late`` (numbers of rounds with events that were written late);
- ``coarse`` (versions of the output that were not compared in full).

Other fields are ignored.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from ...engine.budget import MESSAGE
from ...engine.errors import InvalidInput, TooLarge
from ...engine.events import Origin
from ...engine.log.exchange.output_file import output_file
from ...engine.rounds import Stage
from ..process import Process
from .points import Point, Trajectory

__all__ = (
    "decode_trajectory",
    "encode_trajectory",
    "is_trajectory_file",
    "read_trajectories",
    "write_trajectories",
)

_BOM = b"\xef\xbb\xbf"


class _Round(msgspec.Struct):
    utility: float | None
    updated: bool | msgspec.UnsetType = msgspec.UNSET
    rating: float | None = None
    stale: bool | msgspec.UnsetType = msgspec.UNSET
    pending: bool | msgspec.UnsetType = msgspec.UNSET
    closing: bool | msgspec.UnsetType = msgspec.UNSET
    effort: dict[str, float | None] | msgspec.UnsetType = msgspec.UNSET


class _Tokens(msgspec.Struct):
    agent: float | None = None
    human: float | None = None
    estimated: bool | msgspec.UnsetType = msgspec.UNSET


class _Line(msgspec.Struct, kw_only=True):
    session: str
    group: dict[str, str] = {}
    instance: str | msgspec.UnsetType = msgspec.UNSET
    problem: str | msgspec.UnsetType | None = msgspec.UNSET
    rounds: list[_Round]
    silent: bool | msgspec.UnsetType = msgspec.UNSET
    tokens: _Tokens = msgspec.field(default_factory=_Tokens)
    evaluated: bool | msgspec.UnsetType = msgspec.UNSET
    output: bool | msgspec.UnsetType = msgspec.UNSET
    final: float | msgspec.UnsetType | None = msgspec.UNSET
    baseline: bool = False
    scorer: str | msgspec.UnsetType = msgspec.UNSET
    candidates: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    judges: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    state: str | msgspec.UnsetType = msgspec.UNSET
    forked_from: Origin | msgspec.UnsetType = msgspec.UNSET
    forked_at: int | msgspec.UnsetType = msgspec.UNSET
    faults: dict[str, int] | msgspec.UnsetType = msgspec.UNSET
    process: Process | msgspec.UnsetType = msgspec.UNSET
    lost: float | msgspec.UnsetType = msgspec.UNSET
    late: tuple[int, ...] | msgspec.UnsetType = msgspec.UNSET
    coarse: float | msgspec.UnsetType = msgspec.UNSET


class _Sniffed(msgspec.Struct):
    session: str
    rounds: msgspec.Raw


_decoder = msgspec.json.Decoder(_Line)
_sniffer = msgspec.json.Decoder(_Sniffed)
_encoder = msgspec.json.Encoder()


def is_trajectory_file(path: str | os.PathLike[str]) -> bool:
    """Whether a file looks like one of trajectories, judged by its first line that is not blank.

    Raises:
        OSError: the file cannot be read.
    """
    with open(path, "rb") as file:
        try:
            for line in MESSAGE.lines(file):
                if text := line.removeprefix(_BOM).strip():
                    MESSAGE.decoded(text, _sniffer.decode)
                    return True
        except TooLarge:  # the read reports which line is too large, and why
            return True
        except InvalidInput:
            return False
    return False


def read_trajectories(path: str | os.PathLike[str]) -> Iterator[Trajectory]:
    """Reads a file of trajectories, line by line; blank lines are skipped.

    Args:
        path: the file, JSON Lines in UTF-8.

    Yields:
        The trajectories, in the order of the file.

    Raises:
        InvalidInput: the file cannot be read, or a line of it holds no valid trajectory; the
            message names file and line.
    """
    try:
        with open(path, "rb") as file:
            for number, line in enumerate(MESSAGE.lines(file), start=1):
                text = (line.removeprefix(_BOM) if number == 1 else line).strip()
                if not text:
                    continue
                try:
                    yield decode_trajectory(text)
                except InvalidInput as error:
                    raise InvalidInput(f"{os.fspath(path)}, line {number}: {error}") from error
    except OSError as error:
        why = error.strerror or error
        raise InvalidInput(f"cannot read trajectories from {os.fspath(path)}: {why}") from error


def write_trajectories(path: str | os.PathLike[str], trajectories: Iterable[Trajectory]) -> int:
    """Writes a file of trajectories, whole or not at all: an existing file is replaced at the end.

    Returns:
        How many were written.

    Raises:
        InvalidInput: the file cannot be written, or is a log.
    """
    count = 0
    with output_file(path) as file:
        for trajectory in trajectories:
            file.write(encode_trajectory(trajectory) + b"\n")
            count += 1
    return count


def decode_trajectory(line: bytes | str) -> Trajectory:
    """Reads one line.

    Raises:
        InvalidInput: it is not JSON, lacks a field, or a value is of a wrong type or out of range.
    """
    try:
        raw = MESSAGE.decoded(line.encode() if isinstance(line, str) else line, _decoder.decode)
    except InvalidInput as error:
        raise InvalidInput(f"invalid trajectory: {error}") from error
    points: list[Point] = []
    evaluated = raw.evaluated is not False
    standing = 0.0 if evaluated and not _unscored(raw.rounds) else None
    stage: Stage = "initial"
    for number, item in enumerate(raw.rounds, start=1):
        point = _point(item, number, standing, stage)
        points.append(point)
        standing = point.utility
        if point.updated:
            stage = "refinement"
    return Trajectory(
        session=raw.session,
        group=raw.group,
        instance="" if raw.instance is msgspec.UNSET else raw.instance,
        problem=_problem(raw),
        points=tuple(points),
        silent=raw.silent is True,
        agent_tokens=_whole(raw.tokens.agent, 0, None, "tokens.agent"),
        human_tokens=_whole(raw.tokens.human, 0, None, "tokens.human"),
        estimated=raw.tokens.estimated is True,
        evaluated=evaluated,
        output=raw.output is not False,
        final=None if raw.final is msgspec.UNSET else _within(raw.final, 0, 1, "final"),
        final_missing=raw.final is None,
        baseline=raw.baseline,
        scorer=None if raw.scorer is msgspec.UNSET else raw.scorer,
        candidates=() if raw.candidates is msgspec.UNSET else raw.candidates,
        judges=() if raw.judges is msgspec.UNSET else raw.judges,
        state="finished" if raw.state is msgspec.UNSET else raw.state,
        forked_from=None if raw.forked_from is msgspec.UNSET else raw.forked_from,
        forked_at=None if raw.forked_at is msgspec.UNSET else raw.forked_at,
        faults=_faults(raw.faults),
        process=_process(raw.process),
        lost=_count(raw.lost, "lost"),
        late=() if raw.late is msgspec.UNSET else raw.late,
        coarse=_count(raw.coarse, "coarse"),
    )


def _count(value: float | msgspec.UnsetType, name: str) -> int:
    return 0 if value is msgspec.UNSET else _whole(value, 0, None, name) or 0


def _problem(raw: _Line) -> str | None:
    """Which problem it was; a file that does not say names its problems by the instance."""
    if raw.problem is not msgspec.UNSET:
        return raw.problem or None
    return None if raw.instance is msgspec.UNSET else raw.instance or None


def encode_trajectory(trajectory: Trajectory) -> bytes:
    """Writes one line, without its end."""
    return _encoder.encode(
        _Line(
            session=trajectory.session,
            group=dict(trajectory.group),
            instance=trajectory.instance or msgspec.UNSET,
            problem=trajectory.problem
            if trajectory.problem or trajectory.instance
            else msgspec.UNSET,
            rounds=[_round(point) for point in trajectory.points],
            silent=trajectory.silent or msgspec.UNSET,
            tokens=_Tokens(
                agent=trajectory.agent_tokens,
                human=trajectory.human_tokens,
                estimated=trajectory.estimated or msgspec.UNSET,
            ),
            evaluated=msgspec.UNSET if trajectory.evaluated else False,
            output=msgspec.UNSET if trajectory.output else False,
            final=_final(trajectory),
            baseline=trajectory.baseline,
            scorer=trajectory.scorer or msgspec.UNSET,
            candidates=trajectory.candidates or msgspec.UNSET,
            judges=trajectory.judges or msgspec.UNSET,
            state=msgspec.UNSET if trajectory.state == "finished" else trajectory.state,
            forked_from=trajectory.forked_from or msgspec.UNSET,
            forked_at=trajectory.forked_at or msgspec.UNSET,
            faults=dict(trajectory.faults) or msgspec.UNSET,
            process=trajectory.process or msgspec.UNSET,
            lost=trajectory.lost or msgspec.UNSET,
            late=trajectory.late or msgspec.UNSET,
            coarse=trajectory.coarse or msgspec.UNSET,
        )
    )


def _final(trajectory: Trajectory) -> float | msgspec.UnsetType | None:
    if trajectory.final is not None or trajectory.final_missing:
        return trajectory.final
    return msgspec.UNSET


def _unscored(rounds: Sequence[_Round]) -> bool:
    """Whether the output changed, and no score of it has a value."""
    stale = any(
        bool(item.updated) if item.stale is msgspec.UNSET else item.stale for item in rounds
    )
    return stale and all(item.utility is None for item in rounds)


def _point(item: _Round, number: int, standing: float | None, stage: Stage) -> Point:
    where = f"round {number}"
    value = _within(item.utility, 0, 1, f"{where}: utility")
    updated = value is not None if item.updated is msgspec.UNSET else item.updated
    stale = updated and value is None if item.stale is msgspec.UNSET else item.stale
    if stale and value is not None:
        raise InvalidInput(
            f"{where}: a stale point cannot have a utility, but this one has {value:g}"
        )
    rating = _whole(item.rating, 1, 5, f"{where}: rating")
    if item.pending is True and rating is not None:
        raise InvalidInput(f"{where}: its rating is {rating}, so it cannot be pending")
    return Point(
        round=number,
        value=value,
        utility=standing if value is None else value,
        rating=rating,
        pending=item.pending is True,
        updated=updated,
        stale=stale,
        stage=stage,
        closing=item.closing is True and number > 1,
        effort={} if item.effort is msgspec.UNSET else item.effort,
    )


def _round(point: Point) -> _Round:
    implied = point.updated and point.value is None
    return _Round(
        utility=point.value,
        updated=point.updated,
        rating=point.rating,
        stale=msgspec.UNSET if point.stale == implied else point.stale,
        pending=point.pending or msgspec.UNSET,
        closing=point.closing or msgspec.UNSET,
        effort=dict(point.effort) or msgspec.UNSET,
    )


def _faults(given: dict[str, int] | msgspec.UnsetType) -> dict[str, int]:
    faults = {} if given is msgspec.UNSET else given
    for kind, count in faults.items():
        _within(count, 0, None, f"faults: {kind}")
    return faults


def _process(given: Process | msgspec.UnsetType) -> Process | None:
    if given is msgspec.UNSET:
        return None
    for name, value in msgspec.structs.asdict(given).items():
        for count in value.values() if isinstance(value, Mapping) else (value,):
            top = 1 if name == "initiative_entropy" else None
            _within(count, 0, top, f"process: {name}")
    return given


def _within(value: float | None, low: float, high: float | None, what: str) -> float | None:
    if value is None or (low <= value and (high is None or value <= high)):
        return value
    span = f"{low:g} or more" if high is None else f"a number from {low:g} to {high:g}"
    raise InvalidInput(f"{what} is {value:g}: give {span}, or null")


def _whole(value: float | None, low: int, high: int | None, what: str) -> int | None:
    """A whole number; 3.0 is one, since tables with gaps are often written that way."""
    if value is None:
        return None
    if not value.is_integer():
        raise InvalidInput(f"{what} is {value:g}: give a whole number, or null")
    _within(value, low, high, what)
    return int(value)
