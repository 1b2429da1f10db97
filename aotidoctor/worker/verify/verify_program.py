"""Load an exported program without its verifier, list every violation, then run the verifier; job ``verify``.

The verifier's answer is part of the result: a refusal that none of our rules explains is a record, too (G12).

Rules that look ahead to the compile are A02, A03 and A07 (operators that the package calls from outside, custom
operators, training-mode leftovers), A12 (what the compiler refuses before it calls a C++ compiler) and A05 (dims that
should be dynamic and are not). With ``dynamic_shapes`` (the
argument of torch.export) A05 is a comparison. Without, there are only signs: a static dim of
the size that a dynamic dim had in the sample, and that size as a constant in the graph.
"""

from __future__ import annotations

import copy
import re
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch

from aotidoctor.model.case import user_function
from aotidoctor.model.evidence import describe_failure
from aotidoctor.model.jobs import Verify
from aotidoctor.program.signature_rules import check_signature
from aotidoctor.program.value_rules import add_merged, check_devices, check_dtypes, check_symbols
from aotidoctor.worker.channel import Channel
from aotidoctor.worker.compile_program import compile_refusal, compiler_decompositions
from aotidoctor.worker.user_code import load_setup
from aotidoctor.worker.verify.export_again import describe_error, merged_leaves, run_function
from aotidoctor.worker.verify.graph_rules import (
    ProgramViolations,
    check_graph,
    check_operators,
    device_of_call,
    first_line,
    operator_calls,
    operator_name,
    program_graphs,
)
from aotidoctor.worker.verify.program_load import LoadedProgram, load_programs
from aotidoctor.worker.verify.program_view import (
    UserInput,
    argument_names,
    check_output_node,
    check_state,
    graph_values,
    leaf_examples,
    name_in_source,
    nameless_dtypes,
    program_signature,
    symbol_places,
    symbol_ranges,
    user_inputs,
)

_LONGEST_TRACEBACK = 20_000


def check_compile(program: Any, records: ProgramViolations, result: dict[str, Any]) -> None:
    """Decompose the program, look for C shims (A02), and compile it as far as no C++ compiler is needed (A12)."""
    try:
        decomposed = copy.deepcopy(program).run_decompositions(compiler_decompositions())
    except Exception as error:
        _record_refusal(error, program, records)
        why = f"{type(error).__name__}: {first_line(error)}"
        result["skipped"]["A02"] = f"torch cannot decompose the program here: {why}"
        return
    _check_shims(decomposed, records)
    if all(value.device in ("", "cpu") for value in graph_values(program)):
        _run_guarded("A12", lambda: _try_compile(program, decomposed, records, result), result)


def _check_shims(decomposed: Any, records: ProgramViolations) -> None:
    """Check operators that remain after decomposition, for which Inductor has no code, for a C shim."""
    from torch._inductor.lowering import fallbacks, lowerings
    from torchgen.aoti.fallback_ops import inductor_fallback_ops as shims

    seen: set[str] = set()
    for path, node in operator_calls(decomposed):
        name, target = str(node.target), node.target
        has_code = target in lowerings and target not in fallbacks
        if target.namespace != "aten" or has_code or name in seen:
            continue
        seen.add(name)
        device = device_of_call(node) or "cpu"
        add = partial(records.add, "A02", node=node, target=name, graph=path, device=device)
        if name not in shims:
            expected = (
                "a shim: without one the call goes through the proxy executor, which is slower and needs libtorch"
            )
            add("no-shim", observed=f"{name} has no C shim in this torch", expected=expected)
        # A set before torch 2.9, a dict of versions since.
        elif not _has_shim(name, device, shims[name] if isinstance(shims, dict) else ()):
            observed = f"the C shims for {device} in this torch do not declare {name}"
            add("undeclared", observed=observed, expected=f"a function that the generated code can call on {device}")


_LOWERED = re.compile(r"^ {0,8}target: ([\w.:]{1,200})$", re.MULTILINE)


