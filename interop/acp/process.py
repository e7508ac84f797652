"""The proxy: starts an agent and its recorder, and relays between the agent and its client."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import IO, Final, NamedTuple

from .pump import Pump, write_all
from .tap import Tap
from .wire import AGENT, EDITOR

__all__ = ("NOT_FOUND", "NOT_RUNNABLE", "end_like", "run_proxy")

NOT_FOUND: Final = 127
"""Exit code if the agent does not exist, as in shells."""
NOT_RUNNABLE: Final = 126
"""Exit code if the agent cannot be started."""

_PASSED_ON: Final = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH")
_FROM_TERMINAL: Final = ("SIGINT", "SIGQUIT", "SIGWINCH")
_PAUSE: Final = 0.1  # seconds without output after which an agent that has ended has said all
_GRACE: Final = 10.0  # seconds that an agent has to end once the editor is gone
_KILL: Final = 5.0  # and once it was asked to
_BACKLOG: Final = 5.0  # seconds for which what waits for the recorder is handed over
_DEADLINE: Final = 1.0  # and for which it is waited for then, since an editor may wait for us
_PIPE: Final = 2**20  # size of the pipe to the recorder in bytes, if it can be set
_PR_SET_PDEATHSIG: Final = 1


class _Ends(NamedTuple):
    """The descriptors towards the editor."""

    source: int
    sink: int


def run_proxy(
    command: Sequence[str],
    recorder: Sequence[str],
    *,
    grace: float = _GRACE,
    room: int | None = None,
) -> int:
    """Passes everything between the standard streams and an agent until the agent ends.

    The standard error of the agent is that of this program. Call it in the main thread, before any
    other thread is started: it takes the standard streams, and handles signals.

    Args:
        command: starts the agent.
        recorder: starts the recorder, which reads copies from its standard input, see ``wire``.
        grace: seconds that the agent has to end once the editor is gone.
        room: bytes that may wait for the recorder; None for the default.

    Returns:
        The exit status of the agent, negative for a signal; 127 or 126 if it cannot be started.
    """
    if sys.platform == "win32":
        _say("to record what an editor and an agent say to each other needs Linux or macOS")
        return NOT_RUNNABLE
    ends = _take_standard_streams()
    try:
        agent = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            preexec_fn=_bound_to_us(),  # noqa: PLW1509  (this is the only thread)
        )
    except (OSError, ValueError) as error:
        missing = isinstance(error, FileNotFoundError)
        why = getattr(error, "strerror", None) or str(error)
        _say(f"cannot start the agent {command[0]!r}: {why}")
        return NOT_FOUND if missing else NOT_RUNNABLE
    with _signals_passed_on(agent):
        writer = _start_recorder(recorder)
        sink = None if writer is None else _descriptor(writer.stdin)
        tap = Tap(sink, _say, **_given(room))
        over = threading.Event()
        outward = Pump(
            "agent to editor", _descriptor(agent.stdout), ends.sink, partial(tap.put, AGENT)
        )
        watch = partial(_start_watch, agent, ends.sink, outward, over, grace)
        inward = Pump(
            "editor to agent",
            ends.source,
            _descriptor(agent.stdin),
            partial(tap.put, EDITOR),
            watch,
        )
        for part in (tap, outward, inward):
            part.start()
        status = agent.wait()
        over.set()
        outward.drain(_PAUSE)
        tap.end(status)
        _wait_for(writer, tap)
    return status


def end_like(status: int) -> int:
    """If a signal ended the agent, ends this program the same way; else returns the exit code.

    Args:
        status: the status of the agent.
    """
    if status >= 0:
        return status
    if sys.platform != "win32":
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (0, hard))  # the agent has left its own
        signum = -status
        if signum not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(signum, signal.SIG_DFL)
        os.kill(os.getpid(), signum)
    return 128 - status


def _take_standard_streams() -> _Ends:
    """Takes the streams away from everything else in this program, which might print on them."""
    sys.stdout.flush()
    ends = _Ends(os.dup(0), os.dup(1))
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return ends


def _bound_to_us() -> Callable[[], None] | None:
    """Ends the agent with this program, even if that is killed, on systems that support it."""
    if sys.platform != "linux":
        return None
    import ctypes

    library = ctypes.CDLL(None)
    parent = os.getpid()

    def bind() -> None:
        library.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it ended before
            os._exit(1)

    return bind


def _start_recorder(command: Sequence[str]) -> subprocess.Popen[bytes] | None:
    try:
        # Starts a separate session: the recorder must outlive the editor and the agent.
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
            pipesize=_PIPE,
        )
    except OSError as error:
        _say(f"the session is not recorded: {error.strerror or error}")
        return None


def _wait_for(writer: subprocess.Popen[bytes] | None, tap: Tap) -> None:
    """Waits a little for the recorder, which finishes the rest by itself."""
    if not tap.join(_BACKLOG):
        _say("the end of the session is not recorded: the recorder was too slow")
    if writer is None:
        return
    try:
        writer.wait(_DEADLINE)
    except subprocess.TimeoutExpired:
        writer.returncode = 0  # avoids a warning about the abandoned process


@contextmanager
def _signals_passed_on(agent: subprocess.Popen[bytes]) -> Iterator[None]:
    """Sends the agent the signals that this program gets.

    Those of a terminal reach the agent from the terminal.
    """

    def pass_on(number: int, _frame: FrameType | None) -> None:
        if agent.returncode is None:
            agent.send_signal(number)

    def leave(number: int, _frame: FrameType | None) -> None:
        """The terminal has sent it to the agent, too."""

    terminal = os.isatty(2)
    before = {}
    for name in _PASSED_ON:
        number = getattr(signal, name, None)
        if number is None or signal.getsignal(number) == signal.SIG_IGN:
            continue  # such as after nohup: the agent ignores it, too
        handler = leave if terminal and name in _FROM_TERMINAL else pass_on
        before[number] = signal.signal(number, handler)
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


def _start_watch(
    agent: subprocess.Popen[bytes], sink: int, outward: Pump, over: threading.Event, grace: float
) -> None:
    """Once the editor sends no more, waits until it reads no more either, and ends the agent."""

    def watch() -> None:
        while not _is_gone(sink, outward):
            if over.wait(0.2):
                return
        if not over.wait(grace):
            agent.terminate()
            if not over.wait(_KILL):
                agent.kill()

    threading.Thread(target=watch, name="watch", daemon=True).start()


def _is_gone(sink: int, outward: Pump) -> bool:
    """Whether the reader of the agent's output is gone."""
    if outward.over or not hasattr(select, "poll"):
        return outward.over
    poll = select.poll()
    poll.register(sink, 0)
    return bool(poll.poll(0))


def _descriptor(stream: IO[bytes] | None) -> int:
    """A descriptor of a stream's own, and the stream is closed."""
    assert stream is not None
    with stream:
        return os.dup(stream.fileno())


def _given(room: int | None) -> dict[str, int]:
    return {} if room is None else {"room": room}


def _say(text: str) -> None:
    try:
        write_all(2, f"duolog acp: {text}\n".encode())
    except OSError:
        pass  # the reader is gone
