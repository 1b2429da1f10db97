"""Words that are too ordinary to be hidden, whoever is called so: those of reports, of slugs and of fields.

A user may be called ``dtype``: his name is hidden in paths and addresses, and ``input-dtype`` is a cause as before.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from aotidoctor.model.report import playbook_files

SHORTEST = 4
"""A name shorter than this is hidden only where a path or an address shows that a person or a machine is meant."""
SUBSTRING = 6
"""In a bundle, a name of at least this length is hidden inside longer words, too."""
_JOINT = re.compile(r"[-._ ]")

# The first paragraph are ordinary words of reports: as a name, hidden only where a path or an address shows that a
# person is meant. The second are words of causes, codes, checks, probes, commands, dtypes and of the values of
# enumerations, if they are not above. A test compares those with their sources.
_LISTS = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").split("\n\n")
ORDINARY, SCHEMA_WORDS = (frozenset(words.split()) for words in _LISTS)


def is_ordinary(name: str) -> bool:
    """Whether hiding ``name`` wherever it stands would destroy reports: a short or ordinary word, a slug of ours."""
    folded = name.casefold()
    return len(name) < SHORTEST or all(word in ORDINARY or word in SCHEMA_WORDS for word in _JOINT.split(folded))


def is_common(name: str) -> bool:
    """Whether ``name`` is a word that reports use: a folder called ``/home/shared`` is not private."""
    return is_ordinary(name) or is_structural(name) or name.casefold() in _vocabulary()


def is_structural(name: str) -> bool:
    """Whether ``name`` is, or is in, the name of a field of the documents: hiding it would break them."""
    folded = name.casefold()
    return folded in _fields() or (len(folded) >= SUBSTRING and any(folded in one for one in _fields()))


@lru_cache(maxsize=1)
def _vocabulary() -> frozenset[str]:
    """The words of the playbooks. Read only when a name was met that may be a word."""
    texts = (path.read_text(encoding="utf-8").casefold() for path in playbook_files())
    return frozenset(word for text in texts for word in re.findall(r"[a-z]{4,}", text))


@lru_cache(maxsize=1)
def _fields() -> frozenset[str]:
    """Names of fields and keys, and their words, off the sources that define them. Read for bundles only."""
    package = Path(__file__).resolve().parents[2]
    sources = [
        *(package / "model").glob("*.py"),
        *(package / "reports" / "json").glob("*.py"),
        *(package / "commands" / "bundle").glob("*.py"),
    ]
    texts = "".join(path.read_text(encoding="utf-8") for path in sources)
    names = [one or two for one, two in re.findall(r'(?m)^ {4,}([a-z]\w*): |"([a-z][\w/]*)(?:\.json|\.md)?"', texts)]
    return frozenset(names) | frozenset(word for name in names for word in re.split(r"[_/]", name) if word)
