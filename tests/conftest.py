"""What all tests share: which of them run, their seeds, the optional data, and a guard against
blocking the event loop."""

from __future__ import annotations

import asyncio
import atexit
import gc
import inspect
import os
import random
import re
import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import jsonschema as _schemas  # noqa: F401  (loaded with the first Models; its import lists its files)
import pytest
import pytest_asyncio
import structlog  # loaded here because its import asks for the directory, which would block a loop
from blockbuster import BlockBuster
from cpu_of_tests import CpuOfTests
from duolog.engine.models import LiteLLMModel, Message, ModelRequest
from duolog.testing.postgres_server import PostgresServer, held_port, missing, running_postgres
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import text
from openai_server import OpenAIServer
from order_of_tests import dealt

if TYPE_CHECKING:
    from browser import SharedBrowser
    from playwright.async_api import Browser

ROOT = Path(__file__).resolve().parents[1]

for _signal in {signal.SIGINT, getattr(signal, "SIGHUP", signal.SIGINT)}:
    # A job in a shell's background ignores them, and so would the programs that tests start.
    if signal.getsignal(_signal) is signal.SIG_IGN:
        default = signal.default_int_handler if _signal is signal.SIGINT else signal.SIG_DFL
        signal.signal(_signal, default)

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else importing it fetches prices

# Properties are tried on the same examples in every run. Nothing depends on how long one takes, because a
# machine may be busy. Long runs draw other examples, and more of them.
SLOW = [HealthCheck.too_slow]
settings.register_profile(
    "same",
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=20,
    suppress_health_check=SLOW,
)
settings.register_profile("soak", deadline=None, max_examples=1000, suppress_health_check=SLOW)

ON_REQUEST = ("soak", "release")
"""Markers of tests that run only where ``-m`` asks for them."""

SEED = 11
"""What tests draw from by chance, except in long runs."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seed", type=int, help="repeats a long run that had this seed")
    parser.addoption("--cpu", type=int, metavar="N", help="lists the N tests that used most CPU")


def asked_for(config: pytest.Config) -> set[str]:
    """The markers of ``ON_REQUEST`` that ``-m`` asks for."""
    names = re.findall(r"(\bnot\s+)?\b(\w+)", config.option.markexpr)
    return {name for negated, name in names if not negated and name in ON_REQUEST}


class CheckoutIsNoTestPackage:
    """Collects the checkout as a plain directory: pytest would import its ``__init__.py``, which is
    that of ``duolog``, under the name of the checkout.

    A plugin, since the hooks of this file are called for what is below it only.
    """

    @pytest.hookimpl(tryfirst=True)
    def pytest_collect_directory(
        self, path: Path, parent: pytest.Collector
    ) -> pytest.Collector | None:
        return pytest.Dir.from_parent(parent, path=path) if path == ROOT else None


def pytest_configure(config: pytest.Config) -> None:
    """Chooses the seed. Workers of pytest-xdist take over the options, and with them the seed."""
    config.pluginmanager.register(CheckoutIsNoTestPackage())
    if config.option.cpu:
        config.pluginmanager.register(CpuOfTests(config.option.cpu))
    if "soak" not in asked_for(config):
        settings.load_profile("same")
        return
    settings.load_profile("soak")
    if config.option.seed is None:
        config.option.seed = random.SystemRandom().randrange(10**6)
    config.option.hypothesis_seed = str(config.option.seed)


def pytest_report_header(config: pytest.Config) -> str | None:
    seed = config.option.seed
    return None if seed is None else f"seed: {seed} (make soak SEED={seed} repeats this run)"


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collects tests without collecting garbage, which is little. Imported modules are frozen, so that
    they are not examined repeatedly. Later garbage is collected more rarely than usual."""
    gc.disable()
    atexit.register(gc.unfreeze)  # libraries in C look at the end for what is still there
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
        gc.set_threshold(50_000, 20, 20)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out tests that were not asked for, and puts the others in order."""
    apart = {*ON_REQUEST} - asked_for(config)
    chosen: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        asked = apart.isdisjoint(mark.name for mark in item.iter_markers())
        (chosen if asked else left_out).append(item)
    config.hook.pytest_deselected(items=left_out)
    items[:] = dealt(chosen, getattr(config, "workerinput", {}).get("workercount", 1))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Tries one property if tests are collected and not run. So hypothesis keeps what it derives from Unicode
    and from the package's sources, and processes that run tests later find it."""
    if session.config.option.collectonly:
        given(text())(settings(max_examples=1)(lambda drawn: None))()


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """The seed of a test's random choices; a long run has another each time."""
    drawn: int | None = request.config.option.seed
    return SEED if drawn is None else drawn


@pytest.fixture(scope="session")
def root() -> Path:
    """The directory of the checkout."""
    return ROOT


