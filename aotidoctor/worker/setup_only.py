"""The job that only imports what is to be imported before a package: does it end well, and in time?"""

from __future__ import annotations

from typing import Any

from aotidoctor.model.jobs import Job
from aotidoctor.worker.channel import Channel
from aotidoctor.worker.setup_module import load_setup


def setup_only(payload: Job, channel: Channel) -> dict[str, Any]:
    """Nothing but the imports."""
    channel.enter("setup")
    load_setup(payload, channel)
    return {}
