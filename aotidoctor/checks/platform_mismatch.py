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

import re

from aotidoctor.checks.check import Finder, Findings, Observations
from aotidoctor.checks.matching.package_facts import (
    NO_MODEL,
    at_member,
    has_code_for,
    machine_name,
    main_object,
    metadata_value,
)
from aotidoctor.model.artifact import SharedObject
from aotidoctor.model.case import Case, Host
from aotidoctor.model.evidence import shorten

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
        if (differs := _difference(case.host, item, host_format)) is None:
            continue
        kind, observed, expected = differs
        facts = {"package_machine": item.machine, "package_format": item.format, "host_machine": machine}
        if kind == "unsigned":
            facts |= {"advice": "Sign the library in the package again.", "step": "codesign --sign - model.wrapper.so"}
        elif kind == "file-format" and case.host.profile is None and case.host.system != "Linux":
            # Whoever sends packages for a server is at a laptop.
            words = "Name the machine that it is for, to judge package and inputs; to run it here, compile it here."
            facts |= {"advice": words, "step": "aotidoctor check model.pt2 --host ubuntu-24.04"}
        else:
            facts |= _name_machine(case.host)
        found.append(
            FIND.error(
                kind,
                shorten(item.member, 90),
                observed=observed,
                expected=expected,
                source=at_member(case, item.member),
                facts=facts,
            )
        )
    return found or _compiler(case) or _metadata(case)


def _name_machine(host: Host) -> dict[str, str]:
    """The command that names a machine that has no ``file`` and no ``uname``."""
    command = 'python -c "import platform; print(platform.system(), platform.machine())"'
    return {} if host.system == "Linux" else {"step": command}


def _compiler(case: Case) -> Findings:
    """A package of sources that its load compiles with the compiler of another system."""
    model = case.model
    name = (model.compiler or "").replace("\\", "/").rpartition("/")[2].lower() if model is not None else ""
    windows = "mingw32" in name or name.removesuffix(".exe") in ("cl", "clang-cl")
    if not windows or case.host.system == "Windows":
        return None
    return FIND.error(
        "compiler",
        name,
        observed="a compiler for Windows, which the load starts",
        expected=f"one for {case.host.system}",
        message=f"the load compiles the package with {name}, for Windows: what it makes is no library of this host",
        source=at_member(case, model.wrapper_member if model is not None else None),
        facts={"compiler": name, **_name_machine(case.host)},
    )


def _difference(host: Host, item: SharedObject, host_format: str) -> tuple[str, str, str] | None:
    """``(kind, observed, expected)`` of the first thing that keeps the object from being loaded there."""
    if item.format in _FORMATS and item.format != host_format:
        return "file-format", _FORMATS[item.format], _FORMATS[host_format]
    if item.bits not in (None, 64):
        return "bits", f"{item.bits}-bit code", "64-bit code"
    if not has_code_for(item, host.machine):
        return "elf-machine", f"machine {' and '.join(item.machines) or item.machine}", host.machine
    if (here := _earlier_macos(host, item)) is not None:
        return "system", f"code for macOS {item.least_system} and later", f"code for macOS {here} or earlier"
    if item.signed is False and machine_name(host.machine) == "aarch64":
        return "unsigned", "code without a signature", "signed code"
    return None


def _earlier_macos(host: Host, item: SharedObject) -> str | None:
    """The macOS of the host, where the object demands a later one."""
    stated = re.match(r"macOS-(\d+)(?:\.(\d+))?", host.platform or "")
    if stated is None or item.least_system is None:
        return None
    # A profile that states the first number only may be any of its releases.
    here = tuple(int(number) for number in stated.groups() if number is not None)
    least = tuple(map(int, item.least_system.split(".")))[: len(here)]
    return ".".join(map(str, here)) if least > here else None


def _metadata(case: Case) -> Observations:
    for key, host in (("AOTI_MACHINE", case.host.machine), ("AOTI_PLATFORM", case.host.system.lower())):
        value, member = metadata_value(case, key)
        if value is not None and machine_name(value) != machine_name(host):
            # A compiler for Windows writes the system that it runs on.
            compiled = main_object(case)
            crossed = key == "AOTI_PLATFORM" and compiled is not None and compiled.format == "pe"
            yield (FIND.info if crossed else FIND.warn)(
                "metadata",
                key,
                observed=value,
                expected=host,
                message=f"{key} states {value}, this host is {host}; torch only warns; the object file decides",
                source=at_member(case, member),
                facts={"key": key, "value": value, "host": host, "harmless": True, **_name_machine(case.host)},
            )


CHECK = FIND.check(run, needs=("artifact_missing", "artifact_wrong_kind"))
