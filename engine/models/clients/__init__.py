"""Clients that answer without a provider, and one that chooses a client by model."""
