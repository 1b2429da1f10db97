"""Plan the treatment of a cause: the registry of planners, and those of the call and its environment. Pure.

A planner gets the case and all findings, and returns steps, or none when the change is not unambiguous: a treatment
that guesses would confirm the wrong thing. The worker carries the steps out.

Environment: threads, model name, weights, temporary directory, device. Call: nesting, keys, keywords, order, leaves
too many or too few, plain values for tensors. The call is rebuilt from a template in the form of the call spec, whose
leaves name leaves of the given call. A missing leaf is made up where its shape is known: the run then shows that its
absence was the fault, and the text states that the tensor is a stand-in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from aotidoctor.diagnosis import dim_orders, treat_tensors, treat_values
from aotidoctor.diagnosis.treat_tensors import assign
from aotidoctor.diagnosis.treat_values import couples, evidence_of_code, exported_program, path_of, spec_at, value_at
from aotidoctor.diagnosis.treatment_steps import (
    TreatmentPlan,
    call_expression,
    leaf_plan,
    merge_plans,
    one_step,
    template,
)
from aotidoctor.model.case import Case
from aotidoctor.model.contract import LeafSpec
from aotidoctor.model.evidence import Evidence, plural
from aotidoctor.model.inputs import Leaf, LeafValue, PlainValue, Tree, child_path
from aotidoctor.model.record import JsonObject, JsonValue
from aotidoctor.model.report import Treatment

# Environment of the model.
_MISFITS = ("name", "dtype", "shape", "stride")


def plan_model_name(case: Case, _findings: Sequence[Evidence]) -> TreatmentPlan | None:
    """Load the only model there is; among several, only the user can choose."""
    names = [model.name for model in case.artifact.models]
    if len(names) != 1:
        return None
    command = f"torch._inductor.package.load_package(path, model_name={names[0]!r})"
    return one_step(f"load the model called {names[0]!r}", "model_name", name=names[0], command=command)


def plan_threads(case: Case, findings: Sequence[Evidence]) -> TreatmentPlan | None:
    """Run with as many threads as the narrowest kernel was compiled for."""
    baked = case.needs.baked_threads.values()
    facts = [item.facts.get("baked") for item in evidence_of_code(findings, "AD-HOST-010")]
    known = [number for number in (*baked, *facts) if isinstance(number, int) and number > 0]
    return _with_threads(min(known)) if known else None


def plan_one_thread(_case: Case, _findings: Sequence[Evidence]) -> TreatmentPlan | None:
    """Run with one thread, which cannot race."""
    return _with_threads(1)


def _with_threads(number: int) -> TreatmentPlan:
    return one_step(
        f"run with {plural(number, 'thread')}", "threads", n=number, command=f"torch.set_num_threads({number})"
    )


def plan_load_weights(case: Case, findings: Sequence[Evidence]) -> TreatmentPlan | None:
    """Load the weights in the package, or those of the exported program given as reference."""
    items = evidence_of_code(findings, "AD-LOAD-005", "missing") or evidence_of_code(findings, "AD-LOAD-002")
    if any(item.kind == "on-disk" for item in items):
        command = (
            "from torch.export.pt2_archive._package import load_pt2\n"
            "model = load_pt2(path, load_weights_from_disk=True).aoti_runners['model']"
        )
        text = "load the weights that the package stores next to the code"
        return one_step(text, "load_weights", command=command, **{"from": "disk"})
    reference = exported_program(case)
    if not items:
        return None
    if reference is None:
        return _zeros(case, items)
    given = f"torch.export.load({reference!r}).state_dict"
    command = f"model.load_constants({given}, check_full_update=True, user_managed=False)"
    return one_step(f"load the weights of {reference}", "load_weights", command=command, **{"from": reference})


def plan_register_classes(_case: Case, findings: Sequence[Evidence]) -> TreatmentPlan | None:
    """Import the modules that define the container classes, or call what registers them."""
    items = evidence_of_code(findings, "AD-LOAD-007", "needs")
    named = items[0].facts.get("registrations") if items else None
    if not isinstance(named, tuple) or not named:
        return None
    modules: list[JsonValue] = [str(name) for name in named]
    command = str(items[0].facts.get("register") or "")
    return one_step(f"import {', '.join(map(str, named))} first", "import", modules=modules, command=command)


def _zeros(case: Case, items: Sequence[Evidence]) -> TreatmentPlan | None:
    """Load zeros for missing constants: a proof that their absence ended the call, and no remedy."""
    named = [item.facts.get("constants") for item in items if item.kind == "missing"]
    missing = {name for names in named if isinstance(names, tuple) for name in names}
    contract = case.contract
    if contract is None or contract.needs.device_type not in (None, "cpu"):
        return None
    wanted = [one for one in contract.constants if not one.from_folded]
    wanted = [one for one in wanted if not missing or one.fqn in missing]
    if not wanted or any(None in (one.dtype, one.shape) for one in wanted):
        return None
    constants: list[JsonValue] = [
        {"name": one.fqn, "dtype": one.dtype, "shape": [*(one.shape or ())]} for one in wanted
    ]
    text = f"load zeros for {plural(len(wanted), 'missing constant')}, to see the call return"
    return one_step(text, "fill_weights", constants=constants)


def plan_differing_weights(case: Case, _findings: Sequence[Evidence]) -> TreatmentPlan | None:
    """Load the weights of the exported program in place of those in the package."""
    reference = exported_program(case)
    if reference is None:
        return None
    return one_step(f"load the weights of {reference}", "load_weights", **{"from": reference})


def plan_fit_weights(case: Case, findings: Sequence[Evidence]) -> TreatmentPlan | None:
    """Fit weights to the code: leave out unknown names, cast others or take them from the reference."""
    misfits = {
        kind: [item for item in evidence_of_code(findings, "AD-LOAD-005") if item.kind == kind] for kind in _MISFITS
    }
    names = {kind: [str(item.facts["constant"]) for item in items] for kind, items in misfits.items()}
    if not any(names.values()):
        return None
    reference = exported_program(case)
    if reference is not None:
        wrong = [*names["dtype"], *names["shape"], *names["stride"]]
        wanted = [one.fqn for one in case.contract.constants] if case.contract else []
        # A constant that was given under another name is missing under its own.
        take: list[JsonValue] = [*(wanted if names["name"] else wrong)]
        step: JsonObject = {"op": "fit_weights", "drop": [*names["name"]], "take": take, "from": reference}
        return TreatmentPlan(text=f"load the weights of {reference} instead of those that do not fit", steps=(step,))
    if names["shape"] or any("tied_to" not in item.facts for item in misfits["name"]):
        return None
    # Without a reference, the given tensors themselves are changed.
    dtypes = {str(item.facts["constant"]): item.facts.get("expected_dtype") for item in misfits["dtype"]}
    change: JsonObject = {
        "op": "fit_weights",
        "drop": [*names["name"]],
        "cast": {name: str(dtype) for name, dtype in dtypes.items()},
        "contiguous": [*names["stride"]],
    }
    changes = [f"cast {name} to {dtype}" for name, dtype in dtypes.items()]
    changes += [f"leave out {name}" for name in names["name"]]
    changes += [f"make {name} contiguous" for name in names["stride"]]
    return TreatmentPlan(text="; ".join(changes), steps=(change,))


def plan_tmpdir(case: Case, _findings: Sequence[Evidence]) -> TreatmentPlan | None:
    """Load with a temporary directory that exists, has room and allows execution; none where the loader needs none."""
    if case.host.tmpdir is not None and case.host.tmpdir.fixed:
        return None
    text, command = "load with a temporary directory that can be used", "export TMPDIR=/path/with/room"
    return one_step(text, "tmpdir", command=command)


def plan_headers(_case: Case, findings: Sequence[Evidence]) -> TreatmentPlan | None:
    """Compile with the headers and libraries of this host's PyTorch, for a package that names those of another one."""
    items = evidence_of_code(findings, "AD-HOST-007", "headers")
    text = "compile it with the headers and libraries of the PyTorch that is installed here"
    return one_step(text, "headers", command=str(items[0].facts.get("command") or "")) if items else None


