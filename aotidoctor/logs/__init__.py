"""What a log says: bytes in, events and the causes that they point at out. Pure; nothing is run or opened here."""

from aotidoctor.logs.patterns import PatternError, load_patterns
from aotidoctor.logs.read import read_log

__all__ = ["PatternError", "load_patterns", "read_log"]
