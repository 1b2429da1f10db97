"""The lines and files of the value printer that Inductor compiles into a package (``debug_utils.py``), in one place.

A line break after a scalar is a backslash and an n, so that the next header is on the same line. Levels: 1 saves each
tensor to a file, 2 prints its values, 3 prints the names of kernels alone.
"""

from __future__ import annotations

from aotidoctor.model import LatePattern

# The mark of level 3 in the read-only data of a library, and of any level in what a process printed.
LAUNCH_MARK = "before_launch: "
PRINTED_MARK = "before_launch"
# Level 3: a kernel is about to run, or has returned.
LAUNCH = LatePattern(r"\[ (before|after)_launch: (\S{1,500}) \]")
# Level 2: the header of one buffer, whose facts and values follow; a scalar stands in its header.
HEADER = LatePattern(
    r"\[  (?:(?P<when>before|after)_launch - (?P<kernel>\S{1,500}) - (?P<buffer>[^\s:]+)"
    r"|aoti_model_inputs - (?P<input>\S+))"
    r"(?P<scalar>: [^\]\n]{0,300})?  \]:?"
)
SCALAR = LatePattern(r"\[  before_launch - (?P<kernel>\S{1,500}) - (?P<name>[^\s:]+): (?P<value>[^\]\n]{0,300}?)  \]")
FACT = LatePattern(r"(?m)^(Number of elements|Dtype|Size|Mean value|Min value|Max value): (.*)$")
# Where the values of a buffer begin, of up to 64 elements.
VALUES = "\n[ "
# Lines that are kept of a long text: headers and facts, no values.
KEPT = LatePattern(
    r"\[  (?:before_launch|after_launch|aoti_model_inputs) - |(?:Number of elements|Dtype|Size|M\w{2,3} value): "
)
# Level 1. There is no separator after the folder. Kernels may be named ``at::_ops::sort::call``, buffers ``buf0``.
SAVED_FILES = "aoti_torch*_launch_*.pt"
SAVED_FILE = LatePattern(
    r"aoti_torch(?P<when>before|after)_launch_(?P<kernel>.+)_(?P<buffer>buf\d+|arg\d+_\d+)_[a-z]+\d*\.pt"
)


def launch_header(when: str, kernel: str) -> str:
    """How the header of each buffer of ``kernel`` begins; ``when`` is ``before`` or ``after`` its launch."""
    return f"{when}_launch - {kernel} - "
