"""What the machine has, asked of a child: this process stays without torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WHEELS = Path(__file__).parent / "wheels"
ASK = """
import json, platform
try:
    import torch
except Exception as error:
    print(json.dumps({"problem": f"torch cannot be imported: {error}"}))
else:
    found = {"torch": torch.__version__, "cuda": torch.version.cuda, "python": platform.python_version(), "gpu": None}
    if torch.version.cuda is None:
        found["problem"] = f"torch {torch.__version__} is built without CUDA"
    elif not torch.cuda.is_available():
        found["problem"] = "torch sees no CUDA device"
    else:
        device = torch.cuda.get_device_properties(0)
        found |= {"gpu": device.name, "capability": f"{device.major}{device.minor}", "memory": device.total_memory}
    print(json.dumps(found))
"""


def environment() -> dict[str, str]:
    """This checkout and the wheels beside this file are importable; a wheel of pure Python needs no installation."""
    wheels = [str(path) for path in sorted(WHEELS.glob("*-none-any.whl"))]
    found = [str(ROOT), *wheels, os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(part for part in found if part)}


def describe() -> dict[str, object]:
    """Versions, and the GPU; ``problem`` says why nothing can be run on one."""
    done = subprocess.run(
        [sys.executable, "-c", ASK], capture_output=True, text=True, timeout=300, env=environment(), check=False
    )
    lines = done.stdout.strip().splitlines()
    return dict(json.loads(lines[-1])) if lines else {"problem": done.stderr.strip()[-400:] or "python died"}
