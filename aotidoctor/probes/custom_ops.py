"""Are the custom operators of the package registered, with the schema and the kernel they had at compile time?

What it does
    Asks the child's operator registry (after --setup and --custom-op-library) for each operator that the package calls
    through its proxy executor, and compares argument names and the number of results with the compiled call.

Why it matters
    A missing operator fails at load; a changed schema fails at the call, or calls it with different arguments.

Example:
    ops::scale: observed not registered, expected ops::scale(Tensor x, float s)

When it is wrong
    Arguments are matched by name: a different order, or a new argument with a default, is harmless.
"""

from __future__ import annotations

from collections.abc import Sequence

from aotidoctor.model.answers import Operator, Registry, parse_answer
from aotidoctor.model.artifact import ExternNode
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, NotChecked
from aotidoctor.model.jobs import Operators
from aotidoctor.model.run import Outcome, Request
from aotidoctor.probes.payload import device_of, user_code
from aotidoctor.probes.plain_run import read_ending
from aotidoctor.probes.probe import History, RunFinder, succeeded

CODE, NAME = "AD-RUN-010", "custom_ops"
FIND = RunFinder(CODE, NAME, __doc__)
# These namespaces come with PyTorch itself: the worker's own import registers them.
BUILT_IN = ("aten", "prims", "prim", "inductor", "_c10d_functional", "higher_order", "quantized", "c10d")


def custom_nodes(case: Case) -> list[ExternNode]:
    """Proxy-executor calls of operators that PyTorch does not ship."""
    nodes = case.model.extern_nodes if case.model is not None else ()
    return [node for node in nodes if namespace(node.target) not in BUILT_IN]


def namespace(target: str) -> str:
    """``ops`` of ``ops::scale`` and of ``torch.ops.ops.scale.default``."""
    return target.removeprefix("torch.ops.").replace("::", ".").partition(".")[0]


def plan(case: Case, history: History) -> Request | NotChecked:
    """Plan a run if the package calls custom operators: an argument that a new schema lacks is dropped silently."""
    nodes = custom_nodes(case)
    if not nodes:
        return FIND.unchecked("the package calls no custom operator")
    plain = history.plain
    if plain is None:
        return FIND.unchecked("there was no plain run")
    if plain.stage in ("start", "import", "setup"):
        return FIND.unchecked("the set-up failed before operators could be registered", moot=False)
    payload = Operators(
        targets=tuple(dict.fromkeys(node.target for node in nodes)), code=user_code(case), device=device_of(case)
    )
    return Request(probe=NAME, job="ops", payload=payload, timeout=case.options.timeout, purpose="operator registry")


def read(case: Case, history: History, outcome: Outcome) -> Sequence[Evidence]:
    """One finding per operator that is missing, changed or without a kernel; none when all fit."""
    if not succeeded(outcome):
        return [read_ending(CODE, case, outcome)]
    registry = parse_answer(Registry, outcome.result).ops
    if registry is None:
        return []
    found = []
    for target, node in {node.target: node for node in custom_nodes(case)}.items():
        entry = registry.get(target)
        if entry is None or not entry.registered:
            expected = "an operator registered before the load"
            found.append(_finding("missing", node, "not registered", expected, outcome))
        elif (difference := _schema_difference(node, entry)) is not None:
            found.append(_finding("schema", node, *difference, outcome, schema=str(entry.schema)))
        elif entry.kernel is False:
            observed, expected = "registered without a kernel", "a kernel for this device"
            found.append(_finding("no-kernel", node, observed, expected, outcome))
    return found


def _schema_difference(node: ExternNode, entry: Operator) -> tuple[str, str] | None:
    """``(observed, expected)`` when the compiled call does not fit the registered schema."""
    names = [item.name for item in entry.arguments]
    unknown = [name for name in node.argument_names if name not in names]
    if unknown:
        return f"no argument {unknown[0]!r} in ({', '.join(names)})", f"({', '.join(node.argument_names)})"
    required = [item.name for item in entry.arguments if not item.has_default]
    ungiven = [name for name in required if name not in node.argument_names]
    if ungiven:
        return f"a required argument {ungiven[0]!r}", f"({', '.join(node.argument_names)})"
    if entry.returns is not None and node.output_kinds and entry.returns != len(node.output_kinds):
        return f"{entry.returns} result(s)", f"{len(node.output_kinds)} result(s)"
    return None


def _finding(
    kind: str, node: ExternNode, observed: str, expected: str, outcome: Outcome, *, schema: str | None = None
) -> Evidence:
    return FIND.error(outcome)(
        kind, node.target, observed=observed, expected=expected, facts={"op": node.target, "schema": schema}
    )


PROBE = FIND.probe(plan, read, "when the package calls custom operators")
