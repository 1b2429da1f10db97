"""The compiled code uses CPU instructions that this host does not have.

What it does
    Compares the instruction sets that the package was compiled for (compile flags in the package, else its metadata)
    with the flags of this CPU.

Why it matters
    The process crashes with SIGILL, often during the load. torch compares the two texts and logs at most a warning.

Example:
    AOTI_CPU_ISA: observed code for avx512_vnni, expected only instructions of this CPU

When it is wrong
    The compiled kernels may not reach the instruction. Names that this version does not know, and packages built with
    -march=native on a different CPU model, give at most a warning: their true requirements are not recorded. The same
    applies to tile and half-precision instructions, which the compiler uses only if the source requests them: the
    metadata name them whenever the build machine has them.
"""

from __future__ import annotations

from itertools import chain

from aotidoctor.checks.check import Finder, Findings
from aotidoctor.checks.matching.package_facts import (
    NO_MODEL,
    at_member,
    has_code_for,
    machine_name,
    main_object,
    metadata_value,
    unstated_reason,
)
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import FileSource

FIND = Finder("AD-HOST-002", "isa_mismatch")
KEY = "AOTI_CPU_ISA"
# Compilers use these only on request of the source, and the flag is set on every machine that has them.
_BY_REQUEST = ("amx_", "avx512_bf16", "avx512_fp16")
# Windows and macOS have no /proc/cpuinfo.
_ASK_TORCH = (
    'python -c "import torch; print(torch.backends.cpu.get_cpu_capability())"   # here and on the build machine'
)

# Names of the metadata → flags of /proc/cpuinfo.
_X86: dict[str, tuple[str, ...]] = {
    "avx2": ("avx2", "fma"),
    "avx512": ("avx512f", "avx512dq", "avx512bw", "avx512vl"),
    "avx512_vnni": ("avx512_vnni",),
    "amx": ("amx_tile",),
    "amx_tile": ("amx_tile",),
    "amx_fp16": ("amx_fp16",),
}
_ARM: dict[str, tuple[str, ...]] = {
    "asimd": ("asimd",),
    "neon": ("asimd",),
    "sve": ("sve",),
    "sve256": ("sve",),
    "bf16": ("bf16",),
}
_TABLES: dict[str, dict[str, tuple[str, ...]]] = {"x86_64": _X86, "aarch64": _ARM}


def run(case: Case) -> Findings:
    """At most one finding."""
    if case.model is None:
        return FIND.unchecked(NO_MODEL)
    machine = machine_name(case.host.machine)
    compiled = main_object(case)
    if compiled is not None and not has_code_for(compiled, machine):
        return FIND.unchecked(f"the code is for {compiled.machine}")
    if not case.host.cpu_flags:
        return FIND.unchecked(unstated_reason(case, "cpu_flags") or "this host does not report its CPU flags")
    value, member = metadata_value(case, KEY)
    if case.contract is not None and case.contract.needs.isa:
        others = {flag for name, table in _TABLES.items() if name != machine for flag in chain(*table.values())}
        lacking = tuple(name for name in case.contract.needs.isa if name not in {*case.host.cpu_flags, *others})
        return _findings(case, case.contract.needs.isa, lacking, (), at_member(case, case.contract.member))
    names = tuple((value or "").split())
    if not names:
        return FIND.unchecked("the package does not record the instructions it was compiled for")
    table, flags = _TABLES.get(machine, {}), case.host.cpu_flags
    # Metadata written on another kind of machine: platform_mismatch reports that, the object decides.
    foreign = {name for other in _TABLES.values() if other is not table for name in other} - table.keys()
    wanted = [name for name in map(str.lower, names) if name not in foreign and name != "invalid_vec_isa"]
    required = dict.fromkeys(flag for name in wanted for flag in table.get(name, ()) if flag not in flags)
    unknown = tuple(name for name in wanted if name not in table and name not in flags)
    return _findings(case, names, tuple(required), unknown, at_member(case, member))


def _findings(
    case: Case, names: tuple[str, ...], lacking: tuple[str, ...], unknown: tuple[str, ...], source: FileSource
) -> Findings:
    if not lacking and not unknown:
        return None
    native = case.contract is not None and case.contract.needs.march_native
    # An error only if a missing instruction is certainly used, not merely permitted to the compiler.
    state = FIND.error if any(not flag.startswith(_BY_REQUEST) for flag in lacking) else FIND.warn
    missing = ", ".join(lacking or unknown)
    return state(
        "isa",
        KEY,
        observed=f"code for {missing}" if lacking else f"{missing}, which is unknown to this version",
        expected=f"only instructions of this CPU ({case.host.cpu_model or case.host.machine})",
        source=source,
        facts={
            "needs": names,
            "missing": lacking,
            "unknown": unknown,
            "march_native": native,
            "cpu": case.host.cpu_model,
            **({} if case.host.system == "Linux" else {"step": _ASK_TORCH}),
        },
    )


CHECK = FIND.check(run, needs=("artifact_missing", "artifact_wrong_kind", "platform_mismatch"))
