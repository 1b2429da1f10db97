"""A report on the terminal."""