def plan_clear_execstack(_case: Case, _findings: Sequence[Evidence]) -> TreatmentPlan:
    """Load a copy of the package that does not request an executable stack."""
    text = "load a copy of the package without the flag for an executable stack"
    return one_step(text, "clear_execstack", command="aotidoctor fix execstack model.pt2 -o fixed.pt2")


def plan_global_libtorch(_case: Case, findings: Sequence[Evidence]) -> TreatmentPlan | None:
    """Make the symbols of libtorch global, for a package that names no library of it."""
    items = evidence_of_code(findings, "AD-HOST-006", "unlinked")
    text = "make libtorch's symbols global before the package is loaded"
    return one_step(text, "global_libtorch", command=str(items[0].facts.get("command") or "")) if items else None


def plan_repack(_case: Case, findings: Sequence[Evidence]) -> TreatmentPlan | None:
    """Load a copy of the package in the layout of the compiler, with the members that are there."""
    # Faults of the archive that the loader rejects; it does not need the marks of the format.
    kinds = {item.kind for item in evidence_of_code(findings, "AD-ART-007")}
    text = "load a copy of the package with one top folder, files only, and the marks of the format"
    return one_step(text, "repack") if kinds & {"no-prefix", "mixed-prefix", "directory-entries"} else None


def plan_load_device(case: Case, _findings: Sequence[Evidence]) -> TreatmentPlan | None:
    """Load for the device type that the package was compiled for, without an index."""
    wanted = case.needs.device_type
    command = "torch._inductor.aoti_load_package(path, device_index=-1)"
    return None if wanted is None else one_step(f"load for {wanted}", "device", device=wanted, command=command)


