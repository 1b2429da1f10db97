"""Two arguments were swapped.

What it does
    Looks for two arguments that do not fit where they are (dtype, rank, static dims, tensor or plain value) and that
    both fit when they are swapped, if there is only one such pair.

Why it matters
    The runtime counts tensors and checks nothing else: the swap shows as an index error, a wrong shape, or not at all.

Example:
    args[0], args[1]: observed int64[4, 8] and float32[4, 16], expected float32[4, 16] and int64[4, 8]

When it is wrong
    Two tensors of the same dtype and shape can be swapped without a trace in the metadata; no check can see that.
"""

from __future__ import annotations

from aotidoctor.checks.check import Finder, Observations
from aotidoctor.checks.matching.leaves import contract_source, missing_reason, overlay_of
from aotidoctor.localize.call_overlay import Pair, describe_plain, describe_tensor, swapped_pairs
from aotidoctor.model.case import Case
from aotidoctor.model.contract import describe_spec
from aotidoctor.model.inputs import TensorDesc

FIND = Finder("AD-IN-009", "input_order")


def run(case: Case) -> Observations:
    """One finding per swapped pair."""
    overlay = overlay_of(case)
    if overlay is None:
        yield FIND.unchecked(missing_reason(case))
        return
    swaps = swapped_pairs(overlay.pairs)
    led = {first.path for first, _ in swaps}
    for first, second in swaps:
        yield FIND.error(
            "swapped",
            f"{first.path}, {second.path}",
            observed=f"{_describe_given(first)} and {_describe_given(second)}",
            expected=f"{describe_spec(first.spec)} and {describe_spec(second.spec)}",
            source=contract_source(case, first.spec),
            facts={"path": first.path, "swap_with": second.path, "mutual": (second.path not in led)},
        )


def _describe_given(pair: Pair) -> str:
    return describe_tensor(pair.value) if isinstance(pair.value, TensorDesc) else describe_plain(pair.value)


CHECK = FIND.check(run, needs=("inputs_file", "input_kwargs", "input_tree"), facts=("call-spec",))
