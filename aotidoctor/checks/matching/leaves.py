"""Choose the leaves that each ``input_*`` check reads: without those that already have an earlier fault."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from aotidoctor.checks.check import Check, Finder, Findings
from aotidoctor.localize.call_overlay import (
    MOST_LISTED,
    Overlay,
    TreeDifference,
    dtype_fits,
    overlay_call,
    rank_fits,
    static_mismatches,
    swapped_pairs,
)
from aotidoctor.model.case import Case
from aotidoctor.model.contract import LeafSpec
from aotidoctor.model.evidence import FactValue, FileSource, list_names
from aotidoctor.model.inputs import TensorDesc
from aotidoctor.model.record import record

# The most keys in the facts of a finding; its text lists fewer.
MOST_KEYS = 100
_KEYWORDS = "ValueError: Ran into a kwarg keyword mismatch:"

# The pairs that a per-leaf check looks at. The checks that must pass before the leaves of two trees can be compared.
LEAF_NEEDS = ("inputs_file", "input_kwargs", "input_tree", "input_nontensor", "input_count")
STAGES = ("device", "dtype", "rank", "shape", "stride")
DENSE = ("strided",)


@record
class TensorPair:
    """A tensor leaf of the call spec and the tensor given for it.

    ``guessed``: it was generated, with sizes that the package does not record. A fault in them is no fault of the user.
    """

    spec: LeafSpec
    path: str
    tensor: TensorDesc
    guessed: bool = False

    def facts(self, **extra: FactValue) -> dict[str, FactValue]:
        """The facts that every finding about this leaf carries, and more."""
        return {
            "path": self.path,
            "input_index": self.spec.input_index,
            "generated_name": self.spec.generated_name,
            "unused": self.spec.used is False,
            **extra,
        }


def leaf_check(find: Finder, run: Callable[[Case], Findings], *, facts: tuple[str, ...] = ()) -> Check:
    """The check that runs ``run`` if the leaves can be compared."""

    def compare(case: Case) -> Findings:
        return find.unchecked(missing_reason(case)) if overlay_of(case) is None else run(case)

    return find.check(compare, needs=LEAF_NEEDS, facts=facts)


def overlay_of(case: Case) -> Overlay | None:
    """The overlay, or None (why: ``missing_reason``)."""
    if case.contract is None or case.inputs is None or case.contract.args is None:
        return None
    return overlay_call(case.contract, case.inputs)


def missing_reason(case: Case) -> str:
    """Why inputs cannot be compared with the contract."""
    if case.inputs_error is not None:
        return f"the inputs file could not be read: {case.inputs_error}"
    if case.inputs is None:
        return "no inputs were given (--inputs or --generate)"
    if case.contract is None:
        return "the package contains no contract (no wrapper.cpp)"
    return "the package contains no call spec"


def unread_reason(case: Case, what: str, unread: Sequence[str]) -> str:
    """Why ``what`` of the tensors at ``unread`` cannot be judged, and which option provides it."""
    named = list_names(unread)
    program = "" if case.options.reference is not None else "; --reference exported.pt2 provides it"
    return f"the package does not record the {what} of {named} (no input checks before torch 2.7){program}"


def hidden_reason(case: Case) -> str | None:
    """Why tensors within a user's object (a dataclass, a cache) cannot be judged; None without such an object."""
    overlay = overlay_of(case)
    hidden = [item.path for item in overlay.of("tree") if item.kind == "object"] if overlay is not None else []
    if not hidden:
        return None
    return f"only a process that calls the package sees the content of {', '.join(hidden[:5])}: use `aotidoctor run`"


def swapped_paths(overlay: Overlay) -> frozenset[str]:
    """Paths of the arguments that were swapped: they are explained, and other checks skip them."""
    return frozenset(pair.path for swap in swapped_pairs(overlay.pairs) for pair in swap)


def tensor_pairs(case: Case, stage: str | None = None) -> Iterator[TensorPair]:
    """Tensor leaves that fit in all properties that come before ``stage`` in ``STAGES``."""
    overlay = overlay_of(case)
    if overlay is None:
        return
    swapped = swapped_paths(overlay)
    earlier = STAGES[: STAGES.index(stage)] if stage is not None else ()
    generated = case.inputs is not None and case.inputs.format == "generated"
    for pair in overlay.pairs:
        spec, tensor = pair.spec, pair.value
        if not isinstance(tensor, TensorDesc) or spec.input_index is None or pair.path in swapped:
            continue
        fitting = {
            # Only the layout: the device says nothing about the other properties, and both are reported.
            "device": tensor.layout in DENSE,
            "dtype": dtype_fits(spec, tensor),
            "rank": rank_fits(spec, tensor),
            "shape": not static_mismatches(spec, tensor),
        }
        if all(fitting[name] for name in earlier):
            yield TensorPair(spec=spec, path=pair.path, tensor=tensor, guessed=generated and spec.has_open_sizes)


def device_fits(spec: LeafSpec, tensor: TensorDesc) -> bool:
    """Whether the device type is the expected one (the compiled check never looks at the index).

    A meta tensor is wrong even if no device is known: it has no memory, which every compiled kernel reads.
    """
    if spec.device_type is None:
        return tensor.device_type != "meta"
    return tensor.device_type == spec.device_type


def contract_source(case: Case, spec: LeafSpec) -> FileSource | None:
    """The place that states what is expected of this leaf: wrapper.cpp, or the reference for what that lacks."""
    contract = case.contract
    if contract is not None and spec.path in contract.completed and case.options.reference is not None:
        return FileSource(file=case.options.reference)
    if contract is None or contract.member is None:
        return None
    return FileSource(file=contract.member, line=spec.check_line or spec.source_line)


def difference_facts(difference: TreeDifference, raises: str) -> dict[str, FactValue]:
    """The facts of a difference in the tree of the call: its place, some keys of both sides, PyTorch's answer."""
    given, expected = (keys[:MOST_KEYS] for keys in difference.keys)
    return {"keys_observed": given, "keys_expected": expected, "path": difference.path, "raises": raises}


def call_error(case: Case) -> str:
    """PyTorch's answer to a call that differs from the call spec: it compares top-level keywords, then it counts."""
    inputs, contract = case.inputs, case.contract
    if inputs is None or contract is None:
        return ""
    if case.artifact.precompiled is not None:
        return "TypeError from inspect.Signature.bind, or RuntimeError: GuardManager check failed"
    if contract.kwargs is not None and set(inputs.kwargs.keys) != set(contract.kwargs.keys):
        given, wanted = (list(map(str, tree.keys)) for tree in (inputs.kwargs, contract.kwargs))
        given, wanted = (
            words if len(words) <= MOST_LISTED else [*words[:MOST_LISTED], "..."] for words in (given, wanted)
        )
        return f"{_KEYWORDS} Got the following keywords {given} but expected {wanted}"
    count = len(inputs.tensors())
    if count != contract.n_inputs:
        return f"RuntimeError: expected inputs vector size to be {contract.n_inputs}, but got {count}"
    return "no error: PyTorch takes the tensors in the order in which they are flattened"
