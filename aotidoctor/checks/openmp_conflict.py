"""Two different OpenMP runtimes would be in one process.

What it does
    Collects the OpenMP libraries that come in through LD_PRELOAD, torch and the package.

Why it matters
    libiomp5 and libomp in one process abort it ("OMP: Error #15"), unless KMP_DUPLICATE_LIB_OK allows it. GNU's and
    Intel's mostly work together, each with its own threads, and setting the number of threads reaches only one.

Example:
    openmp: observed libgomp.so.1, libiomp5.so, expected one OpenMP runtime

When it is wrong
    Two copies of the same runtime are not reported; wheels of torch shipped that way for years.
"""

from __future__ import annotations

from aotidoctor.checks.check import Finder, Findings
from aotidoctor.checks.matching.package_facts import unstated_reason
from aotidoctor.model.case import Case

FIND = Finder("AD-HOST-009", "openmp_conflict")
_ABORTING = frozenset({"iomp5", "omp"})
_TRUE = ("1", "true", "yes", "on")


def run(case: Case) -> Findings:
    """At most one finding."""
    if (reason := unstated_reason(case, "openmp_runtimes")) is not None:
        return FIND.unchecked(reason)
    files = case.host.openmp_runtimes
    families = {family_of(path) for path in files}
    if len(families) < 2:
        return []
    allowed = case.host.environment.get("KMP_DUPLICATE_LIB_OK", "").lower() in _TRUE
    state = FIND.error if families >= _ABORTING and not allowed else FIND.warn
    return [
        state(
            "two-runtimes",
            "openmp",
            observed=", ".join(files),
            expected="one OpenMP runtime",
            facts={"files": files, "families": tuple(sorted(families))},
        )
    ]


def family_of(path: str) -> str:
    """``gomp``, ``iomp5`` or ``omp`` of ``/x/libgomp-a34b.so.1``."""
    name = path.rpartition("/")[2].removeprefix("lib")
    return name.partition(".")[0].partition("-")[0]


CHECK = FIND.check(run)
