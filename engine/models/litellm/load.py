"""LiteLLM, imported so that it is quiet and offline (no price list from the network, no advice printed), and its prices."""

from __future__ import annotations

import gc
import importlib
import os
from importlib.util import find_spec
from types import ModuleType

__all__ = (
    "load_litellm",
    "stay_local",
    "token_prices",
)


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
    collects = gc.isenabled()
    gc.disable()  # an import leaves little garbage, and looking for it is a third of the work
    try:
        litellm = importlib.import_module("litellm")
    finally:
        if collects:
            gc.enable()
    setattr(litellm, "suppress_debug_info", True)  # noqa: B010  (an attribute that no type knows)
    return litellm


def token_prices(model: str) -> tuple[float, float] | None:
    """US dollars per prompt token and per completion token; None if unknown.

    The prices come from the table that LiteLLM ships. Importing LiteLLM takes seconds.
    """
    if find_spec("litellm") is None:
        return None
    litellm = load_litellm()
    try:
        about = litellm.get_model_info(model)
    except Exception:  # noqa: BLE001  (of classes that changed between its versions: not known)
        return None
    prompt, completion = about.get("input_cost_per_token"), about.get("output_cost_per_token")
    if prompt is None or completion is None:
        return None
    return float(prompt), float(completion)
