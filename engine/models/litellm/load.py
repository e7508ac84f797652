"""Imports LiteLLM so that it is quiet and offline: no price list from the network, no advice printed."""

from __future__ import annotations

import importlib
import os
from types import ModuleType

__all__ = ("load_litellm", "stay_local")


def stay_local() -> None:
    """Makes LiteLLM use the price list that it ships, if it is imported after this call. Otherwise
    the import downloads one. A value already set in the environment takes precedence.
    """
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")


def load_litellm() -> ModuleType:
    """LiteLLM, imported; that takes seconds the first time.

    It prints advice to the standard output wherever it raises an error, unless it is told not to.
    """
    stay_local()
    litellm = importlib.import_module("litellm")
    setattr(litellm, "suppress_debug_info", True)  # noqa: B010  (an attribute that no type knows)
    return litellm
