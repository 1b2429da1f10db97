"""Which GPU thread faulted, according to the GPU's own core dump?

What it does
    Repeats the failed call with CUDA_ENABLE_COREDUMP_ON_EXCEPTION=1. The driver then writes the state of the GPU at the
    first fault to a file, without the contents of memory (CUDA_COREDUMP_GENERATION_FLAGS: the lightweight set), and
    cuda-gdb reads it: exception, kernel, block and thread. The file is in the run's own directory, is bounded in size,
    and is removed with it.

Why it matters
    It names the kernel without slowing anything down, including kernels inside libraries, where the launch trace sees
    only one operator.

Example:
    triton_poi_fused_addmm_relu_0: observed Warp Illegal Address in block (15,0,0) thread (96,0,0), expected none

When it is wrong
    The hardware reports some faults late, so the instruction address may be off by a few instructions. Without the
    driver's debugging interface (some containers, vGPUs) no file is written; the report then states this.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, FactValue, NotChecked
from aotidoctor.model.run import Outcome, Request
from aotidoctor.probes.cuda_probe import reason_to_skip, repeat_call
from aotidoctor.probes.probe import History, RunFinder
from aotidoctor.probes.symptoms import first_fault, recognise

CODE, NAME = "AD-RUN-027", "core_dump"
FIND = RunFinder(CODE, NAME, __doc__)
TOOL = "cuda-gdb"
INSTALL = "cuda-gdb is not installed; it is part of the CUDA toolkit: conda install -c nvidia cuda-gdb"
# The driver's names for the parts to leave out; together its "lightweight" set.
LIGHTWEIGHT = (
    "skip_nonrelocated_elf_images",
    "skip_global_memory",
    "skip_shared_memory",
    "skip_local_memory",
    "skip_constbank_memory",
)
MAX_BYTES = 1 << 30
EXCEPTION = re.compile(r"CUDA Exception: (?P<exception>[^\n]+)")
PC = re.compile(r"triggered at PC (?P<pc>0x[0-9a-f]+)(?:\s+\((?P<file>[^():\n]+):(?P<line>\d+)\))?")
FOCUS = re.compile(
    r"focus set to CUDA kernel \d+, grid (?P<grid>\d+),(?: cluster \([^)]*\),)? block \((?P<block>[^)]*)\), "
    r"thread \((?P<thread>[^)]*)\), device (?P<device>\d+), sm (?P<sm>\d+)"
)
FRAME = re.compile(r"^#0\s+(?:0x[0-9a-f]+ in )?(?:void )?(?P<kernel>[\w:~]+)", re.MULTILINE)
# The runtime's words for a fault, by the driver's name for it.
_RUNTIME = (
    (
        re.compile(r"Illegal Address|Out-of-range Address|Invalid Address Space"),
        "an illegal memory access was encountered",
    ),
    (re.compile(r"Misaligned Address"), "misaligned address"),
    (re.compile(r"Assert"), "device-side assert triggered"),
)


def plan(case: Case, history: History) -> Request | NotChecked:
    """Plan a run if a kernel faulted and the launch trace could not name one of the package."""
    reason = reason_to_skip(case, history)
    if reason is not None:
        return FIND.unchecked(reason)
    if history.has("AD-RUN-026", "kernel", "refused", "library", "hang"):
        return FIND.unchecked("the launch trace has named the kernel")
    if first_fault(history.outcomes["plain_run"]) is None:
        return FIND.unchecked("no kernel faulted, so there is no dump to read")
    if not case.host.tools.get(TOOL):
        return FIND.unchecked(INSTALL, moot=False)
    request = repeat_call(case, history, NAME, "with a GPU core dump at the first fault", file_limit=MAX_BYTES)
    env = {
        "CUDA_ENABLE_COREDUMP_ON_EXCEPTION": "1",
        "CUDA_COREDUMP_GENERATION_FLAGS": ",".join(LIGHTWEIGHT),
        "CUDA_COREDUMP_FILE": "{run_dir}/gpu.core",
    }
    return replace(request, env=env, gpu_core=True)


def read(case: Case, history: History, outcome: Outcome) -> Sequence[Evidence]:
    """One finding: exception, or unavailable."""
    text = outcome.debugger_output
    exception, frame = EXCEPTION.search(text), FRAME.search(text)
    if exception is None:
        why = outcome.debugger_problem or "cuda-gdb reported no exception in the dump"
        return [FIND.info(outcome)("unavailable", None, observed=why, expected="the thread that faulted")]
    kernel, name = frame["kernel"] if frame else None, exception["exception"].strip()
    facts: dict[str, FactValue] = {"exception": name}
    for match in (FOCUS.search(text), PC.search(text)):
        if match is not None:
            facts |= {key: value for key, value in match.groupdict().items() if value is not None}
    facts["symptom"] = recognise(next((words for pattern, words in _RUNTIME if pattern.search(name)), name)).name
    where = f" in block ({facts['block']}) thread ({facts['thread']})" if "block" in facts else ""
    return [
        FIND.error(outcome, "debugger")(
            "exception",
            kernel,
            observed=f"{facts['exception']}{where}",
            expected="no exception",
            facts={**facts, "kernel": kernel} if kernel else facts,
        )
    ]


PROBE = FIND.probe(plan, read, "when a kernel faulted that the launch trace could not name, and cuda-gdb is installed")
