"""The system that proofs are written in: claims, proofs, their checker, a prover, and slips."""

__all__ = ()