def _try_compile(program: Any, decomposed: Any, records: ProgramViolations, result: dict[str, Any]) -> None:
    error = compile_refusal(program, decomposed)
    if error is None:
        return
    inner: Exception = getattr(error, "inner_exception", error)
    # What this host lacks is no fault of the program.
    if isinstance(inner, MemoryError | OSError | ImportError):
        return
    result["refusal"] = "".join(traceback.format_exception(error))[-_LONGEST_TRACEBACK:]
    found = _LOWERED.search(str(error))
    node = next((one for _, one in operator_calls(decomposed) if found and str(one.target) == found[1]), None)
    records.add(
        "A12",
        "not-compiled",
        node=node,
        target=found[1] if found else "the program",
        observed=f"{type(inner).__name__}: {first_line(inner)}",
        expected="a program that the compiler writes code for",
    )


_MUTATED = re.compile(r"Constant (\w{1,200}) is mutated in the forward method")


def _record_refusal(error: Exception, program: Any, records: ProgramViolations) -> None:
    """Record (A12) what PyTorch refuses to decompose, at the line of the model that writes to a constant."""
    mutated = _MUTATED.search(str(error))
    observed = f"{type(error).__name__}: {first_line(error)}"
    if mutated is None:
        expected = "a program that can be decomposed: compiling it takes the same way"
        records.add("A12", "refused", target="the program", observed=observed, expected=expected)
        return
    name = mutated[1]
    names = {name, *(spec.arg.name for spec in program.graph_signature.input_specs if spec.target == name)}
    users = (node for node in program.graph.nodes if any(one.name in names for one in node.all_input_nodes))
    node = next(users, None)
    own = name_in_source(node, names) if node is not None else None
    records.add(
        "A12",
        "mutated-constant",
        node=node,
        target=own or name,
        observed=f"the call writes to {own or name}, a tensor from outside of the module{f' ({name})' if own else ''}",
        expected="a buffer: only these may change",
    )


@cache
def _shim_headers(device: str) -> str:
    """Text of the headers with the C shims for ``device``; empty where there is no header to read."""
    folder = Path(torch.__file__).parent / "include/torch/csrc/inductor/aoti_torch/generated"
    both = (folder / f"c_shim_{device}.h", folder / "c_shim_aten.h")
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in both if path.is_file()]
    return "\n".join(texts) if both[0].is_file() else ""


def _has_shim(name: str, device: str, versions: Any) -> bool:
    """Whether the header for ``device`` has a function for the operator; True where there is no header to read."""
    # ``sort_stable`` of ``aten.sort.stable``, with its newest version.
    _, operator, overload = name.split(".")
    newest = max((int(text[1:]) for text in versions if text[:1] == "v" and text[1:].isdigit()), default=1)
    short = operator if overload == "default" else f"{operator}_{overload}"
    function = short if newest == 1 else f"{short}_v{newest}"
    text = _shim_headers(device)
    return not text or any(f"aoti_torch_{kind}_{function}(" in text for kind in (device, "aten"))


# Rule A05.
_SHAPES = {
    "aten::view": 1,
    "aten::reshape": 1,
    "aten::expand": 1,
    "aten::_unsafe_view": 1,
    "aten::full": 0,
    "aten::zeros": 0,
    "aten::ones": 0,
    "aten::new_zeros": 1,
    "aten::new_ones": 1,
    "aten::new_full": 1,
}
"""Operator -> position of the argument that is a shape."""
# Smaller sizes are too common to be a sign.
_SMALLEST_SIGN = 3


def check_specialized(program: Any, declared: Any, records: ProgramViolations) -> list[str]:
    """Check for static dims that should be dynamic; return the arguments of ``declared`` that the program lacks."""
    inputs = user_inputs(program)
    if declared is None:
        _look_for_signs(program, inputs, records)
        return []
    given = declared if isinstance(declared, dict) else {str(at): part for at, part in enumerate(declared)}
    names = argument_names(program)
    used: set[str] = set()
    for item in inputs:
        _compare_dims(item, _given_value(item, given, names, used), records)
    return [key for key in given if key not in used]


