"""The reference is a different program from the one that was compiled.

What it does
    With an exported program as --reference it compares how the program and the package describe the call: leaves,
    dtypes, sizes and ranges of the inputs, outputs, names and shapes of parameters. Nothing is loaded or run.

Why it matters
    Every statement about numbers depends on the reference. A different program gives different numbers legitimately.

Example:
    args[0].shape[1]: observed 1024, expected 512 in the reference

When it is wrong
    What compiling may change is left out: narrower ranges, fixed sizes, strides, constants that were folded. Two
    programs that agree in all of this cannot be distinguished here; ``aotidoctor verify --package`` also compares
    weights.
"""

from __future__ import annotations

from aotidoctor.checks.check import Finder, Findings
from aotidoctor.model.case import Case, user_function
from aotidoctor.model.evidence import FileSource
from aotidoctor.model.report import compile_again

FIND = Finder("AD-REF-001", "reference_mismatch")


def run(case: Case) -> Findings:
    """At most one finding: the first difference that compiling cannot make."""
    path = case.options.reference
    if path is None or user_function(path) is not None:
        return None
    if case.reference is None:
        return FIND.unchecked("the reference is not a readable torch.export archive")
    if case.contract is None:
        return FIND.unchecked("the package contains no contract (no wrapper.cpp)")
    from aotidoctor.readers.provenance.compare_program import compare_program

    found = compare_program(case.contract, case.reference, case.model).decisive
    if not found:
        return None
    first = found[0]
    more = f" ({len(found) - 1} more difference{'s' if len(found) > 2 else ''})" if len(found) > 1 else ""
    return FIND.warn(
        "another-program",
        first.subject,
        observed=f"{first.package}{more}",
        expected=f"{first.program}, as in the reference",
        message=f"the reference is a different program: {first.subject}: {first.package} in the package, "
        f"{first.program} in {path}{more}",
        source=FileSource(file=path),
        facts={
            "aspect": first.aspect,
            "difference": first.kind,
            "differences": len(found),
            "remedy": f"The package was compiled from a different program ({first.subject}: {first.package}, the "
            f"reference: {first.program}). Compile the reference again, or compare with the one that was compiled.",
            "command": compile_again(path),
        },
    )


CHECK = FIND.check(run, cause="numeric-difference", facts=("output",))
