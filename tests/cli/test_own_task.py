"""Tasks, agents and users from a user's own file, in every command that takes them."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from duolog.cli import main

pytestmark = [pytest.mark.usefixtures("plain"), pytest.mark.slow]

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> Iterator[Path]:
    """A folder with ``shop.py`` in it, which is the current one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    done(capsys, "new", "task", "shop")
    yield tmp_path / "shop.py"
    for name in ("shop", "own", "bare", "x"):
        sys.modules.pop(name, None)


def done(capsys: Capture, *arguments: str, code: int = 0) -> str:
    """A command's output, the messages last."""
    capsys.readouterr()
    assert main(arguments) == code, capsys.readouterr().err
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return out + err


def refused(capsys: Capture, *arguments: str) -> str:
    """The one line of an error."""
    capsys.readouterr()
    assert main(arguments) == 2
    line = capsys.readouterr().err
    assert line.startswith("duolog: ")
    assert line.count("\n") == 1
    return line


def typing(capsys: Capture, text: str, *arguments: str) -> str:
    """The output of a command that reads this text from its input."""
    Path("typed").write_text(text, encoding="utf-8")
    with Path("typed").open(encoding="utf-8") as typed, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", typed)
        return done(capsys, *arguments)


def test_a_task_in_a_file_runs_with_its_own_agents_and_users(shop: Path, capsys: Capture) -> None:
    run = ("run", "shop.py:Shop", "--sessions", "2", "--log", "a.db")
    assert "4 sessions: 4 run" in done(capsys, *run)
    assert "4 sessions: 0 run, 4 in the log already" in done(capsys, *run)
    assert "4 sessions: 0 run, 4 in the log already" in done(capsys, "run", "shop:Shop", *run[2:])
    where = str(shop)
    assert "4 sessions: 0 run, 4 in the log already" in done(
        capsys, "run", f"{where}:Shop", *run[2:]
    )
    assert "guesser, customer" in done(capsys, "sessions", "a.db")


def test_what_reads_a_log_finds_the_task_again(shop: Path, capsys: Capture) -> None:
    done(capsys, "run", "shop.py:Shop", "--sessions", "1", "--log", "a.db")
    assert "nothing differs; 6 of 6 measurements" in done(capsys, "replay", "a.db", "--check")
    fork = ("fork", "a.db", "shop-0-clerk", "--at-round", "2")
    assert "clerk → guesser" in done(capsys, *fork, "--agent", "guesser")
    drops = done(capsys, "counterfactual", "a.db", "--tau", "1", "--continuations", "1")
    assert re.search(r"^clerk +customer +shop", drops, re.MULTILINE)
    assert "shop@1: 0 measurements added" in done(
        capsys, "score", "a.db", "--scorers", "shop.py:Shop"
    )


def test_a_file_that_has_changed_is_not_taken_for_the_one_before(
    shop: Path, capsys: Capture
) -> None:
    run = ("run", "shop.py:Shop", "--sessions", "1")
    done(capsys, *run, "--log", "a.db")
    shop.write_text(f"{shop.read_text(encoding='utf-8')}\n# changed\n", encoding="utf-8")
    assert "shop.py:Shop has changed since" in refused(capsys, *run, "--log", "a.db")
    assert "2 sessions: 2 run" in done(capsys, *run, "--log", "b.db")

    unchecked = done(capsys, "replay", "a.db", "--check", code=1)
    assert "shop.py has changed since" in unchecked
    checked = done(capsys, "replay", "a.db", "--check", "--task", "shop.py:Shop")
    assert "nothing differs; 6 of 6" in checked
    fork = ("fork", "a.db", "shop-0-clerk", "--at-round", "2", "--seed", "5")
    assert "with --task shop.py:Shop" in refused(capsys, *fork)
    done(capsys, *fork, "--task", "shop.py:Shop")
    assert "but travel is 'travel'" in refused(capsys, *fork, "--task", "travel")
    shop.unlink()
    assert "cannot read shop.py" in refused(capsys, *fork)


