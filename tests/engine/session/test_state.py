"""The state of a trace, and copies of it on which commands are tried out."""

from __future__ import annotations

import random
from collections.abc import Sequence

from duolog.engine.errors import InvalidInput
from duolog.engine.records import TRACE, Record
from duolog.engine.session.state import TraceState
from made_up import made_up


def fed(records: Sequence[Record]) -> TraceState:
    state = TraceState("s")
    for record in records:
        state.feed(record)
    return state


def seen(state: TraceState) -> tuple[object, ...]:
    """All that a state says, but for callers' ids, which a copy does not know."""
    return (
        *(state.version, state.first, state.time, state.snapshot, dict(state.files)),
        *(list(state.in_flight), sorted(state.asked), state.closed, state.detail, state.acts),
        *(state.rounds.current, state.rounds.snapshot, state.rounds.stage, state.rounds.acted),
        *(rated(state, of) for of in range(1, state.version + 1)),
    )


def rated(state: TraceState, of: int) -> object:
    try:
        return state.rated_round(of=of), state.rated_round(state.rounds.current.number)
    except InvalidInput as error:
        return str(error)


def test_a_copy_goes_its_own_way() -> None:
    for seed in range(60):
        trace = [one for one in made_up(random.Random(seed)) if one.stream == TRACE]
        for cut in range(1, len(trace)):
            state = fed(trace[:cut])
            before, ids = seen(state), dict(state.ids)
            twin = state.copy()
            assert seen(twin) == before
            for record in trace[cut:]:
                twin.feed(record)
            assert (seen(state), state.ids) == (before, ids)
            assert seen(twin) == seen(fed(trace))
