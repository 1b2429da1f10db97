"""Make ``whole.pt2``, ``part.pt2`` and ``nothing.pt2`` in a folder: packages whose wrapper has all, some, no launches.

python tests/emulation/parts.py ROOM
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import torch
from driver import package
from models import made

MODEL = "pointwise"


def _part(text):
    """A second launch, of a kernel that the package does not have."""
    return re.sub(r"^    call_\w+\(", r"    call_absent(arg0_1, stream);\n\g<0>", text, count=1, flags=re.M), 0


def _nothing(text):
    """The result is an input, as it came."""
    text = re.sub(r"^    call_\w+\(.*\n", "", text, flags=re.M)
    return re.sub(r"output_handles\[0\] = \w+\.release\(\);", "output_handles[0] = arg0_1.release();", text), 0


def main(room):
    for name, edit in {"whole": None, "part": _part, "nothing": _nothing}.items():
        package(MODEL, room, edit)[0].replace(room / f"{name}.pt2")
    torch.save(made(MODEL)[1], room / "inputs.pt")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
