"""JSON Lines: the round trip is exact, and errors name the broken line."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import msgspec
import pytest
from duolog.engine.errors import InvalidInput, LogUnavailable, SessionNotFound
from duolog.engine.events import Forgotten, MessageSent, Role, SessionClosed, Unknown
from duolog.engine.log.contract import Store
from duolog.engine.log.exchange.jsonl_export import export_jsonl, from_jsonl, to_jsonl
from duolog.engine.log.exchange.jsonl_import import LOST, Imported, import_jsonl
from duolog.engine.log.open import open_log
from duolog.engine.records import Draft, Record
from hypothesis import given
from hypothesis import strategies as st


def said(text: str, caller_id: str | None = None) -> Draft:
    return Draft(MessageSent(text=text), "ann", "human", 1.5, caller_id)


async def tell(log: Store) -> None:
    for number in range(3):
        await log.append("a", [said(f"a {number}", f"id {number}"), said("ünïcode \n \u2028")])
        await log.append("b", [said(f"b {number}")], stream="judge@1")
        await log.append(
            "b", [Draft(MessageSent(text="x"), "bot", "agent", 0.1, None, "trace/1", 2)]
        )
    odd = Unknown("Odd", 3, b'{ "kind":"Odd",\n  "x": 1e300, "y": [] }')
    more = Unknown("MessageSent", 1, b'{"kind":"MessageSent","text":"hi","mood":"good"}')
    await log.append("a", [Draft(event, "eve", "environment", -1.0) for event in (odd, more)])
    await log.append("c", [said("c")])
    await log.append("a", [Draft(SessionClosed(reason="finished", by="ann"), "ann", "human", 9.0)])
    await log.append("gone", [said("a secret"), said("more of it")])
    await log.forget("gone")


async def records(log: Store) -> list[Record]:
    return [record async for record in log.read_all()]


@pytest.fixture(params=["memory://", "sqlite:///{}/target.db", "sqlite:///{}/target.db?chain=yes"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return open_log(request.param.format(tmp_path))


async def test_the_round_trip_is_exact(tmp_path: Path, target: Store) -> None:
    path = tmp_path / "log.jsonl"
    async with open_log(str(tmp_path / "source.db")) as source, target:
        await tell(source)
        steps: list[int] = []
        count = await export_jsonl(source, path, progress=steps.append)
        there = await records(source)
        assert (count, steps[-1]) == (len(there), len(there))
        imported = await import_jsonl(target, path, progress=steps.append)
        assert imported == Imported(records=count, known=0, lost=0)
        assert steps[-1] == count
        assert await records(target) == there
        assert [line async for line in target.sessions()] == [
            line async for line in source.sessions()
        ]
        assert isinstance((await anext(target.read("gone"))).event, Forgotten)
        assert (await target.verify()).problems == ()
        again = io.BytesIO()
        await export_jsonl(target, again)
        assert again.getvalue() == path.read_bytes()
        assert len(path.read_bytes().splitlines()) == count
        for line in path.read_text(encoding="utf-8").split("\n")[:-1]:
            json.loads(line)


async def test_importing_again_changes_nothing(tmp_path: Path, target: Store) -> None:
    path = tmp_path / "log.jsonl"
    async with open_log(str(tmp_path / "source.db")) as source, target:
        await tell(source)
        count = await export_jsonl(source, path)
        lines = path.read_bytes().splitlines(keepends=True)
        half = await import_jsonl(target, io.BytesIO(b"".join(lines[:7])))
        assert half == Imported(records=7, known=0, lost=0)
        rest = await import_jsonl(target, path)
        assert rest == Imported(records=count - 7, known=7, lost=0)
        assert await import_jsonl(target, path) == Imported(records=0, known=count, lost=0)
        assert await records(target) == await records(source)


async def test_forgotten_sessions_are_not_brought_back(tmp_path: Path, target: Store) -> None:
    path = tmp_path / "log.jsonl"
    async with target:
        await target.append("s", [said("a secret")])
        await export_jsonl(target, path)
        await target.forget("s")
        assert await import_jsonl(target, path) == Imported(records=0, known=1, lost=0)
        assert isinstance((await anext(target.read("s"))).event, Forgotten)


async def test_chosen_sessions(tmp_path: Path, target: Store) -> None:
    path = tmp_path / "some.jsonl"
    async with open_log(str(tmp_path / "source.db")) as source, target:
        await tell(source)
        assert await export_jsonl(source, path, sessions=["b", "c", "b"]) == 7
        await import_jsonl(target, path)
        for session in ("b", "c"):
            ours = [record async for record in target.read_all(session=session)]
            theirs = [record async for record in source.read_all(session=session)]
            assert [msgspec.structs.replace(r, position=0) for r in ours] == [
                msgspec.structs.replace(r, position=0) for r in theirs
            ]
        with pytest.raises(SessionNotFound):
            await export_jsonl(source, tmp_path / "none.jsonl", sessions=["b", "nobody"])
        assert not (tmp_path / "none.jsonl").exists()


async def test_an_export_that_fails_leaves_nothing(tmp_path: Path) -> None:
    async with open_log("memory://") as log:
        await tell(log)
        with pytest.raises(LogUnavailable, match="cannot write"):
            await export_jsonl(log, tmp_path / "no directory" / "log.jsonl")

        def fail(count: int) -> None:
            raise KeyError(count)

        (tmp_path / "log.jsonl").write_text("as it was", encoding="utf-8")
        with pytest.raises(KeyError):
            await export_jsonl(log, tmp_path / "log.jsonl", progress=fail)
    assert os.listdir(tmp_path) == ["log.jsonl"]
    assert (tmp_path / "log.jsonl").read_text(encoding="utf-8") == "as it was"


BROKEN = [
    b"not json at all",
    b"{}",
    b'["a", "list"]',
    b'{"session":"a"',
    b"\xff\xfe",
    b'{"session":"a","stream":"trace","version":"1","kind":"K","schema":1,"time":0.0,"actor":"a","role":"human"}',
    b'{"session":"a","stream":"trace","version":0,"kind":"K","schema":1,"time":0.0,"actor":"a","role":"human"}',
    b'{"session":"","stream":"trace","version":1,"kind":"K","schema":1,"time":0.0,"actor":"a","role":"human"}',
    b'{"session":"a","stream":"trace","version":1,"kind":"K","schema":1,"time":0.0,"actor":"a","role":"king"}',
]


@pytest.mark.parametrize("broken", BROKEN)
async def test_a_broken_line_is_told_by_its_number(
    tmp_path: Path, target: Store, broken: bytes
) -> None:
    path = tmp_path / "log.jsonl"
    async with open_log("memory://") as source, target:
        await source.append("a", [said("one"), said("two")])
        await source.append("b", [said("three")])
        await export_jsonl(source, path)
        one, two, three = path.read_bytes().splitlines()
        path.write_bytes(b"\n".join([one, two, b"", broken, three]) + b"\n")
        with pytest.raises(InvalidInput, match=r"line 4: .*nothing was imported"):
            await import_jsonl(target, path)
        assert await records(target) == []
        imported = await import_jsonl(target, path, keep_going=True)
        assert (imported.records, imported.known, imported.lost) == (3, 0, 0)
        [problem] = imported.problems
        assert problem.line == 4
        assert await records(target) == await records(source)


async def test_a_record_lost_in_the_middle_keeps_its_place(tmp_path: Path, target: Store) -> None:
    """What refers to later versions still finds them."""
    async with open_log("memory://") as source, target:
        await source.append("a", [said(str(number)) for number in range(1, 8)])
        await source.append("b", [said("other")])
        out = io.BytesIO()
        await export_jsonl(source, out)
        lines = out.getvalue().splitlines(keepends=True)
        lines[2] = b"{oops\n"
        lines[3] = lines[3].replace(b'"kind":"MessageSent","text"', b'"kind":"MessageSent","word"')
        with pytest.raises(InvalidInput, match="line 3"):
            await import_jsonl(target, io.BytesIO(b"".join(lines)))
    async with open_log(str(tmp_path / "second.db")) as second:
        data = io.BytesIO(b"".join(lines))
        imported = await import_jsonl(second, data, keep_going=True)
        assert (imported.records, imported.lost) == (6, 2)
        assert [problem.line for problem in imported.problems] == [3, 4]
        kinds = [record.kind async for record in second.read("a")]
        assert kinds == ["MessageSent"] * 2 + [LOST] * 2 + ["MessageSent"] * 3
        texts = [r.event.text async for r in second.read("a") if isinstance(r.event, MessageSent)]
        assert texts == ["1", "2", "5", "6", "7"]
        assert (await second.summary("b")).events == 1
        assert (await second.verify()).problems == ()


async def test_missing_and_doubled_lines(tmp_path: Path, target: Store) -> None:
    async with open_log("memory://") as source, target:
        await source.append("a", [said(str(number)) for number in range(1, 5)])
        out = io.BytesIO()
        await export_jsonl(source, out)
        one, two, _, four = out.getvalue().splitlines(keepends=True)
        with pytest.raises(InvalidInput, match=r"line 3: .*lines are missing; imported 0 records"):
            await import_jsonl(target, io.BytesIO(one + two + four))
        with pytest.raises(InvalidInput, match=r"line 2: .*cannot follow version 1"):
            await import_jsonl(target, io.BytesIO(one + one))


async def test_a_forgotten_session_with_missing_lines_is_taken(target: Store) -> None:
    async with open_log("memory://") as source, target:
        await source.append("a", [said(str(number)) for number in range(1, 5)])
        await source.forget("a")
        out = io.BytesIO()
        await export_jsonl(source, out)
        one, two, _, four = out.getvalue().splitlines(keepends=True)
        data = io.BytesIO(one + two + four)
        imported = await import_jsonl(target, data, keep_going=True)
        assert (imported.records, imported.lost, imported.problems) == (3, 1, ())
        assert [record.body async for record in target.read("a")] == [None] * 4
        assert (await target.verify()).problems == ()


async def test_another_log_under_the_same_names(tmp_path: Path, target: Store) -> None:
    async with open_log("memory://") as source, target:
        await source.append("a", [said("one"), said("two")])
        await target.append("a", [said("one"), said("something else")])
        out = io.BytesIO()
        await export_jsonl(source, out)
        with pytest.raises(InvalidInput, match="line 2: the log has another version 2"):
            await import_jsonl(target, io.BytesIO(out.getvalue()))
        imported = await import_jsonl(target, io.BytesIO(out.getvalue()), keep_going=True)
        assert imported.known == 1
        assert [problem.line for problem in imported.problems] == [2]


async def test_what_the_log_refuses_is_told(target: Store) -> None:
    """A file can claim what no log would hold: acts after the close, ids taken twice."""
    async with open_log("memory://") as source, target:
        closed = Draft(SessionClosed(reason="finished", by="ann"), "ann", "human", 2.0)
        await source.append("a", [said("one"), closed])
        await source.append("b", [said("one", "i"), said("two", "j"), said("three")])
        out = io.BytesIO()
        await export_jsonl(source, out)
        one, two, *b = out.getvalue().splitlines(keepends=True)
        late = one.replace(b'"version":1', b'"version":3')
        later = one.replace(b'"version":1', b'"version":4')
        b[1] = b[1].replace(b'"id":"j"', b'"id":"i"')
        data = b"".join([one, two, late, later, *b])
        imported = await import_jsonl(target, io.BytesIO(data), keep_going=True)
        assert [problem.line for problem in imported.problems] == [3, 4, 6]
        assert [record.kind async for record in target.read("b")] == [
            "MessageSent",
            LOST,
            "MessageSent",
        ]
        assert (await target.summary("a")).version == 2
        assert (await target.verify()).problems == ()


async def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    async with open_log("memory://") as log:
        with pytest.raises(InvalidInput, match="cannot read"):
            await import_jsonl(log, tmp_path / "nothing.jsonl")


texts = st.text(st.characters(codec="utf-8"), max_size=20)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
names = texts.filter(bool)
roles: st.SearchStrategy[Role] = st.sampled_from(["human", "agent", "environment", "scorer"])


@given(
    record=st.builds(
        Record,
        position=st.integers(0, 2**60),
        session=names,
        stream=names,
        version=st.integers(1, 2**60),
        kind=names,
        schema=st.integers(0, 1000),
        time=st.floats(allow_nan=False, allow_infinity=False),
        actor=texts,
        role=roles,
        cause=st.none() | texts,
        seen=st.none() | st.integers(0, 2**60),
        caller_id=st.none() | names,
        body=st.none()
        | st.just(b"null")
        | st.tuples(
            st.dictionaries(texts, json_values, max_size=3), st.sampled_from([None, 1])
        ).map(lambda pair: json.dumps(pair[0], indent=pair[1]).encode()),
        _event=st.none(),
    )
)
def test_any_record_survives_a_line(record: Record) -> None:
    line = to_jsonl(record)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert from_jsonl(line) == record


def line(body: bytes, *, version: int = 1, kind: str = "MessageSent") -> bytes:
    said = b'{"session":"a","stream":"trace","version":%d,"kind":"%s","schema":1,"time":0.0,'
    rest = b'"actor":"a","role":"human","body":%s}\n'
    return (said + rest) % (version, kind.encode(), body)


GOOD = line(b'{"kind":"MessageSent","text":"x"}')
DEEP = b"[" * 120 + b"]" * 120
UNFIT = {
    "a body that does not decode": (line(b'{"kind":"MessageSent"}', version=2), "does not decode"),
    "a digest of something else": (
        line(b'{"kind":"SnapshotTaken","content":1,"digest":"d"}', version=2, kind="SnapshotTaken"),
        "digest is not that of its content",
    ),
    "an empty kind": (line(b"{}", version=2, kind=""), "a kind that is not empty"),
    "a body that is deep": (
        line(b'{"x":%s}' % DEEP, version=2, kind="Odd"),
        "nests deeper than 100",
    ),
    "a version that no store can keep": (
        line(b'{"kind":"MessageSent","text":"x"}', version=10**400),
        "a version from 1",
    ),
    "a schema that no store can keep": (
        line(b"{}", version=2, kind="Odd").replace(b'"schema":1', b'"schema":1' + b"0" * 400),
        "from 0, not 1" + 99 * "0" + "...",
    ),
    "a line without end": (b'{"a":' + b"[" * 100_000, "invalid record: it nests too deeply"),
}


@pytest.mark.parametrize(("bad", "why"), UNFIT.values(), ids=UNFIT.keys())
async def test_what_no_log_takes_is_refused_before_anything_is_taken(
    tmp_path: Path, target: Store, bad: bytes, why: str
) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_bytes(GOOD + bad + b"\n" + GOOD.replace(b'"a"', b'"b"'))
    async with target as log:
        with pytest.raises(InvalidInput, match=f"line 2: .*{why}.*; nothing was imported"):
            await import_jsonl(log, path)
        assert log.statistics().position == 0
        imported = await import_jsonl(log, path, keep_going=True)
        assert [(p.line, why in p.what) for p in imported.problems] == [(2, True)]
        assert imported.records == 2
        assert not (await log.verify()).problems


async def test_a_version_beyond_reason_makes_no_placeholders(target: Store) -> None:
    far = line(b'{"kind":"MessageSent","text":"x"}', version=100_000_000)
    near = line(b'{"kind":"MessageSent","text":"x"}', version=5)
    async with target as log:
        done = await import_jsonl(log, io.BytesIO(GOOD + far + near), keep_going=True)
        assert (done.records, done.lost) == (2, 3)
        [problem] = done.problems
        assert problem.line == 2
        assert "99,999,998 records are missing, and an import puts placeholders for" in problem.what
