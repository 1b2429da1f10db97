"""Two different OpenMP runtimes would be in one process.

What it does
    Collects the OpenMP libraries that come in through LD_PRELOAD, torch and the package. For Windows and macOS it
    compares the one that the package names with the one that torch's wheel brings there.

Why it matters
    libiomp5 and libomp in one process abort it ("OMP: Error #15"), unless KMP_DUPLICATE_LIB_OK allows it. GNU's and
    Intel's mostly work together, each with its own threads, and setting the number of threads reaches only one.

Example:
    openmp: observed libgomp.so.1, libiomp5.so, expected one OpenMP runtime

When it is wrong
    Two copies of the same runtime are not reported on Linux; wheels of torch shipped that way for years. On macOS the
    loader may take the copy that is loaded already.
"""

from __future__ import annotations

import re

from aotidoctor.checks.check import Finder, Findings
from aotidoctor.checks.matching.package_facts import main_object, unstated_reason
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence

FIND = Finder("AD-HOST-009", "openmp_conflict")
_ABORTING = frozenset({"iomp5", "omp"})
_TRUE = ("1", "true", "yes", "on")
# LLVM's and Intel's share their state by a name in the process, and the second one that starts ends it.
_OF_TORCH = {"Windows": "libiomp5md.dll", "Darwin": "libomp.dylib"}
_SECOND = re.compile(r"(?:/.{0,4000}/)lib(?:omp|iomp5)\.dylib|libomp(?:140\.\w{1,20})?\.dll", re.IGNORECASE)


def run(case: Case) -> Findings:
    """At most one finding."""
    if (found := _beside_torch(case)) is not None:
        return found
    if (reason := unstated_reason(case, "openmp_runtimes")) is not None:
        return FIND.unchecked(reason)
    files = case.host.openmp_runtimes
    families = {family_of(path) for path in files}
    if len(families) < 2:
        return None
    allowed = case.host.environment.get("KMP_DUPLICATE_LIB_OK", "").lower() in _TRUE
    state = FIND.error if families >= _ABORTING and not allowed else FIND.warn
    return state(
        "two-runtimes",
        "openmp",
        observed=", ".join(files),
        expected="one OpenMP runtime",
        facts={"files": files, "families": tuple(sorted(families))},
    )


def _beside_torch(case: Case) -> Evidence | None:
    """The OpenMP library of a package for Windows or macOS that is not the one of torch's wheel."""
    compiled, own = main_object(case), _OF_TORCH.get(case.host.system)
    second = next(filter(_SECOND.fullmatch, compiled.needed if compiled is not None else ()), None)
    if own is None or second is None or case.host.torch is None:
        return None
    return FIND.warn(
        "two-runtimes",
        "openmp",
        observed=f"{second} of the package, {own} of torch",
        expected="one OpenMP runtime",
        facts={"files": (second, own), "families": tuple(sorted({family_of(second), family_of(own)}))},
    )


def family_of(path: str) -> str:
    """``gomp``, ``iomp5`` or ``omp`` of ``/x/libgomp-a34b.so.1``."""
    name = path.rpartition("/")[2].removeprefix("lib")
    return name.partition(".")[0].partition("-")[0]


CHECK = FIND.check(run)
