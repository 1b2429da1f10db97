"""The version, in one place; hatchling reads it from here."""

__version__ = "0.5.0"
