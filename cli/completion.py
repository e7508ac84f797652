"""Shell completion: names of tasks, agents, users, scorers and importers, and session ids.

Values are looked up when a shell asks. If the lookup fails, there is nothing to complete: errors
are not shown while the user types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, get_type_hints

import typer
from typer.models import ParameterInfo

__all__ = (
    "AGENTS",
    "FILTER_KEYS",
    "USERS",
    "complete_agents",
    "complete_filters",
    "complete_importers",
    "complete_scorers",
    "complete_sessions",
    "complete_tasks",
    "complete_users",
    "offer_completions",
)

AGENTS: Final = (
    "auto",
    "one-stage",
    "two-stage",
    "careful",
    "adaptive",
    "looper",
    "polisher",
    "flatterer",
)
"""The kinds of agents, as ``agents.kinds`` has them, which is too heavy to load for the help."""

USERS: Final = ("proactive", "feedback", "lazy", "bounded", "none")
"""The personas, as ``users.personas`` has them, likewise."""

FILTER_KEYS: Final = (
    *("agent", "user", "model", "session", "task", "instance"),
    *("state", "rounds", "events", "lasted", "utility", "cost", "latency", "tau"),
    *("tag", "reviewer", "rated"),
)

_LOOKED_AT = 20_000  # sessions, at most
_SHOWN = 200


def _last_of(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Completes the last of several names, separated by commas."""

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        chosen = before.split(",")
        return [
            f"{before}{comma}{name}"
            for name in names()
            if name.startswith(last) and name not in chosen
        ]

    return complete


def _installed(group: str) -> Callable[[], list[str]]:
    """Names of the entry points of a group, of which nothing is loaded."""

    def names() -> list[str]:
        from importlib.metadata import entry_points

        return sorted({entry.name for entry in entry_points(group=group)})

    return names


complete_agents = _last_of(lambda: AGENTS)
complete_users = _last_of(lambda: USERS)
complete_scorers = _last_of(_installed("duolog.scorers"))


def complete_tasks(incomplete: str) -> list[str]:
    """Tasks that are installed; files are the shell's to complete."""
    return [name for name in _installed("duolog.tasks")() if name.startswith(incomplete)]


def complete_importers(incomplete: str) -> list[str]:
    """Formats that can be imported."""
    names = ["auto", "jsonl", *_installed("duolog.importers")()]
    return [name for name in names if name.startswith(incomplete)]


def complete_filters(incomplete: str) -> list[str]:
    """Keys of filters."""
    return [f"{key}=" for key in FILTER_KEYS if key.startswith(incomplete)]


def complete_sessions(context: typer.Context, incomplete: str) -> list[str]:
    """Ids of the sessions in the log that the command line names, as far as that is quick."""
    named = [context.params.get("log"), *(context.params.get("sources") or ())]
    # Behind an option whose value is still to come, nothing has been parsed.
    words = [*named, *(word for word in context.args if not word.startswith("-"))]
    log = next((word for word in words if isinstance(word, str) and word), None)
    if log is None:
        return []
    from ..engine.errors import DuologError
    from .lookup import existing_log
    from .runtime import run

    async def main() -> list[str]:
        found: list[str] = []
        async with existing_log(log) as opened:
            looked = 0
            async for summary in opened.sessions():
                looked += 1
                if summary.session.startswith(incomplete):
                    found.append(summary.session)
                if looked == _LOOKED_AT or len(found) == _SHOWN:
                    break
        return found

    try:
        return run(main)
    except (DuologError, OSError):  # the log is missing or cannot be read
        return []


_COMPLETIONS: Final[Mapping[str, Callable[..., list[str]]]] = {
    "task": complete_tasks,
    "agent": complete_agents,
    "agents": complete_agents,
    "compare": complete_agents,
    "user": complete_users,
    "users": complete_users,
    "scorers": complete_scorers,
    "filters": complete_filters,
    "form": complete_importers,
    "session": complete_sessions,
    "explain": complete_sessions,
}
"""By the name of a command's parameter."""


def offer_completions(app: typer.Typer) -> None:
    """Connects the parameters of all commands with what completes them; only when a shell asks."""
    for command in app.registered_commands:
        if command.callback is None:
            continue
        hints = get_type_hints(command.callback, include_extras=True)
        for name, hint in hints.items():
            for info in getattr(hint, "__metadata__", ()):
                if isinstance(info, ParameterInfo) and info.autocompletion is None:
                    info.autocompletion = _COMPLETIONS.get(name)
        command.callback.__annotations__ = hints  # else each look at them makes them again
