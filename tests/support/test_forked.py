"""A forked program finds what one that begins anew finds, and ends as it does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from forked import run_forked

pytestmark = pytest.mark.slow  # these tests start programs

FINDS = """
import json, os, sys, threading, warnings
print(json.dumps([__name__, sys.argv, sys.path, os.getcwd(), dict(os.environ), sys.stdin.read()]))
print(threading.active_count(), sys.stdout.isatty(), sys.stdout.encoding, file=sys.stderr)
warnings.warn_explicit("beware", UserWarning, "finds.py", 1)
sys.exit(3)
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ["-c", FINDS],
        ["-P", "-c", FINDS, "--more", "of it"],
        ["-m", "finds", "--more"],
        ["-P", "-W", "ignore", "-m", "finds"],
    ],
)
def test_it_finds_and_does_what_a_program_does(arguments: list[str], tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    for directory in (here, there):
        directory.mkdir()
        (directory / "finds.py").write_text(FINDS, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": f"{there}:{os.environ.get('PYTHONPATH', '')}"}
    forked = run_forked(arguments, here, environment)
    anew = subprocess.run(
        [sys.executable, *arguments],
        check=False,
        cwd=here,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert (forked.returncode, forked.stdout, forked.stderr) == (3, anew.stdout, anew.stderr)


def test_it_fails_as_a_program_does(tmp_path: Path) -> None:
    code = "import warnings; warnings.warn('beware')"
    failed = run_forked(["-W", "error", "-c", code], tmp_path, os.environ)
    assert failed.returncode == 1
    assert failed.stderr.endswith("UserWarning: beware\n")
    killed = run_forked(["-c", "import os; os.kill(os.getpid(), 9)"], tmp_path, os.environ)
    assert killed.returncode == -9


def test_what_one_does_the_next_does_not_see(tmp_path: Path) -> None:
    run_forked(["-c", "import json, os; json.seen = True; os.environ['SEEN'] = '1'"], tmp_path, {})
    code = "import json, os; print(hasattr(json, 'seen'), 'SEEN' in os.environ)"
    assert run_forked(["-c", code], tmp_path, {}).stdout == "False False\n"
