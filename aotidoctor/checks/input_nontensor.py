"""None, a number, a string or a NumPy array was passed where the compiled code takes a tensor.

What it does
    Compares each tensor leaf of the call spec with the value passed for it.

Why it matters
    The loader keeps the tensors of a call and drops everything else, so all tensors after the gap move up one slot.
    The message is then only "expected inputs vector size to be ..., but got ...".

Example:
    args[1]: observed 0.5 (float), expected float32[4, 16]

When it is wrong
    A leaf that was a plain value at export takes no tensor: see input_count for an extra tensor.
"""

from __future__ import annotations

from aotidoctor.checks.check import Finder, Observations
from aotidoctor.checks.matching.leaves import call_error, contract_source, missing_reason, overlay_of, swapped_paths
from aotidoctor.localize.call_overlay import describe_plain
from aotidoctor.model.case import Case
from aotidoctor.model.contract import describe_spec
from aotidoctor.model.inputs import PlainValue

FIND = Finder("AD-IN-004", "input_nontensor")
KINDS = {"None": "none", "NoneType": "none", "str": "string", "ndarray": "ndarray"}


def run(case: Case) -> Observations:
    """One finding per tensor leaf that was given something else."""
    overlay = overlay_of(case)
    if overlay is None:
        yield FIND.unchecked(missing_reason(case))
        return
    swapped, raises = swapped_paths(overlay), call_error(case)
    for pair in overlay.pairs:
        if pair.spec.input_index is not None and isinstance(pair.value, PlainValue) and pair.path not in swapped:
            yield FIND.error(
                KINDS.get(pair.value.type, "number"),
                pair.path,
                observed=describe_plain(pair.value),
                expected=describe_spec(pair.spec),
                source=contract_source(case, pair.spec),
                facts={
                    "path": pair.path,
                    "expected_dtype": pair.spec.dtype,
                    "observed_type": pair.value.type,
                    "raises": raises,
                },
            )


CHECK = FIND.check(run, needs=("inputs_file", "input_kwargs", "input_tree", "input_order"), facts=("call-spec",))
