"""Blame chains of recorded packages: which element, which bound, which operator, and what is left out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aotidoctor.localize.blame.chain import chain_of
from aotidoctor.localize.blame.failing_elements import Failure
from aotidoctor.model.localization import Element
from tests.unit.localize.kernels import case_of, floats, integers, text

IDS = (1, 5, 9, 99, 0, 42, 17, 3)
SHIFTED = "cpp_fused__to_copy_add_clamp_constant_pad_nd_embedding_index_mul_slice_0"
PROVENANCE = "cpp_fused__softmax_embedding_mul_0"


def index(variable="tmp2", bound="100L", kernel=None, line=None):
    return Failure(kind="index", kernel=kernel, variable=variable, bound=bound, line=line)


def with_(values, at, value):
    return (*values[:at], value, *values[at + 1 :])


def grid(rows=4, columns=8, **changed):
    """0..31 as a matrix, with elements replaced: ``_2_3=100``."""
    values = list(range(rows * columns))
    for key, value in changed.items():
        row, column = map(int, key.strip("_").split("_"))
        values[row * columns + column] = value
    return integers(*values, shape=(rows, columns))


def sentence(ids, **changes):
    return case_of("provenance", floats(8, 16), kwargs={"ids": integers(*ids)}, **changes)


@pytest.mark.parametrize("value", [100, 100000, -1, -101])
def test_embedding_by_keyword(value):
    chain = chain_of(sentence(with_(IDS, 3, value)), index(kernel=PROVENANCE))
    assert chain.elements == (Element(path="kwargs['ids']", index=(3,), value=value),)
    assert (chain.index, chain.bound, chain.origin) == (value, 100, "inner.e.weight.shape[0]")
    assert chain.text == (
        f"{PROVENANCE}: index {value} of 100 ← kwargs['ids'][3] = {value}; bound from inner.e.weight.shape[0]; "
        "from aten.embedding"
    )
    assert chain.direct


INFORMATION = {
    f"{PROVENANCE}:1": {
        "stack_traces": (
            'File "/w/model.py", line 14, in forward\n    return torch.softmax(y * x, -1)',
            'File "/w/model.py", line 13, in forward\n    y = self.inner(ids)\n  File "/w/model.py", line 7, in forward\n'
            '    return self.e(ids)\n  File "/v/lib/python3.11/site-packages/torch/nn/modules/sparse.py", line 189, in '
            "forward\n    return F.embedding(",
        ),
        "post_grad_nodes": ("amax", "mul", "embedding", "exp"),
    }
}


def test_source_line_of_the_operator_and_not_of_torch():
    chain = chain_of(sentence(with_(IDS, 3, 100), kernel_information=INFORMATION), index(kernel=PROVENANCE))
    assert chain.where == ("model.py:7",)
    assert chain.text.endswith("from aten.embedding at model.py:7")


def test_two_calls_of_one_name_have_no_source_line():
    twice = {**INFORMATION, f"{PROVENANCE}:2": next(iter(INFORMATION.values()))}
    chain = chain_of(sentence(with_(IDS, 3, 100), kernel_information=twice), index(kernel=PROVENANCE))
    assert chain.where == ()


def test_the_kernel_is_found_by_the_words_of_its_check():
    named = chain_of(sentence(with_(IDS, 3, 100)), index(kernel=PROVENANCE))
    assert chain_of(sentence(with_(IDS, 3, 100)), index()) == named


def test_the_line_of_the_check_is_that_of_its_words():
    chain = chain_of(sentence(with_(IDS, 3, 100)), index(kernel=PROVENANCE))
    assert chain.member is not None
    assert chain.member.endswith(".kernel.cpp")
    lines = text("provenance.kernel").splitlines()
    assert "index out of bounds: 0 <= tmp2 < 100L" in lines[chain.line - 1]


def test_vectors_that_read_another_input():
    x, rows = floats(8, 8), integers(*with_(tuple(range(8)) * 8, 13, 8), shape=(8, 8))
    case = case_of("scatter", x, rows, floats(8, 8))
    chain = chain_of(case, index(bound="8L", kernel="cpp_fused_gather_scatter_add_0"))
    (leaf,) = (leaf for leaf in case.contract.leaves if leaf.dtype == "int64")
    assert chain.elements == (Element(path=leaf.path, index=(1, 5), value=8),)


DYNAMIC = "cpp_fused_add_index_0"


# The sum as 2.14 and later write it.
UNSIGNED = (
    "int64_t(static_cast<std::make_unsigned_t<int64_t>>(tmp0) + static_cast<std::make_unsigned_t<int64_t>>(tmp2))"
)


@pytest.mark.parametrize("total", ["int64_t(tmp0 + tmp2)", UNSIGNED])
@pytest.mark.parametrize(("ids", "at", "seen"), [((1, -8, -9, 7), 2, -1), ((1, -8, -2, 8), 3, 8)])
def test_a_dynamic_bound_and_negative_indices_that_count_from_the_end(ids, at, seen, total):
    kernel = text("dynamic_index.kernel").replace("int64_t(tmp0 + tmp2)", total)
    assert total in kernel
    case = case_of("dynamic_index", floats(8, 16), integers(*ids), kernel=kernel)
    chain = chain_of(case, index("tmp7", "ks1", DYNAMIC))
    assert chain.elements == (Element(path="args[1]", index=(at,), value=ids[at]),)
    assert (chain.index, chain.bound, chain.direct) == (seen, 8, True)
    assert chain.origin == "s77 = args[0].shape[0]"
    assert chain.operators == ("aten.index",)


@pytest.mark.parametrize(("read", "most"), [("x0", 8), ("int64_t(x0 + 2L)", 6)])
def test_an_index_that_is_a_position_blames_the_size_and_no_value(read, most):
    """Twelve positions in a table of eight: what the inputs hold has nothing to do with it."""
    kernel = text("dynamic_index.kernel").replace("in_ptr0[static_cast<int64_t>(x0)];", f"{read};")
    case = case_of("dynamic_index", floats(8, 16), integers(*[700] * 12), kernel=kernel)
    chain = chain_of(case, index("tmp7", "ks1", DYNAMIC))
    assert (chain.elements, chain.index, chain.bound) == ((), 8, 8)
    assert (chain.sizes, chain.most) == (("args[1].shape[0]",), most)
    assert "args[1].shape[0]" in chain.text


def test_a_second_name_of_a_size():
    wrapper = text("dynamic_index.wrapper")
    wrapper = wrapper.replace("int64_t s23 = arg1_1_size[0];", "int64_t s23 = arg1_1_size[0];\nint64_t s5 = s77;")
    wrapper = wrapper.replace("s23, s77);", "s23, s5);")
    case = case_of("dynamic_index", floats(8, 16), integers(8, 0), wrapper=wrapper)
    assert chain_of(case, index("tmp7", "ks1", DYNAMIC)).origin == "s77 = args[0].shape[0]"


def test_only_what_the_kernel_reads_is_blamed():
    """The last column is cut off before the lookup; the 1000 in it harms nobody."""
    ids = grid(_0_7=1000, _2_3=98)
    chain = chain_of(case_of("shifted_index", ids, floats(100)), index("tmp4", kernel=SHIFTED))
    assert chain.elements == (Element(path="args[0]", index=(2, 3), value=98),)
    assert (chain.index, chain.count, chain.direct) == (100, 1, False)


def test_masked_lanes_are_not_blamed():
    ids = grid(_0_7=1000, _1_7=100, _3_6=100)
    chain = chain_of(case_of("shifted_index", ids, floats(100)), index("tmp20", kernel=SHIFTED))
    assert chain.elements == (Element(path="args[0]", index=(3, 6), value=100),)
    assert (chain.count, chain.origin) == (1, "args[1].shape[0]")
    assert chain.operators == ("aten.index",)


def test_all_that_fail_are_counted():
    chain = chain_of(case_of("shifted_index", grid(_1_0=50, _2_2=60), floats(100)), index("tmp41", kernel=SHIFTED))
    assert chain.elements == (Element(path="args[0]", index=(1, 0), value=50),)
    assert chain.count == 2
    assert "the first of 2" in chain.text


def test_a_tensor_with_other_strides():
    """Column-major in memory where the kernel goes row by row: it reads the element that is there."""
    values = tuple(100 if at == 9 else 0 for at in range(32))
    ids = integers(*values, shape=(4, 8), stride=(1, 4))
    chain = chain_of(case_of("shifted_index", ids, floats(100)), index("tmp41", kernel=SHIFTED))
    assert chain.elements == (Element(path="args[0]", index=(1, 1), value=100),)


BUFFERED = "cpp_fused_embedding_1"


def test_through_a_buffer_that_a_kernel_filled():
    case = case_of("buffered", integers(*range(8)), integers(1, 2, 3, 4, 50, 49, 2, 60))
    chain = chain_of(case, index("tmp12", kernel=BUFFERED))
    assert chain.elements == (Element(path="args[1]", index=(4,), value=50),)
    assert (chain.index, chain.count, chain.direct) == (101, 2, False)
    assert chain.through == ("cpp_fused_add_mul_0",)


@pytest.mark.parametrize(
    ("variable", "source", "through"),
    [
        ("tmp2", "args[0]", ("aoti_torch_cpu_cumsum",)),
        ("tmp7", "args[1]", ("aoti_torch_cpu_sort_stable", "cpp_fused_add_mul_0")),
    ],
)
def test_through_operators_only_the_input_is_named(variable, source, through):
    case = case_of("buffered", integers(*range(0, 80, 10)), integers(*range(50, 58)))
    chain = chain_of(case, index(variable, kernel=BUFFERED))
    assert (chain.elements, chain.sources, chain.through) == ((), (source,), through)
    assert (chain.bound, chain.origin) == (100, "e.weight.shape[0]")


DIVISOR = (4, 5, 6, 7, 8, 9, 10, 11)


@pytest.mark.parametrize(
    ("divisor", "at", "operators", "direct"),
    [
        (with_(DIVISOR, 4, 0), 4, ("aten.div", "aten.floor_divide"), True),
        (with_(DIVISOR, 4, 3), 4, ("aten.remainder",), False),
    ],
)
def test_divisors(divisor, at, operators, direct):
    case = case_of("division", integers(*range(8)), integers(*divisor), integers(5, shape=()))
    chain = chain_of(case, Failure(kind="division"))
    assert chain.elements == (Element(path="args[1]", index=(at,), value=divisor[at]),)
    assert (chain.what, chain.operators, chain.direct) == ("division by zero", operators, direct)


def test_no_zero_no_blame():
    case = case_of("division", integers(*range(8)), integers(*DIVISOR), integers(5, shape=()))
    assert chain_of(case, Failure(kind="division")) is None


def asserted(value, condition="u0 <= 16"):
    return Failure(kind="assertion", condition=condition, value=value)


def test_the_number_that_broke_a_promise():
    case = case_of("division", integers(*range(8)), integers(*DIVISOR), integers(40, shape=()))
    chain = chain_of(case, asserted(40))
    assert chain.text == "expected u0 <= 16, got 40 ← args[2] = 40; from aten.item"
    assert chain_of(case, asserted(40, "0 <= u0")).elements == chain.elements
    assert chain_of(case, asserted(40, "u1 <= 16")) is None


def test_a_value_that_the_input_does_not_hold_names_the_input_only():
    case = case_of("division", integers(*range(8)), integers(*DIVISOR), integers(5, shape=()))
    chain = chain_of(case, asserted(40))
    assert (chain.elements, chain.sources) == ((), ("args[2]",))


CUDA = index("tmp4", "40")


@pytest.mark.parametrize(("values", "at", "seen"), [((3, 40, 5), 1, 40), ((3, 4, -41), 2, -1)])
def test_a_device_assertion_of_a_cuda_package(values, at, seen):
    chain = chain_of(case_of("cuda_index", integers(*values), floats(3, 8)), CUDA)
    assert chain.elements == (Element(path="args[0]", index=(at,), value=values[at]),)
    assert (chain.kernel, chain.index, chain.bound) == ("triton_poi_fused_add_index_0", seen, 40)
    assert (chain.origin, chain.operators) == ("table.shape[0]", ("aten.index",))


def test_a_device_assertion_in_a_log_without_inputs():
    case = replace(case_of("cuda_index"), inputs=None)
    chain = chain_of(case, CUDA)
    assert chain.text == (
        "triton_poi_fused_add_index_0: index out of 0..39 ← computed from args[0]; bound from table.shape[0]; "
        "from aten.index"
    )


@pytest.mark.parametrize(
    "ids",
    [
        integers(*with_(IDS, 3, 100), dtype="int32"),
        replace(integers(*with_(IDS, 3, 100)), elements=None),
        replace(integers(*with_(IDS, 3, 100)), elements=lambda: None),
        integers(*IDS),
    ],
    ids=["another type", "no values", "too large", "nothing wrong"],
)
def test_no_element_is_named_without_proof(ids):
    case = case_of("provenance", floats(8, 16), kwargs={"ids": ids})
    chain = chain_of(case, index(kernel=PROVENANCE))
    assert (chain.elements, chain.sources) == ((), ("kwargs['ids']",))


def test_a_kernel_that_cannot_be_followed_names_nothing():
    kernel = text("provenance.kernel").replace("auto tmp1 = tmp0;", "auto tmp1 = mystery(x0);")
    case = case_of("provenance", floats(8, 16), kwargs={"ids": integers(*with_(IDS, 3, 100))}, kernel=kernel)
    chain = chain_of(case, index(kernel=PROVENANCE))
    assert (chain.elements, chain.sources, chain.origin) == ((), (), None)
    assert chain.operators == ("aten.embedding",)


def test_an_input_that_an_earlier_kernel_writes_to_is_not_what_was_passed():
    wrapper = text("buffered.wrapper").replace("(int64_t*)(buf0.data_ptr())", "(int64_t*)(arg1_1.data_ptr())")
    wrapper = wrapper.replace("(const int64_t*)(buf5.data_ptr())", "(const int64_t*)(arg1_1.data_ptr())")
    case = case_of("buffered", integers(*with_(IDS, 3, 100)), integers(*IDS), wrapper=wrapper)
    assert chain_of(case, index("tmp2", kernel=BUFFERED)).elements == ()


def test_the_line_tells_alike_checks_apart():
    kernel = text("shifted_index.kernel")
    line = next(at for at, one in enumerate(kernel.split("\n"), 1) if "0 <= tmp41 < 100L" in one)
    for old in ("tmp4 < 100L", "tmp4)", "auto tmp4 ="):
        kernel = kernel.replace(old, old.replace("tmp4", "tmp41"))
    case = case_of("shifted_index", grid(_0_0=98, _1_0=50), floats(100), kernel=kernel)
    assert chain_of(case, index("tmp41", kernel=SHIFTED)).elements[0].value == 98
    assert chain_of(case, index("tmp41", kernel=SHIFTED, line=line)).elements[0].value == 98
    case = case_of("shifted_index", grid(_1_0=50), floats(100), kernel=kernel)
    assert chain_of(case, index("tmp41", kernel=SHIFTED, line=line)).elements[0].value == 50
