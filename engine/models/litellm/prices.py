"""Prices of models from LiteLLM's table."""

from __future__ import annotations

from importlib.util import find_spec

from .load import load_litellm

__all__ = ("token_prices",)


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
