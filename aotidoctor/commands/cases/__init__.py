"""The cases of a desk: what was diagnosed before, kept in one SQLite file, and only where a user says so.

report ──► essence (redacted as a bundle is) ──► store
store ──► history of the next report's failure; list, show, search, export, merge
"""
