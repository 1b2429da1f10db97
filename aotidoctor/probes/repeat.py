"""Is the outcome the same in a second run?

What it does
    Repeats the call in a separate process, which has called nothing before, and compares the two calls within the plain
    run. If nothing prevents it, fresh memory is filled in that process (see memory_fill): the same bits then answer
    both questions.

Why it matters
    An intermittent failure, or outputs that change between equal calls, indicate randomness, races or uninitialized
    memory, not the inputs' metadata.

Example:
    outputs: observed different values in the second call, expected the same bits

When it is wrong
    A model that writes to its own inputs or buffers changes between calls by design. If its kernels show that, and
    another process gives the same outputs call by call, it is a note; an operator may keep a state that no kernel
    shows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from aotidoctor.localize.blame.package_program import program_of
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, FactValue, NotChecked, Severity
from aotidoctor.model.run import Outcome, Request, TimedOut
from aotidoctor.probes.payload import call_outputs, called, device_of, run_of, run_request, same_outputs
from aotidoctor.probes.plain_run import read_ending
from aotidoctor.probes.probe import History, RunFinder, succeeded

CODE, NAME = "AD-RUN-002", "again"
FIND = RunFinder(CODE, NAME, __doc__)
# Not 0x00 (the content of fresh pages) and not 0xFF (NaN in every float type, which a later max() may hide).
FILL = 0x5A
IN_KERNEL = re.compile(r" in (\w+)$")
TRAINING = re.compile(r"dropout|bernoulli|rrelu|fractional_max_pool")
SEEDS = re.compile(r"randint_low_out$")
RANDOM_NAME = re.compile(
    r"_(native_dropout|dropout|bernoulli|multinomial|normal_functional|rand(?:n|int)?(?:_like)?|uniform|exponential)"
    r"(?=_)"
)


def plan(case: Case, history: History) -> Request | NotChecked:
    """Plan a run unless the static findings or the symptom already explain the outcome."""
    plain = history.plain
    if plain is None:
        return FIND.unchecked("there was no plain run")
    if case.options.repeat < 2:
        return FIND.unchecked("--repeat 1", moot=False)
    if history.static_errors():
        return FIND.unchecked("a static finding already explains the behaviour")
    if plain.error is not None and not history.has("AD-RUN-001", "signalled"):
        return FIND.unchecked("an exception was raised: its message decides, not how often it occurs")
    if case.inputs is None:
        return FIND.unchecked("nothing was called: there are no inputs")
    if history.hangs_in_operator():
        return FIND.unchecked("the traced run hung in the same way")
    options, contract, calls = case.options, case.contract, calls_to_compare(case, plain)
    # One run may answer ``memory_fill`` as well: the same bits in filled memory are the same bits again. If they
    # differ, ``memory_fill`` repeats the call without the filling, which shows the reason.
    fill = options.rungs is None and not options.skip_rungs and contract is not None and succeeded(plain)
    if fill and device_of(case) == "cpu" and contract is not None:
        varying = contract.needs.random_ops or contract.needs.uninitialized_ops or contract.custom_ops
        if not varying:
            purpose = "the same, in a separate process, in filled memory"
            return run_request(case, NAME, purpose, calls=calls, perturb=FILL)
    return run_request(case, NAME, "the same, in a separate process", calls=calls)


def is_filled(outcome: Outcome | None) -> bool:
    """Whether the run filled its memory."""
    return outcome is not None and run_of(outcome).perturb is not None


def calls_to_compare(case: Case, plain: Outcome) -> int:
    """The number of calls: one, to compare it with the first; two if a call may damage the next.

    Two also if the second call gave other outputs: a model with a state gives the same in each process, call by call.
    """
    if len(called(plain).outputs) > 1 and not same_outputs(call_outputs(plain, 0), call_outputs(plain, 1)):
        return 2
    return 1 if succeeded(plain) and case.contract is not None and not case.contract.custom_ops else 2


def read(case: Case, history: History, outcome: Outcome) -> Sequence[Evidence]:
    """One finding: same, flaky, slow or differs; none of a run in filled memory with a different outcome."""
    plain = history.outcomes["plain_run"]
    undecided = not succeeded(outcome) or not same_outputs(call_outputs(plain, 0), call_outputs(outcome, 0))
    return [] if is_filled(outcome) and undecided else read_repeated(case, plain, outcome)


def read_repeated(case: Case, plain: Outcome, outcome: Outcome) -> Sequence[Evidence]:
    """One finding on a repetition of the plain run."""
    if succeeded(plain) and succeeded(outcome):
        return [_compare(case, plain, outcome)]
    kind, severity, subject, message = "same", Severity.INFO, None, ""
    facts: dict[str, FactValue] = {"failed": 2, "runs": 2}
    observed = "2 of 2 runs failed in the same way"
    if succeeded(plain) or succeeded(outcome):
        fine, failed = (plain, outcome) if succeeded(plain) else (outcome, plain)
        facts["failed"] = 1
        if isinstance(failed.ending, TimedOut):
            kind = "slow"
            observed = f"1 of 2 runs did not end within its time limit, the other took {fine.seconds:.1f} s"
            message = "a time limit that is exceeded once may be due to a busy machine: it is not evidence of a race"
        else:
            ending = read_ending(CODE, case, failed)
            kind, severity, subject = "flaky", Severity.ERROR, ending.subject
            observed, facts = f"1 of 2 runs failed: {ending.observed}", {**ending.facts, **facts}
    return [
        FIND.at(severity, outcome)(
            kind, subject, observed=observed, expected="the same ending in each run", message=message, facts=facts
        )
    ]


def _compare(case: Case, plain: Outcome, outcome: Outcome) -> Evidence:
    within = len(called(plain).outputs) < 2 or same_outputs(call_outputs(plain, 0), call_outputs(plain, 1))
    between = same_outputs(call_outputs(plain, 0), call_outputs(outcome, 0))
    changed = any(value.changed for value in called(plain).inputs)
    random_ops = case.needs.random_ops
    if within and between:
        return FIND.info(outcome)("same", None, observed="bit-identical outputs", expected="the same bits")
    # Another process gave the same in its second call, too.
    both = len(called(plain).outputs) > 1 and len(called(outcome).outputs) > 1
    repeated = both and same_outputs(call_outputs(plain, 1), call_outputs(outcome, 1))
    state = _state(case) if between and not random_ops and repeated else ()
    # If the first call changed inputs or buffers, the second call is a different one: no verdict on determinism.
    severity = Severity.INFO if (changed and between) or state else Severity.ERROR
    # The model draws numbers by design (noise, sampling); dropout was left on by mistake.
    samples = bool(random_ops) and not any(TRAINING.search(text) for text in random_ops)
    if samples and not within and case.options.reference is None:
        severity = Severity.WARN
    return FIND.at(severity, outcome)(
        "differs",
        ", ".join(_operators(random_ops)) or None,
        observed=f"different values in {'a second process' if within else 'the second call'}",
        expected="the same bits for the same inputs",
        facts={
            "within_process": not within,
            "between_processes": not between,
            "random_ops": random_ops,
            "inputs_changed": changed,
            "state": state,
        },
    )


def _state(case: Case) -> tuple[str, ...]:
    """Buffers of the model that its own kernels write to, which each call starts from."""
    program = program_of(case)
    if program is None:
        return ()
    calls = [at for at, call in enumerate(program.contract.kernels) if call.kind != "custom"]
    written = {program.root(name) for at in calls for name in program.tensors_written(at)}
    return tuple(one.fqn for name, one in program.constants.items() if name in written)


def _operators(random_ops: Sequence[str]) -> list[str]:
    """The random operators by name, ``aten.native_dropout (cpp_fused_mul_native_dropout_0)`` inside a kernel.

    The seeds of such a kernel are drawn by a separate call, which is no operator of the model.
    """
    kernels = [found[1] for text in random_ops if (found := IN_KERNEL.search(text)) is not None]
    names = [
        f"aten.{found[1]} ({kernel})"
        for kernel in kernels
        for found in RANDOM_NAME.finditer(kernel.removeprefix("cpp_fused").removeprefix("triton_"))
    ]
    plain = [text for text in random_ops if IN_KERNEL.search(text) is None and not (kernels and SEEDS.search(text))]
    return list(dict.fromkeys([*names, *plain])) or list(random_ops)


PROBE = FIND.probe(plan, read, "when it returned, or crashed without an explanation")
