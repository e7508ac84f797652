"""Records what people and agents do in somebody's product, while they do it, and has it measured.

``recorder`` opens sessions; ``session`` and ``actor`` have the verbs; ``intake`` is the bounded queue
between the product and the log; ``committer`` writes batches; ``live_updates`` streams what scoring says.
"""

__all__ = ()
