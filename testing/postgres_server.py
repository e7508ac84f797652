"""Runs a private PostgreSQL server on a free loopback port, in a temporary directory.

    python -P -m duolog.testing.postgres_server COMMAND ...    # runs the command while there is a server

The command finds the URL of a new log in the variable ``DUOLOG_POSTGRES``.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from uuid import uuid4

__all__ = ("PostgresServer", "held_port", "main", "missing", "running_postgres")

USER = "duolog"

_MEMORY: Final = "/dev/shm"

_PATIENCE: Final = 180  # seconds in which a server starts, even on a disk that is busy


def _programs() -> Path | None:
    """The directory of ``initdb`` and ``pg_ctl``; Debian keeps it off the path."""
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return versions[-1].parent if versions else None


def missing() -> str:
    """The reason why a server cannot be started; empty if it can."""
    if _programs() is None:
        return (
            "there is no PostgreSQL here (no initdb on the path or under /usr/lib/postgresql): on Debian "
            "and Ubuntu, apt-get install postgresql brings it"
        )
    if sys.platform == "win32":
        return "a PostgreSQL server is started on Linux and macOS only"
    if os.geteuid() == 0 and _account() is None:
        return "PostgreSQL does not run as root, and there is no other account for it"
    return ""


def _account() -> str | None:
    """An account to run the server as, if this process is root: PostgreSQL refuses to run as root."""
    if sys.platform == "win32" or os.geteuid() != 0:
        return None
    import pwd

    names = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in ("postgres", "nobody") if name in names), None)


def _group(account: str | None) -> int | None:
    if sys.platform == "win32" or account is None:
        return None
    import pwd

    return pwd.getpwnam(account).pw_gid


class PostgresServer:
    """A server that can be killed and started again.

    Args:
        programs: where its programs are.
        directory: for its files.
        port: of loopback, that it listens on.
        wal: for its write-ahead log, where that lies elsewhere; not there yet.
    """

    def __init__(self, programs: Path, directory: Path, port: int, wal: Path | None = None) -> None:
        self._programs = programs
        self.port = port
        self._data = directory / "data"
        self._as = _account()
        if self._as is not None:
            shutil.chown(directory, self._as)
        self._directory = directory
        options = ("-U", USER, "--auth=trust", "-E", "UTF8", "--locale=C", "-N", "-D", self._data)
        self._run("initdb", *options, *(() if wal is None else ("-X", wal)))

    def url(self, **options: str) -> str:
        """The URL of a new log on it."""
        given = {"schema": f"log_{uuid4().hex[:12]}"} | options
        query = "&".join(f"{name}={value}" for name, value in given.items())
        return f"postgresql://{USER}@127.0.0.1:{self.port}/postgres?{query}"

    def start(self) -> None:
        """Starts it, and waits until it takes connections."""
        options = (
            f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self._directory} "
            "-c max_connections=200 -c shared_buffers=32MB"
        )
        log = self._directory / "log"
        self._run(
            "pg_ctl", "-D", self._data, "-w", "-t", _PATIENCE, "-l", log, "-o", options, "start"
        )

    def stop(self, mode: str = "fast") -> None:
        """Stops it; ``immediate`` is as a crash."""
        self._run("pg_ctl", "-D", self._data, "-w", "-t", _PATIENCE, "-m", mode, "stop")

    def _run(self, program: str, *arguments: object) -> None:
        subprocess.run(
            [self._programs / program, *map(str, arguments)],
            check=True,
            user=self._as,
            group=_group(self._as),
            extra_groups=None if self._as is None else (),
            cwd="/",
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=2 * _PATIENCE,
        )


@contextmanager
def held_port() -> Iterator[int]:
    """A free port of loopback for a server that starts later, or again. No other program gets it
    while the block runs.
    """
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        port: int = held.getsockname()[1]
        if sys.platform != "linux":  # only there another socket may listen on it meanwhile
            held.close()
        yield port


@contextmanager
def running_postgres(
    *, durable: bool = True, place: Path | None = None, wal: Path | None = None
) -> Iterator[PostgresServer]:
    """A server, while the block runs.

    Args:
        durable: keeps its files on a disk. In memory, a crash of the server still loses nothing.
        place: a directory to keep them in, whichever that is.
        wal: a directory to be made for its write-ahead log, where that is to lie elsewhere.
    """
    programs = _programs()
    assert programs is not None, missing()
    usual = "/tmp" if durable or not os.access(_MEMORY, os.W_OK) else _MEMORY
    with (
        held_port() as port,
        TemporaryDirectory(prefix="duolog-postgres-", dir=place or usual) as directory,
    ):
        os.chmod(directory, 0o755)
        server = PostgresServer(programs, Path(directory), port, wal)
        server.start()
        try:
            yield server
        finally:
            server.stop("immediate")


def main(command: Sequence[str]) -> int:
    """Runs a command while a server is up; returns its exit code, or 2 if no server can start."""
    why = missing()
    if why or not command:
        sys.stderr.write(f"error: {why or 'name a command to run'}\n")
        return 2
    with running_postgres() as server:
        sys.stderr.write(f"PostgreSQL runs on port {server.port} of loopback\n")
        environment = os.environ | {"DUOLOG_POSTGRES": server.url(schema="duolog")}
        code = subprocess.run(command, check=False, env=environment).returncode
    sys.stderr.write("PostgreSQL is stopped, and its files are removed\n")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
