"""What is a URL, and how it may be shown: without credentials, which hide in its front and in its query."""

from __future__ import annotations

import re
from urllib.parse import quote, urlsplit, urlunsplit

# The scheme of a URL; one letter would be a drive.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{1,30})://")
_SHOWN = "/:@!$()*,;=~+-._%[]"
# In the middle of a text: what a library says of a failure, or a word such as --inputs=https://…
_IN_TEXT = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,30}://[^\s\"'<>\\]{1,4096}")


def is_url(text: str) -> bool:
    """Whether ``text`` is a URL and no path."""
    return _SCHEME.match(text) is not None


def clean(url: str) -> str:
    """``url`` without user, password, query and fragment; what a terminal, HTML or JSON would obey is quoted."""
    try:
        parts = urlsplit(url)
        place = parts.netloc.rpartition("@")[2]
        return quote(urlunsplit((parts.scheme, place, parts.path, "", "")), safe=_SHOWN)
    except ValueError:
        found = _SCHEME.match(url)
        return f"{found[1] if found else 'url'}://<not shown>"


def cleaned(text: str) -> str:
    """``text`` with every URL in it as ``clean`` shows it."""
    return _IN_TEXT.sub(lambda found: clean(found[0]), text) if "://" in text else text


def base_name(url: str) -> str:
    """The last part of a URL's path as a name of a file: letters, digits, dot, dash and underscore."""
    name = urlsplit(clean(url)).path.rstrip("/").rpartition("/")[2]
    safe = re.sub(r"[^A-Za-z0-9._-]", "_", name)[-80:].lstrip(".")
    return safe or "file"
