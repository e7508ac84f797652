"""Records what people and agents do in somebody's product, while they do it, and has it measured.

``recorder`` is the way in; ``recording`` and ``actors`` have the verbs; ``intake`` is the bounded
queue between the product and the log; ``measurer`` runs scorers over a log as it grows.
"""

__all__ = ()
