"""Data sets of conversations, in JSON, JSON Lines and Parquet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from duolog.engine.events import (
    ActionResolved,
    ActionTaken,
    MessageSent,
    SessionClosed,
    SessionOpened,
)
from duolog.interop.importers.datasets import LmsysImporter, ShareGptImporter
from duolog.interop.importers.registry import recognise
from duolog.testing import check_importer
from foreign_logs import read, write_lines

Json = dict[str, Any]

WILD: Json = {
    "conversation_hash": "h1",
    "model": "m",
    "timestamp": "2023-04-09T00:02:53+00:00",
    "language": "English",
    "conversation": [
        {"role": "user", "content": "Hello", "country": "X"},
        {"role": "assistant", "content": "Hi.", "country": None},
    ],
}


def shared(*turns: tuple[str, str], **more: object) -> Json:
    return {"conversations": [{"from": who, "value": value} for who, value in turns], **more}


def test_rows_of_wildchat_are_sessions_with_their_time(tmp_path: Path) -> None:
    source = write_lines(tmp_path / "wild.jsonl", [WILD, {**WILD, "conversation_hash": "h2"}])
    events, diagnostics = read(LmsysImporter(), source)
    assert not diagnostics
    assert [one.session for one in events] == ["h1"] * 4 + ["h2"] * 4
    opened = events[0].draft.event
    assert isinstance(opened, SessionOpened)
    assert (opened.clock, events[1].draft.time) == ("utc", 1680998573.0)
    assert opened.config["metadata"] == {"language": "English"}
    assert [one.draft.role for one in events[1:3]] == ["human", "agent"]
    closed = events[3].draft.event
    assert isinstance(closed, SessionClosed)
    assert closed.reason == "ended"  # it is over, and nothing says how


def test_parquet_gives_the_same_as_json_lines(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    lines = write_lines(tmp_path / "wild.jsonl", [WILD])
    table = tmp_path / "wild.parquet"
    parquet.write_table(pyarrow.Table.from_pylist([WILD]), table)
    assert read(LmsysImporter(), table)[0] == read(LmsysImporter(), lines)[0]
    found = recognise(table)
    assert found is not None
    assert found.name == "lmsys"


def test_calls_and_observations_of_sharegpt_are_actions(tmp_path: Path) -> None:
    row = shared(
        ("human", "Weather?"),
        ("function_call", '{"name": "look", "arguments": {"at": "x"}}'),
        ("observation", "rain"),
        ("function_call", "no JSON"),
        ("observation", "?"),
        ("gpt", "Rain."),
        system="Be brief.",
    )
    source = tmp_path / "set.json"
    source.write_text(json.dumps([row]), encoding="utf-8")
    events, diagnostics = read(ShareGptImporter(), source)
    assert not diagnostics
    kinds = [type(one.draft.event) for one in events[1:]]
    assert kinds == [
        MessageSent,
        MessageSent,
        ActionTaken,
        ActionResolved,
        ActionTaken,
        ActionResolved,
        MessageSent,
        SessionClosed,
    ]
    calls = [one.draft.event for one in events if isinstance(one.draft.event, ActionTaken)]
    assert [(call.name, call.arguments, call.raw) for call in calls] == [
        ("look", {"at": "x"}, None),
        ("function_call", {}, "no JSON"),
    ]


@pytest.mark.parametrize(
    "row",
    [
        shared(("Human", "Hi"), ("ChatGPT", "Hi.")),
        shared(("user", "Hi"), ("assistant", "Hi.")),
        {"conversation": shared(("human", "Hi"), ("gpt", "Hi."))["conversations"]},
        {"conversations": WILD["conversation"]},
    ],
)
def test_roles_and_keys_have_several_names(tmp_path: Path, row: Json) -> None:
    source = write_lines(tmp_path / "set.jsonl", [row])
    found = recognise(source)
    assert found is not None
    assert found.name == "sharegpt"
    events, diagnostics = read(found, source)
    assert not diagnostics
    said = [one.draft.role for one in events if isinstance(one.draft.event, MessageSent)]
    assert said == ["human", "agent"]


def test_calls_side_by_side_stand_in_one_turn(tmp_path: Path) -> None:
    calls: list[Json] = [{"name": name, "arguments": {}} for name in ("look", "ask")]
    row = shared(("human", "Go"), ("function_call", json.dumps(calls)), ("gpt", "Done."))
    events, _ = read(ShareGptImporter(), write_lines(tmp_path / "set.jsonl", [row]))
    found = [one.draft.event for one in events if isinstance(one.draft.event, ActionTaken)]
    assert [call.name for call in found] == ["look", "ask"]


def test_rows_without_contents_are_read(tmp_path: Path) -> None:
    empty = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": None}]
    row = {"conversation_id": "c", "conversation": empty, "model": None}
    events, diagnostics = read(LmsysImporter(), write_lines(tmp_path / "set.jsonl", [row]))
    assert not diagnostics
    said = [one.draft.event.text for one in events if isinstance(one.draft.event, MessageSent)]
    assert said == ["Hi"]


def test_a_turn_that_is_none_is_named(tmp_path: Path) -> None:
    source = tmp_path / "set.json"
    rows = [shared(("human", "Hi"), ("nobody", "x")), {"id": 1}, 5]
    source.write_text(json.dumps(rows), encoding="utf-8")
    _, diagnostics = read(ShareGptImporter(), source)
    assert [diagnostic.where for diagnostic in diagnostics] == [
        f"{source}, element 1, turn 2",
        f"{source}, element 2",
        f"{source}, element 3",
    ]


@pytest.mark.asyncio
async def test_the_importers_keep_the_contract(tmp_path: Path) -> None:
    await check_importer(LmsysImporter(), write_lines(tmp_path / "wild.jsonl", [WILD]))
    row = shared(("human", "Hi"), ("gpt", "Hi."))
    await check_importer(ShareGptImporter(), write_lines(tmp_path / "set.jsonl", [row]))
