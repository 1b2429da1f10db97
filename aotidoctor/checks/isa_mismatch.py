"""The compiled code uses CPU instructions that this host does not have.

What it does
    Compares the instruction sets that the package was compiled for (compile flags in the package, else its metadata)
    with the flags of this CPU.

Why it matters
    The process dies of SIGILL, often already while loading. torch compares the two texts and logs a warning at most.

Example:
    AOTI_CPU_ISA: observed code for avx512_vnni, expected only instructions of this CPU

When it is wrong
    The compiled kernels may not reach the instruction. Names that are not known here, and packages built with
    -march=native on another CPU model, give a note or a warning only: their true needs are not written down.
"""

from __future__ import annotations

from collections.abc import Sequence

from aotidoctor.checks.check import Check, Finder
from aotidoctor.checks.package.facts import NO_MODEL, at_member, machine_name, main_object, metadata_value
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, FileSource, NotChecked

FIND = Finder("AD-HOST-002", "isa_mismatch")
KEY = "AOTI_CPU_ISA"

# Inductor's names and g++'s -m names → flags of /proc/cpuinfo.
_X86: dict[str, tuple[str, ...]] = {
    "avx2": ("avx2", "fma"),
    "avx512": ("avx512f", "avx512dq", "avx512bw", "avx512vl"),
    "avx512_vnni": ("avx512_vnni",),
    "avx512vnni": ("avx512_vnni",),
    "avx512bf16": ("avx512_bf16",),
    "avx512fp16": ("avx512_fp16",),
    "amx": ("amx_tile",),
    "amx_tile": ("amx_tile",),
    "amx_fp16": ("amx_fp16",),
    **{name: (name,) for name in ("avx", "avx512f", "avx512dq", "avx512bw", "avx512vl", "fma", "f16c", "avx512_bf16")},
    **{name.replace("_", "-"): (name,) for name in ("amx_tile", "amx_int8", "amx_bf16", "amx_fp16")},
}
_ARM: dict[str, tuple[str, ...]] = {
    "asimd": ("asimd",),
    "neon": ("asimd",),
    "sve": ("sve",),
    "sve256": ("sve",),
    "bf16": ("bf16",),
}
_TABLES: dict[str, dict[str, tuple[str, ...]]] = {"x86_64": _X86, "aarch64": _ARM}


def run(case: Case) -> Sequence[Evidence] | NotChecked:
    """At most one finding."""
    if case.model is None:
        return FIND.unchecked(NO_MODEL)
    machine = machine_name(case.host.machine)
    compiled = main_object(case)
    if compiled is not None and compiled.machine and machine_name(compiled.machine) != machine:
        return FIND.unchecked(f"the code is for {compiled.machine}")
    if not case.host.cpu_flags:
        return FIND.unchecked("this host does not tell its CPU flags")
    names, source = _needs(case)
    if not names:
        return FIND.unchecked("the package does not say which instructions it was compiled for")
    return _compare(case, names, source, _TABLES.get(machine, {}))


def _needs(case: Case) -> tuple[tuple[str, ...], FileSource]:
    value, member = metadata_value(case, KEY)
    if case.contract is not None and case.contract.needs.isa:
        return case.contract.needs.isa, at_member(case, member or case.contract.member)
    return tuple((value or "").split()), at_member(case, member)


def _compare(
    case: Case, names: tuple[str, ...], source: FileSource, table: dict[str, tuple[str, ...]]
) -> list[Evidence]:
    flags = case.host.cpu_flags
    # Metadata written on another kind of machine: platform_mismatch speaks about that, the object decides.
    foreign = {name for other in _TABLES.values() if other is not table for name in other} - table.keys()
    wanted = [name for name in (name.lower() for name in names) if name not in foreign and name != "invalid_vec_isa"]
    lacking = sorted({flag for name in wanted for flag in table.get(name, ()) if flag not in flags})
    unknown = sorted(name for name in wanted if name not in table and name not in flags)
    if not lacking and not unknown:
        return []
    native = case.contract is not None and case.contract.needs.march_native
    state = FIND.error if lacking else FIND.warn
    missing = ", ".join(lacking or unknown)
    return [
        state(
            "isa",
            KEY,
            observed=f"code for {missing}" if lacking else f"{missing}, which is not known here",
            expected=f"only instructions of this CPU ({case.host.cpu_model or case.host.machine})",
            source=source,
            facts={
                "needs": tuple(names),
                "missing": tuple(lacking),
                "unknown": tuple(unknown),
                "march_native": native,
                "cpu": case.host.cpu_model,
            },
        )
    ]


CHECK = Check(
    code=FIND.code,
    name=FIND.name,
    cause="isa-mismatch",
    stage="host",
    needs=("artifact_missing", "artifact_wrong_kind", "platform_mismatch"),
    run=run,
)
