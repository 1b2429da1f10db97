"""Too few or too many tensors.

What it does
    Counts positional arguments against the call spec, and finds tensors given for leaves that were plain values (or
    None) at export. Without a call spec it counts the tensors against the inputs of the compiled code.

Why it matters
    The number of tensors is the only thing that the runtime always checks, and its message does not name the wrong one.

Example:
    args[1]: observed a tensor, expected the value fixed at export

When it is wrong
    If a plain value is passed where a tensor belongs, the count is wrong as well; input_nontensor names that leaf
    instead.
"""

from __future__ import annotations

from aotidoctor.checks.check import Finder, Observations
from aotidoctor.checks.matching.leaves import call_error, missing_reason, overlay_of, swapped_paths
from aotidoctor.localize.call_overlay import describe_tensor
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import plural
from aotidoctor.model.inputs import TensorDesc

FIND = Finder("AD-IN-005", "input_count")


def run(case: Case) -> Observations:
    """Findings from the trees if there is a call spec, from the bare count otherwise."""
    if case.contract is None or case.inputs is None:
        yield FIND.unchecked(missing_reason(case))
        return
    overlay, raises = overlay_of(case), call_error(case)
    if overlay is None:
        given, wanted = len(case.inputs.tensors()), case.contract.n_inputs
        kind = "few" if given < wanted else "many"
        observed, expected = plural(given, "tensor"), plural(wanted, "tensor")
        if given != wanted:
            yield FIND.error(kind, "args", observed=observed, expected=expected, facts={"raises": raises})
        return
    swapped = swapped_paths(overlay)
    for difference in overlay.of("count"):
        yield FIND.error(
            difference.kind,
            difference.path,
            observed=difference.observed,
            expected=difference.expected,
            facts={"path": difference.path, "raises": raises},
        )
    for pair in overlay.pairs:
        if pair.spec.kind == "constant" and isinstance(pair.value, TensorDesc) and pair.path not in swapped:
            yield FIND.error(
                "many",
                pair.path,
                observed=describe_tensor(pair.value),
                expected="no tensor: this leaf was a plain value (or None) at export",
                facts={"path": pair.path, "tensor_for_constant": True, "raises": raises},
            )


CHECK = FIND.check(
    run,
    needs=("inputs_file", "input_kwargs", "input_tree", "input_order", "input_nontensor"),
    facts=("input", "call-spec"),
)
