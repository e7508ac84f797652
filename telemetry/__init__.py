"""Records what people and agents do in your product while they do it, and scores it live.

``recorder`` opens sessions; ``session`` and ``actor`` have the verbs; ``intake`` is the bounded
queue between the product and the log; ``committer`` writes batches; ``live_updates`` streams the
results of scoring.
"""

__all__ = ()
