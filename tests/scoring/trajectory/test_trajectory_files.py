"""Files of trajectories: reading, writing, and refusals."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from duolog.engine.errors import InvalidInput
from duolog.engine.rounds import Stage
from duolog.scoring.process import Process
from duolog.scoring.trajectory.files import (
    decode_trajectory,
    encode_trajectory,
    is_trajectory_file,
    read_trajectories,
    write_trajectories,
)
from duolog.scoring.trajectory.points import Point, Trajectory
from hypothesis import given
from hypothesis import strategies as st

LINE = (
    '{"session": "s1", "group": {"agent": "one-stage", "model": "m"}, "rounds": ['
    '{"utility": null, "updated": false, "rating": 4}, '
    '{"utility": 0.5, "updated": true, "rating": 3}, '
    '{"utility": null, "updated": true, "rating": null}], '
    '"tokens": {"agent": 2641, "human": 1271}, "final": 0.58, "baseline": false}'
)


def test_a_line_becomes_a_trajectory() -> None:
    found = decode_trajectory(LINE)
    assert found == Trajectory(
        session="s1",
        group={"agent": "one-stage", "model": "m"},
        points=(
            Point(round=1, rating=4),
            Point(round=2, value=0.5, utility=0.5, rating=3, updated=True),
            Point(round=3, utility=0.5, updated=True, stale=True, stage="refinement"),
        ),
        agent_tokens=2641,
        human_tokens=1271,
        final=0.58,
    )


def test_what_may_be_left_out() -> None:
    found = decode_trajectory('{"session": "s", "rounds": [{"utility": 0.5}, {"utility": null}]}')
    assert [point.updated for point in found.points] == [True, False]
    assert [point.stale for point in found.points] == [False, False]
    assert (found.final, found.agent_tokens, found.human_tokens) == (None, None, None)
    assert found.group == {}
    assert not found.baseline


def test_whole_numbers_with_a_point_and_unknown_fields_are_taken() -> None:
    line = '{"session": "s", "rounds": [{"utility": 1, "rating": 3.0, "x": 1}], "y": [], "final": 0'
    found = decode_trajectory(line + ', "tokens": {"agent": 12.0, "human": null}}')
    assert found.points[0].rating == 3
    assert found.agent_tokens == 12
    assert found.final == 0


processes = st.builds(
    Process,
    initiatives=st.dictionaries(st.text(max_size=3), st.integers(0, 9), max_size=2),
    initiative_entropy=st.one_of(st.none(), st.floats(0, 1)),
    halts=st.one_of(st.none(), st.integers(0, 9)),
)


@st.composite
def trajectories(draw: st.DrawFn) -> Trajectory:
    points: list[Point] = []
    standing: float | None = 0.0
    stage: Stage = "initial"
    for number in range(draw(st.integers(0, 5))):
        value = draw(st.one_of(st.none(), st.floats(0, 1)))
        standing = standing if value is None else value
        rating = draw(st.one_of(st.none(), st.integers(1, 5)))
        updated = draw(st.booleans())
        numbers = st.one_of(st.none(), st.floats(0, 1e9))
        points.append(
            Point(
                round=number + 1,
                value=value,
                utility=standing,
                rating=rating,
                pending=rating is None and draw(st.booleans()),
                updated=updated,
                stale=value is None and draw(st.booleans()),
                stage=stage,
                effort=draw(st.dictionaries(st.text(max_size=3), numbers, max_size=2)),
            )
        )
        stage = "refinement" if updated else stage
    counts = st.one_of(st.none(), st.integers(0, 2**53))
    evaluated = draw(st.booleans())
    scored = any(point.value is not None for point in points)
    if not evaluated or (any(point.stale for point in points) and not scored):
        points = [msgspec.structs.replace(point, utility=None, value=None) for point in points]
    final = draw(st.one_of(st.none(), st.floats(0, 1)))
    return Trajectory(
        session=draw(st.text()),
        group=draw(st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3)),
        points=tuple(points),
        agent_tokens=draw(counts),
        human_tokens=draw(counts),
        estimated=draw(st.booleans()),
        evaluated=evaluated,
        final=final,
        final_missing=final is None and draw(st.booleans()),
        instance=draw(st.text(max_size=3)),
        baseline=draw(st.booleans()),
        state=draw(st.sampled_from(["finished", "open", "stalled"])),
        faults=draw(st.dictionaries(st.text(max_size=5), st.integers(0, 9), max_size=2)),
        process=draw(st.one_of(st.none(), processes)),
    )


@given(trajectories())
def test_a_trajectory_survives_the_way_through_a_line(trajectory: Trajectory) -> None:
    line = encode_trajectory(trajectory)
    assert b"\n" not in line
    assert decode_trajectory(line) == trajectory


def test_a_written_line_has_the_documented_shape() -> None:
    written = encode_trajectory(decode_trajectory(LINE)).decode()
    assert written == LINE.replace(", ", ",").replace(": ", ":")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"session": "s"}', "missing required field `rounds`"),
        ('{"session": "s", "rounds": [{"rating": 3}]}', "missing required field `utility`"),
        ('{"session": "s", "rounds": [', "truncated"),
        ("[]", "Expected `object`"),
        ('{"session": 3, "rounds": []}', r"Expected `str`, got `int` - at `\$.session`"),
        ('{"session": "s", "rounds": [{"utility": "a"}]}', r"at `\$.rounds\[0\].utility`"),
        ('{"session": "s", "rounds": [{"utility": NaN}]}', "malformed"),
        ('{"session": "s", "rounds": [{"utility": 0}, {"utility": 1.5}]}', "round 2: .* is 1.5"),
        ('{"session": "s", "rounds": [{"utility": 0, "rating": 6}]}', "rating is 6: .* 1 to 5"),
        ('{"session": "s", "rounds": [{"utility": 0, "rating": 2.5}]}', "rating is 2.5"),
        ('{"session": "s", "rounds": [{"utility": 0, "stale": true}]}', "stale"),
        (
            '{"session": "s", "rounds": [{"utility": 0, "rating": 2, "pending": true}]}',
            "cannot be pending",
        ),
        (
            '{"session": "s", "rounds": [], "process": {"initiatives": {}, "halts": -1}}',
            "process: halts is -1",
        ),
        ('{"session": "s", "rounds": [], "final": -1}', "final is -1"),
        ('{"session": "s", "rounds": [], "tokens": {"agent": -5}}', "tokens.agent is -5"),
        ('{"session": "s", "rounds": [], "tokens": {"human": 0.5}}', "tokens.human is 0.5"),
    ],
)
def test_what_is_no_trajectory_is_refused_by_file_and_line(
    tmp_path: Path, line: str, message: str
) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(f"{LINE}\n\n{line}\n", encoding="utf-8")
    read = read_trajectories(path)
    assert next(read).session == "s1"  # earlier sessions have been given
    with pytest.raises(InvalidInput, match=message) as caught:
        next(read)
    assert str(caught.value).startswith(f"{path}, line 3: ")


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'{"session": "\xff", "rounds": []}\n')
    with pytest.raises(InvalidInput, match="line 1: invalid trajectory"):
        list(read_trajectories(path))


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("[" * 100_000, "it nests too deeply"),
        ("[" + "1," * (1 << 20) + "1]}", "it has more than 1,048,576 values"),
    ],
)
def test_a_line_takes_memory_by_its_size(tmp_path: Path, more: str, said: str) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(f'{{"session": "s", "rounds": [], "x": {more}', encoding="utf-8")
    assert is_trajectory_file(path)
    with pytest.raises(InvalidInput, match=f"line 1: invalid trajectory: {said}"):
        list(read_trajectories(path))


def test_blank_lines_and_a_byte_order_mark_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + LINE.encode() + b"\r\n\r\n" + LINE.encode())
    assert len(list(read_trajectories(path))) == 2
    assert is_trajectory_file(path)


def test_files_that_cannot_be_read_or_written(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"cannot read trajectories from .*No such file"):
        list(read_trajectories(tmp_path / "none.jsonl"))
    with pytest.raises(InvalidInput, match=r"cannot write .*none/t\.jsonl: No such file"):
        write_trajectories(tmp_path / "none" / "t.jsonl", [])


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    first = decode_trajectory(LINE)
    assert write_trajectories(path, [first, first]) == 2
    assert list(read_trajectories(path)) == [first, first]

    def broken() -> list[Trajectory]:
        raise RuntimeError("lost")

    with pytest.raises(RuntimeError, match="lost"):
        write_trajectories(path, (item for _ in range(1) for item in broken()))
    assert list(read_trajectories(path)) == [first, first]
    assert [found.name for found in tmp_path.iterdir()] == ["t.jsonl"]


@pytest.mark.parametrize(
    ("content", "is_one"),
    [
        (LINE, True),
        ("\n\n" + LINE, True),
        ("", False),
        ("SQLite format 3\0", False),
        ('{"session": "s", "version": 1, "event": {}}', False),
        ("[1, 2]", False),
    ],
)
def test_files_of_trajectories_are_told_from_others(
    tmp_path: Path, content: str, is_one: bool
) -> None:
    path = tmp_path / "t"
    path.write_text(content, encoding="utf-8")
    assert is_trajectory_file(path) is is_one