def test_agents_and_users_of_ones_own_play_in_any_task(shop: Path, capsys: Capture) -> None:
    Path("own.py").write_text(
        "from shop import Clerk, Customer\n\n"
        "class Mine(Clerk):\n    pass\n\n"
        "class Guest(Customer):\n    pass\n",
        encoding="utf-8",
    )
    run = ("run", "shop.py:Shop", "--agents", "own.py:Mine,clerk", "--users", "own.py:Guest")
    done(capsys, *run, "--sessions", "1", "--log", "a.db")
    assert "Mine, Guest" in done(capsys, "sessions", "a.db")
    fork = ("fork", "a.db", "shop-0-Mine", "--at-round", "2")
    assert "Mine → clerk" in done(capsys, *fork, "--agent", "clerk")
    assert "clerk → Mine" in done(
        capsys, "fork", "a.db", "shop-0-clerk", "--at-round", "2", "--agent", "own.py:Mine"
    )
    done(capsys, "replay", "a.db", "--check")
    travel = ("run", "travel", "--agents", "own.py:Mine", "--sessions", "1", "--max-rounds", "2")
    done(capsys, *travel, "--log", "t.db")
    assert "Mine, proactive" in done(capsys, "sessions", "t.db")
    twice = ("run", "shop.py:Shop", "--agents", "own.py:Mine,shop.py:Clerk,own.py:Mine")
    assert "6 sessions" in done(capsys, *twice, "--sessions", "3", "--log", "twice.db")


def test_a_toml_experiment_names_files_too(shop: Path, capsys: Capture) -> None:
    Path("mine.toml").write_text(
        'task = "shop.py:Shop"\nagents = ["shop.py:Clerk"]\nsessions = 1\nlog = "a.db"\n',
        encoding="utf-8",
    )
    assert "1 session: 1 run" in done(capsys, "run", "mine.toml")
    Path("mine.toml").write_text('task = "shop.py:Shop"\nagents = ["no.py:A"]\n', encoding="utf-8")
    assert "mine.toml: cannot read no.py" in refused(capsys, "run", "mine.toml")


BARE = """
from duolog import *
class Bare:
    name, description, agents, users = "bare", "", {"a": ""}, {"b": ""}
    def automated(self, agent): return False
    def instances(self, count, seed): return ["0"]
    def session(self, cell, setting): %s
"""
SEATLESS = """
        who = Participant(name="h", role="human"), Participant(name="a", role="agent")
        opened = SessionOpened(task="bare", instance="0", participants=who, clock="virtual", seed=1)
        async def finish(context): await context.finish()
        return Session(id="bare-0", opened=opened, players=tuple(Player(one, finish) for one in who))
"""


def test_a_task_without_a_seat_says_what_to_add(shop: Path, capsys: Capture) -> None:
    Path("bare.py").write_text(BARE % SEATLESS, encoding="utf-8")
    assert "setting.person" in refused(capsys, "chat", "bare.py:Bare")
    assert not Path("chats.db").exists()
    run = ("run", "bare.py:Bare", "--log", "a.db")
    assert "does not seat other agents" in refused(capsys, *run, "--agents", "shop.py:Clerk")
    assert not Path("a.db").exists()
    assert "1 session: 1 run" in done(capsys, *run)


