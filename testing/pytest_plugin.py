"""The pytest plug-in: the fixture ``duolog_session``, and the transcript of a test that failed.

pytest loads this module in every run if Duolog is installed. It imports nothing else before a test
uses the fixture.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .collaboration import Collaboration

__all__ = ("duolog_session", "pytest_addoption", "pytest_runtest_makereport")

_OPTION = "duolog_log"
_KEY = pytest.StashKey["Collaboration"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds ``--duolog-log`` and the setting ``duolog_log``."""
    what = "record the sessions of the fixture duolog_session in this log, rather than in memory"
    parser.getgroup("duolog").addoption("--duolog-log", metavar="LOG", default=None, help=what)
    parser.addini(_OPTION, f"{what}; a path is relative to the root directory", default="")


@pytest.fixture
def duolog_session(request: pytest.FixtureRequest) -> Collaboration:
    """Records what a human and an agent do in a test, and asserts on the result.

    Use ``with`` in a synchronous test, ``async with`` in an asynchronous one::

        def test_it_drafts(duolog_session):
            with duolog_session.record(task="support") as session:
                session.human.says("My order has not come.")
                my_agent(session)
            duolog_session.assert_rounds(at_most=2)
    """
    from .collaboration import Collaboration

    collaboration = Collaboration(request.node.nodeid, _where(request.config))
    request.node.stash[_KEY] = collaboration
    return collaboration


def _where(config: pytest.Config) -> str:
    """URL of the log for the sessions."""
    given: str | None = config.getoption(_OPTION)
    if given is None and (named := str(config.getini(_OPTION))):
        return named if "://" in named else str(config.rootpath / named)
    if given is not None and "://" not in given:
        return str(Path(config.invocation_params.dir, given))
    return given or "memory://"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds the recorded sessions to the report of a test that failed, unless its error shows them."""
    report = yield
    collaboration = item.stash.get(_KEY, None)
    if collaboration is not None and report.failed and call.excinfo is not None:
        for title, text in collaboration.sections(call.excinfo.value):
            report.sections.append((title, text))
    return report
