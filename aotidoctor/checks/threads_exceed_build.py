"""The model would run with more threads than its reductions were compiled for.

What it does
    Compares the size of per-thread accumulators in the generated kernels (``tmp_acc0_arr[2]`` in a parallel region
    without num_threads) with the number of threads that torch would use.

Why it matters
    With default settings the thread count of the build machine is compiled in. On a machine with more cores, each
    additional thread writes past the end of the array: SIGSEGV, or damaged memory and a crash later.

Example:
    cpp_fused_mul_sum_0: observed 8 threads, expected at most 2

When it is wrong
    Your program sets fewer threads (torch.set_num_threads) before the first call. Running with fewer threads than
    compiled for is harmless.
"""

from __future__ import annotations

from aotidoctor.checks.check import Finder, Observations
from aotidoctor.checks.matching.package_facts import at_member, unstated_reason
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import plural
from aotidoctor.model.other_artifacts import Precompiled

FIND = Finder("AD-HOST-010", "threads_exceed_build")


def run(case: Case) -> Observations:
    """One finding per kernel."""
    if (found := case.artifact.precompiled) is not None:
        yield from _guard(case, found)
        return
    contract = case.contract
    if contract is None:
        yield FIND.unchecked("the package has no kernel sources to read the thread count from")
        return
    reason = unstated_reason(case, "threads")
    if reason is not None and case.options.threads is None:
        if contract.needs.baked_threads:
            yield FIND.unchecked(reason)
        return
    threads = case.options.threads or case.host.threads
    for kernel, baked in contract.needs.baked_threads.items():
        if threads > baked:
            yield FIND.error(
                "baked",
                kernel,
                observed=plural(threads, "thread"),
                expected=f"at most {baked}",
                message=f"{kernel} has room for {plural(baked, 'thread')} and would run with {threads}: call "
                f"torch.set_num_threads({baked}) first, or compile with the number of threads that will run it",
                source=at_member(case, contract.member),
                facts={
                    "baked": baked,
                    "threads": threads,
                    "kernel": kernel,
                    "chosen": case.options.threads is not None,
                },
            )


def _guard(case: Case, found: Precompiled) -> Observations:
    """A function of aot_compile holds the number of threads in a guard: it refuses fewer as well."""
    wanted = next((one.threads for one in found.functions if one.threads is not None), None)
    threads = case.options.threads or case.host.threads
    if wanted is not None and case.options.threads is None and (reason := unstated_reason(case, "threads")) is not None:
        yield FIND.unchecked(reason)
        return
    if wanted is None or wanted == threads:
        return
    what = "the precompiled function"
    yield FIND.error(
        "guard",
        what,
        observed=plural(threads, "thread"),
        expected=f"{wanted}, as in the process that compiled it",
        message=f"it was compiled in a process with {plural(wanted, 'thread')}, and its guards refuse {threads}: "
        f"call torch.set_num_threads({wanted}) first",
        source=at_member(case, None),
        facts={"baked": wanted, "threads": threads, "kernel": what, "chosen": case.options.threads is not None},
    )


CHECK = FIND.check(run, needs=("artifact_missing", "artifact_wrong_kind", "device_unavailable"))
