"""AG-UI, the Agent-User Interaction Protocol: a running app's stream into a log, and back.

``AguiRecorder`` takes the events that an app streams to its front end, and the requests that it
gets from there; ``stream_agui`` encodes a session, recorded in whatever way, as such a stream. Events
are plain JSON objects, so that neither needs the protocol's own package.
"""

from __future__ import annotations

from .recorder import AguiRecorder
from .stream import encode_sse, stream_agui

__all__ = ("AguiRecorder", "encode_sse", "stream_agui")
