"""Who is off, the package or the reference? The package is played by a function; nothing is compiled."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest

pytest.importorskip("torch")

import torch
from torch.nn import functional

from aotidoctor.model.case import Tolerance, Tolerances
from aotidoctor.worker.call import ModelCall
from aotidoctor.worker.float64.float64_judge import RoundingError, judge, verdict_of
from aotidoctor.worker.float64.float64_run import NoDoubleRunError, RoundingNoise, run_program
from aotidoctor.worker.reference_program import LoadedReference
from aotidoctor.worker.tensors import compare_outputs, settle_verdicts


def exported(function, *args, train=False):
    class Model(torch.nn.Module):
        def forward(self, *args):
            return function(*args)

    module = function if isinstance(function, torch.nn.Module) else Model()
    return torch.export.export(module.train(train), args)


def judged(function, args, package, *, train=False, tolerances=None):
    """The leaves of the comparison of ``package(*args)`` with the exported ``function``, and what judged them."""
    torch.manual_seed(0)
    program = exported(function, *args, train=train)
    with torch.no_grad():
        theirs, ours = program.module()(*args), package(*args)
    facts = compare_outputs(ours, theirs, tolerances or Tolerances())
    call = ModelCall(args=args, kwargs={})
    facts["float64"] = judge(
        LoadedReference(call=program.module(), program=program), call, (ours, theirs), facts["outputs"]
    )
    settle_verdicts(facts)
    return facts


def verdict(*args, **more):
    return [leaf["verdict"] for leaf in judged(*args, **more)["outputs"]]


X = torch.linspace(-4, 4, 256).reshape(4, 64)


def chain(x, factor=1.7):
    for _ in range(5):
        x = torch.sin(x * factor + 0.3) * 1.3
    return x


def in_float32(function):
    """What a fused kernel does: float32 in between, one rounding at the end."""
    return lambda *args: function(*(arg.float() for arg in args)).to(args[0].dtype)


def test_a_wrong_decomposition_is_the_packages_fault():
    leaf = judged(functional.gelu, (X,), lambda x: functional.gelu(x, approximate="tanh"))["outputs"][0]
    assert leaf["verdict"] == "package-wrong"
    assert leaf["error"] > 1000 > leaf["allowed"] >= 64 > leaf["reference_error"]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize(
    "function", [chain, lambda x: functional.softmax(chain(x), -1), lambda x: (chain(x) * x).sum(-1)]
)
def test_fewer_roundings_are_no_fault(dtype, function):
    x = (torch.randn(16, 64, generator=torch.Generator().manual_seed(0)) * 2).to(dtype)
    assert verdict(function, (x,), in_float32(function))[0] in ("agrees", "both-within", "reference-imprecise")


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_hides_no_gross_fault(dtype):
    x = torch.linspace(0.2, 0.4, 64).to(dtype)
    assert verdict(lambda x: torch.exp(x * 2), (x,), lambda x: torch.exp(x * 2.4)) == ["package-wrong"]


def test_cancellation_is_measured():
    def shifted(x):
        return (x + 1e6) - 1e6

    leaf = judged(shifted, (X,), lambda x: x.clone())["outputs"][0]
    assert leaf["verdict"] in ("both-within", "reference-imprecise")
    assert leaf["noise"] > 1e4


def test_no_noise_is_asked_for_where_it_could_change_nothing():
    near = judged(functional.gelu, (X,), lambda x: functional.gelu(x.double()).float())
    assert near["float64"]["runs"] == 1
    leaf = near["outputs"][0]
    assert (leaf["judged"], leaf["noise"], leaf["allowed"]) == ("both-within", None, 64)
    shifted = judged(lambda x: (x + 1e6) - 1e6, (X,), lambda x: x.clone())
    assert shifted["float64"]["runs"] == 4
    # Whole numbers that differ may hang on rounding.
    assert judged(lambda x: (x * 3).round().int(), (X,), lambda x: (x * 3.05).round().int())["float64"]["runs"] > 4
    assert judged(lambda x: x > 0, (X,), lambda x: x > 0)["float64"]["runs"] == 1


def test_the_order_of_a_long_sum_is_free():
    def one_after_the_other(x):
        total = torch.tensor(0.0)
        for value in x:
            total += value
        return total

    x = torch.rand(1 << 16, generator=torch.Generator().manual_seed(0))
    assert verdict(torch.sum, (x,), one_after_the_other) == ["both-within"]


def test_an_ill_conditioned_operator_is_measured():
    hilbert = 1.0 / (torch.arange(8)[:, None] + torch.arange(8) + 1.0)
    found = verdict(torch.linalg.solve, (hilbert, torch.ones(8, 1)), lambda a, b: torch.linalg.inv(a) @ b)
    assert found != ["package-wrong"]


def test_a_mask_does_not_hide_the_rest():
    def masked(x):
        return torch.where(x > 3.9, -1e9, x * 3)

    assert verdict(masked, (X,), lambda x: torch.where(x > 3.9, -1e9, x * 3.05)) == ["package-wrong"]


def test_nan_of_the_package():
    leaf = judged(torch.sqrt, (X.abs(),), lambda x: torch.sqrt(x - 0.1))["outputs"][0]
    assert (leaf["verdict"], leaf["what"], leaf["error"]) == ("package-wrong", "nan", math.inf)


def test_overflow_of_the_reference_alone():
    def up_and_down(x):
        return (x * 1000) * 0.001

    leaf = judged(up_and_down, (torch.full((8,), 100.0).half(),), in_float32(up_and_down))["outputs"][0]
    assert (leaf["verdict"], leaf["inf"]) == ("reference-imprecise", [0, 8])


def test_a_choice_that_hangs_on_rounding():
    def best(x):
        return (x * 3.3 + 1e3).argmax(-1)

    x = torch.tensor([[1.0, 1.0 + 2e-6, 0.0]]).repeat(64, 1)
    assert verdict(best, (x,), lambda x: 1 - best(x)) == ["both-within"]
    assert verdict(best, (x,), lambda x: best(x) * 0 + 2) == ["package-wrong"]


def test_booleans():
    assert verdict(lambda x: x > 0.5, (X,), lambda x: x > 0.6) == ["package-wrong"]


def test_random_programs_have_no_float64_run():
    facts = judged(lambda x: functional.dropout(x, 0.5), (X,), lambda x: functional.dropout(x, 0.5), train=True)
    assert facts["outputs"][0]["verdict"] == "unknown"
    assert facts["float64"]["problem"] == "the program has random numbers (aten.dropout.default)"
    assert "random" in facts["outputs"][0]["reason"]


def test_dropout_that_is_off_is_not_random():
    class Off(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.drop = torch.nn.Dropout(0.5)

        def forward(self, x):
            return functional.scaled_dot_product_attention(x, x, self.drop(x))

    x = X.reshape(1, 4, 64)
    assert verdict(Off().eval(), (x,), lambda x: functional.scaled_dot_product_attention(x, x, x) * 1.01) == [
        "package-wrong"
    ]


def float64_of(function, *args, train=False):
    return run_program(exported(function, *args, train=train), ModelCall(args=args, kwargs={}))


def test_dtypes_in_the_program_are_widened():
    def mixed(x):
        half = (x.to(torch.float16) / 3).to(torch.bfloat16)
        return half + torch.full((64,), 0.1) + torch.arange(64, dtype=torch.float32) / 7, x.double(), x.to(torch.int32)

    (result, double, integer), kept = float64_of(mixed, X)
    assert kept == []
    exact = X.double() / 3 + 0.1 + torch.arange(64, dtype=torch.float64) / 7
    assert torch.allclose(result, exact, rtol=1e-15, atol=1e-15)
    assert (double.dtype, integer.dtype) == (torch.float64, torch.int32)


def test_complex_numbers_are_widened():
    z = torch.complex(X, X + 1)
    (result, _), kept = float64_of(lambda z: (torch.view_as_real(z * z), z), z)
    assert (result.dtype, kept) == (torch.float64, [])
    assert torch.equal(result, torch.view_as_real(z.to(torch.complex128) ** 2))


def test_bits_are_read_in_the_programs_own_dtype():
    result, kept = float64_of(lambda x: x.view(torch.int32) + 0, X)
    assert torch.equal(result, X.view(torch.int32))
    assert kept == ["aten.view.dtype"]


def test_a_copy_by_cast_may_be_written_to():
    def writes(x):
        y = x.to(torch.bfloat16)
        y.add_(1)
        return x * 2 + y.sum()

    result, _ = float64_of(writes, X)
    assert torch.allclose(result, X.double() * 2 + (X.double() + 1).sum(), rtol=1e-12)


def test_branches_are_interpreted():
    def branched(x):
        return torch.cond(x.sum() > 0, lambda x: x.to(torch.float32) / 3, lambda x: x * 2, (x,))

    result, kept = float64_of(branched, X.abs())
    assert (result.dtype, kept) == (torch.float64, [])
    assert torch.allclose(result, X.abs().double() / 3, rtol=1e-15)


@pytest.fixture
def narrow_op():
    with torch.library._scoped_library("narrow", "FRAGMENT") as library:
        library.define("half_of(Tensor x) -> Tensor")

        def half_of(x):
            assert x.dtype == torch.float32, "only float32"
            return x / 2

        library.impl("half_of", half_of, "CPU")
        library.impl("half_of", torch.empty_like, "Meta")
        yield


def test_operators_of_others_keep_their_dtype(narrow_op):
    def with_op(x):
        return torch.ops.narrow.half_of(x * 3) + 1

    result, kept = float64_of(with_op, X)
    assert kept == ["narrow.half_of.default"]
    assert torch.allclose(result, X.double() * 1.5 + 1, atol=1e-6)
    facts = judged(with_op, (X,), lambda x: x * 1.6 + 1)
    assert (facts["outputs"][0]["verdict"], facts["float64"]["kept"]) == ("package-wrong", ["narrow.half_of.default"])


def test_running_statistics_are_left_alone():
    norm = torch.nn.BatchNorm1d(64)
    program = exported(norm, X, train=True)
    before = {name: value.clone() for name, value in program.state_dict.items()}
    result, _ = run_program(program, ModelCall(args=(X,), kwargs={}))
    assert result.dtype == torch.float64
    assert all(torch.equal(value, before[name]) for name, value in program.state_dict.items())


def test_a_dict_is_taken_by_its_keys():
    def scaled(x, by):
        return x * by["scale"] + by["shift"]

    given = {"scale": X * 2, "shift": X + 1}
    exact, _ = run_program(exported(scaled, X, given), ModelCall(args=(X, given), kwargs={}))
    other, _ = run_program(exported(scaled, X, given), ModelCall(args=[X, dict(reversed(given.items()))], kwargs={}))
    assert torch.equal(exact, other)
    assert torch.allclose(exact, X.double() * (X.double() * 2) + X.double() + 1, rtol=1e-6)


def test_inputs_are_left_alone():
    x = X.clone()
    run_program(exported(lambda x: x.add_(1), X.clone()), ModelCall(args=(x,), kwargs={}))
    assert torch.equal(x, X)


def test_noise_is_repeatable_and_of_the_size_of_rounding():
    program = exported(lambda x: torch.exp(x) * 2, X)
    call = ModelCall(args=(X,), kwargs={})
    exact = run_program(program, call)[0]
    one, again, other = (run_program(program, call, RoundingNoise(seed))[0] for seed in (1, 1, 2))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)
    off = ((one - exact) / exact).abs().max()
    assert 0 < off <= 2 * torch.finfo(torch.float32).eps


def test_a_function_as_reference():
    def scaled(x):
        return torch.exp(x) * 2

    def ask(reference, package):
        ours, theirs = package(X), reference(X)
        facts = compare_outputs(ours, theirs, Tolerances())
        facts["float64"] = judge(
            LoadedReference(call=reference), ModelCall(args=(X,), kwargs={}), (ours, theirs), facts["outputs"]
        )
        settle_verdicts(facts)
        return facts

    assert ask(scaled, lambda x: torch.exp(x) * 2.01)["outputs"][0]["verdict"] == "package-wrong"
    weight = torch.ones(64, 64)
    refused = ask(lambda x: x @ weight, lambda x: x @ weight * 1.01)
    assert refused["outputs"][0]["verdict"] == "unknown"
    assert "refuses float64" in refused["float64"]["problem"]
    narrow = ask(lambda x: x.float() * 2, lambda x: x * 2.01)
    assert "narrower dtype" in narrow["float64"]["problem"]


def test_what_was_asked_for_is_the_tolerance():
    loose = Tolerances(rtol=(Tolerance(output=None, value=0.1),))
    assert verdict(functional.relu, (X,), lambda x: functional.relu(x) * 1.01, tolerances=loose) == ["agrees"]
    zero = Tolerances(rtol=(Tolerance(output="result", value=0.0),))
    # A product of floats is rounded alike everywhere; the package is one step of float32 beside it.
    above = torch.tensor(math.inf)
    assert verdict(lambda x: x * 3, (X,), lambda x: torch.nextafter(x * 3, above), tolerances=zero) == ["both-within"]


@pytest.mark.parametrize(
    ("package", "reference", "expected"),
    [
        ((1, 1), (1, 1), "both-within"),
        ((40, 1), (1, 1), "package-wrong"),
        ((1, 20), (1, 1), "package-wrong"),
        ((1, 1), (40, 1), "reference-imprecise"),
        ((40, 1), (31, 1), "both-within"),
        ((1e6, 1e5), (5e5, 1e5), "unknown"),
        ((1e6, 1), (1, 50), "unknown"),
        ((math.inf, 0), (1, 0), "package-wrong"),
        ((math.inf, 0), (math.inf, 0), "unknown"),
    ],
)
def test_verdicts_from_numbers(package, reference, expected):
    ours, theirs = (RoundingError(largest=largest, typical=typical) for largest, typical in (package, reference))
    assert verdict_of(ours, theirs, RoundingError(largest=32, typical=8)) == expected


def test_no_run_for_what_is_not_interpreted():
    program = exported(lambda x: torch.rand_like(x) + x, X)
    with pytest.raises(NoDoubleRunError, match="random"):
        run_program(program, ModelCall(args=(X,), kwargs={}))


class Views(torch.nn.Module):
    """Writes to views of what it holds, and takes one parameter several times."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(8, 8))
        self.table = torch.nn.Parameter(torch.randn(5, 8))
        self.register_buffer("total", torch.zeros(2, 8))

    def forward(self, x, ids):
        self.total[0].add_(x.sum(0))
        row = self.total.view(-1)[8:]
        row.copy_(self.total[0] * 2)
        turned = self.weight.t()
        y = torch.nn.functional.linear(x, self.weight) + x @ turned + turned.sum()
        return y + self.table[ids] + torch.nn.functional.embedding(ids, self.table) + self.total.sum(0)


