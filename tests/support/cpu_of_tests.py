"""Lists the tests that used most CPU, for ``pytest --cpu N``: what to make cheaper when the suite is
to run faster. Times on the wall say less, since tests share the cores and some only wait."""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest


def cpu_seconds() -> float:
    """CPU time of this process and of the programs that it started and that have ended."""
    return sum(os.times()[:4])


class CpuOfTests:
    """A plugin: measures in each process that runs tests, and lists in the one that reports."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._before = 0.0
        self._used: dict[str, float] = {}

    def pytest_runtest_logstart(self) -> None:
        self._before = cpu_seconds()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Counts fixtures to the first test that needs them, and to the last what ends with them."""
        report = yield
        if call.when == "teardown":
            report.user_properties.append(("cpu", cpu_seconds() - self._before))
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, value in report.user_properties:
            if name == "cpu" and isinstance(value, float):
                self._used[report.nodeid] = value

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        dearest = sorted(self._used.items(), key=lambda used: -used[1])[: self._most]
        total = sum(self._used.values())
        terminalreporter.section(f"CPU: {total:.0f} s; the {len(dearest)} dearest tests")
        for node, used in dearest:
            terminalreporter.write_line(f"{used:7.2f} s  {node}")
