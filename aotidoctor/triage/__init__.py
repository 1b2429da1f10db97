"""Examine a case for run, compare and localize: open it, run checks and probes, name causes, treat them."""
