"""The shared object requests an executable stack, and this host does not grant one to a library.

What it does
    Reads the GNU_STACK program header of the shared object, and compares it with the C library of the host (glibc 2.41
    and later refuse such a library) and with the SELinux mode.

Why it matters
    The load fails with "cannot enable executable stack as shared object requires: Invalid argument". AOTInductor marks
    every package with embedded weights this way, by an assembler file without a .note.GNU-stack section; none of its
    code uses an executable stack. On the build machine there is no symptom.

Example:
    c5gu.wrapper.so: observed GNU_STACK RWE, expected GNU_STACK RW, as glibc 2.41 refuses an executable stack

When it is wrong
    The process was started with an executable stack (GLIBC_TUNABLES=glibc.rtld.execstack=2 in its environment). A host
    whose files permit it may still refuse it through prctl (MemoryDenyWriteExecute=yes), seccomp or SELinux.
"""

from __future__ import annotations

from aotidoctor.checks.check import Finder, Findings
from aotidoctor.checks.matching.package_facts import NO_MODEL, at_member, main_object, unstated_reason
from aotidoctor.model.case import Case

FIND = Finder("AD-HOST-015", "executable_stack")
# Of code in an ExecuTorch program, whose sha256 is its name.
_AT_START = {
    "step": "Start the process that runs ExecuTorch with a stack that may hold code; the compiled code needs none.",
    "remedy": "GLIBC_TUNABLES=glibc.rtld.execstack=2 ./your_program",
}


def run(case: Case) -> Findings:
    """At most one finding: an error if the host refuses it, else a note."""
    compiled = main_object(case)
    if compiled is None:
        return FIND.unchecked(NO_MODEL if case.model is None else "the model has no shared object")
    if not compiled.executable_stack:
        return None
    permitted, why = case.host.executable_stack, case.host.executable_stack_why or ""
    refused = permitted is False
    if permitted is None and case.host.profile is not None:
        return FIND.unchecked(unstated_reason(case, "executable_stack") or why)
    state = FIND.error if refused else FIND.info
    return state(
        "refused" if refused else "asked-for",
        compiled.member.rpartition("/")[2],
        observed="GNU_STACK RWE: it requests an executable stack",
        expected=f"GNU_STACK RW: {why}" if refused else "GNU_STACK RW, which every host accepts",
        source=at_member(case, compiled.member),
        facts={
            "member": compiled.member,
            "permitted": permitted,
            "why": why,
            "glibc": case.host.glibc,
            **(_AT_START if case.artifact.executorch is not None else {}),
        },
    )


CHECK = FIND.check(run, needs=("artifact_missing", "artifact_wrong_kind", "platform_mismatch"))
