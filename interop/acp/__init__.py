"""The Agent Client Protocol: a proxy between an editor and a coding agent that records their sessions.

Two programs work side by side. The proxy (``process``, ``pump``, ``tap``) knows bytes only: it
passes them on, and hands a copy to the recorder (``recorder`` and its helpers), which reads the
messages and writes a log. A failing recorder never delays or changes the traffic.
"""

__all__ = ()
