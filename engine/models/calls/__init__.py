"""How actors and scorers call models: attempt after attempt, each of them recorded."""
