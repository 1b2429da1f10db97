"""Which kernel makes the bad values: on recorded runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aotidoctor.model.contract import KernelCall
from aotidoctor.model.evidence import NotChecked, Severity
from aotidoctor.model.jobs import Watch
from aotidoctor.model.run import Request, Signalled
from aotidoctor.probes import kernel_values
from aotidoctor.probes.probe import Reuse
from tests.unit.probes.outcomes import case, history, node, outcome
from tests.unit.probes.test_probes import finding

PROXY = "aoti_torch_proxy_executor_call_function"


def buffer(name="p", *, nan=0, inf=0, low=0.5, dtype="float32", source=None, **more):
    return {
        "name": name, "position": more.pop("position", 0), "dtype": dtype, "shape": [4], "numel": 4, "nan": nan,
        "inf": inf, "min": low, "max": 2.0, "mean": 1.0, "writer": source, **more,
    }  # fmt: skip


def call(symbol, reads=(), writes=(), argument=None):
    return {"symbol": symbol, "argument": argument, "reads": list(reads), "writes": list(writes)}


def watched(*calls, outputs=(("result", 0),), **more):
    facts = {
        "problem": None, "calls": list(calls), "left_out": 0, "notes": [], "compared": False,
        "decomposition_differs": False, "outputs": [{"path": path, "writer": number} for path, number in outputs], **more,
    }  # fmt: skip
    return outcome("kernel_values", result={"watch": facts})


def one(done, about=None):
    found = kernel_values.read(about or case(), history(), done)
    assert len(found) == 1
    return found[0]


def test_the_first_kernel_that_makes_nan_is_named_not_the_one_that_passes_it_on():
    item = one(
        watched(
            call("cpp_fused_mul_0", [buffer()], [buffer("a")]),
            call("cpp_fused_add_log_1", [buffer(low=-3.0, source=0)], [buffer("b", nan=3)]),
            call("cpp_fused_sum_2", [buffer(nan=3, source=1)], [buffer("c", nan=1)]),
            outputs=(("result", 2),),
        )
    )
    assert (item.kind, item.severity, item.subject) == ("nan", Severity.ERROR, "cpp_fused_add_log_1 (aten.log)")
    assert item.facts["kernel"] == "cpp_fused_add_log_1"
    assert item.facts["operators"] == ("aten.log",)
    assert item.facts["lowest"] == -3.0
    assert item.facts["domain"] == "x <= 0"


def test_a_variance_of_one_row_is_named_beside_what_is_fused_with_it():
    wrong = [buffer("b", nan=3)]
    item = one(watched(call("cpp_fused_lgamma_var_1", [buffer(shape=[1, 8])], wrong)))
    assert (item.facts["operators"], item.facts["domain"]) == (("aten.lgamma", "aten.var"), None)
    item = one(watched(call("cpp_fused_lgamma_var_1", [buffer(shape=[3, 8])], wrong)))
    assert (item.facts["operators"], item.facts["domain"]) == (("aten.lgamma",), "x a pole")


def test_nobody_is_blamed_where_the_package_draws_other_numbers_than_the_program():
    made = call(PROXY, [buffer("x", agrees=True)], [written("b", False)], argument=0)
    run = watched(made, compared=True)
    about = case(nodes=(node("aten::multinomial"),))
    assert (one(run, about).kind, one(run, about).facts["custom"]) == ("diverges", False)
    drawing = case(nodes=(node("aten::multinomial"),), random_ops=["aten.multinomial"])
    assert one(run, drawing).kind == "unavailable"


def test_nan_of_an_input_is_nobody_s_fault():
    item = one(watched(call("cpp_fused_add_log_0", [buffer("x", nan=1)], [buffer("b", nan=3)])))
    assert (item.kind, item.severity) == ("propagated", Severity.INFO)
    assert item.facts["source"] == "x"


def test_an_operator_that_makes_nan_is_the_subject():
    item = one(
        watched(call(PROXY, [buffer()], [buffer("b", nan=3)], argument=0)), case(nodes=(node("zoo::misbehave"),))
    )
    assert (item.subject, item.facts["custom"]) == ("zoo::misbehave", True)


def test_overflow_comes_before_the_nan_that_it_makes():
    item = one(
        watched(
            call("aoti_torch_cpu_mm_out", [buffer(dtype="float16")], [buffer("a", inf=2, dtype="float16")]),
            call("cpp_fused_sub_1", [buffer(inf=2, dtype="float16", source=0)], [buffer("b", nan=2)]),
            outputs=(("result", 1),),
        )
    )
    assert (item.kind, item.facts["kernel"], item.facts["half"]) == ("inf", "aoti_torch_cpu_mm_out", True)


@pytest.mark.parametrize(
    ("kernel", "dtype", "operators"),
    [
        ("cpp_fused__softmax_mul_sum_0", "float16", ("aten._softmax", "aten.mul", "aten.sum")),
        ("cpp_fused__softmax_exp_mul_0", "float32", ("aten.exp",)),
    ],
)
def test_a_softmax_makes_no_infinity(kernel, dtype, operators):
    item = one(watched(call(kernel, [buffer(dtype=dtype)], [buffer("a", inf=2, dtype=dtype)])))
    assert item.facts["operators"] == operators


def test_a_mask_of_minus_infinity_is_not_blamed_for_the_nan_of_a_softmax():
    item = one(
        watched(
            call("cpp_fused_masked_fill_0", [buffer()], [buffer("a", inf=4)]),
            call("cpp_fused__softmax_1", [buffer(inf=4, source=0)], [buffer("b", nan=4)]),
            outputs=(("result", 1),),
        )
    )
    assert (item.kind, item.facts["kernel"]) == ("nan", "cpp_fused__softmax_1")
    assert item.facts["domain"] == "a row of -Inf"


def test_infinity_that_reaches_no_output_is_meant():
    item = one(
        watched(
            call("cpp_fused_masked_fill_0", [buffer()], [buffer("mask", inf=4)]),
            call("cpp_fused__softmax_1", [buffer(inf=4, source=0)], [buffer("b")]),
            outputs=(("result", 1),),
        )
    )
    assert (item.kind, item.severity) == ("clean", Severity.INFO)


def test_infinity_in_full_precision_is_a_warning():
    item = one(watched(call("cpp_fused_exp_0", [buffer()], [buffer("a", inf=4)])))
    assert (item.kind, item.severity, item.facts["half"]) == ("inf", Severity.WARN, False)


def test_finite_values_are_a_note():
    assert one(watched(call("cpp_fused_exp_0", [buffer()], [buffer("a")]))).kind == "clean"


def test_the_reference_tells_the_line_of_the_only_such_operator():
    run = call("cpp_fused_add_log_0", [buffer()], [buffer("b", nan=3)])
    places = [{"target": "aten.log", "where": "model.py:12"}, {"target": "aten.add", "where": "model.py:13"}]
    assert one(watched(run, places=places)).facts["where"] == "model.py:12"
    assert one(watched(run, places=[*places, {"target": "aten.log", "where": "model.py:40"}])).facts["where"] is None


def written(name, agrees, **more):
    return buffer(name, agrees=agrees, matches="node", target="aten.x", where="model.py:3", error=0.7, **more)


def test_the_first_diverging_call_is_followed_up_from_the_wrong_output():
    item = one(
        watched(
            call("cpp_fused_mul_0", [buffer()], [written("a", True)]),
            call("cpp_fused_silu_1", [buffer(source=0, agrees=True)], [written("b", False)]),
            call("aoti_torch_cpu_mm_out", [buffer(source=1, agrees=False)], [written("c", False)]),
            outputs=(("result", 2),),
            compared=True,
        )
    )
    assert (item.kind, item.severity, item.subject) == ("diverges", Severity.ERROR, "cpp_fused_silu_1 (aten.silu)")
    assert item.facts["error"] == 0.7


def test_an_intermediate_without_a_counterpart_is_harmless():
    item = one(
        watched(
            call("cpp_fused_sum_0", [buffer()], [written("partial", False)]),
            call("cpp_fused_div_1", [buffer(source=0, agrees=False)], [written("mean", True)]),
            outputs=(("result", 1),),
            compared=True,
        )
    )
    assert (item.kind, item.severity) == ("agrees", Severity.INFO)


def test_a_statistic_of_a_norm_on_the_way_to_a_wrong_output_is_not_blamed():
    """The sum of squares is no node of the program by design; the call that is off is the one after it."""
    item = one(
        watched(
            call("cpp_fused_pow_sum_0", [buffer(shape=[4, 8])], [written("squares", False, shape=[4])]),
            call(
                "cpp_fused_rsqrt_silu_1",
                [buffer(shape=[4, 8]), buffer(source=0, agrees=False, shape=[4])],
                [written("b", False, shape=[4, 8])],
            ),
            outputs=(("result", 1),),
            compared=True,
        )
    )
    assert (item.kind, item.facts["kernel"]) == ("diverges", "cpp_fused_rsqrt_silu_1")
    assert (item.facts["behind"], item.facts["certain"]) == ("cpp_fused_pow_sum_0", False)


def test_whether_anything_comes_after_the_call_that_is_blamed():
    middle = call("cpp_fused_silu_0", [buffer()], [written("b", False)])
    last = call("aoti_torch_cpu_mm_out", [buffer(source=0, agrees=False)], [written("c", False)])
    facts = one(watched(middle, last, outputs=(("result", 1),), compared=True)).facts
    assert (facts["symbol"], facts["index"], facts["beyond"]) == ("cpp_fused_silu_0", 0, True)
    assert one(watched(middle, outputs=(("result", 0),), compared=True)).facts["beyond"] is False
    both = (("result[0]", 0), ("result[1]", 1))
    assert one(watched(middle, last, outputs=both, compared=True)).facts["beyond"] is True
    log = call(PROXY, [buffer()], [buffer("b", nan=3)], argument=0)
    after = call("cpp_fused_add_1", [buffer(nan=3, source=0)], [buffer("c", nan=3)])
    about = case(nodes=(node("zoo::misbehave"),))
    facts = one(watched(log, after, outputs=(("result", 1),)), about).facts
    assert (facts["kernel"], facts["symbol"], facts["beyond"]) == ("zoo::misbehave", PROXY, True)
    assert one(watched(log), about).facts["beyond"] is False


def test_a_reduction_that_is_a_wrong_output_is_blamed():
    run = call("cpp_fused_gelu_mean_0", [buffer(shape=[4, 8])], [written("mean", False, shape=[4])])
    item = one(watched(run, compared=True))
    assert (item.kind, item.facts["kernel"], item.facts["certain"]) == ("diverges", "cpp_fused_gelu_mean_0", True)


def test_a_mask_of_infinity_on_the_way_to_a_wrong_output_is_not_blamed():
    item = one(
        watched(
            call("cpp_fused_where_0", [buffer()], [written("mask", False, inf=2)]),
            call("aoti_torch_cpu_mm_out", [buffer(source=0, agrees=False, inf=2)], [written("b", False)]),
            outputs=(("result", 1),),
            compared=True,
        )
    )
    assert item.subject == "aoti_torch_cpu_mm_out"


def test_nothing_is_blamed_while_the_outputs_agree():
    """As the reference probe found, or as the watched run itself shows."""
    run = call("cpp_fused_mul_0", [buffer()], [written("kept for later", False), written("b", True)])
    values = watched(run, outputs=(("result", 0),), compared=True)
    judged = history(finding("AD-RUN-011", "agrees"))
    (item,) = kernel_values.read(case(), judged, values)
    assert (item.kind, item.severity) == ("agrees", Severity.INFO)
    facts = values.result["watch"]
    facts["outputs"] = [{"path": "result", "writer": 0, "agrees": True}]
    assert one(values).kind == "agrees"
    facts["outputs"] = [{"path": "result", "writer": 0, "agrees": False}]
    assert one(values).kind == "diverges"


def test_the_other_result_of_a_call_is_not_followed():
    """A call with a partial sum that nobody misses, and a good result that a wrong call reads."""
    item = one(
        watched(
            call("cpp_fused_sum_0", [buffer()], [written("partial", False), written("good", True)]),
            call("cpp_fused_silu_1", [buffer(source=0, agrees=True)], [written("b", False)]),
            outputs=(("result", 1),),
            compared=True,
        )
    )
    assert item.facts["kernel"] == "cpp_fused_silu_1"


@pytest.mark.parametrize(
    "done", [outcome("kernel_values", result={"watch": {"problem": "no slots"}}), outcome("kernel_values")]
)
def test_odd_results_read_as_nothing(done):
    assert one(done).kind in ("unavailable", "clean")


def test_buffers_get_the_user_s_names_where_the_calls_are_those_of_the_source():
    about = case()
    kernels = (KernelCall(name="cpp_fused_log_0", kind="cpp", arguments=("arg0_1", "buf0")),)
    leaf = replace(about.contract.leaves[0], generated_name="arg0_1")
    about = replace(about, contract=replace(about.contract, kernels=kernels, leaves=(leaf,)))
    done = watched(call("cpp_fused_log_0", [buffer(nan=1)], [buffer("out_ptr0", nan=1, position=1)]))
    assert one(done, about).facts["source"] == "args[0]"


NAN = finding("AD-RUN-005", "nan-output", clean=True)


@pytest.mark.parametrize(
    ("findings", "asked"),
    [
        ((), False),
        ((NAN,), True),
        ((finding("AD-RUN-005", "nan-output", clean=False),), False),
        ((finding("AD-RUN-011", "differs"),), True),
        ((finding("AD-RUN-011", "weights"),), False),
    ],
)
def test_asked_only_when_something_is_wrong(findings, asked):
    result = kernel_values.plan(case(reference="e.pt2"), history(*findings, plain_run=outcome()))
    assert isinstance(result, Request if asked else NotChecked)
    if asked:
        assert result.payload.watch == Watch(reference="e.pt2")


@pytest.mark.parametrize(
    ("findings", "asked"),
    [((), False), ((finding("AD-RUN-011", "differs"),), True), ((finding("AD-RUN-011", "agrees"),), False)],
)
def test_a_package_that_was_emulated_was_followed_there(findings, asked):
    emulated = watched(call("triton_poi_fused_add_0", [buffer()], [buffer()]))
    result = kernel_values.plan(case(reference="e.pt2"), history(*findings, emulation=emulated))
    assert result == Reuse(probe="emulation") if asked else isinstance(result, NotChecked)


@pytest.mark.parametrize(("operators", "named"), [(("aten.addmm", "aten.relu"), "triton_poi_fused_addmm_relu_0"),
                                                  (("aten.mm",), "aoti_torch_cuda_mm_out")])  # fmt: skip
def test_a_product_without_its_bias_is_no_node_of_the_program(operators, named):
    about = case()
    product, kernel = (
        KernelCall(name=name, kind=kind, arguments=("buf0",), origins=operators)
        for name, kind in (("aoti_torch_cuda_mm_out", "extern"), ("triton_poi_fused_addmm_relu_0", "triton"))
    )
    about = replace(about, contract=replace(about.contract, kernels=(product, kernel)))
    done = watched(
        call(product.name, [buffer()], [buffer("out", agrees=False)]),
        call(kernel.name, [buffer(source=0, agrees=False)], [buffer("out_ptr0", agrees=False)]),
        outputs=(("result", 1),),
        compared=True,
    )
    assert one(done, about).facts["kernel"] == named


def test_not_asked_when_the_call_failed():
    died = outcome(stage="run1", ending=Signalled(signal=11, name="SIGSEGV"))
    answer = kernel_values.plan(case(), history(NAN, plain_run=died))
    assert isinstance(answer, NotChecked)
    assert answer.reason == "the plain run returned no outputs"


@pytest.mark.parametrize(("differs", "theirs", "says"), [(False, 3, "same"), (True, 0, "finite"), (True, 1, None)])
def test_the_reference_says_who_computes_nan(differs, theirs, says):
    done = watched(call("cpp_fused_log_0", [buffer(low=-3.0)], [buffer("b", nan=3)]))
    leaf = {
        "path": "result",
        "agrees": not differs,
        "nan": [3, theirs],
        "inf": [0, 0],
        "what": "nan" if differs else None,
    }
    compared = outcome("reference", result={"reference": {"outputs": [leaf], "same_structure": True}})
    found = kernel_values.read(case(), history(reference=compared), done)[0]
    assert (found.kind, found.facts.get("reference")) == ("nan", says)
