"""The compiled code is for a different operating system or machine.

What it does
    Reads the header of the shared object: file format (ELF, PE, Mach-O), word size, machine.

Why it matters
    For an ARM object on x86 the loader reports "cannot open shared object file: No such file or directory", for a
    Windows object "invalid ELF header". Neither message names the cause.

Example:
    c5gu.wrapper.so: observed machine aarch64, expected x86_64

When it is wrong
    Metadata that disagree with the object are only a warning: the object decides. An emulator (qemu-user, Rosetta) runs
    foreign code, when the whole process runs under it.
"""

from __future__ import annotations

from aotidoctor.checks.check import Finder, Findings
from aotidoctor.checks.matching.package_facts import NO_MODEL, at_member, machine_name, metadata_value
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, shorten

FIND = Finder("AD-HOST-001", "platform_mismatch")
_FORMATS = {"pe": "a Windows object (PE)", "macho": "a macOS object (Mach-O)", "elf": "an ELF object"}
_HOST_FORMATS = {"Linux": "elf", "Darwin": "macho", "Windows": "pe"}


def run(case: Case) -> Findings:
    """At most one finding per shared object, and one for metadata that disagree."""
    program = case.artifact.executorch
    if case.model is None and program is None:
        return FIND.unchecked(NO_MODEL)
    host_format, machine = _HOST_FORMATS.get(case.host.system, "elf"), case.host.machine
    found = []
    # Of code that was changed, the header proves nothing.
    named = (blob for blob in program.named if blob.sha256 in (None, blob.promised)) if program is not None else ()
    codes = (blob.code for blob in named if blob.code is not None)
    for item in codes if program is not None else case.model.shared_objects if case.model is not None else ():
        if item.format in _FORMATS and item.format != host_format:
            kind, observed, expected = "file-format", _FORMATS[item.format], _FORMATS[host_format]
        elif item.bits not in (None, 64):
            kind, observed, expected = "bits", f"{item.bits}-bit code", "64-bit code"
        elif item.machine is not None and machine_name(item.machine) != machine_name(machine):
            kind, observed, expected = "elf-machine", f"machine {item.machine}", machine
        else:
            continue
        found.append(
            FIND.error(
                kind,
                shorten(item.member, 90),
                observed=observed,
                expected=expected,
                source=at_member(case, item.member),
                facts={"package_machine": item.machine, "package_format": item.format, "host_machine": machine},
            )
        )
    return found or _metadata(case)


def _metadata(case: Case) -> list[Evidence]:
    found = []
    for key, host in (("AOTI_MACHINE", case.host.machine), ("AOTI_PLATFORM", case.host.system.lower())):
        value, member = metadata_value(case, key)
        if value is not None and machine_name(value) != machine_name(host):
            found.append(
                FIND.warn(
                    "metadata",
                    key,
                    observed=value,
                    expected=host,
                    message=f"{key} states {value}, this host is {host}; torch only warns; the object file decides",
                    source=at_member(case, member),
                    facts={"key": key, "value": value, "host": host, "harmless": True},
                )
            )
    return found


CHECK = FIND.check(run, needs=("artifact_missing", "artifact_wrong_kind"))