def test_parameters_are_widened_where_they_are_taken_with_the_same_result():
    torch.manual_seed(0)
    module, x, ids = Views(), torch.randn(3, 8), torch.tensor([4, 0, 4])
    program = torch.export.export(module, (x, ids))
    got, kept = run_program(program, ModelCall(args=(x, ids), kwargs={}))
    with torch.no_grad():
        want = module.double()(x.double(), ids)
    assert kept == []
    torch.testing.assert_close(got, want, rtol=1e-14, atol=1e-14)
    assert program.state_dict["total"].abs().sum() == 0


def test_only_one_parameter_at_a_time_is_there_in_float64(monkeypatch):
    import weakref

    from aotidoctor.worker.float64 import float64_run

    module = torch.nn.Sequential(*(torch.nn.Linear(32, 32) for _ in range(12)))
    x = torch.randn(2, 32)
    program = torch.export.export(module, (x,))
    made, most = [], [0]
    real = float64_run.widen

    def counted(value, **more):
        result = real(value, **more)
        if isinstance(value, torch.nn.Parameter) and value.dim() == 2:
            made.append(weakref.ref(result))
            most[0] = max(most[0], sum(ref() is not None for ref in made))
        return result

    monkeypatch.setattr(float64_run, "widen", counted)
    run_program(program, ModelCall(args=(x,), kwargs={}))
    assert len(made) == 12
    assert most[0] <= 2


@pytest.mark.parametrize(
    ("function", "dtype", "casts"),
    [
        (lambda x: x.to(torch.float16).float() * 2, torch.float32, ["float16"]),
        (lambda x: x.to(torch.bfloat16).sum(1), torch.float32, ["bfloat16"]),
        (lambda x: x * 2, torch.float32, []),
        (lambda x: (x * 2).float(), torch.float16, []),
    ],
)
def test_dtypes_that_the_program_rounds_to(function, dtype, casts):
    assert judged(function, (X.to(dtype),), function)["float64"]["casts"] == casts


REUSE = """
import resource
from aotidoctor.worker.serve import keep_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    bytearray(64 << 20)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

faults()
usual = faults()
keep_memory()
faults()
print(usual, faults())
"""


def test_large_blocks_are_reused_and_not_taken_from_the_kernel_each_time():
    done = subprocess.run([sys.executable, "-c", REUSE], capture_output=True, text=True, check=True)
    usual, then = map(int, done.stdout.split())
    assert then * 50 < usual
