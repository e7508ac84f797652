"""Lines that Claude Code writes for itself: known, and no part of the conversation.

They are left out, since a log that kept them would be twice as long. A line of any other kind is kept as
it came.
"""

from __future__ import annotations

from typing import Final

from .entries import Envelope, Line

__all__ = ("note_in",)

_STATES: Final = frozenset(
    "summary progress file-history-snapshot queue-operation last-prompt custom-title ai-title"
    " task-summary tag agent-name agent-color agent-setting pr-link mode permission-mode"
    " worktree-state content-replacement attribution-snapshot".split()
)
"""Types of lines: titles of sessions, states of the program."""
_NOTICES: Final = frozenset(
    "stop_hook_summary turn_duration local_command informational api_error api_metrics away_summary"
    " memory_saved bridge_status".split()
)
"""Subtypes of ``system`` lines."""
_CONTEXT: Final = frozenset(
    "skill_listing deferred_tools_delta agent_listing_delta mcp_instructions_delta todo_reminder"
    " task_reminder edited_text_file edited_image_file file directory already_read_file"
    " compact_file_reference selected_lines_in_ide opened_file_in_ide diagnostics plan_mode"
    " plan_mode_exit plan_mode_reentry plan_file_reference hook_success hook_additional_context"
    " hook_non_blocking_error hook_cancelled async_hook_response date_change nested_memory"
    " relevant_memories critical_system_reminder ultrathink_effort output_style token_usage"
    " total_tokens_reminder budget_usd command_permissions prompt_snapshot invoked_skills"
    " dynamic_skill auto_mode".split()
)
"""Types of attachments: what the program shows to the model beside what was typed."""


def note_in(envelope: Envelope, line: Line) -> str | None:
    """What a line is called that is of the program alone; None for any other."""
    if line.type in _STATES:
        return line.type
    if line.type == "system" and envelope.subtype in _NOTICES:
        return envelope.subtype
    attached = line.attachment.type if line.attachment is not None else None
    return f"{attached} attachment" if line.type == "attachment" and attached in _CONTEXT else None
