"""The pytest plug-in, in separate runs of pytest. They run in this process, except those about loaded
modules, about a fresh process, and about two processes that share a file."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from duolog.engine.log.open import open_log

pytestmark = pytest.mark.slow  # these tests start programs

pytest_plugins = ["pytester"]

PROBE = """
import json, sys
import pytest
before = set(sys.modules)
import duolog.testing.pytest_plugin
print(json.dumps(sorted(set(sys.modules) - before)))
"""

# All of Duolog that a run loads which has the plug-in and does not use it.
PLUGIN = {
    "duolog",
    "duolog._lazy",
    "duolog._version",
    "duolog.testing",
    "duolog.testing.pytest_plugin",
}

SYNC = """
def talk(session):
    session.human.says("A haiku, please.")
    session.agent.submits("Append, and append")
    session.agent.says("Here it is.")
"""

TALKS = (
    SYNC
    + """
def test_it(duolog_session):
    with duolog_session.record(task="haiku") as session:
        talk(session)
    duolog_session.assert_rounds(1)
"""
)


@pytest.fixture(autouse=True)
def elsewhere_than_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    """There, pytest says everything twice: its summary cuts nothing short."""
    for name in ("CI", "BUILD_NUMBER"):
        monkeypatch.delenv(name, raising=False)


SETTINGS = ("-o", "asyncio_default_fixture_loop_scope=function", "-p", "no:cacheprovider")


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    """Runs pytest with the plug-in, which this process has loaded already."""
    plugins = (
        "-p",
        "anyio.pytest_plugin",
        "-p",
        "pytest_asyncio.plugin",
        "-p",
        "duolog.testing.pytest_plugin",
    )
    settings = ("-W", "error", "--disable-plugin-autoload", *plugins, *SETTINGS)
    return pytester.runpytest_inprocess(*settings, *arguments)


def start(pytester: pytest.Pytester) -> pytest.RunResult:
    """Runs pytest in a separate process, with the plug-in as it is installed."""
    return pytester.runpytest_subprocess("-W", "error", *SETTINGS)


def sessions(path: Path) -> list[tuple[str, str]]:
    async def read() -> list[tuple[str, str]]:
        async with open_log(str(path), create=False) as log:
            return [(one.session, one.state) async for one in log.sessions()]

    return anyio.run(read)


def test_importing_it_imports_nothing_else(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", PROBE],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    loaded = {name for name in json.loads(done.stdout) if not name.startswith("__editable__")}
    assert loaded == PLUGIN


def test_a_run_that_does_not_use_it_loads_nothing_of_it(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        f"""
        import sys

        def test_it():
            loaded = {{name for name in sys.modules if name.partition(".")[0] == "duolog"}}
            assert loaded == {PLUGIN}
            assert not {{"msgspec", "aiosqlite", "structlog", "typer"}} & set(sys.modules)
        """
    )
    start(pytester).assert_outcomes(passed=1)


def test_a_test_records_and_asserts(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(TALKS)
    start(pytester).assert_outcomes(passed=1)


def test_what_does_not_hold_is_shown_with_the_transcript_once(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(TALKS.replace("assert_rounds(1)", "assert_rounds(2)"))
    result = run(pytester)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            ">*duolog_session.assert_rounds(2)",
            "E*CollaborationError: the number of rounds is 1, and not 2",
            "E*── Round 1 *",
            "E*human*A haiku, please.",
        ]
    )
    text = result.stdout.str()
    assert text.count("A haiku, please.") == 1
    assert "collaboration.py" not in text  # its place does not matter


def test_any_other_failure_gets_the_transcript_as_a_section(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(TALKS.replace("duolog_session.assert_rounds(1)", "assert 1 == 2"))
    result = run(pytester)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*duolog session test_any_other*::test_it*",
            "*── Round 1 *",
            "*human*A haiku, please.",
            "*submits the first version of the output (1 line)*",
            "*■ closes the session: it is over",
        ]
    )


def test_a_failure_while_it_is_recorded_shows_what_was(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        TALKS.replace("        talk(session)", "        talk(session); assert 1 == 2")
    )
    result = run(pytester)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*duolog session *", "*closes the session after a failure*"])


def test_a_test_that_passes_or_is_skipped_says_nothing(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(TALKS + "    import pytest; pytest.skip('enough')\n")
    result = run(pytester, "-rA")
    result.assert_outcomes(skipped=1)
    assert "duolog session" not in result.stdout.str()


@pytest.mark.parametrize("mark", ["asyncio", "anyio"])
def test_it_works_in_asynchronous_tests(mark: str, pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nasyncio_mode = strict")
    pytester.makeconftest(
        "import pytest\n\n@pytest.fixture\ndef anyio_backend():\n    return 'asyncio'\n"
    )
    pytester.makepyfile(
        f"""
        import pytest

        @pytest.mark.{mark}
        async def test_it(duolog_session):
            async with duolog_session.record(task="haiku") as session:
                await session.human.says("A haiku, please.")
                await session.agent.says("Append, and append")
            duolog_session.assert_rounds(1)
            assert duolog_session.records[1].actor == "nobody"
        """
    )
    result = run(pytester)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*duolog session *", "*A haiku, please.*"])


def test_sessions_can_be_kept_in_a_file(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_a=TALKS, test_b=TALKS + "    assert False\n")
    for _ in range(2):
        run(pytester, "--duolog-log", "kept.db").assert_outcomes(passed=1, failed=1)
    assert sessions(pytester.path / "kept.db") == [
        ("test_a.py::test_it", "ended"),
        ("test_b.py::test_it", "ended"),
        ("test_a.py::test_it (2)", "ended"),
        ("test_b.py::test_it (2)", "ended"),
    ]


def test_the_file_can_be_named_in_the_settings(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nduolog_log = kept.db\naddopts = --strict-config --strict-markers")
    pytester.makepyfile(TALKS)
    pytester.mkdir("elsewhere")
    run(pytester, "--rootdir", str(pytester.path)).assert_outcomes(passed=1)
    assert sessions(pytester.path / "kept.db") == [
        ("test_the_file_can_be_named_in_the_settings.py::test_it", "ended")
    ]


def test_runs_at_the_same_time_may_share_a_file(pytester: pytest.Pytester) -> None:
    for number in range(2):
        repeated = TALKS.replace(
            "def test_it", "import pytest\n\n@pytest.mark.parametrize('n', range(4))\ndef test_it"
        )
        pytester.makepyfile(
            **{f"test_{number}": repeated.replace("(duolog_session)", "(n, duolog_session)")}
        )
    command = [
        sys.executable,
        "-P",
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--duolog-log",
        "kept.db",
    ]
    running = [
        subprocess.Popen(
            [*command, f"test_{number}.py"],
            cwd=pytester.path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for number in range(2)
    ]
    said = [process.communicate(timeout=300)[0] for process in running]
    assert [process.returncode for process in running] == [0, 0], "\n".join(said)
    assert sorted(sessions(pytester.path / "kept.db")) == sorted(
        (f"test_{number}.py::test_it[{n}]", "ended") for number in range(2) for n in range(4)
    )
