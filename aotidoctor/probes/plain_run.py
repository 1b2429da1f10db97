"""Does the package load and answer when it is called as the user calls it?

What it does
    Loads the package through PyTorch's own loader in a child process and calls it twice with the inputs, without
    changing any setting. The first real error is kept: the loader is called directly, so that "Loading outdated pt2
    file" (printed by aoti_load_package for any error, followed by a second attempt) does not hide it.

Why it matters
    This run is the failure itself: exception, signal, silent end, or an answer. All other runs are compared with it.

Example:
    run1: observed SIGSEGV, expected outputs

When it is wrong
    A call that returned is not evidence of health: most input faults silently give wrong numbers. A package before 2.13
    also returns after an operator raised, with None for the result that the operator did not make: the message on
    stderr is then the finding.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from aotidoctor.kernels.expressions import parse_expr
from aotidoctor.localize.blame.indirect_failures import device_asserts
from aotidoctor.model.answers import Acted, parse_answer
from aotidoctor.model.artifact import RUNNABLE_KINDS, ArtifactKind
from aotidoctor.model.case import Case
from aotidoctor.model.contract import OutputSpec
from aotidoctor.model.evidence import Evidence, FactValue, NotChecked, Severity, list_names
from aotidoctor.model.expr import Expr, Sym, evaluate
from aotidoctor.model.other_artifacts import CALLABLE_FORMS, FORMS, USES
from aotidoctor.model.run import Exited, NotStarted, Outcome, OutOfMemory, Request, Signalled, TimedOut
from aotidoctor.model.torch_names import ITEMSIZE, foreign
from aotidoctor.probes.payload import call_outputs, called, run_request
from aotidoctor.probes.probe import History, RunFinder, evidence, succeeded
from aotidoctor.probes.symptoms import (
    CALL_FAILED,
    Symptom,
    compiler_symptom,
    dead_context_facts,
    first_error_symptom,
    first_exception,
    recognise,
    text_before_dead_context,
)

# Sizes of the inputs that a failed allocation depends on. A size of one divides every number of bytes.
LEAST_SIZE = 2


def sizes_behind(case: Case, facts: Mapping[str, FactValue]) -> tuple[str, ...]:
    """Dims (``args[0].shape[0]``) that a failed allocation depends on; empty if unknown.

    ``facts`` are those of the message: ``sizes`` of a tensor, or ``bytes`` that were requested.
    """
    places = _places(case)
    env = {symbol: size for symbol, (_, size) in places.items()}
    symbols = _of_sizes(case, facts.get("sizes"), env) or _of_bytes(case, facts.get("bytes"), env)
    return tuple(places[symbol][0] for symbol in places if symbol in symbols)


def _places(case: Case) -> dict[str, tuple[str, int]]:
    """The first dim of each symbol, and its size in these inputs."""
    given = case.tensors
    found: dict[str, tuple[str, int]] = {}
    for leaf in case.contract.tensor_leaves() if case.contract is not None else ():
        tensor = given.get(leaf.path)
        if tensor is None or len(tensor.shape) != len(leaf.dims or ()):
            continue
        for at, (dim, size) in enumerate(zip(leaf.dims or (), tensor.shape, strict=True)):
            if isinstance(dim.expr, Sym) and size >= LEAST_SIZE:
                found.setdefault(dim.expr.name, (f"{leaf.path}.shape[{at}]", size))
    return found


def _of_sizes(case: Case, text: FactValue, env: Mapping[str, int]) -> frozenset[str]:
    if not isinstance(text, str):
        return frozenset()
    sizes = [int(size) for size in re.findall(r"\d+", text)]
    for _, shape in _outputs(case):
        if [evaluate(size, env) for size in shape] == sizes:
            return frozenset().union(*(size.symbols for size in shape))
    return frozenset(symbol for symbol, size in env.items() if size in sizes)


def _of_bytes(case: Case, text: FactValue, env: Mapping[str, int]) -> frozenset[str]:
    if not isinstance(text, str | int) or not str(text).isdigit():
        return frozenset()
    wanted = int(text)
    for output, shape in _outputs(case):
        sizes = [evaluate(size, env) for size in shape]
        known = [size for size in sizes if size is not None]
        if len(known) == len(sizes) and math.prod(known) * ITEMSIZE.get(output.dtype or "", 0) == wanted:
            return frozenset().union(*(size.symbols for size in shape))
    # With only one dynamic size, the allocation depends on it.
    return frozenset(env) if len(env) == 1 and all(wanted % size == 0 for size in env.values()) else frozenset()


def _outputs(case: Case) -> list[tuple[OutputSpec, list[Expr]]]:
    outputs = case.contract.outputs if case.contract is not None else ()
    return [(output, [parse_expr(size) for size in output.shape or ()]) for output in outputs]


CODE, NAME = "AD-RUN-001", "plain_run"
FIND = RunFinder(CODE, NAME, __doc__)
# No tensor has a dim of this many elements.
LARGEST_SIZE = 1 << 40
# Symptoms of a failed allocation.
ALLOCATIONS = ("storage-overflow", "alloc-failed", "cuda-oom")
# Stages of the user's own set-up.
SETUP_STAGES = ("setup", "after_load")
SYNCHRONOUS = ("cuda-oom", "alloc-failed")
# Static findings with which the package cannot, or must not, be run.
FORBIDDING = ("AD-ART-001", "AD-ART-002", "AD-ART-003", "AD-ART-004", "AD-ART-005")


def plan(case: Case, history: History) -> Request | NotChecked:
    """Plan one run, unless the static findings forbid it or there is nothing to run it with."""
    reason = reason_not_to_run(case, history)
    if reason:
        return FIND.unchecked(reason, moot=False)
    # It may hang: its stacks are read when it does.
    return replace(run_request(case, NAME, "the failure as the user sees it"), stacks=True)


def reason_not_to_run(case: Case, history: History) -> str | None:
    """Why no child may run this package, or None."""
    forbidding = history.errors(*FORBIDDING)
    if forbidding:
        return f"the package is not executed: {forbidding[0].message}"
    if (found := case.artifact.precompiled) is not None:
        if found.form not in CALLABLE_FORMS:
            used = "; run that under `aotidoctor watch`"
            return f"{FORMS[found.form]} is not called with tensors alone: {USES[found.form]}{used}"
        if not case.options.trust_pickle:
            return "loading it executes whatever its pickle holds: add --trust-pickle if you trust it"
    elif case.artifact.kind is ArtifactKind.PACKAGE_FOLDER:
        return f"a folder of packages is run one by one: {list_names([one.name for one in case.artifact.models])}"
    elif case.artifact.kind not in RUNNABLE_KINDS:
        return f"the file is not an AOTI package ({case.artifact.kind.value})"
    if case.artifact.kind is ArtifactKind.BARE_SO and case.inputs is None:
        return "a bare .so is only run with inputs"
    if case.host.torch is None:
        return f"{case.host.torch_problem or 'torch is not installed here'}; pip install 'aotidoctor[torch]'"
    unavailable = history.errors("AD-HOST-001", "AD-HOST-003")
    if unavailable:
        return f"this host cannot run it: {unavailable[0].message}"
    return None


def read(case: Case, history: History, outcome: Outcome) -> Sequence[Evidence]:
    """Exactly one finding: the ending, with the symptom of its message."""
    return [swallowed_error(case, outcome) or read_ending(CODE, case, outcome)]


def swallowed_error(case: Case, outcome: Outcome) -> Evidence | None:
    """The finding if an operator raised but the call returned; else None.

    Packages before 2.13 print such an exception and continue. Later ones do not look at the status of a few calls
    (scatter, index_put), and print nothing: PyTorch itself then remembers the exception.
    """
    if not succeeded(outcome):
        return None
    first = first_exception(outcome.stderr_tail) or called(outcome).unseen_exception
    if first is None:
        return None
    known = _without_garbage(recognise(first))
    symptom = replace(known, line=_head(first)) if known.name == "other" else known
    facts: dict[str, FactValue] = {
        "stage": "run1",
        "symptom": symptom.name,
        "line": symptom.line,
        "swallowed": True,
        **custom_ops(case),
        **symptom.facts,
    }
    return FIND.error(outcome, "stderr")(
        "raised",
        _subject(case, facts),
        observed=f"{len(call_outputs(outcome, 0))} output(s); an exception did not reach the caller: {_head(first)}",
        expected="no failure",
        message=f"the call returned, although an operator in it raised: {symptom.line}",
        facts=facts,
    )


def read_ending(code: str, case: Case, outcome: Outcome) -> Evidence:
    """The ending of a run as evidence with stage, signal, symptom and the facts of its message."""
    if succeeded(outcome):
        count = len(call_outputs(outcome, 0))
        observed = f"{count} output(s)" if count else "loaded"
        return evidence(
            code, "ok", Severity.INFO, outcome, observed=observed, expected="no failure", facts={"stage": "done"}
        )
    kind, observed, facts = ending_of(outcome)
    worth_reading = replace(outcome, stderr_tail=text_before_dead_context(outcome.stderr_tail))
    symptom = compiler_symptom(_symptom(worth_reading), outcome.stderr_tail)
    invalid = symptom.name == "cuda-error" and str(symptom.facts.get("text")).startswith("invalid argument")
    if invalid and outcome.stage == "load":
        # Nothing is launched at load: an argument that CUDA refuses there is the device itself.
        symptom = replace(symptom, name="cuda-load-argument")
    symptom = first_error_symptom(symptom, outcome)
    facts |= {
        "stage": outcome.stage,
        "symptom": symptom.name,
        "line": symptom.line,
        **custom_ops(case),
        **symptom.facts,
        **runtime_facts(symptom.name, outcome),
        **dead_context_facts(outcome),
    }
    return evidence(
        code,
        kind,
        Severity.ERROR,
        outcome,
        subject=_subject(case, facts),
        observed=observed,
        expected="the stage to finish",
        message=f"{outcome.stage}: {observed}" + (f": {symptom.line}" if symptom.line not in observed else ""),
        stream="result" if outcome.error is not None else "stderr",
        facts=facts,
    )


def ending_of(outcome: Outcome) -> tuple[str, str, dict[str, FactValue]]:
    """Kind, text and facts of a failure by its ending alone."""
    match outcome.ending:
        case Signalled(name=name, signal=number):
            return "signalled", name, {"signal": name, "number": number}
        case TimedOut(limit=limit):
            return "timed-out", f"no end within {limit:g} s", {"limit": limit}
        case OutOfMemory(reason=reason):
            return "out-of-memory", f"killed for memory ({reason})", {}
        case NotStarted(reason=reason):
            return "not-started", reason, {}
        case Exited(code=code, done=done):
            if outcome.error is not None:
                return "raised", f"{outcome.error.type}: {_head(outcome.error.message)}", {"type": outcome.error.type}
            return "exited", f"exit status {code} in the middle of {outcome.stage}", {"exit_code": code, "done": done}


def _head(message: str) -> str:
    return next((line.strip()[:200] for line in message.splitlines() if line.strip()), "")


def _symptom(outcome: Outcome) -> Symptom:
    """The symptom of the exception, or of the text on stderr without one."""
    if outcome.error is None:
        return recognise(outcome.stderr_tail)
    text = f"{outcome.error.type}: {outcome.error.message}"
    symptom = _without_garbage(recognise(text))
    handed_on = symptom.name == "other" and "API call failed" in text
    # Packages before 2.13 continue after an operator that raised, and fail when they use its missing result.
    first = first_exception(outcome.stderr_tail) if handed_on or symptom.name == "op-no-storage" else None
    if first is not None:
        raised = _without_garbage(recognise(first))
        return replace(raised, line=_head(first)) if raised.name == "other" else raised
    error = parse_answer(Acted, outcome.result).last_error
    if handed_on and error is not None and (known := recognise(error)).name != "other":
        return known
    # After a fault of an earlier kernel, cuBLAS reports only that its own call failed; the package's clean-up has more.
    if handed_on or "CUBLAS_STATUS_EXECUTION_FAILED" in text:
        echoed = recognise(outcome.stderr_tail)
        return echoed if echoed.name != "other" else symptom
    return Symptom(name="other", line=_head(text), facts=symptom.facts) if symptom.name == "other" else symptom


def runtime_facts(symptom: str, outcome: Outcome) -> dict[str, FactValue]:
    """The facts that only stderr has: the assertion that failed on the GPU, the call of the wrapper that raised."""
    facts: dict[str, FactValue] = {}
    asserted = device_asserts(outcome.stderr_tail) if symptom == "cuda-assert" else ()
    if asserted:
        first = asserted[0]
        facts |= {"asserted": first.text, "device_file": first.file, "device_line": first.line, "threads": first.count}
        facts |= {"block": first.block, "thread": first.thread}
        if first.failure is not None:
            facts |= {"variable": first.failure.variable, "bound": first.failure.bound}
    failed = CALL_FAILED.search(outcome.stderr_tail)
    if failed is not None and failed["file"].endswith(".cpp"):
        facts |= {"shim": failed["shim"], "wrapper_line": int(failed["line"])}
        if symptom in SYNCHRONOUS:
            # Unlike a fault, it is raised by the call in which it occurs.
            facts["kernel"] = failed["shim"]
    return facts


def _without_garbage(symptom: Symptom) -> Symptom:
    """The symptom, ``storage-garbage`` if garbage was read as sizes: that is no shortage of memory."""
    sizes = re.findall(r"\d+", str(symptom.facts.get("sizes", "")))
    if symptom.name == "storage-overflow" and any(int(size) > LARGEST_SIZE for size in sizes):
        return replace(symptom, name="storage-garbage")
    return symptom


def custom_ops(case: Case) -> dict[str, FactValue]:
    """Operators that PyTorch does not ship; ``custom_op`` is set if there is only one."""
    called = case.contract.custom_ops if case.contract is not None else ()
    if not called and case.model is not None:
        called = tuple(dict.fromkeys(node.target for node in case.model.extern_nodes))
    ops = tuple(target for target in called if foreign([target]))
    return {"custom_ops": ops, "custom_op": ops[0] if len(ops) == 1 else None, "has_custom_ops": bool(ops)}


def _subject(case: Case, facts: dict[str, FactValue]) -> str | None:
    if facts.get("stage") in SETUP_STAGES:
        # The library that the message names, else the setup module or file.
        libraries = case.options.custom_op_libraries
        named = next((one for one in libraries if one in str(facts.get("line"))), None)
        setup = named or case.options.setup or (libraries[0] if len(libraries) == 1 else None)
        if setup is not None:
            return setup
    if facts.get("symptom") in ALLOCATIONS and (sizes := sizes_behind(case, facts)):
        return ", ".join(sizes)
    for key in ("class_name", "op", "kernel", "missing", "custom_op"):
        value = facts.get(key)
        if isinstance(value, str):
            return value
    return None


_WHEN = "always, unless the file cannot or must not be executed on this host"
PROBE = replace(FIND.probe(plan, read, _WHEN), thread_checks=("threads_exceed_build",))
