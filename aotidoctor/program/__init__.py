"""Exported programs: the rules, and what a child or the archive itself says about them. Pure reading."""
