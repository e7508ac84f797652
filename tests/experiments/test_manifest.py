"""The manifest of an experiment, its stamps on sessions, and designs that are pooled only on request."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from duolog.cli import main
from duolog.engine.errors import InvalidInput
from duolog.engine.events import JSON, Participant, SessionOpened
from duolog.experiments.manifest import manifest_path, read_manifests
from duolog.experiments.plan import make_plans
from duolog.scoring.comparison.pairs import compare
from duolog.scoring.report import make_report
from duolog.scoring.trajectory.labels import labels_of, simulator_of
from duolog.scoring.trajectory.points import Point, Trajectory

GRID = """
task = "finance"
agents = ["one-stage"]
users = ["{user}"]
sessions = {sessions}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "grid.toml"
    path.write_text(GRID.format(user="lazy", sessions=1), encoding="utf-8")
    return path


def ran(file: Path, log: Path, *more: str) -> int:
    return main(["run", str(file), "--log", str(log), "--json", *more])


def reported(log: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    capsys.readouterr()
    assert main(["report", str(log), "--json", "--bootstrap", "0"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_the_manifest_says_what_was_run_and_holds_the_hash_of_the_file(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "a.db"
    assert ran(file, log) == 0
    (held,) = read_manifests(str(log))
    assert held.file == "grid.toml"
    assert held.file_sha256 == hashlib.sha256(file.read_bytes()).hexdigest()
    assert held.experiments[0]["agents"] == ["one-stage"]
    assert held.simulators.keys() == {"finance/lazy"}
    assert held.tasks.keys() == {"finance"}
    assert held.dependencies["msgspec"]
    assert held.python.startswith("3.")
    assert ran(file, log) == 0
    assert read_manifests(str(log)) == (held,)
    capsys.readouterr()
    assert main(["sessions", str(log), "--json"]) == 0
    (session,) = json.loads(capsys.readouterr().out)
    assert session["group"]["manifest"] == held.design[:12]
    assert reported(log, capsys)["simulators"] == {"lazy": [held.simulators["finance/lazy"][:12]]}


def test_it_is_there_before_the_first_session(file: Path, tmp_path: Path) -> None:
    """A run that cannot open its log has left the preregistration all the same."""
    log = tmp_path / "a.db"
    log.write_bytes(b"this is no log" * 100)
    assert ran(file, log) == 2
    assert len(read_manifests(str(log))) == 1


def test_more_sessions_are_of_the_same_design(file: Path, tmp_path: Path) -> None:
    log = tmp_path / "a.db"
    assert ran(file, log) == 0
    file.write_text(GRID.format(user="lazy", sessions=2), encoding="utf-8")
    assert ran(file, log, "--agents", "one-stage,two-stage") == 0
    first, second = read_manifests(str(log))
    assert first.design == second.design
    assert first.digest != second.digest


def test_another_design_is_refused_or_pooled_with_a_word(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "a.db"
    assert ran(file, log) == 0
    assert reported(log, capsys)["warnings"] == []
    other = f"{GRID.format(user='lazy', sessions=1)}patience = 3\n"
    file.write_text(other, encoding="utf-8")
    assert ran(file, log) == 2
    said = capsys.readouterr().err
    assert "the log holds 1 session of finance of another design" in said
    assert "--pool" in said
    assert ran(file, log, "--pool") == 0
    assert any(
        "2 experiments of different design are pooled" in one
        for one in reported(log, capsys)["warnings"]
    )


def test_one_user_simulated_in_two_ways_is_said_and_not_paired() -> None:
    """The same persona behind another model is another simulator."""

    def played(agent: str, simulator: str) -> Trajectory:
        labels = {"task": "t", "agent": agent, "user": "lazy", "simulator": simulator}
        return Trajectory(
            session=f"{agent}-{simulator}",
            group=labels,
            problem="p",
            points=(Point(round=1, utility=0.5, updated=True),),
        )

    alike = [played("a", "x"), played("b", "x")]
    assert make_report(alike, bootstrap=0).warnings == ()
    assert [one.pairs for one in compare(alike, ["a", "b"])] == [1]
    unlike = [played("a", "x"), played("b", "y")]
    (warning,) = make_report(unlike, bootstrap=0).warnings
    assert "the user lazy was simulated in 2 ways (x, y)" in warning
    assert compare(unlike, ["a", "b"]) == ()


def opened(config: dict[str, JSON] | None = None, /, **fields: str) -> SessionOpened:
    human = msgspec.convert({"name": "user", "role": "human", **fields}, Participant)
    return SessionOpened(
        task="t", instance="0", participants=(human,), clock="utc", config=config or {}
    )


def test_the_simulator_is_the_persona_with_its_prompts_and_model() -> None:
    lazy = {"policy": "rules", "persona": "lazy"}
    asked = {"policy": "model", "persona": "lazy", "model": "m", "prompt": "p"}
    cool: dict[str, JSON] = {"models": {"user": {"temperature": 0.1}, "agent": {}}}
    hot: dict[str, JSON] = {"models": {"user": {"temperature": 0.9}}}
    other: dict[str, JSON] = {"models": {"user": {"temperature": 0.1}, "agent": {"tries": 2}}}
    own: dict[str, JSON] = {"loaded_from": {"user": {"name": "u.py:Ann", "digest": "1"}}}
    assert simulator_of(opened(**lazy)) == simulator_of(opened(cool, **lazy))
    unlike = [
        opened(**lazy),
        opened(policy="rules", persona="lazy+vague=0.9"),
        opened(cool, **asked),
        opened(hot, **asked),
        opened(cool, **asked | {"prompt": "q"}),
        opened(own, policy="Ann"),
        opened(model="gpt-4o"),  # as an import has it that names the model alone
    ]
    assert len({simulator_of(one) for one in unlike}) == len(unlike)
    assert all(simulator_of(one) for one in unlike)
    assert simulator_of(opened(cool, **asked)) == simulator_of(opened(other, **asked))


@pytest.mark.parametrize("fields", [{}, {"policy": "expert"}])
def test_a_person_has_no_stamp(fields: dict[str, str]) -> None:
    assert simulator_of(opened(None, **fields)) == ""
    assert "simulator" not in labels_of(opened(None, **fields))
    assert simulator_of(SessionOpened(task="t", instance="0", participants=(), clock="utc")) == ""


def test_a_run_by_options_has_the_stamp_of_its_user_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "a.db"
    told = ["run", "finance", "--agents", "one-stage", "--sessions", "1", "--log", str(log)]
    assert main([*told, "--users", "lazy,bounded"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    stamps = reported(log, capsys)["simulators"]
    assert stamps.keys() == {"bounded", "lazy"}
    (bounded,), (lazy,) = stamps["bounded"], stamps["lazy"]
    assert f"Simulated users: bounded {bounded}, lazy {lazy}." in shown


def test_a_run_by_options_has_no_manifest(tmp_path: Path) -> None:
    (plan,) = make_plans("finance", text_actions=None, limits={}, budget={})
    assert plan.design is None
    assert manifest_path("postgresql://db/work") is None
    assert manifest_path("sqlite:///a/b.db") == Path("a/b.db.manifest.json")


def test_a_damaged_file_of_manifests_is_one_clear_line(file: Path, tmp_path: Path) -> None:
    log = tmp_path / "a.db"
    (tmp_path / "a.db.manifest.json").write_text("{", encoding="utf-8")
    with pytest.raises(InvalidInput, match="is not a file of manifests"):
        read_manifests(str(log))
    assert ran(file, log) == 2
