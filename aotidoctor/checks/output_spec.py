"""The compiled function has a different number of outputs or inputs from the leaves in the package's call spec.

What it does
    Counts the outputs that the compiled code declares against the leaves of the out spec, and its inputs against the
    leaves of the in spec. None and plain numbers in the result also count as outputs. A leaf of the in spec need not be
    an input: plain values are baked in. A package that replays CUDA graphs of its own (aot_inductor.cudagraph_mode,
    after torch 2.15) is a warning: each call overwrites the results of the one before.

Why it matters
    Python rebuilds the result of each call from the out spec, so no call of such a package returns. The compiler
    produces such a package from a program that writes to its own parameters: each of them becomes an additional output
    before those of the program, and so does each buffer that it writes to.

Example:
    result: observed 5 outputs, expected 1 output in the out spec

When it is wrong
    A C++ program that takes the flat outputs by position works. The check does not look at shapes and dtypes.
"""

from __future__ import annotations

from aotidoctor.checks.check import Finder, Observations
from aotidoctor.checks.matching.package_facts import at_member
from aotidoctor.model.case import Case
from aotidoctor.model.contract import ModelContract
from aotidoctor.model.evidence import plural
from aotidoctor.model.inputs import SpecError, count_leaves, parse_spec

FIND = Finder("AD-OUT-002", "output_spec")
# The functions that a graph of AOTInductor's own is captured and replayed by.
_GRAPHS = "aoti_torch_cuda_graph_"
# Outputs whose shapes are listed.
MOST = 20
FIX = (
    "Do not let the model write to its parameters: change them before the export, or make them buffers; then export "
    "and compile again."
)


def run(case: Case) -> Observations:
    """At most one finding about the outputs, and one about the inputs."""
    contract = case.contract
    if contract is None:
        yield FIND.unchecked("the contract is not known")
        return
    yield from _outputs(case, contract)
    yield from _graphs(case)
    if contract.args is None or contract.kwargs is None:
        return
    # A call that follows the in spec has too few tensors; one with more of them returns.
    leaves = count_leaves(contract.args) + count_leaves(contract.kwargs)
    if contract.n_inputs > leaves:
        yield FIND.warn(
            "inputs",
            "args",
            observed=plural(contract.n_inputs, "input"),
            expected=f"at most {leaves}, the number of leaves in the in spec",
            source=at_member(case, contract.member),
            facts={"inputs": contract.n_inputs, "leaves": leaves},
        )


def _graphs(case: Case) -> Observations:
    libraries = case.model.shared_objects if case.model is not None else ()
    found = next((lib for lib in libraries if any(ref.name.startswith(_GRAPHS) for ref in lib.undefined)), None)
    if found is not None:
        yield FIND.warn(
            "cuda-graph",
            "result",
            observed="memory of a CUDA graph that the package captures and replays",
            expected="a copy of each result before the next call, and an instance for each thread",
            message="the package replays CUDA graphs of its own: a result is valid until the next call of the same "
            "instance, so clone what is kept, and do not share an instance between threads",
            source=at_member(case, found.member),
        )


def _outputs(case: Case, contract: ModelContract) -> Observations:
    count = contract.n_outputs
    if count is None or not contract.out_spec:
        missing = "out spec" if count is not None else "number of outputs"
        yield FIND.unchecked(f"the package does not record its {missing}")
        return
    try:
        leaves = count_leaves(parse_spec(contract.out_spec))
    except SpecError as error:
        yield FIND.unchecked(f"the out spec cannot be read: {error}")
        return
    if count == leaves:
        return
    shapes = tuple(f"{output.dtype or '?'}[{', '.join(output.shape or ('?',))}]" for output in contract.outputs[:MOST])
    yield FIND.error(
        "outputs",
        "result",
        observed=plural(count, "output"),
        expected=f"{plural(leaves, 'output')} in the out spec",
        message=f"the compiled code returns {plural(count, 'output')}, the out spec of the package has "
        f"{plural(leaves, 'leaf', 'leaves')}: Python cannot rebuild the result of any call",
        source=at_member(case, contract.member),
        facts={"outputs": count, "leaves": leaves, "shapes": shapes, **({"fix": FIX} if count > leaves else {})},
    )


CHECK = FIND.check(run, needs=("artifact_missing", "artifact_wrong_kind"), facts=("call-spec",))
