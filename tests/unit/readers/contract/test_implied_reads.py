"""How far kernels read into inputs that no check describes: what every call reads, and nothing that it may not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from aotidoctor.model.contract import Dim, KernelCall, LeafSpec, ModelContract
from aotidoctor.model.expr import Sym, evaluate
from aotidoctor.readers.contract.input_leaves import read_symbols
from aotidoctor.readers.contract.kernel_calls import cpp_body
from aotidoctor.readers.contract.read_contract import read_contract
from aotidoctor.readers.contract.run_impl import Body
from aotidoctor.readers.contract.unchecked_inputs import with_kernel_reads
from aotidoctor.readers.contract.wrapper_text import NotUnderstood
from aotidoctor.readers.package.read_package import read_artifact

BODY = Body(losses=NotUnderstood("body"))
RELEASES = Path(__file__).parents[3] / "data" / "releases"
LOOP = "for(int64_t {0}=static_cast<int64_t>(0L); {0}<static_cast<int64_t>({1}); {0}+=static_cast<int64_t>({2}L))\n{{\n"
TAIL = "for (int64_t {0} = static_cast<int64_t>(0L);{0} < static_cast<int64_t>({1}); {0}++)\n{{\n"


def read(at: str) -> str:
    return f"auto tmp0 = in_ptr0[static_cast<int64_t>({at})];\n"


def load(at: str) -> str:
    return f"auto tmp0 = at::vec::Vectorized<float>::loadu(in_ptr0 + static_cast<int64_t>({at}), static_cast<int64_t>(16));\n"


def extents(text: str, leaf: LeafSpec | None = None) -> list[str]:
    """Of ``arg0_1``, which the kernel with these lines reads as ``in_ptr0``; ``ks0`` is ``s0``."""
    opened = text.count("{") - text.count("}")
    text = (
        f'extern "C"  void k(const float* in_ptr0, float* out_ptr0, const int64_t ks0)\n{{\n{text}{"}" * opened}\n}}\n'
    )
    leaf = leaf or LeafSpec(index=0, path="args[0]", kind="tensor", input_index=0, generated_name="arg0_1")
    contract = ModelContract(
        model_name="model",
        source="wrapper.cpp",
        args=None,
        kwargs=None,
        leaves=(leaf,),
        n_inputs=1,
        kernels=(KernelCall(name="k", kind="cpp", arguments=("arg0_1", "buf0", "s0")),),
        bodies=(cpp_body("k", text, 1, "k.cpp"),),
    )
    return [
        str(reads.extent)
        for reads in with_kernel_reads(contract, BODY, read_symbols(BODY), {"k.cpp": text}).leaves[0].reads
    ]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param(LOOP.format("x0", "21L", 1) + read("x0"), ["21"], id="one-loop"),
        pytest.param(LOOP.format("x0", "21L", 16) + load("x0"), ["21"], id="vectors"),
        pytest.param(LOOP.format("x0", "21L", 16) + read("x0"), ["1"], id="steps-without-vectors"),
        pytest.param(LOOP.format("x0", "3L", 1) + TAIL.format("x1_tail", "8L") + read("x1_tail + 8L*x0"), ["24"]),
        pytest.param(LOOP.format("x0", "3L", 1) + LOOP.format("x1", "2L", 1) + read("9L + x1 + 4L*x0"), ["19"]),
        pytest.param(LOOP.format("x0", "ks0", 1) + read("x0"), ["s0"], id="symbol"),
        pytest.param(LOOP.format("x0", "3L", 1) + read("5L"), ["6"], id="one-place"),
        pytest.param(LOOP.format("x0", "3L", 1) + read("7L*x0") + load("x0"), ["15"], id="the-furthest"),
    ],
)
def test_what_every_call_reads(lines, expected):
    assert extents(lines) == expected


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(LOOP.format("x0", "3L", 1) + "if (tmp1)\n{\n" + read("x0") + "}\n", id="condition"),
        pytest.param(
            LOOP.format("x0", "3L", 1) + "auto tmp3 = [&]\n{\n" + read("x0") + "return tmp0;\n}\n;\n", id="masked"
        ),
        pytest.param(LOOP.format("x0", "3L", 1) + "auto tmp1 = tmp2 ? " + read("x0")[12:], id="one-of-two"),
        pytest.param(LOOP.format("x0", "3L", 1) + read("x0 + 8L*tmp5"), id="computed-index"),
        pytest.param(LOOP.format("x0", "3L", 1) + read("2L + ((-1L)*x0)"), id="backwards"),
        pytest.param(LOOP.format("x0", "ks0 + ((-1L))", 1) + read("3L*x0"), id="may-be-empty"),
        pytest.param(LOOP.format("x0", "3L", 1) + read("x0*x0"), id="no-straight-line"),
        pytest.param(LOOP.format("x0", "unknown(3)", 1) + read("x0"), id="unreadable-bound"),
        pytest.param("while (n < 3)\n{\n" + read("3L"), id="another-loop"),
        pytest.param(read("x9"), id="no-loop"),
        pytest.param("for (auto x0 : range)\n{\n" + read("4L"), id="a-loop-of-another-form"),
    ],
)
def test_what_a_call_may_not_read(lines):
    assert extents(lines) == []


def test_a_scope_ends_where_it_ends():
    """What follows a condition or a loop is not below it."""
    first = LOOP.format("x0", "9L", 1) + "if (tmp1)\n{\n}\n" + "}\n"
    assert extents(first + LOOP.format("x0", "4L", 1) + read("x0")) == ["4"]


def test_an_input_whose_sizes_are_known_is_left_alone():
    known = LeafSpec(
        index=0,
        path="args[0]",
        kind="tensor",
        input_index=0,
        generated_name="arg0_1",
        rank=1,
        dims=(Dim(expr=Sym("s0")),),
    )
    assert extents(LOOP.format("x0", "21L", 1) + read("x0"), known) == []


# (batch, seq, 8), (batch, seq, 8) and (seq + 1, 8) of which all but the first row are read: the models' own sizes.
@pytest.mark.parametrize("release", ["2.6.0", "2.7.1", "2.8.0", "2.10.0"])
def test_of_real_packages(release):
    artifact = read_artifact(RELEASES / release / "dyn" / "model.pt2")
    contract = read_contract(artifact, artifact.models[0])
    first, second, longer = contract.tensor_leaves()
    names = [dim.expr.name for dim in first.dims[:2]]
    sizes = dict(zip(names, (5, 7), strict=True))
    assert [evaluate(reads.extent, sizes) for reads in longer.reads] == [8 * 8]
    told = {evaluate(reads.extent, sizes) for leaf in (first, second) for reads in leaf.reads}
    assert told == ({5 * 7 * 8} if release == "2.6.0" else set())


WRAPPERS = RELEASES.parent / "wrappers"
RECORDED = sorted(
    {one.name.partition(".")[0] for one in WRAPPERS.glob("*.wrapper.cpp")}
    & {one.name.partition(".")[0] for one in WRAPPERS.glob("*.kernel.cpp")}
)


@pytest.mark.parametrize("name", RECORDED)
@pytest.mark.parametrize("least", [2, 5, 16])
def test_never_beyond_an_input_of_the_sizes_that_the_wrapper_asserts(name, least, contract_of):
    """Kernels with known inputs: what their loops tell, held against the sizes and strides that the wrapper tells."""
    contract = contract_of(name)
    text = (WRAPPERS / f"{name}.kernel.cpp").read_text(encoding="utf-8")
    sizes = {symbol.name: least + 8 * at for at, symbol in enumerate(contract.symbols)}
    opened = replace(contract, leaves=tuple(replace(leaf, rank=None) for leaf in contract.leaves))
    members = {body.member: text for body in contract.bodies}
    for known, leaf in zip(
        contract.leaves, with_kernel_reads(opened, BODY, read_symbols(BODY), members).leaves, strict=True
    ):
        steps = [evaluate(step, sizes) for step in known.stride_exprs or ()]
        shape = [dim.static or evaluate(dim.expr, sizes) for dim in known.dims or ()]
        span = 1 + sum((size - 1) * step for size, step in zip(shape, steps, strict=True))
        assert all(evaluate(reads.extent, sizes) <= span for reads in leaf.reads), (leaf.path, shape, steps)
