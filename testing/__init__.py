"""The public test kit, for everybody who tests agents or extends Duolog.

Actors that follow a script, sessions to put them in, an order for tasks that run at once, folds
told as *given, when, then*, and checks of contracts that a store, a scorer or an importer has to
keep::

    user = Script().say("A weekend in Oslo, please.").hear().finish()
    helper = Script().hear().submit("Day 1: the fjord").say("How is this?")
    result, streams = await played(a_session(human(user), agent(helper)))
    assert result.reason == "finished"

Each name is imported when it is first used, since pytest loads the plug-in beside it in every run.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .actors import Improviser as Improviser
    from .actors import Script as Script
    from .actors import agent as agent
    from .actors import human as human
    from .contracts.importer import check_importer as check_importer
    from .contracts.log import check_event_log as check_event_log
    from .contracts.scorer import check_scorer as check_scorer
    from .folds import by as by
    from .folds import given as given
    from .folds import records_of as records_of
    from .sessions import Played as Played
    from .sessions import Workshop as Workshop
    from .sessions import a_session as a_session
    from .sessions import played as played
    from .sessions import put_records as put_records
    from .sessions import streams as streams
    from .sessions import virtual_turns as virtual_turns
    from .steps import Steps as Steps

__all__ = (
    "Improviser",
    "Played",
    "Script",
    "Steps",
    "Workshop",
    "a_session",
    "agent",
    "by",
    "check_event_log",
    "check_importer",
    "check_scorer",
    "given",
    "human",
    "played",
    "put_records",
    "records_of",
    "streams",
    "virtual_turns",
)

_HOMES = (
    ".actors",
    ".contracts.importer",
    ".contracts.log",
    ".contracts.scorer",
    ".folds",
    ".sessions",
    ".steps",
)

if not TYPE_CHECKING:  # else a type checker would take any name for ours

    def __getattr__(name: str) -> object:
        if name in __all__:
            for home in _HOMES:
                module = import_module(home, __name__)
                if name in module.__all__:
                    value = globals()[name] = getattr(module, name)
                    return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
