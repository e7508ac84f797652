"""What several tests of logs use."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def public_path() -> Iterator[Path]:
    """A directory that every user of the machine may enter.

    A run of pytest that begins meanwhile takes that right away from the directories above ``tmp_path``.
    """
    with tempfile.TemporaryDirectory(prefix="duolog-public-") as directory:
        path = Path(directory)
        path.chmod(0o755)
        yield path
