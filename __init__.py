"""Duolog: an event log of people and agents working together, scored as it is written.

The names below are the public API. Each is imported when it is first used, so that ``import
duolog`` costs next to nothing, and loads no library that is not needed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from ._version import __version__

if TYPE_CHECKING:
    from .engine.errors import CheckpointConflict as CheckpointConflict
    from .engine.errors import CodecError as CodecError
    from .engine.errors import DeskError as DeskError
    from .engine.errors import Divergence as Divergence
    from .engine.errors import DuologError as DuologError
    from .engine.errors import DuplicateConflict as DuplicateConflict
    from .engine.errors import InvalidInput as InvalidInput
    from .engine.errors import LogClosed as LogClosed
    from .engine.errors import LogError as LogError
    from .engine.errors import LogNotFound as LogNotFound
    from .engine.errors import LogUnavailable as LogUnavailable
    from .engine.errors import MissingExtra as MissingExtra
    from .engine.errors import NewerLog as NewerLog
    from .engine.errors import NotALog as NotALog
    from .engine.errors import NotRecorded as NotRecorded
    from .engine.errors import SessionClosedError as SessionClosedError
    from .engine.errors import SessionNotFound as SessionNotFound
    from .engine.errors import StaleBase as StaleBase
    from .engine.errors import VersionConflict as VersionConflict
    from .engine.events import ActionResolved as ActionResolved
    from .engine.events import ActionTaken as ActionTaken
    from .engine.events import ActorFailed as ActorFailed
    from .engine.events import ApprovalAsked as ApprovalAsked
    from .engine.events import ApprovalGiven as ApprovalGiven
    from .engine.events import Event as Event
    from .engine.events import FeedbackGiven as FeedbackGiven
    from .engine.events import Forgotten as Forgotten
    from .engine.events import MessageSent as MessageSent
    from .engine.events import ModelCalled as ModelCalled
    from .engine.events import NoteTaken as NoteTaken
    from .engine.events import Nudged as Nudged
    from .engine.events import Origin as Origin
    from .engine.events import Participant as Participant
    from .engine.events import ProgressRated as ProgressRated
    from .engine.events import ScorerFailed as ScorerFailed
    from .engine.events import ScorerRef as ScorerRef
    from .engine.events import SessionClosed as SessionClosed
    from .engine.events import SessionOpened as SessionOpened
    from .engine.events import SimulatorFlagged as SimulatorFlagged
    from .engine.events import SnapshotTaken as SnapshotTaken
    from .engine.events import StopAdvised as StopAdvised
    from .engine.events import Tokens as Tokens
    from .engine.events import TurnYielded as TurnYielded
    from .engine.events import Unknown as Unknown
    from .engine.events import UtilityScored as UtilityScored
    from .engine.log.contract import Advance as Advance
    from .engine.log.contract import EventLog as EventLog
    from .engine.log.contract import LogStatistics as LogStatistics
    from .engine.log.contract import SessionSummary as SessionSummary
    from .engine.log.contract import Subscription as Subscription
    from .engine.log.contract import SubscriptionStatistics as SubscriptionStatistics
    from .engine.log.contract import Tap as Tap
    from .engine.log.contract import TapStatistics as TapStatistics
    from .engine.records import TRACE as TRACE
    from .engine.records import Draft as Draft
    from .engine.records import Record as Record
    from .engine.rounds import Round as Round
    from .engine.rounds import RoundProjector as RoundProjector
    from .engine.scorers.protocol import Measurement as Measurement
    from .engine.scorers.protocol import Scorer as Scorer
    from .engine.scorers.protocol import SessionScorer as SessionScorer
    from .engine.scorers.worker import Pace as Pace
    from .engine.session.actors import Actor as Actor
    from .engine.session.actors import Player as Player
    from .engine.session.actors import Policy as Policy
    from .engine.session.clock import Clock as Clock
    from .engine.session.clock import RealClock as RealClock
    from .engine.session.clock import VirtualClock as VirtualClock
    from .engine.session.decisions import Act as Act
    from .engine.session.decisions import Approve as Approve
    from .engine.session.decisions import Ask as Ask
    from .engine.session.decisions import Decision as Decision
    from .engine.session.decisions import Finish as Finish
    from .engine.session.decisions import Note as Note
    from .engine.session.decisions import Rate as Rate
    from .engine.session.decisions import Say as Say
    from .engine.session.decisions import Submit as Submit
    from .engine.session.decisions import Wait as Wait
    from .engine.session.desk import Desk as Desk
    from .engine.session.environment import Action as Action
    from .engine.session.environment import ActionSpec as ActionSpec
    from .engine.session.environment import Environment as Environment
    from .engine.session.fork import fork as fork
    from .engine.session.limits import Limits as Limits
    from .engine.session.runner import Session as Session
    from .engine.session.runner import SessionResult as SessionResult
    from .engine.session.runner import run_session as run_session
    from .engine.session.simulation import SessionFailure as SessionFailure
    from .engine.session.simulation import simulate as simulate
    from .engine.session.timing import Timing as Timing
    from .engine.session.view import View as View
    from .engine.task import Cell as Cell
    from .engine.task import Setting as Setting
    from .engine.task import Task as Task
    from .interop.litellm.logger import litellm_logger as litellm_logger
    from .interop.otel.scores import otel_export as otel_export
    from .scoring.live import score_log as score_log
    from .scoring.replay import Until as Until
    from .scoring.replay import replay as replay
    from .scoring.trajectory.options import Options as Options
    from .scoring.trajectory.points import Point as Point
    from .scoring.trajectory.points import Trajectory as Trajectory
    from .telemetry.live_updates import LiveUpdates as LiveUpdates
    from .telemetry.log import Log as Log
    from .telemetry.log import open as open
    from .telemetry.queue import IntakeStatistics as IntakeStatistics
    from .telemetry.queue import Unwritten as Unwritten
    from .telemetry.receipt import Receipt as Receipt
    from .telemetry.session import Recording as Recording
    from .telemetry.sync import SyncLog as SyncLog
    from .telemetry.sync import open_sync as open_sync

__all__ = (
    "TRACE",
    "Act",
    "Action",
    "ActionResolved",
    "ActionSpec",
    "ActionTaken",
    "Actor",
    "ActorFailed",
    "Advance",
    "ApprovalAsked",
    "ApprovalGiven",
    "Approve",
    "Ask",
    "Cell",
    "CheckpointConflict",
    "Clock",
    "CodecError",
    "Decision",
    "Desk",
    "DeskError",
    "Divergence",
    "Draft",
    "DuologError",
    "DuplicateConflict",
    "Environment",
    "Event",
    "EventLog",
    "FeedbackGiven",
    "Finish",
    "Forgotten",
    "IntakeStatistics",
    "InvalidInput",
    "Limits",
    "LiveUpdates",
    "Log",
    "LogClosed",
    "LogError",
    "LogNotFound",
    "LogStatistics",
    "LogUnavailable",
    "Measurement",
    "MessageSent",
    "MissingExtra",
    "ModelCalled",
    "NewerLog",
    "NotALog",
    "NotRecorded",
    "Note",
    "NoteTaken",
    "Nudged",
    "Options",
    "Origin",
    "Pace",
    "Participant",
    "Player",
    "Point",
    "Policy",
    "ProgressRated",
    "Rate",
    "RealClock",
    "Receipt",
    "Record",
    "Recording",
    "Round",
    "RoundProjector",
    "Say",
    "Scorer",
    "ScorerFailed",
    "ScorerRef",
    "Session",
    "SessionClosed",
    "SessionClosedError",
    "SessionFailure",
    "SessionNotFound",
    "SessionOpened",
    "SessionResult",
    "SessionScorer",
    "SessionSummary",
    "Setting",
    "SimulatorFlagged",
    "SnapshotTaken",
    "StaleBase",
    "StopAdvised",
    "Submit",
    "Subscription",
    "SubscriptionStatistics",
    "SyncLog",
    "Tap",
    "TapStatistics",
    "Task",
    "Timing",
    "Tokens",
    "Trajectory",
    "TurnYielded",
    "Unknown",
    "Until",
    "Unwritten",
    "UtilityScored",
    "VersionConflict",
    "View",
    "VirtualClock",
    "Wait",
    "__version__",
    "fork",
    "litellm_logger",
    "open",
    "open_sync",
    "otel_export",
    "replay",
    "run_session",
    "score_log",
    "simulate",
)

# Where the names live, the light modules first; the first that offers a name has it.
_HOMES = (
    ".engine.errors",
    ".engine.events",
    ".engine.records",
    ".engine.log.contract",
    ".engine.rounds",
    ".engine.scorers.protocol",
    ".scoring.trajectory.points",
    ".engine.log.open",
    ".engine.session.actors",
    ".engine.session.clock",
    ".engine.session.decisions",
    ".engine.session.desk",
    ".engine.session.environment",
    ".engine.session.fork",
    ".engine.session.limits",
    ".engine.session.runner",
    ".engine.session.simulation",
    ".engine.task",
    ".engine.session.timing",
    ".engine.session.view",
    ".telemetry.queue",
    ".engine.scorers.worker",
    ".telemetry.receipt",
    ".telemetry.session",
    ".interop.litellm.logger",
    ".scoring.trajectory.options",
    ".scoring.live",
    ".scoring.replay",
    ".interop.otel.scores",
    ".telemetry.log",
    ".telemetry.sync",
    ".telemetry.live_updates",
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

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
