"""How a call is laid over the call spec: shared by the ``input_*`` checks, each of which reads its own part of it."""
