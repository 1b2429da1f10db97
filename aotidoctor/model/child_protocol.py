"""What the runner and the worker have to agree on besides requests and answers."""

from __future__ import annotations

import signal

MARKER = "AOTIDOCTOR_RUN"
"""The environment variable by which everything that a run started is found; its value is the run's own."""

STACKS_SIGNAL = signal.SIGRTMAX - 3
"""The parent sends it at a timeout: faulthandler then writes the Python stacks to stderr."""

NO_TORCH = 120
"""Exit status: the job never began."""

NO_CHANNEL = 121
"""Exit status: the side channel could not be written."""

PRIVATE = "aotidoctor-"
"""How the name of a directory for temporary files begins that is made where the user has them."""

TRACE_FILE = "trace"
"""In the run's directory: the ring that the call trace writes to."""
