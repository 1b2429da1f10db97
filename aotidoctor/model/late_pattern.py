"""Regular expressions of which a run needs few: each is compiled when it is first used."""

from __future__ import annotations

import re
from functools import cached_property


class LatePattern:
    """What ``re.compile(text)`` gives, later."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """The expression itself."""
        return re.compile(self.text)

    def fullmatch(self, text: str) -> re.Match[str] | None:
        """As of ``re.Pattern``."""
        return self.compiled.fullmatch(text)