def _given_value(item: UserInput, given: dict[str, Any], names: list[str], used: set[str]) -> Any:
    """The value for this leaf in ``given``, by the name or the number of its argument; None when there is none."""
    if not item.keys:
        return None
    first, *rest = item.keys
    spellings = [first] if item.is_keyword else [*(names[first : first + 1]), first]
    name = next((str(one) for one in spellings if str(one) in given), None)
    if name is None:
        return None
    used.add(name)
    found = given[name]
    for key in rest:
        if isinstance(found, list) and isinstance(key, int):
            found = found[key] if key < len(found) else None
        elif isinstance(found, dict):
            found = found.get(str(key))
    return found


def _compare_dims(item: UserInput, declared: Any, records: ProgramViolations) -> None:
    shape = getattr(item.val, "shape", None)
    if shape is None:
        return
    lines = enumerate(declared) if isinstance(declared, list) else ()
    marks = declared.items() if isinstance(declared, dict) else lines
    for key, mark in marks:
        dim = int(key)
        if mark is None or mark == "static" or dim >= len(shape):
            continue
        if isinstance(shape[dim], int):
            name = mark.get("name", "dynamic") if isinstance(mark, dict) else mark
            kind = "automatic" if mark == "auto" else "declared"
            _add(item, dim, kind, records, why="regardless of the inputs", expected=f"a dynamic size ({name})")


def _add(item: UserInput, dim: int, kind: str, records: ProgramViolations, *, why: str, expected: str) -> None:
    """Record a dim of an input that has one size."""
    place, size = f"{item.path}.shape[{dim}]", item.val.shape[dim]
    observed = f"{place} is {size}, {why}"
    records.add("A05", kind, node=item.node, target=place, observed=observed, expected=expected, size=size)


def _look_for_signs(program: Any, inputs: list[UserInput], records: ProgramViolations) -> None:
    examples = leaf_examples(program)
    if len(examples) != len(inputs):
        return
    dynamic: dict[int, str] = {}
    for item, example in zip(inputs, examples, strict=True):
        for dim, size in enumerate(getattr(item.val, "shape", ())):
            if not isinstance(size, int) and example.shape[dim] >= _SMALLEST_SIGN:
                dynamic.setdefault(int(example.shape[dim]), f"{item.path}.shape[{dim}]")
    for item in inputs:
        for dim, size in enumerate(getattr(item.val, "shape", ())):
            if isinstance(size, int) and size in dynamic:
                why = f"the size of {dynamic[size]} in the sample"
                expected = f"a dynamic size, if it goes with {dynamic[size]}"
                _add(item, dim, "hint", records, why=why, expected=expected)
    _check_constants(program, dynamic, records)


def _check_constants(program: Any, dynamic: dict[int, str], records: ProgramViolations) -> None:
    for path, module in program_graphs(program):
        for node in module.graph.nodes:
            at = _SHAPES.get(getattr(getattr(node.target, "_schema", None), "name", ""))
            shape = node.args[at] if at is not None and at < len(node.args) else ()
            for size in shape if isinstance(shape, list | tuple) else ():
                if isinstance(size, int) and size in dynamic:
                    constant = f"{operator_name(node.target)} with the constant {size}"
                    observed = f"{constant}, the size of {dynamic[size]} in the sample"
                    expected = f"a size computed from {dynamic[size]}, if that is intended"
                    add = partial(records.add, "A05", "hint", node=node, target=node.target, graph=path)
                    add(observed=observed, expected=expected, size=size)