@pytest.fixture(scope="session")
def test_data() -> Callable[[str], Path]:
    """Finds a file of the optional test data by its name there, or skips the test.

    The data lie in the directory named by the environment variable DUOLOG_TEST_DATA, else in
    ``../shared/data`` beside the checkout.
    """
    named = os.environ.get("DUOLOG_TEST_DATA")
    directory = Path(named) if named else ROOT.parent / "shared" / "data"

    def find(name: str) -> Path:
        path = directory / name
        if not path.exists():
            pytest.skip(f"needs test data: no {path} (DUOLOG_TEST_DATA names the directory)")
        return path

    return find


@pytest.fixture(scope="session")
def guard() -> BlockBuster:
    """Raises where code of the parts below, or what it calls, would block a running event loop.

    The parts are named one by one, since the package's own directory is the checkout, which also
    holds the tests and perhaps the virtual environment.
    """
    parts = ("agents", "engine", "examples", "interop", "scoring", "telemetry", "users")
    blockbuster = BlockBuster([import_module(f"duolog.{part}") for part in parts])
    for function in blockbuster.functions.values():
        # What LiteLLM does on the loop is its own: it looks for certificates, imports as it goes.
        function.can_block_in("litellm/utils.py", "wrapper_async")
        # As libpq does, asyncpg looks for a password file and certificates before it connects.
        function.can_block_in("asyncpg/connect_utils.py", "_parse_connect_arguments")
        # Without an extra nothing continues; the advice depends on where Duolog is installed.
        function.can_block_in("engine/installation.py", "install_command")
        # Duolog looks for a store of another package before it opens a log: it reads the installed ones.
        function.can_block_in("engine/log/open.py", "_installed")
    return blockbuster


_start: Callable[..., None] = subprocess.Popen.__init__


def _refuse(self: object, command: object, *more: object, **options: object) -> None:
    if isinstance(command, list) and command[0] == "fc-list":  # matplotlib does so once
        return _start(self, command, *more, **options)
    pytest.fail(f"this test starts a program, and is not marked as slow: {command}")


@pytest.fixture(autouse=True)
def house_rules(request: pytest.FixtureRequest, guard: BlockBuster) -> Iterator[None]:
    """Holds of each test that it starts programs only if it is marked as slow, so that the quick ones stay
    quick; that it does not block its event loop; and that it leaves structlog unconfigured: in later tests,
    Duolog would then print.

    One fixture, since each costs time in each test.
    """
    quick = not any(request.node.get_closest_marker(name) for name in ("slow", *ON_REQUEST))
    waits = inspect.iscoroutinefunction(getattr(request, "function", None))
    if quick:
        subprocess.Popen.__init__ = _refuse  # type: ignore[method-assign, assignment]
    if waits:
        guard.activate()
    try:
        yield
    finally:
        if waits:
            guard.deactivate()
        if quick:
            subprocess.Popen.__init__ = _start  # type: ignore[method-assign]
    assert not structlog.is_configured(), "this test left structlog configured"


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server; tests that ask for it are skipped if there is none, but not in ``.ci/run``."""
    why = missing()
    if why and os.environ.get("DUOLOG_TEST_PROGRAMS") != "required":
        pytest.skip(why)
    with running_postgres(durable=False) as server:
        yield server


@pytest.fixture
def port() -> Iterator[int]:
    """A port for a server that is stopped and started again; no other program gets it meanwhile."""
    with held_port() as found:
        yield found


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def running_browser() -> AsyncIterator[Browser]:
    """The browser of all tests of a process."""
    from browser import browsing  # which imports the driver

    async with browsing() as browser:
        yield browser


@pytest_asyncio.fixture(loop_scope="session")
async def browser(running_browser: Browser) -> AsyncIterator[SharedBrowser]:
    """A browser without pages, for tests marked as ``shares_browser``. Their pages are closed at the end."""
    from browser import SharedBrowser

    shared = SharedBrowser(running_browser)
    yield shared
    await shared.close_all()


@pytest.fixture(scope="session")
def litellm_at_work() -> None:
    """Makes calls through LiteLLM, since it imports much of itself when it is first used."""
    message = Message(role="user", content="Hello")
    with OpenAIServer().running() as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "sk-none")
        for stream in (False, True):
            model = LiteLLMModel(api_base=server.url, stream=stream)
            asyncio.run(model.complete(ModelRequest(model="openai/gpt-4o", messages=(message,))))


@pytest.fixture
def litellm(litellm_at_work: None) -> Iterator[ModuleType]:
    """LiteLLM, whose callbacks are taken out again: of two of one class it calls the first alone."""
    import litellm as library

    yield library
    reset: Callable[[], None] = library.logging_callback_manager._reset_all_callbacks
    reset()


@pytest.fixture
def openai_server(monkeypatch: pytest.MonkeyPatch, litellm_at_work: None) -> Iterator[OpenAIServer]:
    """A server of models on loopback, and a key for it in the environment."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-proj-the-key-of-these-tests-1234567890")
    with OpenAIServer().running() as server:
        yield server
