"""A peer of replay: one pandas frame per session, and the same numbers from that."""

from __future__ import annotations

import importlib
import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
from duolog.engine.events import ACTS

__all__ = ("PACKAGE", "frames")

PACKAGE = "pandas"
COLUMNS = "position, stream, version, kind, schema, time, actor, role, cause, seen, id, body"


def frames(path: Path) -> int:
    """Scores each session with a separate pandas frame; returns the number of rounds.

    Selects the rows of one session by an index, decodes their bodies with msgspec, makes a frame of
    one row per event with a column per field, and derives from it, with pandas throughout, what
    ``replay`` does: rounds where a human acts after an agent, the utility and the rating of each,
    the utility carried forward, runs of bad ratings, and the words that each side wrote.
    """
    pandas = importlib.import_module("pandas")
    decode_body = msgspec.json.Decoder(dict[str, object]).decode
    names = COLUMNS.split(", ")[:-1]
    count = 0
    with closing(sqlite3.connect(path)) as connection:
        keys = connection.execute("SELECT key FROM sessions ORDER BY key").fetchall()
        for key in keys:
            rows = connection.execute(
                f"SELECT {COLUMNS} FROM events WHERE stream IN "
                "(SELECT key FROM streams WHERE session = ?) ORDER BY position",
                key,
            )
            frame = pandas.DataFrame(
                [{**decode_body(row[-1]), **dict(zip(names, row, strict=False))} for row in rows]
            )
            is_act = frame["kind"].isin(ACTS) & frame["role"].isin(("human", "agent"))
            acts = frame[is_act]
            opens = (acts["role"] == "human") & (acts["role"].shift() == "agent")
            number = opens.cumsum() + 1
            rounds = acts.groupby(number)["version"].agg(["min", "max", "count"])
            snapshots = acts[acts["kind"] == "SnapshotTaken"]
            round_of = number.loc[snapshots.index].set_axis(snapshots["version"])
            scored = frame[frame["kind"] == "UtilityScored"]
            values = scored.groupby(scored["snapshot"].map(round_of))["value"].last()
            rounds["utility"] = values.reindex(rounds.index).ffill().fillna(0.0)
            rated = frame[frame["kind"] == "ProgressRated"]
            rounds["rating"] = rated.groupby("round")["rating"].last().reindex(rounds.index)
            bad = rounds["rating"] < 3
            rounds["bad"] = bad.groupby((~bad).cumsum()).cumsum()
            words = acts["text"].where(acts["kind"] == "MessageSent").str.count(" ")
            words.groupby([number, acts["role"]]).sum().unstack().cumsum()
            count += len(rounds)
    return count