def plan_tree(case: Case, _findings: Sequence[Evidence]) -> TreatmentPlan | None:
    """Rebuild the call in the form of the call spec; None when leaves cannot be told apart."""
    contract, inputs = case.contract, case.inputs
    if contract is None or inputs is None or contract.args is None or contract.kwargs is None:
        return None
    assignment = assign(contract, inputs)
    if assignment is None:
        return None
    made = [(hole.path, made_up(case, hole.spec)) for hole in assignment.holes]
    stand_ins: list[JsonObject] = [
        {"op": "insert", "path": path, "tensor": tensor} for path, tensor in made if tensor is not None
    ]
    if len(stand_ins) < len(made):
        return None
    step: JsonObject = {"op": "tree", "args": assignment.args, "kwargs": assignment.kwargs}
    spelt = [*_template_dtypes(assignment.args), *_template_dtypes(assignment.kwargs)]
    as_given: list[JsonValue] = [_template(inputs.args, "args", {}), _template(inputs.kwargs, "kwargs", {})]
    form: list[JsonValue] = [assignment.args, assignment.kwargs]
    if spelt and _leaves_call_unchanged(form, as_given):
        lines = [f"{path} = torch.as_tensor({path}, dtype=torch.{dtype})" for path, dtype in spelt]
        text = f"make {'a tensor' if len(spelt) == 1 else 'tensors'} of {', '.join(path for path, _ in spelt)}"
        return TreatmentPlan(text=text, steps=(step,), command="\n".join(lines))
    parts = ["put the call into the form it was exported with"]
    if assignment.dropped:
        parts.append(f"without {', '.join(assignment.dropped)}")
    if assignment.holes:
        parts.append(f"with a stand-in tensor for {', '.join(hole.path for hole in assignment.holes)}")
    command = call_expression(assignment.args, assignment.kwargs)
    return TreatmentPlan(text=", ".join(parts), steps=(step, *stand_ins), command=command)


def _template_dtypes(form: JsonValue) -> list[tuple[str, str]]:
    """Path and dtype of the lists of numbers that a template makes tensors of."""
    match form:
        case {"tensor_of": str(path), "dtype": str(dtype)}:
            return [(path, dtype)]
        case {"dict": [*items]} | {"list": [*items]} | {"tuple": [*items]} | [*items]:
            return [found for item in items for found in _template_dtypes(item)]
        case _:
            return []