def verify(payload: Verify, channel: Channel) -> dict[str, Any]:
    """Verify ``payload.program``, an archive or ``module.py:function`` that returns a program.

    The result's ``programs`` have the fields of ``JudgedProgram``.
    """
    load_setup(payload, channel)
    channel.enter("load")
    records = ProgramViolations()
    if (named := user_function(payload.program)) is not None:
        run = run_function(payload.program, channel)
        if run.error is not None:
            return {"programs": [], "raised": describe_error(run.error, run.exported)}
        program = run.returned
        with suppress(Exception):
            # Of an archive the parent looks for these.
            if (merged := merged_leaves(run)) is not None:
                add_merged(*merged, records)
        loaded = [LoadedProgram(name=named[1], program=program, verifiers=[kind() for kind in program.verifiers])]
    else:
        loaded = load_programs(Path(channel.user_cwd / payload.program), records)
    channel.enter("judge")
    found: list[dict[str, Any]] = []

    def tell(partial_result: dict[str, Any]) -> None:
        channel.put(programs=[*found, partial_result])

    for at, item in enumerate(loaded):
        mine = records if at == 0 else ProgramViolations()
        found.append(judge(item, mine, payload.dynamic_shapes, tell=tell))
    return {"programs": found}


def judge(
    loaded: LoadedProgram,
    records: ProgramViolations,
    declared: Any = None,
    *,
    tell: Callable[[dict[str, Any]], object] | None = None,
) -> dict[str, Any]:
    """Check one program by all rules. ``tell`` gets the result so far before the part that may take long."""
    result: dict[str, Any] = {"name": loaded.name, "problem": loaded.problem, "verifier": "not-asked", "skipped": {}}
    program = loaded.program
    if program is not None:
        _run_guarded("G", lambda: check_graph(program, loaded.verifiers, records), result)
        _run_guarded("S", lambda: check_signature(program_signature(program), records), result)
        _run_guarded("S", lambda: check_output_node(program, records), result)
        if loaded.dialect_known:
            _run_verifier(program, loaded.verifiers, records, result)
        _look_ahead(program, loaded.missing, declared, records, result)
        if loaded.missing or any(item.kind == ("no-fake") for item in records.items):
            result["skipped"]["A02"] = "operators that cannot be traced: the program cannot be decomposed"
        elif records.broken():
            result["skipped"]["A02"] = "the program breaks rules of its verifier, and is not decomposed"
        else:
            if tell is not None:
                unfinished = {**result["skipped"], "A02": "compiling the program did not finish"}
                tell({**result, "skipped": unfinished, "records": records.items, "cut": records.cut()})

            _run_guarded("A02", lambda: check_compile(program, records, result), result)
    return result | {"records": records.items, "cut": records.cut()}


def _look_ahead(
    program: Any, missing: list[str], declared: Any, records: ProgramViolations, result: dict[str, Any]
) -> None:
    _run_guarded("A01", lambda: _check_values(program, records), result)
    _run_guarded("A03", lambda: check_operators(program, missing, records), result)
    _run_guarded(
        "A04",
        lambda: check_symbols(symbol_ranges(program), symbol_places(program), list(graph_values(program)), records),
        result,
    )
    _run_guarded("A08", lambda: check_state(program, records), result)

    def specialized() -> None:
        result["unknown_inputs"] = check_specialized(program, declared, records)

    _run_guarded("A05", specialized, result)


def _check_values(program: Any, records: ProgramViolations) -> None:
    everything, signature = list(graph_values(program)), program_signature(program)
    pairs = zip(signature.placeholders, signature.inputs, strict=False)
    check_devices(everything, records)
    check_dtypes(
        everything, {place.name for place, spec in pairs if spec.kind == "user_input"}, nameless_dtypes(), records
    )


def _run_guarded(what: str, check: Callable[[], object], result: dict[str, Any]) -> None:
    """Run a check; a program that breaks one rule may break its assumptions, and then only that check is skipped."""
    try:
        check()
    except Exception:
        result["skipped"][what] = describe_failure(3)


def _run_verifier(program: Any, verifiers: list[Any], records: ProgramViolations, result: dict[str, Any]) -> None:
    result["verifier"] = "passes"
    for verifier in verifiers:
        check = type(verifier)().check
        try:
            check(program)
        except Exception as error:
            result["verifier"] = "refuses"
            result["verifier_says"] = f"{type(error).__name__}: {first_line(error)}"
            if not records.broken():
                records.add(
                    "G12",
                    "verifier-refuses",
                    observed=result["verifier_says"],
                    expected=f"what dialect {verifier.dialect} allows",
                    dialect=verifier.dialect,
                )
            return
