"""What the company knows of a host."""

from __future__ import annotations

import os

AOTIDOCTOR_API = 1


def host_facts() -> dict[str, str]:
    """Short texts by name."""
    return {"rack": os.environ.get("ACME_RACK", "unknown")}
