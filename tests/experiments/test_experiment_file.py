"""``duolog run experiment.toml``: a grid from a file, cell by cell, and errors in such a file."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import anyio
import pytest
from duolog.cli import main
from duolog.engine.errors import InvalidInput
from duolog.engine.events import JSON, SessionOpened
from duolog.engine.log.open import open_log
from duolog.experiments.manifest import read_manifests
from duolog.experiments.plan import make_plans
from duolog.experiments.spec import read_experiments
from hypothesis import given
from hypothesis import strategies as st
from installed_tasks import TASKS

GRID = """
task = "travel"
agents = ["auto", "one-stage", "two-stage"]
users = ["proactive", "lazy"]
instances = ["0-1", "5"]
seed = 3
stop_at = 4
patience = 3

[limits]
rounds = 12
seconds = 3600
"""

CELLS = {("auto", "none")} | {
    (a, u) for a in ("one-stage", "two-stage") for u in ("proactive", "lazy")
}


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def openings(path: Path) -> dict[str, SessionOpened]:
    async def read() -> dict[str, SessionOpened]:
        async with open_log(str(path), create=False) as log:
            return {
                record.session: record.event
                async for record in log.read_all()
                if isinstance(record.event, SessionOpened)
            }

    return anyio.run(read)


def test_tasks_seeds_and_agents_are_lists_and_problems_are_repeated(tmp_path: Path) -> None:
    text = """
    task = ["travel", "tutoring"]
    agents = ["one-stage", "two-stage"]
    users = ["proactive"]
    seed = [1, 2, 3]
    sessions = 2
    repeats = 2
    """
    file = str(write(tmp_path / "many.toml", text))
    plans = make_plans(file, text_actions=None, limits={}, budget={})
    assert [plan.task.name for plan in plans] == ["travel", "tutoring"]
    for plan in plans:
        setting = plan.setting(None)
        assert len(plan.cells) == 2 * 3 * 2 * 2
        openings = [plan.session(cell, setting).opened for cell in plan.cells]
        assert len({plan.session(cell, setting).id for cell in plan.cells}) == 24
        assert len({one.problem for one in openings}) == 6
        assert len({one.seed for one in openings}) == 12
    one = make_plans(file, text_actions=None, limits={}, budget={}, seed=7, repeats=1)
    assert {cell.seed for plan in one for cell in plan.cells} == {7}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("task = []", "task is empty"),
        ('task = ["travel", 3]', "expected a string"),
        ('task = ["travel", "travle"]', "travle"),
        ('task = "travel"\nseed = []', "seed is empty"),
        ('task = "travel"\nseed = [1, "two"]', r"seed = \[1,\"two\"\]"),
        ('task = "travel"\nrepeats = 0', "repeats must be more than 0"),
    ],
)
def test_lists_that_are_refused(text: str, message: str, tmp_path: Path) -> None:
    file = str(write(tmp_path / "wrong.toml", text))
    with pytest.raises(InvalidInput, match=message):
        make_plans(file, text_actions=None, limits={}, budget={})


@pytest.mark.slow
def test_a_grid_runs_in_all_its_cells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "grid.db"
    file = write(tmp_path / "grid.toml", f'log = "{log}"\n{GRID}')
    assert main(["run", str(file)]) == 0
    out, err = capsys.readouterr()
    assert "15 sessions: 15 run" in err
    assert "user lazy" in out
    found = openings(log)
    cells: dict[tuple[JSON, JSON], list[str]] = {}
    for opened in found.values():
        group = opened.config["group"]
        assert isinstance(group, dict)
        cells.setdefault((group["agent"], group["user"]), []).append(opened.instance)
        assert opened.config["stop_at"] == 4
        limits = opened.config["limits"]
        assert isinstance(limits, dict)
        assert (limits["rounds"], limits["actions"], limits["seconds"]) == (12, 200, 3600)
        assert limits["patience"] == opened.config["patience"] == 3
    assert set(cells) == CELLS
    assert all(sorted(instances) == ["0", "1", "5"] for instances in cells.values())


@pytest.mark.slow
def test_each_cell_is_run_once_however_often_the_grid_is_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "grid.db"
    file = write(tmp_path / "grid.toml", f'log = "{log}"\n{GRID}')
    assert main(["run", str(file), "--agents", "one-stage", "--users", "lazy"]) == 0  # one of them
    first = openings(log)
    assert len(first) == 3
    capsys.readouterr()
    assert main(["run", str(file)]) == 0
    assert "15 sessions: 12 run, 3 in the log already" in capsys.readouterr().err
    assert set(first) < set(openings(log))
    assert main(["run", str(file)]) == 0
    assert "15 sessions: 0 run, 15 in the log already" in capsys.readouterr().err


def test_options_go_before_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "grid.toml", f'log = "{tmp_path / "not.db"}"\n{GRID}')
    log = tmp_path / "other.db"
    options = ["--log", str(log), "--sessions", "1", "--seed", "4", "--max-rounds", "5"]
    assert main(["run", str(file), *options, "--users", "feedback"]) == 0
    assert "3 sessions: 3 run" in capsys.readouterr().err
    assert not (tmp_path / "not.db").exists()
    for opened in openings(log).values():
        cell, limits = opened.config["cell"], opened.config["limits"]
        assert isinstance(cell, dict)
        assert isinstance(limits, dict)
        assert (cell["seed"], cell["instance"]) == (4, "0")
        assert (limits["rounds"], limits["seconds"]) == (5, 3600)


ON_MODELS = 'task = "travel"\nmodels = ["m"]\n'


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        # no TOML, or not what belongs there
        ("task = travel", "is not TOML: Invalid value (at line 1, column 8)"),
        ('agents = ["auto"]', "task is missing"),
        ('task = "sailing"', f"unknown task 'sailing'; choose from {TASKS}"),
        ('task = "travel"\ndataset = "/nowhere"', "'/nowhere'"),
        # keys
        ('task = "travel"\nagent = ["auto"]', "agent: unknown key; did you mean agents?"),
        (
            'task = "travel"\n[limits]\nround = 1',
            "limits.round: unknown key; did you mean",
        ),
        (f"{ON_MODELS}[model.m]\nheat = 1", "model.m.heat: unknown key; choose from temp"),
        (
            f'{ON_MODELS}[model."n"]\ntries = 1',
            "there is a table for model 'n', which no actor uses",
        ),
        # kinds of values
        ('task = "travel"\nagents = "auto"', 'agents = "auto": expected a list, got a string'),
        (
            'task = "travel"\nseed = 1.5',
            "seed = 1.5: expected a whole number or a list, got a number",
        ),
        (
            'task = "travel"\nusers = [1]',
            "users = [1]: expected a string, got a whole number in it",
        ),
        ('task = "travel"\nlimits = 3', "limits = 3: this is a table"),
        (
            'task = "travel"\nmodel = 3',
            "model = 3: expected a table, got a whole number",
        ),
        (
            f'{ON_MODELS}[model.m]\ntemperature = "hot"',
            'model.m.temperature = "hot": expected a number, got a string',
        ),
        (f'{ON_MODELS}[model."*"]\nstream = 1', 'model."*".stream = 1: expected true or false'),
        # values
        ('task = "travel"\nagents = ["x"]', "unknown agent 'x'; choose from adaptive, auto"),
        ('task = "travel"\nagents = []', "agents is empty"),
        ('task = "travel"\nusers = ["grumpy"]', "unknown user 'grumpy'; choose from bounded"),
        ('task = "travel"\nmodels = []', "models is empty"),
        ('task = "travel"\nsessions = 0', "sessions must be more than 0, got 0"),
        ('task = "travel"\nstop_at = 0', "stop_at must be more than 0, got 0"),
        ('task = "travel"\npatience = 0', "patience must be more than 0, got 0"),
        ('task = "travel"\npatience = "much"', 'patience = "much"'),
        ('task = "travel"\ninstances = ["5-2"]', "'5-2' in instances is not a range"),
        ('task = "travel"\ninstances = ["0-999999999999"]', "these are 3,000,000,000,000 sessions"),
        ('task = "travel"\nsessions = 1000000001', "these are 3,000,000,003 sessions"),
        ('task = "travel"\nsessions = 2\ninstances = ["1"]', "sessions and instances both say"),
        ('task = "travel"\n[limits]\nrounds = 0', "limits.rounds must be more than 0, got 0"),
        ('task = "travel"\n[limits]\ncost = nan', "limits.cost must be more than 0, got nan"),
        ('task = "travel"\n[limits]\ncost = inf', "limits.cost must be more than 0, got inf"),
        ('task = "travel"\n[budget]\ncost = -1.0', "budget.cost must be at least 0, got -1.0"),
        (f"{ON_MODELS}[model.m]\ntimeout = -1", "model.m.timeout must be more than 0, got -1"),
        (f"{ON_MODELS}[model.m]\ntries = 0", "model.m.tries must be more than 0, got 0"),
        (
            f"{ON_MODELS}[model.m]\ncontext = 10",
            "context of model 'm' must be at least 1000, got",
        ),
        (
            f"{ON_MODELS}[model.m]\ninput_cost_per_token = -0.1",
            "model.m.input_cost_per_token must be at least 0, got -0.1",
        ),
        (
            f"{ON_MODELS}[model.m]\nrequests_per_minute = 0",
            "model.m.requests_per_minute must be",
        ),
        # keys of providers do not belong there, and are not repeated
        (
            f'{ON_MODELS}[model.m]\napi_key = "SECRET"',
            "model.m.api_key: keys are read from the env",
        ),
        (
            f'{ON_MODELS}[model.m]\noptions = {{api_key = "SECRET"}}',
            "model.m.options: api_key is no",
        ),
    ],
)
def test_what_is_wrong_in_a_file_is_one_line_that_names_it(
    text: str, complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path / "wrong.toml", text)
    log = tmp_path / "log.db"
    assert main(["run", str(file), "--log", str(log)]) == 2
    out, err = capsys.readouterr()
    assert err.startswith(f"duolog: {file}")
    assert complaint in err
    assert err.count("\n") == 1
    assert "SECRET" not in err
    assert out == ""
    assert not log.exists()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("x = 1", "does not assign an Experiment to the name 'experiment'; a task in the file is"),
        ("experiment = 3", "experiment is of type int: an Experiment is expected, or a list"),
        ("experiment = []", "experiment is an empty list"),
        ("experiment = Experiment(task='travel', agents=3)", "agents = 3: expected a list"),
        ("experiment = Experiment(task=print)", "unknown task '<built-in"),
        ("experiment = Experiment(task='travel', limits={'rounds': 0})", "limits.rounds must be"),
        ("experiment = Experiment(task='travel', limits={'round': 1})", "did you mean rounds?"),
        ("experiment = Experiment(task='travel', agnets=())", "line 2, in <module>"),
        ("experiment = Experiment(", "line 2: '(' was never closed"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        (
            "experiment = [Experiment(task='travel'), Experiment(task='data', log='b.db')]",
            "write to several logs (duolog.db, b.db)",
        ),
        ("experiment = [Experiment(task='data')] * 2", "two experiments are of one task"),
    ],
)
def test_what_is_wrong_in_a_file_in_python_is_one_line(
    text: str, complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path / "wrong.py", f"from duolog import Experiment\n{text}\n")
    log = tmp_path / "log.db"
    assert main(["run", str(file), "--log", str(log)]) == 2
    out, err = capsys.readouterr()
    assert complaint in err
    assert "wrong.py" in err
    assert err.count("\n") == 1
    assert out == ""
    assert not log.exists()


def test_a_file_in_python_is_run_resumed_and_registered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "grid.db"
    text = f"""
