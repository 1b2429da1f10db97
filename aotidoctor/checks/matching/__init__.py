"""Match a call with the call spec; shared by the ``input_*`` checks, each of which reads its own part."""
