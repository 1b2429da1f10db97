"""A program that was watched, and failed: its packages, its output and its end, in one report of the usual kind."""
