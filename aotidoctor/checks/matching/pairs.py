"""The pairs that a per-leaf check looks at, without those that an earlier question has already answered."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from aotidoctor.checks.check import Check, Finder, Findings
from aotidoctor.checks.matching.fits import dtype_fits, rank_fits, static_mismatches, swapped_pairs
from aotidoctor.checks.matching.overlay import Overlay, Pair, overlay_call
from aotidoctor.model.case import Case
from aotidoctor.model.contract import LeafSpec
from aotidoctor.model.evidence import FactValue, FileSource
from aotidoctor.model.inputs import TensorDesc
from aotidoctor.model.phrases import listed
from aotidoctor.model.record import record

# What must be right before the leaves of two trees can be compared at all.
LEAF_NEEDS = ("inputs_file", "input_kwargs", "input_tree", "input_nontensor", "input_count")
STAGES = ("device", "dtype", "rank", "shape", "stride")
DENSE = ("strided",)


@record
class TensorPair:
    """A tensor leaf of the call spec and the tensor given for it.

    ``guessed``: it was made up here, with sizes that the package does not record. What is wrong with them is our doing.
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
    """The check that ``run`` makes of the leaves, where they can be compared."""

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
    """Why ``what`` of the tensors at ``unread`` cannot be judged, and what would tell it."""
    named = listed(unread)
    program = "" if case.options.reference is not None else "; --reference exported.pt2 provides it"
    return f"the package does not record the {what} of {named} (no input checks before torch 2.7){program}"


def hidden_reason(case: Case) -> str | None:
    """Why tensors within an object of the user's (a dataclass, a cache) cannot be judged; None where there is none."""
    overlay = overlay_of(case)
    hidden = [item.path for item in overlay.of("tree") if item.kind == "object"] if overlay is not None else []
    if not hidden:
        return None
    return f"only a process that calls the package sees the content of {', '.join(hidden[:5])}: use `aotidoctor run`"


def swapped_paths(overlay: Overlay) -> frozenset[str]:
    """Paths of the arguments that were swapped: they are explained, and other checks leave them alone."""
    return frozenset(pair.path for swap in swapped_pairs(overlay.pairs) for pair in swap)


def tensor_pairs(case: Case, stage: str | None = None) -> Iterator[TensorPair]:
    """Tensor leaves whose earlier questions (``STAGES`` before ``stage``) are all answered well."""
    overlay = overlay_of(case)
    if overlay is None:
        return
    swapped = swapped_paths(overlay)
    earlier = STAGES[: STAGES.index(stage)] if stage is not None else ()
    generated = case.inputs is not None and case.inputs.format == "generated"
    for pair in overlay.pairs:
        match pair:
            case Pair(spec=spec, path=path, value=TensorDesc() as tensor):
                if spec.input_index is None or path in swapped:
                    continue
                found = TensorPair(spec=spec, path=path, tensor=tensor, guessed=generated and spec.has_open_sizes)
                if all(_answered(found, question) for question in earlier):
                    yield found


def _answered(pair: TensorPair, question: str) -> bool:
    spec, tensor = pair.spec, pair.tensor
    match question:
        case "device":
            # Where it lies says nothing about what it is: both are told.
            return tensor.layout in DENSE
        case "dtype":
            return dtype_fits(spec, tensor)
        case "rank":
            return rank_fits(spec, tensor)
        case "shape":
            return not static_mismatches(spec, tensor)
        case _:
            return True


def device_fits(spec: LeafSpec, tensor: TensorDesc) -> bool:
    """The device type is the expected one (the compiled check never looks at the index).

    Where none is known a meta tensor is wrong all the same: it has no memory, which every compiled kernel reads.
    """
    if spec.device_type is None:
        return tensor.device_type != "meta"
    return tensor.device_type == spec.device_type


def contract_source(case: Case, spec: LeafSpec) -> FileSource | None:
    """Where it stands what is expected of this leaf: in wrapper.cpp, or in the reference where that is silent."""
    contract = case.contract
    if contract is not None and spec.path in contract.completed and case.options.reference is not None:
        return FileSource(file=case.options.reference)
    if contract is None or contract.member is None:
        return None
    return FileSource(file=contract.member, line=spec.check_line or spec.source_line)
