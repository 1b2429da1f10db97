"""The compiled code never reads an input that the model uses: export took it for another one.

What it does
    With an exported program as --reference, looks for inputs that the program never reads although a line of the model
    names them, and whose example is the same tensor as that of another input.

Why it matters
    torch.export.export(model, (x, x)) follows the tensor, not the argument: the graph reads one input in the place of
    both. The numbers are right as long as both inputs are equal, and wrong without a message otherwise.

Example:
    args[0]: observed never read: args[1] stands in its place, expected an input that the code reads

When it is wrong
    An input that is only named in a line of the model, and does nothing there, was exported from a tensor that is the
    example of another input as well.
"""

from __future__ import annotations

from aotidoctor.checks.check import Finder, Observations
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import FileSource
from aotidoctor.model.report import merged_facts

FIND = Finder("AD-IN-020", "input_merged")


def run(case: Case) -> Observations:
    """One finding per input that another one stands in for."""
    if not case.merged or case.contract is None or case.reference is None:
        return
    from aotidoctor.readers.provenance.compare_program import compare_program

    if compare_program(case.contract, case.reference, case.model).decisive:
        yield FIND.unchecked("the reference is a different program")
        return
    for path, other in case.merged.items():
        yield FIND.error(
            "merged",
            path,
            observed=f"never read: {other} stands in its place",
            expected="an input that the code reads",
            source=FileSource(file=case.options.reference or ""),
            facts={**merged_facts(path, other)},
        )


CHECK = FIND.check(run, cause="export-specialization")
