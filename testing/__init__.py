"""The public test kit, for anyone who tests agents or extends Duolog.

Scripted actors, sessions for them, an order for concurrent tasks, *given, when, then* for folds, and
checks of the contracts of stores, scorers and importers::

    user = Script().say("A weekend in Oslo, please.").hear().finish()
    helper = Script().hear().submit("Day 1: the fjord").say("How is this?")
    result, streams = await played(a_session(human(user), agent(helper)))
    assert result.reason == "finished"

Each name is imported on first use, since pytest loads the plug-in of this package in every run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazy_names

if TYPE_CHECKING:
    from .actors import Improviser as Improviser
    from .actors import Script as Script
    from .actors import agent as agent
    from .actors import human as human
    from .contracts.importer import check_importer as check_importer
    from .contracts.leases import check_leases as check_leases
    from .contracts.log import check_event_log as check_event_log
    from .contracts.scorer import check_scorer as check_scorer
    from .contracts.simulation import check_log_in_simulation as check_log_in_simulation
    from .contracts.task import check_task as check_task
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
    "check_leases",
    "check_log_in_simulation",
    "check_scorer",
    "check_task",
    "given",
    "human",
    "played",
    "put_records",
    "records_of",
    "streams",
    "virtual_turns",
)

# The module of each name.
_HOMES = {
    "Improviser": ".actors",
    "Played": ".sessions",
    "Script": ".actors",
    "Steps": ".steps",
    "Workshop": ".sessions",
    "a_session": ".sessions",
    "agent": ".actors",
    "by": ".folds",
    "check_event_log": ".contracts.log",
    "check_importer": ".contracts.importer",
    "check_leases": ".contracts.leases",
    "check_log_in_simulation": ".contracts.simulation",
    "check_scorer": ".contracts.scorer",
    "check_task": ".contracts.task",
    "given": ".folds",
    "human": ".actors",
    "played": ".sessions",
    "put_records": ".sessions",
    "records_of": ".folds",
    "streams": ".sessions",
    "virtual_turns": ".sessions",
}

if not TYPE_CHECKING:  # else a type checker would take any name for ours
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
