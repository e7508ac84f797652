"""Prompts, the actions that a model is offered, and how its replies are read."""
