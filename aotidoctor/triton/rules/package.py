"""Family package: the package's needs of the server's machine, independent of the config."""

from __future__ import annotations

import re

from aotidoctor.model.evidence import Severity
from aotidoctor.model.torch_names import foreign
from aotidoctor.triton.serving import Consequence, Family, Needs, Remark, RuleResult, ServedModel, ServedVersion

RULES = Family("package")

# What a check of the package against this host means for a server: code -> (kind, consequence, words).
_HOST = {
    "AD-HOST-001": ("machine", Consequence.FAILS_TO_LOAD, "on a machine like this one the model does not load"),
    "AD-HOST-002": (
        "instructions",
        Consequence.FAILS_TO_LOAD,
        "on a CPU like this one the server process crashes with SIGILL, during the load or at the first inference",
    ),
    "AD-HOST-004": (
        "gpu-code",
        Consequence.REQUESTS_FAIL,
        "on a GPU like this one the model loads, and inferences fail: there is no kernel image for it",
    ),
}
_TORCH = (("26.02", (2, 11)), ("26.04", (2, 12)))
_LARGE = 256 << 20
_GIB = float(1 << 30)


@RULES.rule("R48", "custom operators are registered in the server", Consequence.REQUESTS_FAIL, needs=Needs.PACKAGE)
def custom_operators(model: ServedModel) -> RuleResult:
    """Custom operators must be registered in the server process before the model is loaded.

    Versions: all; no config field loads an operator library.
    Consequence: the model does not load, or its first inference fails: "Could not find schema for mylib::op".
    How it was seen: in the sources of torch and of the backend, not run in a server.
    Remedy: start tritonserver with the operators' library in LD_PRELOAD. Operators written in Python cannot be served.
    """
    for version in model.served:
        names = foreign(node.target for node in version.entry.extern_nodes) if version.entry is not None else []
        if not names and version.contract is not None:
            names = foreign(version.contract.custom_ops)
        if names:
            yield Remark(
                kind="custom-operators",
                message=f"the package calls {', '.join(names)}, which the server does not have: the model does not "
                "load, or its inferences fail, and no config field can change that.",
                remedy="start the server with LD_PRELOAD=/path/to/the operators' library.so; operators written in "
                "Python cannot be served",
                observed=", ".join(names),
                expected="operators of torch, or a library that registers these in the server",
                subject=f"version {version.number}",
                file=version.package,
                facts={"ops": tuple(names)},
            )


@RULES.rule("R49", "the package is made for the machine that serves it", Consequence.FAILS_TO_LOAD, needs=Needs.PACKAGE)
def fits_the_machine(model: ServedModel) -> RuleResult:
    """The package must be compiled for the machine, the CPU, the GPU and the torch that serve it.

    Versions: all. The torch of a release is known up to 26.04.
    Consequence: the load fails, the process crashes with an illegal instruction, or no kernel runs on the GPU.
    How it was seen: the checks of ``aotidoctor check`` compare with this host; other machines are not examined.
    Remedy: compile on, or for, the machine that serves, with the torch of its container or an older one.
    """
    for version in model.served:
        for found in version.host_findings:
            if found.severity is Severity.ERROR and found.code in _HOST:
                kind, consequence, words = _HOST[found.code]
                yield Remark(
                    kind=kind,
                    consequence=consequence,
                    message=f"{words} ({found.observed}; {found.code}).",
                    remedy="compile it on, or for, the machine that serves it",
                    observed=found.observed,
                    expected=found.expected,
                    subject=f"version {version.number}",
                    file=version.package,
                    facts={"check": found.code},
                )
        yield from _newer_torch(model, version)


@RULES.rule("R51", "there is room to load the package", Consequence.FAILS_TO_LOAD, needs=Needs.PACKAGE)
def room_to_load(model: ServedModel) -> RuleResult:
    """There must be memory to read the package, and a folder for temporary files that allows execution.

    Versions: all seen. Each instance reads the whole file into memory, only to measure its size, and unpacks it into
    the folder for temporary files, which must be writable and not be mounted noexec.
    Consequence: a transient peak of memory; without such a folder the model does not load.
    How it was seen: in the source of the backend; the check examines this host's folder and memory, not the server's.
    Remedy: use a smaller package or fewer instances; set TMPDIR for the server.
    """
    return [remark for version in model.served for remark in _room(model, version)]


def _newer_torch(model: ServedModel, version: ServedVersion) -> RuleResult:
    """Only where the release's torch is known, or known to be older than the next one that is."""
    built = version.contract.needs.torch_version if version.contract is not None else None
    found = re.match(r"(\d+)\.(\d+)", built or "")
    limit = next((torch for name, torch in _TORCH if not model.release.since(name) or model.release.name == name), None)
    if found is None or limit is None or (int(found[1]), int(found[2])) <= limit:
        return
    here = ".".join(str(part) for part in limit)
    yield Remark(
        kind="newer-torch",
        consequence=Consequence.WASTE,
        message=f"compiled with torch {built}, Triton {model.release.name} brings {here} or older: it does not load if "
        "it calls what that torch does not have (undefined symbol).",
        remedy=f"compile with torch {here} or older, or serve with a later release",
        observed=f"torch {built}",
        expected=f"torch {here} or older",
        subject=f"version {version.number}",
        file=version.package,
    )


def _room(model: ServedModel, version: ServedVersion) -> RuleResult:
    if version.artifact is None:
        return
    unpacked = version.artifact.unpacked_size
    folder = model.host.tmpdir
    problem = folder.problem_with(unpacked) if folder is not None else None
    if folder is not None and problem is not None:
        yield Remark(
            kind="temporary-folder",
            message=f"in a server on this host the model does not load: {folder.path} {problem}.",
            remedy="give the server a TMPDIR that is writable and allows execution",
            observed=f"{folder.path} {problem}",
            expected=f"a writable folder with {unpacked} bytes free that allows execution",
            subject=f"version {version.number}",
            file=version.package,
        )
    size = version.artifact.size
    loads, available = (sum(group.instances for group in model.instance_groups) or 1), model.host.memory_total
    peak = size + unpacked
    short = available is not None and peak > available
    if not short and size < _LARGE:
        return
    limit = f", and this host has {available / _GIB:.1f} GiB" if short and available is not None else ""
    times = f" Each of {loads} instances does that in turn." if loads > 1 else ""
    yield Remark(
        kind="memory" if short else "size",
        consequence=Consequence.WASTE if short else Consequence.NOTE,
        message=f"while it loads, the whole file is kept in memory ({size / _GIB:.1f} GiB) in addition to the "
        f"unpacked one ({unpacked / _GIB:.1f} GiB){limit}.{times}",
        remedy="more memory for the server, or weights outside the code",
        observed=f"{peak} bytes while loading",
        expected=f"at most {available}" if short else f"less than {_LARGE}",
        subject=f"version {version.number}",
        file=version.package,
    )