def _leaves_call_unchanged(form: JsonValue, given: JsonValue) -> bool:
    """Whether a template leaves the call as given, except for the tensors that it makes."""
    match form, given:
        case {"tensor_of": _}, _:
            return True
        case dict(), dict() if form.keys() == given.keys():
            return all(_leaves_call_unchanged(form[key], given[key]) for key in form)
        case list(), list() if len(form) == len(given):
            return all(map(_leaves_call_unchanged, form, given))
        case _:
            return form == given


def made_up(case: Case, spec: LeafSpec) -> JsonObject | None:
    """JSON of a tensor with the dtype and shape of ``spec``; dynamic dims as in the other inputs."""
    if spec.dtype is None or (spec.dims is None and spec.rank != 0):
        return None
    sizes = {
        str(dim.expr): size
        for _, other, tensor in couples(case)
        for dim, size in zip(other.dims or (), tensor.shape, strict=False)
        if dim.expr is not None
    }
    shape: list[JsonValue] = []
    for dim in spec.dims or ():
        known = sizes.get(str(dim.expr)) if dim.expr is not None else None
        shape.append(dim.static if dim.static is not None else known if known is not None else max(dim.min or 2, 1))
    # Between 0 and 1: a program may round them to indices, or take their logarithm.
    bounds: JsonObject = {"low": 0.0, "high": 1.0} if "float" in spec.dtype else {}
    return {"tensor": {"dtype": spec.dtype, "shape": shape, "seed": 0, **bounds}}


def plan_swap(case: Case, findings: Sequence[Evidence]) -> TreatmentPlan | None:
    """Exchange the two leaves that fit each other's place."""
    moves: dict[str, str] = {}
    for item in evidence_of_code(findings, "AD-IN-009", "swapped"):
        first, second = path_of(item), item.facts.get("swap_with")
        if first is None or not isinstance(second, str):
            return None
        # Of more than two that were rotated, each has a finding of its own.
        moves |= {first: second} if item.facts.get("mutual") is False else {first: second, second: first}
    if not moves or case.inputs is None:
        return None
    args = _template(case.inputs.args, "args", moves)
    kwargs = _template(case.inputs.kwargs, "kwargs", moves)
    parts = []
    for place, source in moves.items():
        if moves.get(source) != place:
            parts.append(f"give {source} as {place}")
        elif place < source:
            parts.append(f"exchange {place} and {source}")
    step: JsonObject = {"op": "tree", "args": args, "kwargs": kwargs}
    return TreatmentPlan(text="; ".join(parts), steps=(step,), command=call_expression(args, kwargs))


def _template(given: Tree[LeafValue], path: str, moves: dict[str, str]) -> JsonObject:
    """The call as it is, with some leaves in each other's place."""
    if isinstance(given, Leaf):
        return {"leaf": moves.get(path, path)}
    children = [_template(child, child_path(path, given, at), moves) for at, child in enumerate(given.children)]
    return template(given.type, given.keys, children)


def plan_nontensor(case: Case, findings: Sequence[Evidence]) -> TreatmentPlan | None:
    """Make tensors of numbers and arrays where the program takes one, and a stand-in for None."""
    return merge_plans([_to_tensor(case, item) for item in evidence_of_code(findings, "AD-IN-004")])


def _to_tensor(case: Case, item: Evidence) -> TreatmentPlan | None:
    path = path_of(item)
    value, spec = value_at(case, path), spec_at(case, path)
    if path is None or spec is None or spec.dtype is None or not isinstance(value, PlainValue):
        return None
    if item.kind == "none":
        tensor = made_up(case, spec)
        text = f"put a stand-in tensor at {path}, to see the call return"
        step: JsonObject = {"op": "stand_in", "path": path, **(tensor or {})}
        return TreatmentPlan(text=text, steps=(step,)) if tensor is not None else None
    one_element = spec.rank in (0, None) or (spec.dims is not None and all(dim.static == 1 for dim in spec.dims))
    if item.kind not in ("number", "ndarray") or (item.kind == "number" and not one_element):
        return None
    return leaf_plan(f"make a tensor of {path}", {"op": "to_tensor", "path": path, "dtype": spec.dtype})


