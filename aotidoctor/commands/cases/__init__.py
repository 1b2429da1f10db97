"""Store diagnosed cases in one SQLite file, if the user names one, and find them again."""
