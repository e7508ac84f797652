"""What the tests of the workbench share: pages that wait for as long as a slow machine needs."""

from __future__ import annotations

import pytest
from duolog.interop.workbench.alerts import history
from duolog.interop.workbench.sessions import routes, searching
from duolog.scoring.index import lists


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a page shows a part, and its script asks for the rest, as soon as the machine is busy."""
    for module in (history, lists, routes, searching):
        monkeypatch.setattr(module, "_PATIENCE", 3600.0)
