"""Proofs of conjectures: a small system with a checker, an agent that slips, and a mathematician."""

__all__ = ()
