"""Job ``script``: execute one Python file as ``__main__``; ``torch`` is imported only if the request says so.

Used for small questions to this host's Python and for the runner's own tests: a script that dies, hangs or floods.
"""

from __future__ import annotations

import runpy
from typing import Any

from aotidoctor.model.jobs import Script
from aotidoctor.worker.channel import Channel


def script(payload: Script, channel: Channel) -> dict[str, Any]:
    """Execute ``payload.path``; the result is the script's global ``RESULT``, an object, if it sets one."""
    channel.enter("run1")
    path = str(channel.user_cwd / payload.path)
    names = runpy.run_path(path, init_globals={"CHANNEL": channel}, run_name="__main__")
    result = names.get("RESULT", {})
    return result if isinstance(result, dict) else {"value": result}
