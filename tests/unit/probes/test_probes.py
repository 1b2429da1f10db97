"""Plans and readings of probes, on recorded outcomes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aotidoctor.model.contract import ConstantSpec, KernelBody, KernelCall, KernelParameter
from aotidoctor.model.evidence import Evidence, NotChecked, Severity
from aotidoctor.model.jobs import Run
from aotidoctor.model.run import Exited, Request, Signalled, TimedOut
from aotidoctor.probes import (
    PROBES,
    check_inputs,
    cpp_stack,
    cuda_blocking,
    cuda_no_caching,
    custom_ops,
    growth,
    memory_fill,
    mutation,
    plain_run,
    reference,
    repeat,
    threads,
    values,
)
from aotidoctor.probes.probe import Reuse
from tests.unit.probes.outcomes import case, history, node, outcome, raised, value

OK = outcome(outputs=[[{"digest": "aa"}], [{"digest": "aa"}]])
DIED = outcome(ending=Signalled(signal=11, name="SIGSEGV"), stage="run1")


def finding(code, kind="x", severity=Severity.ERROR, **facts):
    return Evidence(code=code, kind=kind, severity=severity, subject="args[0]", observed="", expected="", facts=facts)


def one(found):
    assert len(found) == 1
    return found[0]


def test_names_and_codes_are_unique():
    assert len({probe.code for probe in PROBES}) == len({probe.name for probe in PROBES}) == len(PROBES)


@pytest.mark.parametrize(
    ("result", "kind", "facts"),
    [
        (OK, "ok", {"stage": "done"}),
        (DIED, "signalled", {"signal": "SIGSEGV", "stage": "run1"}),
        (outcome(ending=TimedOut(limit=5), stage="run1"), "timed-out", {"limit": 5}),
        (outcome(ending=Exited(code=0, done=False), stage="run1"), "exited", {"exit_code": 0, "done": False}),
        (raised("index out of bounds: 0 <= tmp2 < 100L"), "raised", {"symptom": "index-out-of-bounds"}),
        (raised("index out of bounds: 0 <= tmp2"), "raised", {"symptom": "index-out-of-bounds", "variable": "tmp2"}),
        (raised("UNKNOWN"), "raised", {"symptom": "other", "line": "RuntimeError: UNKNOWN"}),
        (
            outcome(
                ending=Signalled(signal=6, name="SIGABRT"), stage="run1", stderr_tail="double free or corruption (out)"
            ),
            "signalled",
            {"symptom": "heap-corruption"},
        ),
    ],
)
def test_plain_run_reads_the_ending(result, kind, facts):
    item = one(plain_run.read(case(), history(), result))
    assert item.kind == kind
    assert facts.items() <= item.facts.items()


def test_an_echo_on_stderr_names_what_a_generic_exception_hides():
    result = raised(
        "run_func_( ... ) API call failed at model_container_runner.cpp, line 129",
        stderr_tail="Error: CUDA error: an illegal memory access was encountered\n",
    )
    assert one(plain_run.read(case(), history(), result)).facts["symptom"] == "cuda-illegal-access"


# As packages of 2.8 print it, in a torch of 2.8 and in one of 2.13.
SWALLOWED = (
    "[E1122 10:25:16.143983711 shim_common.cpp:1258] Exception in aoti_torch: ValueError: vers: bad state\n\nAt:\n"
    "  setup_raises.py(4): scale\n\n"
    "[E1122 10:25:16.162966300 shim_common.cpp:271] Exception in aoti_torch: "
    "Cannot access data pointer of Tensor that doesn't have storage\n"
    "Exception raised from throw_data_ptr_access_error at /pytorch/c10/core/TensorImpl.cpp:309\n"
)


@pytest.mark.parametrize(
    "message",
    [
        "run_func_( container_handle_) API call failed at model_container_runner.cpp, line 145",
        "Cannot access data pointer of Tensor that doesn't have storage",
    ],
)
def test_what_an_operator_raised_comes_before_its_echo(message):
    facts = one(plain_run.read(case(), history(), raised(message, stderr_tail=SWALLOWED))).facts
    assert (facts["symptom"], facts["line"]) == ("other", "ValueError: vers: bad state")
    only_echo = SWALLOWED[SWALLOWED.index("[E1122 10:25:16.16") :]
    facts = one(plain_run.read(case(), history(), raised(message, stderr_tail=only_echo))).facts
    assert facts["symptom"] == "op-no-storage"


# What a package of 2.8 with aten.nonzero_static prints; its call returns, with None for that operator's output.
PROXY = (
    "[E1123 03:27:58.854532678 shim_common.cpp:1258] Exception in aoti_torch: Mismatch between ints consumed and "
    "num_ints, got int_id = 1, num_ints = 2\nException raised from call_function at "
    "/pytorch/torch/csrc/inductor/aoti_torch/oss_proxy_executor.cpp:815 (most recent call first):\n"
)


@pytest.mark.parametrize(
    ("printed", "symptom", "words"),
    [(PROXY, "proxy-arguments", "Mismatch between ints"), (SWALLOWED, "other", "ValueError: vers: bad state")],
)
def test_a_call_that_returned_after_an_operator_raised_is_no_answer(printed, symptom, words):
    item = one(plain_run.read(case(), history(), replace(OK, stderr_tail=printed)))
    assert (item.kind, item.severity, item.facts["symptom"]) == ("raised", Severity.ERROR, symptom)
    assert words in item.facts["line"]
    harmless = replace(OK, stderr_tail="[W1122 10:25:16.1 shim_common.cpp:27] Warning: something\n")
    assert one(plain_run.read(case(), history(), harmless)).kind == "ok"


@pytest.mark.parametrize(("target", "own"), [("aten::nonzero_static", False), ("trial::shift", True)])
def test_only_what_torch_does_not_bring_is_a_custom_operator(target, own):
    about = case()
    about = replace(about, contract=None, model=replace(about.model, extern_nodes=(node(target),)))
    facts = one(plain_run.read(about, history(), raised("bad"))).facts
    assert facts["has_custom_ops"] is own


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("AD-ART-003", "the package is not executed"),
        ("AD-ART-004", "the package is not executed"),
        ("AD-HOST-003", "this host cannot run it"),
    ],
)
def test_what_must_not_or_cannot_run_is_not_run(code, why):
    answer = plain_run.plan(case(), history(finding(code)))
    assert isinstance(answer, NotChecked)
    assert answer.reason.startswith(why)


def test_without_torch_nothing_runs():
    answer = plain_run.plan(case(torch=False), history())
    assert isinstance(answer, NotChecked)
    assert answer.reason.startswith("torch is not installed here")


def test_again_is_not_asked_when_the_inputs_explain_it():
    assert isinstance(repeat.plan(case(), history(finding("AD-IN-010"), plain_run=DIED)), NotChecked)
    assert isinstance(repeat.plan(case(), history(finding("AD-RUN-001", "signalled"), plain_run=DIED)), Request)


@pytest.mark.parametrize(
    ("first", "second", "kind", "severity"),
    [
        (OK, OK, "same", "info"),
        (OK, DIED, "flaky", "error"),
        (DIED, OK, "flaky", "error"),
        (DIED, DIED, "same", "info"),
        (outcome(outputs=[[{"digest": "aa"}], [{"digest": "bb"}]]), OK, "differs", "error"),
        (OK, outcome(outputs=[[{"digest": "cc"}]]), "differs", "error"),
    ],
)
def test_again_compares(first, second, kind, severity):
    item = one(repeat.read(case(), history(plain_run=first), second))
    assert (item.kind, item.severity.value) == (kind, severity)


def counting(*, written: bool):
    """A case of which the kernel takes the buffer ``total`` as an output, or as an input only."""
    kernel = KernelCall(name="cpp_fused_add_0", kind="cpp", arguments=("arg0_1", "total"))
    parts = (("in_ptr0", True), ("out_ptr0", not written))
    parameters = tuple(KernelParameter(name=name, type="float", pointer=True, const=const) for name, const in parts)
    body = KernelBody(name=kernel.name, kind="cpp", member="k.cpp", line=1, lines=9, parameters=parameters)
    given = case()
    buffer = ConstantSpec(name="total", original_fqn="running.total")
    return replace(given, contract=replace(given.contract, kernels=(kernel,), bodies=(body,), constants=(buffer,)))


@pytest.mark.parametrize(
    ("written", "second", "severity"), [(True, "bb", "info"), (False, "bb", "error"), (True, "cc", "error")]
)
def test_a_model_that_keeps_a_state_is_not_called_nondeterministic(written, second, severity):
    first = outcome(outputs=[[{"digest": "aa"}], [{"digest": "bb"}]])
    again_ = outcome(outputs=[[{"digest": "aa"}], [{"digest": second}]])
    item = one(repeat.read(counting(written=written), history(plain_run=first), again_))
    assert (item.kind, item.severity.value) == ("differs", severity)
    assert item.facts["state"] == (("running.total",) if severity == "info" else ())


def test_calls_that_differ_are_made_twice_in_the_other_process_too():
    first = outcome(outputs=[[{"digest": "aa"}], [{"digest": "bb"}]])
    assert repeat.plan(case(), history(plain_run=first)).payload.calls == 2
    assert repeat.plan(case(), history(plain_run=OK)).payload.calls == 1


def test_a_model_that_writes_to_its_inputs_is_not_called_nondeterministic():
    changing = outcome(
        outputs=[[{"digest": "aa"}], [{"digest": "bb"}]], result={"inputs": [value(path="args[0]", changed=True)]}
    )
    item = one(repeat.read(case(), history(plain_run=changing), changing))
    assert item.severity is Severity.INFO


def test_memory_fill():
    other = outcome(outputs=[[{"digest": "zz"}]])
    assert one(memory_fill.read(case(), history(plain_run=OK), other)).kind == "depends"
    assert one(memory_fill.read(case(), history(plain_run=OK), OK)).kind == "independent"
    flaky = finding("AD-RUN-002", "differs", between_processes=True)
    assert one(memory_fill.read(case(), history(flaky, plain_run=OK), other)).kind == "undecided"
    reads_garbage = case(uninitialized_ops=["aten.empty (buf0)"])
    assert one(memory_fill.read(reads_garbage, history(flaky, plain_run=OK), other)).kind == "depends"
    assert isinstance(memory_fill.plan(case(), history(plain_run=DIED)), NotChecked)


def test_check_inputs_is_asked_only_where_it_adds_something():
    assert isinstance(check_inputs.plan(case(), history(plain_run=OK)), NotChecked)
    assert isinstance(check_inputs.plan(case(custom_ops=["ops::f"]), history(plain_run=OK)), Request)
    assert isinstance(check_inputs.plan(case(), history(finding("AD-IN-010"), plain_run=OK)), Request)
    assert isinstance(check_inputs.plan(case(checks=False, custom_ops=["a"]), history(plain_run=OK)), NotChecked)
    request = check_inputs.plan(case(source="recovered"), history(plain_run=OK))
    assert request.env == {"AOTI_RUNTIME_CHECK_INPUTS": "1"}


def test_check_inputs_complaint_about_a_harmless_call_is_a_warning():
    complaint = raised("input_handles[0]: dim value is too small at 0, expected it to be >= 2, but got: 1")
    item = one(check_inputs.read(case(), history(plain_run=OK), complaint))
    assert (item.severity, item.subject) == (Severity.WARN, "args[0].shape[0]")
    blamed = one(check_inputs.read(case(source="recovered"), history(plain_run=OK), complaint))
    assert blamed.severity is Severity.ERROR
    known = finding("AD-IN-017", "batch-one", Severity.WARN, path="args[0]")
    item = one(check_inputs.read(case(source="recovered"), history(known, plain_run=OK), complaint))
    assert item.severity is Severity.WARN


def test_check_inputs_alone_sees_the_dtypes_in_an_object_of_the_users():
    complaint = raised("input_handles[0]: unmatched dtype, expected: 4(at::kLong), but got: 3")
    item = one(check_inputs.read(case(), history(plain_run=OK), complaint))
    assert item.severity is Severity.WARN
    whole = finding("AD-IN-002", "object", Severity.INFO)
    item = one(check_inputs.read(case(), history(whole, plain_run=OK), complaint))
    assert (item.severity, item.subject) == (Severity.ERROR, "args[0]")


@pytest.mark.parametrize(("path", "symptom"), [("args[0]", "check-rank"), ("args[1]", "check-dim")])
def test_check_inputs_compares_dims_of_another_number(path, symptom):
    """An image without its batch: its height is not meant to be its three channels."""
    complaint = raised("input_handles[0]: unmatched dim value at 1, expected: 3, but got: 64")
    item = one(check_inputs.read(case(), history(finding("AD-IN-012", "rank", path=path), plain_run=OK), complaint))
    assert (item.facts["symptom"], item.severity) == (symptom, Severity.ERROR)


def test_check_inputs_names_the_operator():
    complaint = raised("expected size 16==16, stride 1==16 at dim=0\nError in op: torch.ops.zoo.tr.default\nThis")
    item = one(check_inputs.read(case(custom_ops=["zoo::tr"]), history(plain_run=OK), complaint))
    assert (item.facts["symptom"], item.subject, item.severity) == ("check-op", "zoo::tr", Severity.ERROR)


def test_mutation_and_alias():
    result = outcome(
        outputs=[[{"aliases_inputs": [0]}], [{}]], result={"inputs": [value(path="args[0]", changed=True)]}
    )
    assert isinstance(mutation.plan(case(), history(plain_run=OK)), Reuse)
    found = mutation.read(case(), history(), result)
    assert [(item.kind, item.subject, item.severity.value) for item in found] == [
        ("input-changed", "args[0]", "warn"),
        ("output-alias", "result", "warn"),
    ]


@pytest.mark.parametrize(
    ("compared", "severities"),
    [
        ({"mutation": [], "alias": []}, ["info", "info"]),
        ({"mutation": [{"path": "args[0]", "agrees": True}], "alias": []}, ["info", "info"]),
        ({"mutation": [{"path": "args[0]", "agrees": False}], "alias": []}, ["warn", "info"]),
        ({"mutation": [], "alias": [{"path": "result", "package": ["args[0]"], "reference": []}]}, ["info", "warn"]),
        ({"mutation": []}, ["warn", "warn"]),
        (None, ["warn", "warn"]),
    ],
)
def test_what_the_program_does_as_well_is_a_note(compared, severities):
    result = outcome(
        outputs=[[{"aliases_inputs": [0]}], [{}]], result={"inputs": [value(path="args[0]", changed=True)]}
    )
    found = mutation.read(case(), history(), result)
    seen = None if compared is None else outcome(result={"reference": compared})
    assert [item.severity.value for item in mutation.as_the_program(found, seen)] == severities


def test_outputs_that_share_one_memory_are_one_finding():
    result = outcome(
        outputs=[
            [
                {"path": "result['a']", "aliases_inputs": [0], "aliases_outputs": [1]},
                {"path": "result['b']", "aliases_inputs": [0], "aliases_outputs": [0]},
                {"path": "result['c']"},
                {"path": "result['d']", "aliases_outputs": [4]},
                {"path": "result['e']", "aliases_outputs": [3]},
            ]
        ],
        result={"inputs": [value(path="args[0]")]},
    )
    first, second = mutation.read(case(), history(), result)
    assert (first.subject, first.observed) == ("result['a'], result['b']", "share memory with args[0] and one another")
    assert (second.subject, second.observed) == ("result['d'], result['e']", "share memory with one another")
    # Logits and their transpose, a state and the last of it: the model's own views are no finding against it.
    assert [item.severity for item in (first, second)] == [Severity.WARN, Severity.INFO]


@pytest.mark.parametrize(
    ("random_ops", "subject"),
    [
        (
            ["normalized_rand_cpu in cpp_fused_mul_native_dropout_0", "aoti_torch_cpu_randint_low_out"],
            "aten.native_dropout (cpp_fused_mul_native_dropout_0)",
        ),
        (
            ["normalized_rand_cpu in cpp_fused_add_native_dropout_rand_like_0"],
            (
                "aten.native_dropout (cpp_fused_add_native_dropout_rand_like_0), "
                "aten.rand_like (cpp_fused_add_native_dropout_rand_like_0)"
            ),
        ),
        (["aten.rand"], "aten.rand"),
        (["aoti_torch_cpu_randint_low_out"], "aoti_torch_cpu_randint_low_out"),
        (["randn_cpu in cpp_fused_0"], "randn_cpu in cpp_fused_0"),
        ([], None),
    ],
)
def test_what_is_random_is_named_by_its_operator(random_ops, subject):
    other = outcome(outputs=[[{"digest": "bb"}]])
    assert one(repeat.read(case(random_ops=random_ops), history(plain_run=OK), other)).subject == subject


@pytest.mark.parametrize(
    ("random_op", "reference", "severity"),
    [
        ("aten.randn", None, Severity.WARN),
        ("normalized_rand_cpu in cpp_fused_mul_native_dropout_0", None, Severity.ERROR),
        ("aten.randn", "exported.pt2", Severity.ERROR),  # what was asked for cannot be compared
    ],
)
def test_a_model_that_samples_is_not_called_broken(random_op, reference, severity):
    draws = outcome(outputs=[[{"digest": "aa"}], [{"digest": "bb"}]])
    about = case(random_ops=[random_op], reference=reference)
    found = one(repeat.read(about, history(plain_run=draws), outcome(outputs=[[{"digest": "cc"}]])))
    assert (found.kind, found.severity) == ("differs", severity)


def test_nan_of_memory_that_nobody_wrote_names_it():
    package = case(uninitialized_ops=["aten.empty? (NaN constant in cpp_fused_add_0)"])
    needs = replace(package.contract.needs, nan_constants=("cpp_fused_add_0",))
    result = outcome(outputs=[[{"nan": 3}]])
    item = one(values.read(replace(package, contract=replace(package.contract, needs=needs)), history(), result))
    assert (item.facts["nan_constant"], item.subject) == (True, "aten.empty? (NaN constant in cpp_fused_add_0)")
    # A NaN that the model writes on purpose.
    meant = replace(package.contract, needs=replace(needs, uninitialized_ops=()))
    item = one(values.read(replace(package, contract=meant), history(), result))
    assert (item.facts["nan_constant"], item.subject) == (False, "result")


@pytest.mark.parametrize(
    ("output", "given", "constant", "kind", "severity", "facts"),
    [
        ({}, {}, {}, "clean", "info", {}),
        ({"nan": 3}, {}, {}, "nan-output", "error", {"clean": True}),
        ({"nan": 3}, {"nan": 1}, {}, "nan-output", "error", {"input_nan": True, "clean": False}),
        ({"nan": 3}, {}, {"nan": 1}, "nan-output", "error", {"constant_nan": True, "clean": False}),
        ({"inf": 3}, {}, {}, "inf-output", "warn", {"half": False}),
        ({"inf": 3, "dtype": "float16"}, {}, {}, "inf-output", "error", {"half": True, "clean": True}),
    ],
)
def test_values(output, given, constant, kind, severity, facts):
    result = outcome(
        outputs=[[output]],
        result={"inputs": [value(path="args[0]", **given)], "constants": [{"name": "w", **value(path="", **constant)}]},
    )
    item = one(values.read(case(), history(), result))
    assert (item.kind, item.severity.value) == (kind, severity)
    assert facts.items() <= item.facts.items()


def test_weights_that_could_not_be_read_are_not_clean():
    """The run that read them failed there, and was repeated without reading them."""
    plain = outcome(outputs=[[{"nan": 3}]])
    again = outcome("values")
    again = replace(again, request=replace(again.request, payload=Run(observe=())))
    assert one(values.read(case(), history(plain_run=plain), again)).facts["clean"] is False


def test_threads():
    assert isinstance(threads.plan(case(), history(finding("AD-RUN-001", "signalled"))), Request)
    assert isinstance(
        threads.plan(case(), history(finding("AD-RUN-001", "signalled"), finding("AD-IN-010"))), NotChecked
    )
    assert one(threads.read(case(), history(), OK)).kind == "heals"
    assert one(threads.read(case(), history(), DIED)).kind == "same"


def timed(probe, limit=None, seconds=1.0):
    ending = TimedOut(limit=limit) if limit is not None else Exited(code=0, done=True)
    return outcome(probe, ending=ending, stage="run1" if limit is not None else "done", seconds=seconds)


@pytest.mark.parametrize(
    ("limits", "seconds", "kind"),
    [
        ((10.0, 10.0), 1.0, "heals"),
        ((10.0, 10.0), 5.0, "slow"),
        ((10.0, 2.0), 1.0, "slow"),
        ((10.0, None), 1.0, "slow"),
    ],
)
def test_a_time_limit_is_no_evidence_of_a_race(limits, seconds, kind):
    runs = dict(zip(("plain_run", "again"), limits, strict=True))
    known = replace(history(), outcomes={name: timed(name, limit) for name, limit in runs.items()})
    found = one(threads.read(case(), known, timed("threads", seconds=seconds)))
    assert (found.kind, found.severity.value) == (kind, "error" if kind == "heals" else "info")


@pytest.mark.parametrize("limits", [(10.0, None), (None, 10.0)])
def test_a_limit_that_one_of_two_runs_broke_is_not_flaky(limits):
    first, second = (timed(name, limit) for name, limit in zip(("plain_run", "again"), limits, strict=True))
    known = replace(history(), outcomes={"plain_run": first})
    found = one(repeat.read(case(), known, second))
    assert (found.kind, found.severity.value) == ("slow", "info")


def compared_threads(repeatable, **told):
    request = Request(probe="threads", job="run", payload=Run(against_threads=1))
    told = {"threads": [4, 1], "repeatable": repeatable, "outputs": [{"path": "result", "max_abs_diff": 0.5}], **told}
    return replace(outcome(result={"against_threads": told}), request=request)


@pytest.mark.parametrize(
    ("result", "kind", "severity"),
    [
        (compared_threads([False, True]), "heals", "error"),
        (compared_threads([False, False]), "same", "info"),
        (compared_threads([True, False]), "same", "info"),
        (compared_threads([True, True], same=True, agrees=True), "same", "info"),
        (compared_threads([True, True], same=False, agrees=True), "rounding", "info"),
        (compared_threads([True, True], same=False, agrees=False), "differs", "error"),
    ],
)
def test_threads_of_outputs_that_change(result, kind, severity):
    item = one(threads.read(case(), history(), result))
    assert (item.kind, item.severity.value) == (kind, severity)


@pytest.mark.parametrize(
    ("package", "findings", "asked"),
    [
        (case(), [finding("AD-RUN-002", "differs")], True),
        (case(), [finding("AD-RUN-011", "differs")], True),
        (case(), [finding("AD-RUN-002", "differs", Severity.INFO)], False),
        (case(random_ops=["aten.rand"]), [finding("AD-RUN-002", "differs")], False),
        (case(uninitialized_ops=["aten.empty"]), [finding("AD-RUN-002", "differs")], False),
        (case(device="cuda"), [finding("AD-RUN-002", "differs")], False),
        (case(threads=1), [finding("AD-RUN-002", "differs")], False),
        (case(rungs=("threads",)), [], True),
        (case(localize=True), [], True),
        (case(), [], False),
    ],
)
def test_threads_are_compared_when_numbers_are_odd(package, findings, asked):
    request = threads.plan(package, history(*findings, plain_run=OK))
    assert isinstance(request, Request if asked else NotChecked)
    assert not asked or request.payload.against_threads == 1


def test_cpp_stack_is_asked_for_unexplained_exceptions_only():
    unexplained = finding("AD-RUN-001", "raised", symptom="other")
    request = cpp_stack.plan(case(), history(unexplained))
    assert request.env == {"TORCH_SHOW_CPP_STACKTRACES": "1"}
    assert isinstance(cpp_stack.plan(case(), history(finding("AD-RUN-001", "raised", symptom="zip"))), NotChecked)
    # An operator that raises alone explains it.
    alone = finding("AD-RUN-015", "raised", subject="zoo::scale")
    assert isinstance(cpp_stack.plan(case(), history(unexplained, alone)), NotChecked)


def test_custom_operator_registry():
    ask = case(nodes=[node()], custom_ops=["ops::scale"])
    assert isinstance(custom_ops.plan(ask, history(plain_run=DIED)), Request)
    assert isinstance(custom_ops.plan(ask, history(plain_run=OK)), Request)
    assert isinstance(custom_ops.plan(case(nodes=[node("aten::sort")]), history(plain_run=DIED)), NotChecked)

    def judged(**entry):
        registry = outcome(result={"ops": {"ops::scale": entry}})
        return [item.kind for item in custom_ops.read(ask, history(), registry)]

    arguments = [{"name": "x"}, {"name": "s"}]
    assert judged(registered=False) == ["missing"]
    assert judged(registered=True, arguments=arguments, returns=1) == []
    assert judged(registered=True, arguments=arguments[::-1], returns=1) == []
    assert judged(registered=True, arguments=[*arguments, {"name": "k", "has_default": True}], returns=1) == []
    assert judged(registered=True, arguments=[*arguments, {"name": "k"}], returns=1) == ["schema"]
    assert judged(registered=True, arguments=arguments[:1], returns=1) == ["schema"]
    assert judged(registered=True, arguments=arguments, returns=2) == ["schema"]
    assert judged(registered=True, arguments=arguments, returns=1, kernel=False) == ["no-kernel"]


@pytest.mark.parametrize(
    ("result", "kind"),
    [
        ({"reference": {"agrees": True}}, "agrees"),
        ({"reference": {"error": "AssertionError: Guard failed"}}, "raises"),
        ({"reference": {"unavailable": "FileNotFoundError: no such file: nope.pt2"}}, "unavailable"),
        ({}, "unavailable"),
        ({"reference": {"agrees": False, "outputs": [{"path": "result", "max_abs_diff": 4.4}]}}, "differs"),
        (
            {
                "reference": {"agrees": False, "outputs": [{"path": "result", "max_abs_diff": 4.4}]},
                "weights": [{"name": "l.weight", "equal": False, "what": "values", "share": 1.0}],
            },
            "weights",
        ),
    ],
)
def test_reference(result, kind):
    assert one(reference.read(case(), history(), outcome(result=result))).kind == kind


@pytest.mark.parametrize(
    ("error", "severity"),
    [
        ("AssertionError: Guard failed: x.size()[0] <= 64", Severity.WARN),
        ("IndexError: index out of range in self", Severity.ERROR),
        ("RuntimeError: all elements of target should be between 0 and 1", Severity.ERROR),
    ],
)
def test_what_the_program_refuses_is_a_fault_though_the_package_returned(error, severity):
    found = one(reference.read(case(), history(), outcome(result={"reference": {"error": error}})))
    assert (found.kind, found.severity) == ("raises", severity)


def test_the_refused_element_is_named():
    refused = {"operator": "aten.embedding.default", "paths": ["args[1]"], "element": "args[1][0, 2]", "value": 9}
    result = {"reference": {"error": "IndexError: index out of range in self", "refused": refused}}
    found = one(reference.read(case(), history(), outcome(result=result)))
    assert (found.subject, found.facts["element"], found.facts["value"]) == ("args[1]", "args[1][0, 2]", 9)
    assert found.facts["symptom"] == "index-out-of-bounds"


@pytest.mark.parametrize(
    "error", ["RuntimeError: No CUDA GPUs are available", "RuntimeError: CUDA out of memory. Tried to allocate 2 GiB"]
)
def test_a_reference_that_lacks_something_here_refuses_nothing(error):
    found = one(reference.read(case(), history(), outcome(result={"reference": {"error": error}})))
    assert (found.kind, found.severity) == ("unavailable", Severity.WARN)


ARENA = [117, 0, 16, 0, 0, 1, 29, *[0] * 14, 1, 0, 0, 0, 1, 1, 0, 0, 0, 64, 0, 0, 0, 0, 1, 0, 0, 16]


@pytest.mark.parametrize(
    ("sizes", "kind"),
    [
        ([1_000_000 + 70_000 * i for i in range(40)], "grows"),
        ([1_000_000 + min(i, 10) * 70_000 for i in range(40)], "steady"),
        ([1_000_000] * 40, "steady"),
        # Every other call leaks.
        ([1_000_000 + 70_000 * (i // 2) for i in range(40)], "grows"),
        # An allocator that takes more at a time, as it was seen with operators that are PyTorch's own.
        ([4096 * sum(ARENA[:i]) for i in range(40)], "steady"),
    ],
)
def test_growth(sizes, kind):
    assert one(growth.read(case(), history(), outcome(result={"rss": sizes}))).kind == kind


def test_growth_is_asked_for_custom_operators():
    assert isinstance(growth.plan(case(), history(plain_run=OK)), NotChecked)
    assert isinstance(growth.plan(case(custom_ops=["a::b"]), history(plain_run=OK)), Request)
    assert isinstance(growth.plan(case(rungs=("growth",)), history(plain_run=OK)), Request)


@pytest.mark.parametrize(
    ("probe", "variable"),
    [(cuda_blocking.PROBE, "CUDA_LAUNCH_BLOCKING"), (cuda_no_caching.PROBE, "PYTORCH_NO_CUDA_MEMORY_CACHING")],
)
def test_cuda_probes_are_asked_for_a_failed_cuda_run_only(probe, variable):
    assert isinstance(probe.plan(case(), history(plain_run=DIED)), NotChecked)
    assert isinstance(probe.plan(case(device="cuda"), history(plain_run=OK)), NotChecked)
    request = probe.plan(case(device="cuda"), history(plain_run=DIED))
    assert (request.env[variable], request.env["CUDA_LAUNCH_BLOCKING"], request.fresh) == ("1", "1", True)
    assert request.payload.trace is True
    assert one(probe.read(case(device="cuda"), history(), OK)).kind == "vanishes"
    fault = raised("CUDA error: an illegal memory access was encountered")
    assert one(probe.read(case(device="cuda"), history(), fault)).facts["symptom"] == "cuda-illegal-access"


@pytest.mark.parametrize(
    ("complaint", "subject", "observed", "expected"),
    [
        ("input_handles[0]: unmatched dtype, expected: 4(at::kLong), but got: 3", "args[0]", "int32", "int64"),
        ("input_handles[0]: unmatched dim value at 1, expected: 16, but got: 17", "args[0].shape[1]", "17", "16"),
        (
            "input_handles[0]: dim value is too large at 0, expected to be <= 64, but got: 200",
            "args[0].shape[0]",
            "200",
            "at most 64",
        ),
        (
            "input_handles[0]: unmatched stride value at 0, expected: 16, but got: 32",
            "args[0].stride",
            "32 at dim 0",
            "16",
        ),
        ("input_handles[0]: unmatched device type, expected: 00(cpu), but got: 14", "args[0]", "meta", "cpu"),
    ],
)
def test_complaints_are_put_in_words(complaint, subject, observed, expected):
    item = one(check_inputs.read(case(source="recovered"), history(plain_run=OK), raised(complaint)))
    assert (item.subject, item.observed, item.expected) == (subject, observed, expected)
