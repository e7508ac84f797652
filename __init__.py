"""Duolog: an event log of people and agents working together, scored as it is written.

The names below are what most programs need, in five groups: embed, simulate, score, replay, extend.
The rest of the public API is in submodules; ``docs/reference`` lists all of it. Each name is imported
when it is first used, so that ``import duolog`` costs next to nothing, and loads no library that is
not needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._lazy import lazy_names
from ._version import __version__

if TYPE_CHECKING:  # what static tools see; a test compares it with _HOMES
    from .engine.errors import DuologError as DuologError
    from .engine.errors import InvalidInput as InvalidInput
    from .engine.errors import VersionConflict as VersionConflict
    from .engine.events import ActionTaken as ActionTaken
    from .engine.events import MessageSent as MessageSent
    from .engine.events import Participant as Participant
    from .engine.events import ProgressRated as ProgressRated
    from .engine.events import ScorerRef as ScorerRef
    from .engine.events import SessionOpened as SessionOpened
    from .engine.events import SnapshotTaken as SnapshotTaken
    from .engine.events import StopAdvised as StopAdvised
    from .engine.events import UtilityScored as UtilityScored
    from .engine.records import Draft as Draft
    from .engine.records import Record as Record
    from .engine.scorers.protocol import Measurement as Measurement
    from .engine.scorers.protocol import Scorer as Scorer
    from .engine.scorers.protocol import SessionScorer as SessionScorer
    from .engine.session.actors import Player as Player
    from .engine.session.actors import Policy as Policy
    from .engine.session.actors import playing as playing
    from .engine.session.decisions import Act as Act
    from .engine.session.decisions import Approve as Approve
    from .engine.session.decisions import Ask as Ask
    from .engine.session.decisions import ChangeProfile as ChangeProfile
    from .engine.session.decisions import Decision as Decision
    from .engine.session.decisions import Finish as Finish
    from .engine.session.decisions import Note as Note
    from .engine.session.decisions import Rate as Rate
    from .engine.session.decisions import Say as Say
    from .engine.session.decisions import Submit as Submit
    from .engine.session.decisions import Wait as Wait
    from .engine.session.desk import Desk as Desk
    from .engine.session.fork import fork as fork
    from .engine.session.limits import Limits as Limits
    from .engine.session.runner import Session as Session
    from .engine.session.runner import run_session as run_session
    from .engine.session.simulation import simulate as simulate
    from .engine.session.time.clock import RealClock as RealClock
    from .engine.session.time.clock import VirtualClock as VirtualClock
    from .engine.session.time.timing import Timing as Timing
    from .engine.session.view import View as View
    from .engine.task import Cell as Cell
    from .engine.task import Setting as Setting
    from .engine.task import Task as Task
    from .interop.litellm.logger import litellm_logger as litellm_logger
    from .interop.otel.scores import otel_export as otel_export
    from .scoring.control import Controller as Controller
    from .scoring.live import score_log as score_log
    from .scoring.replay import Until as Until
    from .scoring.replay import replay as replay
    from .scoring.scorers.feedback import FeedbackUtility as FeedbackUtility
    from .scoring.scorers.fold_utility import FoldUtility as FoldUtility
    from .scoring.scorers.progress import rule_judge as rule_judge
    from .scoring.scorers.resolution import ResolutionUtility as ResolutionUtility
    from .scoring.scorers.retention import RetentionUtility as RetentionUtility
    from .scoring.scorers.utility import Missing as Missing
    from .scoring.scorers.utility import RoundUtility as RoundUtility
    from .scoring.scorers.utility import Score as Score
    from .scoring.scorers.utility import SnapshotUtility as SnapshotUtility
    from .scoring.trajectory.options import Options as Options
    from .scoring.trajectory.points import Point as Point
    from .scoring.trajectory.points import Trajectory as Trajectory
    from .scoring.trajectory.updates import StopAdvice as StopAdvice
    from .tasks.simple import Instance as Instance
    from .tasks.simple import SimpleTask as SimpleTask
    from .telemetry.live_updates import LiveUpdates as LiveUpdates
    from .telemetry.log import Log as Log
    from .telemetry.log import open as open
    from .telemetry.receipt import Receipt as Receipt
    from .telemetry.session import Recording as Recording
    from .telemetry.sync import SyncLog as SyncLog
    from .telemetry.sync import open_sync as open_sync

__all__ = (  # noqa: RUF022 (grouped by use)
    "__version__",
    # Embed: record what people and agents do, read it back, follow it.
    "open",
    "open_sync",
    "Log",
    "SyncLog",
    "Recording",
    "Receipt",
    "LiveUpdates",
    "litellm_logger",
    "otel_export",
    "Record",
    "Draft",
    "Participant",
    "SessionOpened",
    "MessageSent",
    "ActionTaken",
    "SnapshotTaken",
    "DuologError",
    "InvalidInput",
    "VersionConflict",
    # Simulate: sessions of actors at their desks, and experiments of many.
    "run_session",
    "Session",
    "Player",
    "Desk",
    "View",
    "Policy",
    "playing",
    "Decision",
    "Say",
    "Act",
    "Submit",
    "Ask",
    "Approve",
    "Note",
    "ChangeProfile",
    "Rate",
    "Wait",
    "Finish",
    "simulate",
    "SimpleTask",
    "Instance",
    "Task",
    "Setting",
    "Cell",
    "Limits",
    "Timing",
    "VirtualClock",
    "RealClock",
    # Score: what a collaboration was worth, what it cost, when to stop.
    "score_log",
    "Options",
    "Trajectory",
    "Point",
    "SnapshotUtility",
    "RoundUtility",
    "FoldUtility",
    "RetentionUtility",
    "FeedbackUtility",
    "ResolutionUtility",
    "Score",
    "Missing",
    "rule_judge",
    "Controller",
    "StopAdvice",
    "UtilityScored",
    "ProgressRated",
    "StopAdvised",
    # Replay: a log again, at any speed, or from some point with other actors.
    "replay",
    "Until",
    "fork",
    # Extend: a scorer of one's own.
    "Scorer",
    "SessionScorer",
    "Measurement",
    "ScorerRef",
)

# Where each name lives.
_HOMES = {
    "open": ".telemetry.log",
    "open_sync": ".telemetry.sync",
    "Log": ".telemetry.log",
    "SyncLog": ".telemetry.sync",
    "Recording": ".telemetry.session",
    "Receipt": ".telemetry.receipt",
    "LiveUpdates": ".telemetry.live_updates",
    "litellm_logger": ".interop.litellm.logger",
    "otel_export": ".interop.otel.scores",
    "Record": ".engine.records",
    "Draft": ".engine.records",
    "Participant": ".engine.events",
    "SessionOpened": ".engine.events",
    "MessageSent": ".engine.events",
    "ActionTaken": ".engine.events",
    "SnapshotTaken": ".engine.events",
    "DuologError": ".engine.errors",
    "InvalidInput": ".engine.errors",
    "VersionConflict": ".engine.errors",
    "run_session": ".engine.session.runner",
    "Session": ".engine.session.runner",
    "Player": ".engine.session.actors",
    "Desk": ".engine.session.desk",
    "View": ".engine.session.view",
    "Policy": ".engine.session.actors",
    "playing": ".engine.session.actors",
    "Decision": ".engine.session.decisions",
    "Say": ".engine.session.decisions",
    "Act": ".engine.session.decisions",
    "Submit": ".engine.session.decisions",
    "Ask": ".engine.session.decisions",
    "Approve": ".engine.session.decisions",
    "Note": ".engine.session.decisions",
    "ChangeProfile": ".engine.session.decisions",
    "Rate": ".engine.session.decisions",
    "Wait": ".engine.session.decisions",
    "Finish": ".engine.session.decisions",
    "simulate": ".engine.session.simulation",
    "SimpleTask": ".tasks.simple",
    "Instance": ".tasks.simple",
    "Task": ".engine.task",
    "Setting": ".engine.task",
    "Cell": ".engine.task",
    "Limits": ".engine.session.limits",
    "Timing": ".engine.session.time.timing",
    "VirtualClock": ".engine.session.time.clock",
    "RealClock": ".engine.session.time.clock",
    "score_log": ".scoring.live",
    "Options": ".scoring.trajectory.options",
    "Trajectory": ".scoring.trajectory.points",
    "Point": ".scoring.trajectory.points",
    "SnapshotUtility": ".scoring.scorers.utility",
    "RoundUtility": ".scoring.scorers.utility",
    "FoldUtility": ".scoring.scorers.fold_utility",
    "RetentionUtility": ".scoring.scorers.retention",
    "FeedbackUtility": ".scoring.scorers.feedback",
    "ResolutionUtility": ".scoring.scorers.resolution",
    "Score": ".scoring.scorers.utility",
    "Missing": ".scoring.scorers.utility",
    "rule_judge": ".scoring.scorers.progress",
    "Controller": ".scoring.control",
    "StopAdvice": ".scoring.trajectory.updates",
    "UtilityScored": ".engine.events",
    "ProgressRated": ".engine.events",
    "StopAdvised": ".engine.events",
    "replay": ".scoring.replay",
    "Until": ".scoring.replay",
    "fork": ".engine.session.fork",
    "Scorer": ".engine.scorers.protocol",
    "SessionScorer": ".engine.scorers.protocol",
    "Measurement": ".engine.scorers.protocol",
    "ScorerRef": ".engine.events",
}

if not TYPE_CHECKING:  # else a type checker would take any name for ours
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
