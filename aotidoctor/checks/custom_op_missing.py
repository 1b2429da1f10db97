"""The package calls custom operators, which must be registered before it is loaded.

What it does
    Lists the operators of the proxy-executor calls that do not belong to torch, and checks whether --setup or
    --custom-op-library is given. Only a run shows whether they register the operators.

Why it matters
    Without registration loading fails with "Could not find schema for mylib::op".

Example:
    ops::scale: observed no --setup and no --custom-op-library, expected the module or library that registers it

When it is wrong
    The operator may come with a package that your program imports anyway; name that import in a --setup file. Without a
    run this is only a warning.
"""

from __future__ import annotations

from aotidoctor.checks.check import Finder, Findings
from aotidoctor.checks.matching.package_facts import NO_MODEL, at_member
from aotidoctor.model.artifact import ModelEntry
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import list_names
from aotidoctor.model.torch_names import foreign

FIND = Finder("AD-LOAD-001", "custom_op_missing")
# What registers the operators of programs that put AOTInductor into packages of their own, by namespace.
_PROVIDERS = {
    "tensorrt": "import torch_tensorrt (engines of Torch-TensorRT)",
    "fbgemm": "import fbgemm_gpu (embeddings of TorchRec, TorchEasyRec)",
    "deepmd": "import deepmd.pt (DeePMD-kit)",
    "torchvision": "import torchvision",
    "torchao": "import torchao",
}


def run(case: Case) -> Findings:
    """At most one finding, about all operators."""
    if case.model is None:
        return FIND.unchecked(NO_MODEL)
    names = custom_ops(case, case.model)
    if not names:
        return None
    given = [*case.options.custom_op_libraries, *((case.options.setup,) if case.options.setup else ())]
    state = FIND.info if given else FIND.warn
    makers = dict.fromkeys(_PROVIDERS.get(name.partition("::")[0], "") for name in names)
    known = "".join(f"; {maker}" for maker in makers if maker)
    return state(
        "needs",
        names[0],
        observed=f"{', '.join(given)}" if given else "no --setup and no --custom-op-library",
        expected=f"what registers {list_names(names)}",
        message=f"the package calls {list_names(names)}, which {'must be' if len(names) == 1 else 'each must be'} "
        f"registered before it is loaded{known}",
        source=at_member(case, case.model.extern_member),
        facts={"ops": tuple(names), "given": tuple(given)},
    )


def custom_ops(case: Case, model: ModelEntry) -> list[str]:
    """``namespace::name`` of the operators that do not come with torch, without overload, in call order."""
    targets = [node.target for node in model.extern_nodes] or list(case.contract.custom_ops if case.contract else ())
    return foreign(targets)


CHECK = FIND.check(run, needs=("artifact_missing", "artifact_wrong_kind"))
