"""The GPU's core dump of an ended child, read by cuda-gdb. It goes with the directory of the run."""

from __future__ import annotations

import os
import shutil

from aotidoctor.runner.places import RunDir
from aotidoctor.runner.stacks import sections
from aotidoctor.runner.tool_files import ask_tool

FILE = "gpu.core"
INSTALL = "cuda-gdb is not installed; it is part of the CUDA toolkit: conda install -c nvidia cuda-gdb"
TOOLKIT = "/usr/local/cuda/bin"
MAX_BYTES = 1 << 30
_READ_S = 60.0
_MOST_TEXT = 64 * 1024
_COMMANDS = ("info cuda kernels", "backtrace 8", "x/i $errorpc")


def read_gpu_core(run_dir: RunDir, path: str) -> tuple[str, str | None]:
    """What cuda-gdb says of the dump, as the section ``gpu-core``; or why there is nothing to read."""
    core = run_dir.file(FILE)
    try:
        size = core.stat().st_size
    except OSError:
        return "", "the driver wrote no GPU core dump"
    if size > MAX_BYTES:
        return "", f"the GPU core dump is too big to be read: {size} bytes"
    program = shutil.which("cuda-gdb", path=os.pathsep.join((path, TOOLKIT)))
    if program is None:
        return "", INSTALL
    words = [word for text in (f"target cudacore {core}", *_COMMANDS) for word in ("-ex", text)]
    done = ask_tool((os.path.abspath(program), "-nx", "-batch", *words), run_dir, _READ_S)  # noqa: PTH100 - of a user's PATH
    if isinstance(done, str):
        return "", done
    text = (done.stdout + done.stderr)[:_MOST_TEXT].decode("utf-8", "replace")
    return sections({"gpu-core": text}), None
