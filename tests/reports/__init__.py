"""Public bug reports, rebuilt: scripts and logs with the truth about each."""
