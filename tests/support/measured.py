"""Measures what a door of Duolog takes to read a hostile input, in a separate process with a limit.

``measure`` starts the process; run as a program, this module is that process.
"""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from forked import run_forked

__all__ = ("DOORS", "LIMIT", "Measured", "measure", "peak")

LIMIT: Final = 3 * 2**30
"""Bytes of addresses that the process may have, so that a door that fails harms nothing else."""


class Measured(NamedTuple):
    """The outcome of an input.

    Attributes:
        grew: bytes by which the memory of the process grew at its peak.
        said: what was read, or why nothing was.
    """

    grew: int
    said: str


def measure(door: str, source: Path, *more: str) -> Measured:
    """Reads an input through a door.

    Args:
        door: one of ``DOORS``.
        source: a file, or a directory.
        more: what else the door is told.
    """
    module = Path(__file__)
    environment = {**os.environ, "PYTHONPATH": str(module.parent)}
    done = run_forked(["-P", "-m", module.stem, door, str(source), *more], Path.cwd(), environment)
    assert done.returncode == 0, f"{done.stdout}{done.stderr[-2000:]}"
    return msgspec.json.decode(done.stdout.splitlines()[-1], type=Measured)


def peak() -> int:
    """Bytes that this process has held at most."""
    with Path("/proc/self/status").open(encoding="utf-8") as file:
        (line,) = (line for line in file if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


def _imported(source: Path, format: str = "") -> str:
    from duolog.interop.importers.preview import preview_foreign
    from duolog.interop.importers.protocol import Reading
    from duolog.interop.importers.registry import find_importer, recognise

    importer = find_importer(format) if format else recognise(source)
    if importer is None:
        return "not recognised"
    found = preview_foreign(source, importer, Reading())
    return f"{len(found.sessions)} sessions, {len(found.diagnostics)} diagnostics"


def _exported(source: Path, media: str, packed: str = "") -> str:
    from duolog.interop.http.limits import HttpLimits
    from duolog.interop.http.traces import read_spans
    from starlette.exceptions import HTTPException

    try:
        found = read_spans(source.read_bytes(), media, bool(packed), HttpLimits().of_traces)
    except HTTPException as error:
        return f"{error.status_code}: {error.detail}"
    return f"{len(found.spans)} spans, {found.rejected.spans} rejected"


def _lines(source: Path) -> str:
    import anyio
    from duolog.engine.log.exchange.jsonl_import import import_jsonl
    from duolog.engine.log.open import MemoryLog

    async def take() -> str:
        async with MemoryLog() as log:
            found = await import_jsonl(log, source, keep_going=True)
        return f"{found.records} records, {len(found.problems)} problems"

    return anyio.run(take)


def _tables(source: Path) -> str:
    from duolog.scoring.columns.parquet import check_pyarrow, read_tables
    from duolog.scoring.trajectory.options import Options

    check_pyarrow()
    import pyarrow.parquet  # type: ignore[import-untyped]  # noqa: F401  (its size is not counted)

    return f"{len(read_tables(source, Options()))} sessions"


DOORS: Final[dict[str, Callable[..., str]]] = {
    "import": _imported,
    "traces": _exported,
    "lines": _lines,
    "tables": _tables,
}
"""What reads an input, by name."""


def _main() -> None:
    from duolog.engine.errors import DuologError

    door, source, *more = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))
    warm = Path(__file__)  # the modules that a door imports are not counted
    for _ in range(2):
        try:
            DOORS[door](warm, *more)
        except DuologError:
            pass
    before = peak()
    try:
        said = DOORS[door](Path(source), *more)
    except DuologError as error:
        said = f"{type(error).__name__}: {error}"
    sys.stdout.write(f"{msgspec.json.encode(Measured(peak() - before, said)).decode()}\n")


if __name__ == "__main__":
    _main()
