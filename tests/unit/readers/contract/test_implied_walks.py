"""In which steps kernels go through inputs that no check describes: from the lines of a kernel, and of real packages."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from aotidoctor.checks.matching.kernel_reads import misfits
from aotidoctor.checks.matching.leaves import TensorPair
from aotidoctor.model.contract import KernelCall, LeafSpec, ModelContract
from aotidoctor.model.expr import evaluate
from aotidoctor.readers.contract.input_leaves import read_symbols
from aotidoctor.readers.contract.kernel_calls import cpp_body
from aotidoctor.readers.contract.read_contract import read_contract
from aotidoctor.readers.contract.run_impl import Body, Buffer
from aotidoctor.readers.contract.unchecked_inputs import with_kernel_reads
from aotidoctor.readers.contract.wrapper_text import NotUnderstood
from aotidoctor.readers.package.read_package import read_artifact
from tests.unit.checks.input_builders import tensor
from tests.unit.readers.contract.test_implied_reads import LOOP, TAIL, load, read

RELEASES = Path(__file__).parents[3] / "data" / "releases"
ROWS = LOOP.format("x0", "6L", 1)
COLUMNS = LOOP.format("x1", "9L", 16)
INNER = "for (long x0_inner = 0; x0_inner < static_cast<int64_t>(6L); x0_inner++)\n{\n"
STORE = "tmp1.store(out_ptr0 + static_cast<int64_t>({0}));\n"
LOOKED_UP = (
    "auto tmp4 = in_ptr1[static_cast<int64_t>(x0)];\nauto tmp5 = tmp4;\nauto tmp6 = c10::convert<int64_t>(tmp5);\n"
    'AOTI_TORCH_CHECK((0 <= tmp6) & (tmp6 < 8L), "index out of bounds: 0 <= tmp6 < 8L");\n'
)


def leaf_of(text: str) -> LeafSpec:
    """``arg0_1``, which the kernel with these lines reads as ``in_ptr0``; it writes a buffer of shape (6, 9)."""
    opened = text.count("{") - text.count("}")
    head = 'extern "C"  void k(const float* in_ptr0, const int64_t* in_ptr1, float* out_ptr0, const int64_t ks0)\n{\n'
    text = head + text + "}\n" * (opened + 1)
    body = Body(losses=NotUnderstood("body"))
    body.buffers["buf0"] = Buffer(dtype="float32", shape=("6L", "9L"), device_type="cpu", strides=("9L", "1L"))
    leaf = LeafSpec(index=0, path="args[0]", kind="tensor", input_index=0, generated_name="arg0_1")
    contract = ModelContract(
        model_name="model",
        source="wrapper.cpp",
        args=None,
        kwargs=None,
        leaves=(leaf,),
        n_inputs=1,
        kernels=(KernelCall(name="k", kind="cpp", arguments=("arg0_1", "arg1_1", "buf0", "s0")),),
        bodies=(cpp_body("k", text, 1, "k.cpp"),),
    )
    return with_kernel_reads(contract, body, read_symbols(body), {"k.cpp": text}).leaves[0]


def turns(leaf: LeafSpec) -> list[list[tuple[str, str, str]]]:
    return [
        [(str(turn.trips), str(turn.step), str(turn.beside) if turn.beside else "") for turn in walk.turns]
        for walk in leaf.walks
    ]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param(ROWS + read("x0"), [("6", "1", "")], id="one-loop"),
        pytest.param(LOOP.format("x0", "9L*ks0", 16) + load("x0"), [("9*s0", "1", "")], id="symbol"),
        pytest.param(
            ROWS + COLUMNS + load("x1 + 9L*x0") + STORE.format("x1 + 9L*x0"), [("9", "1", "1"), ("6", "9", "9")]
        ),
        pytest.param(
            LOOP.format("x0", "54L", 16) + load("x0") + STORE.format("x0"),
            [("54", "1", "1")],
            id="several-dims-at-once",
        ),
        pytest.param(
            LOOP.format("x0", "6L", 16) + COLUMNS + INNER + load("x1 + 9L*x0 + 9L*x0_inner"),
            [("9", "1", ""), ("6", "9", "")],
            id="in-tiles",
        ),
        pytest.param(ROWS + TAIL.format("x1_tail", "9L") + read("x1_tail + 9L*x0"), [("9", "1", ""), ("6", "9", "")]),
        pytest.param(ROWS + LOOKED_UP + read("x0 + 6L*tmp5"), [("6", "1", ""), ("8", "6", "")], id="looked-up"),
    ],
)
def test_how_an_input_is_gone_through(lines, expected):
    leaf = leaf_of(lines)
    assert [sorted(one) for one in turns(leaf)] == [sorted(expected)]
    assert leaf.walked


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param("auto tmp3 = [&]\n{\n" + read("x0") + "return tmp0;\n}\n;\n", id="masked"),
        pytest.param(read("x0 + 8L*tmp5"), id="an-index-that-nothing-bounds"),
        pytest.param(read("2L + ((-1L)*x0)"), id="backwards"),
        pytest.param("auto tmp0 = in_ptr0[x0];\n", id="another-form"),
        pytest.param(LOOP.format("x1", "9L", 16) + read("x1"), id="steps-without-vectors"),
    ],
)
def test_what_is_read_in_another_way(lines):
    """Alone it is no walk; beside one the input is not known to be walked only."""
    assert turns(leaf_of(ROWS + lines)) == []
    both = leaf_of(ROWS + read("x0") + lines)
    assert turns(both) == [[("6", "1", "")]]
    assert not both.walked


def misfitting(contract: ModelContract, *given) -> list[tuple[str, str]]:
    pairs = [
        TensorPair(spec=leaf, path=leaf.path, tensor=one) for leaf, one in zip(contract.leaves, given, strict=True)
    ]
    return [(one.kind, one.pair.path) for one in misfits(pairs)]


# (batch, seq, 8), (batch, seq, 8) and (seq + 1, 8) of which all but the first row are read: the models' own sizes.
def test_of_a_real_package():
    artifact = read_artifact(RELEASES / "2.6.0" / "dyn" / "model.pt2")
    contract = read_contract(artifact, artifact.models[0])
    assert contract is not None
    right = (tensor(5, 7, 8), tensor(5, 7, 8), tensor(8, 8))
    assert misfitting(contract, *right) == []
    turned = tensor(5, 7, 8, stride=(8, 40, 1))
    assert misfitting(contract, right[0], turned, right[2]) == [("stride", contract.leaves[1].path)]
    assert misfitting(contract, turned, right[1], right[2]) == [("stride", contract.leaves[0].path)]


WRAPPERS = RELEASES.parent / "wrappers"
RECORDED = sorted(
    {one.name.partition(".")[0] for one in WRAPPERS.glob("*.wrapper.cpp")}
    & {one.name.partition(".")[0] for one in WRAPPERS.glob("*.kernel.cpp")}
)


@pytest.mark.parametrize("name", RECORDED)
def test_nothing_is_said_of_what_a_package_was_compiled_for(name, contract_of):
    """Inputs of the sizes and strides that the wrapper asserts, as if it did not."""
    known = contract_of(name)
    sizes = {symbol.name: 5 + 8 * at for at, symbol in enumerate(known.symbols)}
    opened = replace(known, leaves=tuple(replace(one, rank=None) for one in known.leaves))
    body = Body(losses=NotUnderstood("body"))
    texts = {one.member: (WRAPPERS / f"{name}.kernel.cpp").read_text(encoding="utf-8") for one in known.bodies}
    walked = with_kernel_reads(opened, body, read_symbols(body), texts)
    pairs = []
    for one, spec in zip(known.leaves, walked.leaves, strict=True):
        if one.input_index is None:
            continue
        shape = [dim.static or evaluate(dim.expr, sizes) for dim in one.dims or ()]
        given = tensor(*shape, stride=tuple(evaluate(step, sizes) for step in one.stride_exprs or ()))
        pairs.append(TensorPair(spec=spec, path=one.path, tensor=given))
    assert misfits(pairs) == []