@pytest.mark.parametrize(
    ("text", "task", "why"),
    [
        (None, "nowhere.py:Shop", "cannot read nowhere.py: No such file"),
        (None, "nowhere:Shop", "no module 'nowhere' here"),
        (
            None,
            "shop.py",
            "shop.py does not assign an Experiment to the name 'experiment'; a task in",
        ),
        (None, "shop", "the one in a file is named shop.py:NAME"),
        (None, "shop.py:Nobody", "shop.py has no 'Nobody'; it has: GOODS, utility, Clerk"),
        (None, "shop.py:Clerk", "shop.py:Clerk is not a task: it lacks name, description, agents"),
        (None, "shop.py:GOODS", "shop.py:GOODS is not a task"),
        ("class Shop(:\n", "x.py:Shop", "x.py, line 1: invalid syntax: class Shop(:"),
        ("def f():\n    return {}[1]\nf()\n", "x.py:f", "KeyError: 1 (x.py, line 2, in f)"),
        ("import nowhere\n", "x.py:Shop", "No module named 'nowhere' (x.py, line 1, in <module>)"),
        ("import sys\nsys.exit()\n", "x.py:Shop", "SystemExit: (x.py, line 2, in <module>)"),
        (BARE % "return 3", "x.py:Bare", "its session is not a Session, but int"),
        (BARE % "return {}[1]", "x.py:Bare", "KeyError: 1 (x.py, line 7, in session)"),
    ],
)
def test_what_is_wrong_is_one_line(
    text: str | None, task: str, why: str, shop: Path, capsys: Capture
) -> None:
    if text is not None:
        Path("x.py").write_text(text, encoding="utf-8")
    assert why in refused(capsys, "run", task, "--log", "a.db")
    assert not Path("a.db").exists()


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("return len(wanted & bought)", "return 1.5 * len(wanted & bought)", "a utility lies in"),
        ("return len(wanted & bought)", "return 'good', len(wanted & bought)", "shop gave ('good'"),
        ("if not basket:", "if view.messages[99]:", "IndexError: list index out of range (shop.py"),
        ("return Decision()  #", "return None  #", "'agent' has to decide on a Decision, not None"),
        ("Say(f", "str(f", "holds 'I would like bread.', which is not a verb such as Say"),
        ("    async def decide", "    def decide", "write 'async def decide(self, view)'"),
    ],
)
def test_what_one_wrote_wrongly_is_said_after_the_run(
    before: str, after: str, why: str, shop: Path, capsys: Capture
) -> None:
    text = shop.read_text(encoding="utf-8")
    assert before in text
    shop.write_text(text.replace(before, after), encoding="utf-8")
    main(["run", "shop.py:Shop", "--agents", "clerk", "--sessions", "1", "--log", "a.db"])
    shown = capsys.readouterr().err
    assert why.replace("shop gave", "task 'shop' gave") in shown
    assert "Traceback" not in shown


def test_a_chat_with_ones_own_agent(shop: Path, capsys: Capture) -> None:
    Path("own.py").write_text("from shop import guesser as hasty\n", encoding="utf-8")
    chat = ("chat", "shop.py:Shop", "--log", "a.db", "--agent")
    assert "the task has its own agent 'guesser'" in refused(capsys, *chat, "shop.py:guesser")
    left = typing(capsys, "/quit\n", *chat, "own.py:hasty")
    assert "What you want, which only you know:" in left
    [again] = [line.partition("duolog ")[2] for line in left.splitlines() if "--resume" in line]
    assert "The session is finished" in typing(capsys, "/finish thanks\n", *again.split())
    assert "hasty, person" in done(capsys, "sessions", "a.db")


@pytest.mark.parametrize("file", ["{}.py", "test_{}.py"])
def test_what_new_writes_is_what_we_check_and_show(
    file: str, root: Path, shop: Path, capsys: Capture
) -> None:
    name = "started_task"
    with pytest.MonkeyPatch.context() as patch:  # the copy that ruff, mypy and pytest go over
        patch.setattr(sys, "path", [one for one in sys.path if not one.endswith("support")])
        done(capsys, "new", "task", name)
    written = shop.with_name(file.format(name)).read_text(encoding="utf-8")
    kept = root / "tests" / "support" / file.format(name)
    assert written == kept.read_text(encoding="utf-8")
    page = (root / "docs" / "your-own.md").read_text(encoding="utf-8")
    assert shop.with_name(file.format("shop")).read_text(encoding="utf-8") in page
    check = [sys.executable, "-m", "ruff", "check", "--isolated", "--quiet", str(shop.parent)]
    assert subprocess.run(check, check=False).returncode == 0
    check[3:4] = ["format", "--check"]
    assert subprocess.run(check, check=False).returncode == 0


def test_new_overwrites_nothing_and_takes_no_name_of_a_module(shop: Path, capsys: Capture) -> None:
    before = shop.read_text(encoding="utf-8")
    shop.with_name("test_shop.py").unlink()
    assert "shop.py exists already" in refused(capsys, "new", "task", "shop")
    assert shop.read_text(encoding="utf-8") == before
    assert not shop.with_name("test_shop.py").exists()
    for name in ("my-shop", "Shop", "class", "_x", "1st", "random", "msgspec", "duolog"):
        refused(capsys, "new", "task", name)
    done(capsys, "new", "task", "my_shop")
    assert "MyShop = SimpleTask(" in Path("my_shop.py").read_text(encoding="utf-8")
    refused(capsys, "new", "task", "other", "--directory", "nowhere")
