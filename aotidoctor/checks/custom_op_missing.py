"""The package calls custom operators, which must be registered before it is loaded.

What it does
    Lists the operators of the proxy-executor calls that do not belong to torch, and looks whether --setup or
    --custom-op-library is given. Whether they register the operators is seen in a run.

Why it matters
    Without registration loading fails with "Could not find schema for mylib::op".

Example:
    ops::scale: observed no --setup and no --custom-op-library, expected the module or library that registers it

When it is wrong
    The operator may come with a package that your program imports anyway; name that import in a --setup file. Without a
    run this is a warning only.
"""

from __future__ import annotations

from collections.abc import Sequence

from aotidoctor.checks.check import Check, Finder
from aotidoctor.checks.package.facts import NO_MODEL, at_member, listed
from aotidoctor.model.artifact import ModelEntry
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, NotChecked

FIND = Finder("AD-LOAD-001", "custom_op_missing")
_BUILT_IN = frozenset({
    "_", "_c10d_functional", "_operator", "aten", "c10d", "c10d_functional", "higher_order", "inductor", "mkldnn",
    "mkldnn_prepacked", "onednn", "prepacked", "prim", "prims", "profiler", "quantized", "quantized_decomposed",
    "rngprims", "sparse", "streams", "symm_mem", "triton", "xnnpack",
})  # fmt: skip


def run(case: Case) -> Sequence[Evidence] | NotChecked:
    """At most one finding, about all operators."""
    if case.model is None:
        return FIND.unchecked(NO_MODEL)
    names = custom_ops(case, case.model)
    if not names:
        return []
    given = [*case.options.custom_op_libraries, *((case.options.setup,) if case.options.setup else ())]
    state = FIND.info if given else FIND.warn
    return [
        state(
            "needs",
            names[0],
            observed=f"{', '.join(given)}" if given else "no --setup and no --custom-op-library",
            expected=f"what registers {listed(names)}",
            message=f"the package calls {listed(names)}, which {'must be' if len(names) == 1 else 'each must be'} "
            "registered before it is loaded",
            source=at_member(case, case.model.extern_member),
            facts={"ops": tuple(names), "given": tuple(given)},
        )
    ]


def custom_ops(case: Case, model: ModelEntry) -> list[str]:
    """``namespace::name`` of the operators that torch does not bring along, without overload, in call order."""
    targets = [node.target for node in model.extern_nodes] or list(case.contract.custom_ops if case.contract else ())
    names = dict.fromkeys(qualified(target) for target in targets if target)
    return [name for name in names if name.partition("::")[0] not in _BUILT_IN]


def qualified(target: str) -> str:
    """``ops::scale`` of ``torch.ops.ops.scale.default``, ``ops.scale.default`` or ``ops::scale.default``."""
    if "::" in target:
        namespace, _, name = target.partition("::")
        return f"{namespace}::{name.partition('.')[0]}"
    parts = target.removeprefix("torch.ops.").split(".")
    return f"{parts[0]}::{parts[1]}" if len(parts) > 1 else target


CHECK = Check(
    code=FIND.code,
    name=FIND.name,
    cause="custom-op-missing",
    stage="load",
    needs=("artifact_missing", "artifact_wrong_kind"),
    run=run,
)
