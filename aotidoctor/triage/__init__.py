"""The engine of run, compare and localize: open the case, run checks and probes, name causes, treat them."""
