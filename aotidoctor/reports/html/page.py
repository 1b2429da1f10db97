"""What every page has: the templates with everything escaped, and the icon in the colour of its verdict."""

from __future__ import annotations

import base64
import hashlib
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from aotidoctor.reports.html import text

_ICON = "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 8 8'><circle cx='4' cy='4' r='4' fill='{}'/></svg>"


def environment() -> Environment:
    """The templates of reports."""
    return Environment(
        loader=PackageLoader("aotidoctor.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=text.finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def icon(color: str) -> str:
    """The address of a dot in ``color``, which is part of the page itself."""
    return "data:image/svg+xml," + quote(_ICON.format(color))


def scripted(script: str) -> dict[str, Markup]:
    """A script of ours, and the hash by which the policy of a page allows it."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return {"script": Markup(script), "script_hash": Markup(digest)}  # noqa: S704 - ours
