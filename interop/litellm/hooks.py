"""The callback that LiteLLM knows: it derives from LiteLLM's class, and so imports LiteLLM.

LiteLLM calls the hooks by keyword, so their parameters have the names that it gives them.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import final

from litellm.integrations.custom_logger import CustomLogger

from .recorder import CallRecorder, LiteLLMStatistics

__all__ = ("LiteLLMLogger",)


@final
class LiteLLMLogger(CustomLogger):
    """Records calls; made by ``duolog.litellm_logger``, to be added to ``litellm.callbacks``."""

    def __init__(self, calls: CallRecorder) -> None:
        super().__init__()
        self._calls = calls

    async def settle(self, session: str | None = None, seconds: float = 10.0) -> bool:
        """Waits until LiteLLM has reported all calls that were begun; returns whether it has.

        A stream that its reader leaves before the end is never reported, and is waited for in vain.

        Args:
            session: only the calls of this one.
            seconds: how long to wait.
        """
        return await self._calls.settle(session, seconds)

    def wait(self, session: str | None = None, seconds: float = 10.0) -> bool:
        """The same for threads without an event loop."""
        return self._calls.wait(session, seconds)

    def statistics(self) -> LiteLLMStatistics:
        """The state of the logger."""
        return self._calls.statistics()

    # --- called by LiteLLM --------------------------------------------------------------------------

    def log_pre_api_call(
        self, model: object, messages: object, kwargs: Mapping[str, object]
    ) -> None:
        """A call is about to be made."""
        self._calls.begin(kwargs)

    def log_success_event(
        self,
        kwargs: Mapping[str, object],
        response_obj: object,
        start_time: datetime,
        end_time: datetime,
    ) -> None:
        """A synchronous call was answered, a stream to its end."""
        self._calls.end(kwargs, response_obj, start_time, end_time)

    def log_failure_event(
        self,
        kwargs: Mapping[str, object],
        response_obj: object,
        start_time: datetime,
        end_time: datetime,
    ) -> None:
        """A synchronous call failed."""
        self._calls.end(kwargs, None, start_time, end_time)

    async def async_log_success_event(
        self,
        kwargs: Mapping[str, object],
        response_obj: object,
        start_time: datetime,
        end_time: datetime,
    ) -> None:
        """An asynchronous call was answered, a stream to its end."""
        self._calls.end(kwargs, response_obj, start_time, end_time)

    async def async_log_failure_event(
        self,
        kwargs: Mapping[str, object],
        response_obj: object,
        start_time: datetime,
        end_time: datetime,
    ) -> None:
        """An asynchronous call failed."""
        self._calls.end(kwargs, None, start_time, end_time)
