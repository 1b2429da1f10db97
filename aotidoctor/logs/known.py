"""Known issues: facts of public trackers, shown where a log has the very words of one.

A playbook may have a ``toml known`` block: ``[[known]]`` entries with ``issue``, ``url``, ``words`` (all of them are
in the message, or in the files of its traceback), and as far as the tracker tells ``affected``, ``fixed`` and
``workaround``. The blocks are read when a log holds a failure, not before.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from aotidoctor.logs.found import Found
from aotidoctor.logs.patterns import PatternError, entries_of
from aotidoctor.model import playbook_files
from aotidoctor.model.log import LogMatch, LogPattern
from aotidoctor.model.record import record

# Of all words of an entry together, in characters: fewer are an everyday message.
LEAST_WORDS = 18
_CONFIDENCE = 0.6
_BLOCK = re.compile(r"^```toml known\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TEXTS = ("issue", "url", "affected", "fixed", "workaround")


@record
class Known:
    """An issue of a public tracker. Empty texts: the tracker does not say."""

    cause: str
    issue: str
    url: str
    words: tuple[str, ...]
    affected: str = ""
    fixed: str = ""
    workaround: str = ""

    @property
    def sentence(self) -> str:
        """What a report says of it."""
        affects = f", affects {self.affected}" if self.affected else ""
        fixed = f", fixed: {self.fixed}" if self.fixed else ""
        return f"known: {self.issue}{affects}{fixed}"


def known_issue(text: str, cause: str = "") -> Known | None:
    """The issue of which ``text`` has all the words, the one with the most of them; of ``cause`` unless it is empty."""
    flat = " ".join(text.split())
    fitting = [one for one in known_issues() if cause in ("", one.cause) and all(word in flat for word in one.words)]
    return max(fitting, key=lambda one: sum(map(len, one.words)), default=None)


def recognised(found: Found, number: int) -> LogMatch | None:
    """The cause of the known issue whose words ``found`` has."""
    issue = known_issue(found.text)
    if issue is None:
        return None
    record = LogPattern(cause=issue.cause, regex="", example="", source="", confidence=_CONFIDENCE)
    return found.match(record, number, found.text.partition("\n")[0], {})


def known_issues() -> tuple[Known, ...]:
    """The entries of all playbooks. Raises ``PatternError``."""
    return _issues(playbook_files.files())


@lru_cache(maxsize=4)
def _issues(paths: tuple[Path, ...]) -> tuple[Known, ...]:
    return tuple(one for path in paths for one in read_known(path.stem, path.read_text(encoding="utf-8")))


def read_known(cause: str, text: str) -> tuple[Known, ...]:
    """The entries in the text of one playbook. Raises ``PatternError``."""
    bodies = _BLOCK.findall(text)
    return tuple(_entry(cause, one) for body in bodies for one in entries_of(body, f"{cause}.md", "known", "known"))


def _entry(cause: str, entry: Mapping[str, object]) -> Known:
    texts = {key: value for key in _TEXTS if isinstance(value := entry.get(key, ""), str)}
    words = entry.get("words")
    listed = tuple(word for word in words if isinstance(word, str)) if isinstance(words, list) else ()
    if set(entry) - {*_TEXTS, "words"} or len(texts) < len(_TEXTS) or not texts["url"].startswith("https://"):
        raise PatternError(f"{cause}.md: toml known: {sorted(entry)}: expected {', '.join(_TEXTS)} as texts, and words")
    if sum(map(len, listed)) < LEAST_WORDS:
        raise PatternError(f"{cause}.md: toml known: {texts['issue']}: words: too few of them for one message")
    return Known(cause=cause, words=listed, **texts)
