"""What commands say that need an extra which is not installed: one line, and nothing is left behind."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from duolog.cli import main
from extras import hide_extras

ROOT = Path(__file__).parents[2]

COMMANDS = {
    "bundle LOG --output OUT --licence CC0-1.0": "analytics",
    "export LOG --format parquet --output OUT": "analytics",
    "export LOG --format sessions --to parquet --output OUT": "analytics",
    "report TABLES": "analytics",
    "report LOG --figures OUT": "plots",
    "watch LOG": "tui",
    "workbench LOG --port 0": "web",
    "serve --log LOG --port 0": "web",
    "tune tutoring --output OUT": "tune",
    "import FILE --log OUT --mapping MAPPING": "mapping",
    "run data --models openai/some --log OUT --agents one-stage": "llm",
    "copy LOG postgresql://127.0.0.1:1/nothing": "postgres",
}

PROGRAM = """
import contextlib, io, json, sys
from duolog.cli import main

found = {}
for command in json.loads(sys.argv[1]):
    printed, failed = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(failed):
        code = main(command.split())
    found[command] = code, printed.getvalue(), failed.getvalue()
print(json.dumps(found))
"""


@pytest.mark.slow
def test_a_missing_extra_is_named_in_one_line(
    dinner: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (tmp_path / "FILE").write_text('{"id": "1", "text": "Hello"}\n', encoding="utf-8")
    mapping = (
        "[message]\neach = '$.said[*]'\nrole = '$.by'\ntext = '$.text'\n[roles]\nme = 'human'\n"
    )
    (tmp_path / "MAPPING").write_text(mapping, encoding="utf-8")
    shutil.copy(dinner, tmp_path / "LOG")
    write_tables = f"export {dinner} --format parquet --output {tmp_path / 'TABLES'}"
    assert main(write_tables.split()) == 0
    before = sorted(tmp_path.rglob("*"))
    hidden = hide_extras(ROOT, (), tmp_path_factory.mktemp("without"))
    search = os.pathsep.join(filter(None, [str(hidden), os.environ.get("PYTHONPATH", "")]))
    program = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM, json.dumps([*COMMANDS])],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": search},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert program.stderr == ""
    found = json.loads(program.stdout)
    for command, extra in COMMANDS.items():
        code, printed, failed = found[command]
        assert (code, printed) == (2, ""), command
        assert " needs an extra: " in failed, command
        assert failed.endswith(f"[{extra}]'\n"), command
        assert failed.count("\n") == 1, command
    assert sorted(tmp_path.rglob("*")) == before
