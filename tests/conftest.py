"""What all tests share: the optional data, and a guard against blocking the event loop."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import jsonschema as _schemas  # noqa: F401  (loaded with the first Models; its import lists its files)
import pytest
import structlog as _  # noqa: F401  (loaded at the first journal; its import asks for the directory)
from blockbuster import BlockBuster
from duolog.engine.models import LiteLLMModel, Message, ModelRequest
from openai_server import OpenAIServer

ROOT = Path(__file__).resolve().parents[1]

for _signal in (signal.SIGINT, signal.SIGHUP):
    # A job in a shell's background ignores them, and so would the programs that tests start.
    if signal.getsignal(_signal) is signal.SIG_IGN:
        default = signal.default_int_handler if _signal is signal.SIGINT else signal.SIG_DFL
        signal.signal(_signal, default)

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else importing it fetches prices


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
    parts = ("agents", "engine", "examples", "scoring", "users")
    blockbuster = BlockBuster([import_module(f"duolog.{part}") for part in parts])
    for function in blockbuster.functions.values():
        # What LiteLLM does on the loop is its own: it looks for certificates, imports as it goes.
        function.can_block_in("litellm/utils.py", "wrapper_async")
    return blockbuster


@pytest.fixture(autouse=True)
def never_block_the_loop(request: pytest.FixtureRequest, guard: BlockBuster) -> Iterator[None]:
    """Puts the guard up around each async test."""
    if not inspect.iscoroutinefunction(getattr(request, "function", None)):
        yield
        return
    guard.activate()
    try:
        yield
    finally:
        guard.deactivate()


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
def openai_server(monkeypatch: pytest.MonkeyPatch, litellm_at_work: None) -> Iterator[OpenAIServer]:
    """A server of models on loopback, and a key for it in the environment."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-proj-the-key-of-these-tests-1234567890")
    with OpenAIServer().running() as server:
        yield server