# Registry.
Planner = Callable[[Case, Sequence[Evidence]], TreatmentPlan | None]

PLANNERS: Mapping[str, tuple[str, Planner]] = {
    "model-name": ("model-name", plan_model_name),
    "tmpdir": ("tmpdir", plan_tmpdir),
    "toolchain-missing": ("headers", plan_headers),
    "artifact-layout": ("repack", plan_repack),
    "executable-stack": ("clear-execstack", plan_clear_execstack),
    "abi-mismatch": ("global-libtorch", plan_global_libtorch),
    "threads-exceed-build": ("threads", plan_threads),
    "threading": ("one-thread", plan_one_thread),
    "pytree-class-missing": ("import", plan_register_classes),
    "weights-not-loaded": ("load-weights", plan_load_weights),
    "weights-differ": ("load-weights", plan_differing_weights),
    "weights-mismatch": ("fit-weights", plan_fit_weights),
    "load-device": ("load-device", plan_load_device),
    "device-index": ("load-device", plan_load_device),
    "input-tree": ("tree", plan_tree),
    "input-kwargs": ("tree", plan_tree),
    "input-count": ("tree", plan_tree),
    "input-order": ("tree", plan_swap),
    "input-nontensor": ("to-tensor", plan_nontensor),
    "input-layout": ("dense", treat_tensors.plan_dense),
    "input-device": ("to-device", treat_tensors.plan_to_device),
    "input-dtype": ("cast", treat_tensors.plan_cast),
    "input-lazy-bit": ("resolve", treat_tensors.plan_resolve),
    "input-rank": ("reshape", treat_tensors.plan_reshape),
    "input-shape": ("permute", dim_orders.plan_permute),
    "input-stride": ("restride", treat_tensors.plan_restride),
    "input-alias": ("clone", treat_tensors.plan_clone),
    "input-divisibility": ("shorten", treat_values.plan_divisible),
    "input-shape-disagree": ("shorten", dim_orders.plan_disagreement),
    "input-range": ("shorten", treat_values.plan_into_range),
    "cuda-launch": ("shorten", treat_values.plan_into_grid),
    "input-nan": ("nan-to-num", treat_values.plan_nan_to_num),
    "index-out-of-range": ("clamp-values", treat_values.plan_clamp),
    "cuda-device-assert": ("clamp-values", treat_values.plan_clamp),
    "integer-division": ("replace-zeros", treat_values.plan_replace_zeros),
    "numeric-difference": ("nodes", treat_values.plan_nodes),
    "nan-produced": ("zeros", treat_values.plan_zeros),
    "overflow": ("zeros", treat_values.plan_zeros),
    "custom-op-contract": ("nodes", treat_values.plan_operator_nodes),
    **{
        f"custom-op-{end}": ("stand-in", treat_values.plan_stand_in)
        for end in ("crash", "exception", "exits", "hang", "bad-return", "fake-kernel")
    },
}


def plan_treatment(cause: str, case: Case, findings: Sequence[Evidence]) -> Treatment | None:
    """Plan the change that removes the failure if ``cause`` is right; None when nothing unambiguous is known."""
    if cause not in PLANNERS:
        return None
    name, planner = PLANNERS[cause]
    plan = planner(case, findings)
    if plan is None or not plan.steps:
        return None
    if plan.steps[0].get("op") == "permute":
        name = "permute"
    return Treatment(name=name, cause=cause, text=plan.text, steps=plan.steps, command=plan.command, others=plan.others)


def combine(treatments: Sequence[Treatment]) -> Treatment | None:
    """Combine treatments in the order given, for inputs with several faults at once; None without any."""
    if len(treatments) < 2:
        return treatments[0] if treatments else None
    return Treatment(
        name="+".join(item.name for item in treatments),
        cause=treatments[0].cause,
        text="; ".join(item.text for item in treatments),
        steps=tuple(step for item in treatments for step in item.steps),
        command="\n".join(item.command for item in treatments if item.command),
        others=tuple(other for item in treatments for other in item.others),
    )