from duolog import Experiment

experiment = [
    Experiment(task=task, agents=("one-stage",), sessions=1, log={str(log)!r})
    for task in ("finance", "travel")
]
"""
    file = write(tmp_path / "grid_in_python.py", text)
    assert main(["run", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["sessions"] == 2
    (held,) = read_manifests(str(log))
    assert held.file == "grid_in_python.py"
    assert held.file_sha256 == hashlib.sha256(file.read_bytes()).hexdigest()
    assert held.tasks.keys() == {"finance", "travel"}
    assert main(["run", str(file), "--json"]) == 0
    assert "2 sessions: 0 run" in capsys.readouterr().err
    write(file, text.replace("log=", "patience=3, log="))
    assert main(["run", str(file), "--json"]) == 2
    assert "of another design" in capsys.readouterr().err


def test_a_file_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(tmp_path / "none.toml")]) == 2
    assert "cannot read" in capsys.readouterr().err
    write(tmp_path / "binary.toml", "x").write_bytes(b"\xff\xfe\x00")
    assert main(["run", str(tmp_path / "binary.toml")]) == 2
    assert "it is not UTF-8" in capsys.readouterr().err


def test_a_table_of_a_model_completes_the_one_for_all(tmp_path: Path) -> None:
    text = f'{ON_MODELS}[model."*"]\ntemperature = 0.5\ntries = 4\n[model.m]\ntries = 2\n'
    use = read_experiments(str(write(tmp_path / "e.toml", text)))[0].setting().uses["m"]
    assert (use.temperature, use.tries, use.context) == (0.5, 2, 32_000)


@given(
    st.dictionaries(
        st.sampled_from(["agents", "seed", "limits", "budget", "model", "log", "stop_at", "x y"]),
        st.recursive(
            st.none() | st.booleans() | st.integers(0, 9) | st.text("ab.", max_size=3),
            lambda inner: (
                st.lists(inner, max_size=2)
                | st.dictionaries(
                    st.sampled_from(["rounds", "cost", "tries", "m"]), inner, max_size=2
                )
            ),
            max_leaves=4,
        ),
        max_size=4,
    )
)
def test_whatever_stands_there_it_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, values: dict[str, JSON]
) -> None:
    from duolog.engine.errors import InvalidInput

    lines = [f"{json.dumps(key)} = {toml(value)}" for key, value in values.items()]
    text = "\n".join(['task = "travel"', *lines])
    file = write(tmp_path_factory.getbasetemp() / "any.toml", text)
    try:
        read_experiments(str(file))
    except InvalidInput as error:
        assert str(error).startswith(str(file))  # noqa: PT017


def toml(value: JSON) -> str:
    """A value as TOML has it; nothing at all as a date, which no key takes."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(toml(item) for item in value) + "]"
    return "2026-01-01" if value is None else json.dumps(value)
