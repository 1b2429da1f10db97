"""The wrapper of each release of torch: understood to the last statement, and the same facts from each.

``tests/data/releases/<release>/wrappers`` are what the code generators of those releases wrote for the same models, on
the CPU and for CUDA (``cuda-*``; the part before the model, which is the same in each, is cut off, and so are settings
in comments). The generators were given a GPU that is not there: nothing was compiled for it, so settings of launches
are those of each kernel's first configuration. What is expected is known from the models.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from aotidoctor.readers.contract.read_contract import read_contract
from aotidoctor.readers.package.package_models import parse_extern_nodes
from aotidoctor.readers.package.read_package import read_artifact
from aotidoctor.reports.package_view import leaf_text
from tests.every import every

RELEASES = Path(__file__).parents[3] / "data" / "releases"
TEXTS = sorted(RELEASES.glob("*/wrappers/*.cpp"))
PACKAGES = sorted(RELEASES.glob("*/*/model.pt2"))

# Inputs as (dtype, rank). A size that is dynamic is "*".
INPUTS = {
    "outs": (("float32", 2), ("float32", 2)),
    "dyn": (("float32", 3), ("float32", 3), ("float32", 2)),
    "attention": (("float32", 3), ("bool", 2)),
    "cond": (("float32", 2), ("bool", 0)),
    "loop": (("float32", 2), ("int64", 0)),
    "custom": (("float32", 2), ("float32", 2)),
    "mutate": (("float32", 2), ("float32", 2)),
    "sorts": (("float32", 2),),
    "scatters": (("float32", 2), ("int64", 2), ("float32", 2)),
    "nonzero": (("float32", 2),),
    "fold": (("float32", 2),),
    "sym": (("float32", 2), ("float32", 1)),
    "scan": (("float32", 2), ("float32", 1)),
    "assoc": (("float32", 2),),
    "cuda-outs": (("float32", 2), ("float32", 2)),
    "cuda-dyn": (("float32", 3), ("float32", 3), ("float32", 2)),
    "cuda-mlp": (("float32", 2),),
    "cuda-cond": (("float32", 2), ("bool", 0)),
    "cuda-loop": (("float32", 2), ("int64", 0)),
    "cuda-custom": (("float32", 2), ("float32", 2)),
    "cuda-mutate": (("float32", 2), ("float32", 2)),
    "cuda-sorts": (("float32", 2),),
    "cuda-scatters": (("float32", 2), ("int64", 2), ("float32", 2)),
    "cuda-nonzero": (("float32", 2),),
    "cuda-embed": (("int64", 1), ("float32", 1)),
    "cuda-reduce": (("float32", 3),),
    "cuda-sym": (("float32", 2), ("float32", 1)),
    "cuda-mixed": (("float32", 2), ("float32", 0)),
}
# Outputs as (dtype, shape); None for the None that the program returns.
OUTPUTS = {
    "outs": (
        ("float32", ("*", "8")),
        ("float32", ("*", "8")),
        ("float32", ("*", "8")),
        ("float32", ("*", "8")),
        ("float32", ("3",)),
        ("float32", ("8", "*")),
        None,
        ("float32", ("*", "8")),
    ),
    "dyn": (("float32", ("*", "*", "8")), ("float32", ("*", "*"))),
    "attention": (("float32", ("*", "5", "32")),),
    "cond": (("float32", ("4", "8")),),
    "loop": (("int64", ()), ("float32", ("4", "8"))),
    "custom": (("float32", ("*", "8")), ("float32", ("*", "8"))),
    "mutate": (("float32", ("4", "8")), ("float32", ("4", "8"))),
    "sorts": (
        ("float32", ("6", "8")),
        ("int64", ("6", "8")),
        ("float32", ("6", "3")),
        ("int64", ("6", "3")),
        ("float32", ("6",)),
        ("float32", ("6", "8")),
        ("float32", ("*",)),
    ),
    "scatters": (("float32", ("8", "8")),) * 3 + (("float32", ("4", "8")), ("float32", ("8", "8"))),
    "nonzero": (("int64", ("*", "2")), ("float32", ("*",)), ("float32", ("*",))),
    "fold": (("float32", ("4", "8")),),
    "sym": (
        ("float32", ("*", "2", "4")),
        ("int64", ("*",)),
        ("float32", ("*", "8")),
        ("float32", ("*",)),
        ("float32", ()),
    ),
    "scan": (("float32", ("8",)), ("float32", ("5", "8"))),
    "assoc": (("float32", ("8", "4")),),
    "cuda-mlp": (("float32", ("*", "12")),),
    "cuda-embed": (("float32", ("*", "14")),),
    "cuda-reduce": (
        ("float32", ("*", "33", "2048")),
        ("float32", ("33",)),
        ("float32", ("*", "2048")),
        ("float32", ("*", "33", "2048")),
        ("int64", ("*", "33")),
    ),
    "cuda-mixed": (("float32", ("4", "8")), ("float32", ("8",))),
    "cuda-cond": (("float32", ("4", "16")),),
    "cuda-loop": (("int64", ()), ("float32", ("4", "16"))),
}
SAME = ("dyn", "custom", "mutate", "sorts", "scatters", "nonzero", "sym")
OUTPUTS |= {f"cuda-{name}": OUTPUTS[name] for name in SAME}
OUTPUTS["cuda-outs"] = tuple(("float32", ("30",)) if one == ("float32", ("3",)) else one for one in OUTPUTS["outs"])
# Results of operators: what the wrapper takes for granted about them stands in it since 2.13, the dtype since 2.14.
OF_OPERATORS = {"custom": (0, 1), "sorts": tuple(range(7)), "nonzero": (0, 2)}
OF_OPERATORS |= {f"cuda-{name}": places for name, places in OF_OPERATORS.items()}
CALLS = {
    "dyn": ("aoti_torch_cpu_addmm_out",),
    "attention": ("aoti_torch_cpu_addmm_out",) * 2,
    "custom": ("lab::scale", "lab::pair", "lab::bump"),
    "sorts": ("aoti_torch_cpu_sort_stable", "aoti_torch_cpu_topk", "aoti_torch_cpu_kthvalue", "aten::_unique2"),
    "scatters": ("aoti_torch_cpu_scatter_reduce_two_out",) * 2,
    "nonzero": ("aoti_torch_cpu_nonzero", "aoti_torch_cpu_index_Tensor"),
    "fold": ("aoti_torch_cpu_mm_out",),
    "cuda-mlp": ("aoti_torch_cuda_mm_out",) * 2,
    "cuda-custom": ("lab::scale", "lab::pair", "lab::bump"),
}
# Kernels of Triton that a model needs at least.
LAUNCHES = {
    **dict.fromkeys(("cuda-outs", "cuda-dyn", "cuda-cond", "cuda-loop", "cuda-embed", "cuda-sym", "cuda-mixed"), 1),
    "cuda-mlp": 2,
    "cuda-custom": 2,
    "cuda-mutate": 1,
    "cuda-scatters": 2,
    "cuda-reduce": 3,
}


def release_of(path: Path) -> tuple[int, int]:
    """(2, 6) of tests/data/releases/2.6.0/..."""
    major, minor, _ = path.relative_to(RELEASES).parts[0].split(".")
    return int(major), int(minor)


@pytest.fixture
def contract_of_text(make_entry, make_artifact):
    def read(path: Path):
        nodes = path.with_suffix(".json")
        found = parse_extern_nodes(nodes.read_bytes())[0] if nodes.exists() else ()
        entry = make_entry(path.read_text(encoding="utf-8"), extern_nodes=found)
        return read_contract(make_artifact(entry), entry)

    return read


def named(path: Path) -> str:
    return f"{path.parts[-3]}-{path.stem}"


def fits(found: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    """Whether the sizes are those wanted; a dynamic one is an expression of symbols."""
    return len(found) == len(wanted) and all(
        (not size.isdigit()) if want == "*" else size == want for size, want in zip(found, wanted, strict=True)
    )


def test_every_release_has_texts():
    releases = {release_of(path) for path in (*TEXTS, *PACKAGES)}
    assert releases >= {(2, minor) for minor in range(6, 16)}
    assert {path.stem for path in TEXTS} == set(INPUTS) == set(OUTPUTS)
    cuda = {release_of(path) for path in TEXTS if path.stem.startswith("cuda-")}
    assert cuda >= {(2, 8), (2, 9), (2, 10), (2, 12), (2, 13), (2, 15)}


@every("path", [*TEXTS, *PACKAGES], ids=named)
def test_every_statement_is_understood(path, contract_of_text):
    if path.suffix == ".cpp":
        contract = contract_of_text(path)
    else:
        artifact = read_artifact(str(path))
        contract = read_contract(artifact, artifact.models[0])
    assert contract.unread == ()
    assert contract.unknown_lines == 0
    assert len(contract.outputs) == contract.n_outputs
    assert len(contract.constants) == contract.n_constants
    assert len(contract.tensor_leaves()) == contract.n_inputs


@every("path", TEXTS, ids=named)
def test_the_inputs_are_those_of_the_model(path, contract_of_text):
    leaves = contract_of_text(path).tensor_leaves()
    wanted = INPUTS[path.stem]
    assert len(leaves) == len(wanted)
    for leaf, (dtype, rank) in zip(leaves, wanted, strict=True):
        if release_of(path) == (2, 6):
            # No checks are compiled in: whatever is told must be right.
            assert leaf.dtype in (dtype, None)
            assert leaf.rank in (rank, None)
        else:
            assert (leaf.dtype, leaf.rank) == (dtype, rank)


@every("path", TEXTS, ids=named)
def test_the_outputs_are_those_of_the_model(path, contract_of_text):
    outputs = contract_of_text(path).outputs
    wanted = OUTPUTS[path.stem]
    assert len(outputs) == len(wanted)
    of_operators = OF_OPERATORS.get(path.stem, ())
    for output, want in zip(outputs, wanted, strict=True):
        assert output.kind == ("none" if want is None else "tensor")
        if want is None:
            continue
        dtype, shape = want
        has_shape = output.index not in of_operators or release_of(path) >= (2, 13)
        has_dtype = output.index not in of_operators or release_of(path) >= (2, 14)
        if output.same_as is not None and release_of(path) == (2, 6):
            has_shape = output.shape is not None
            # Nothing tells the dtype of an input that kernels of Triton alone read.
            has_dtype = has_dtype and not path.stem.startswith("cuda-")
        assert output.dtype == dtype or (output.dtype is None and not has_dtype)
        assert fits(output.shape, shape) if has_shape else output.shape is None or fits(output.shape, shape)


@every("path", [path for path in TEXTS if path.stem in CALLS], ids=named)
def test_the_operators_are_called_in_order(path, contract_of_text):
    names = [call.name for call in contract_of_text(path).kernels]
    wanted = CALLS[path.stem]
    assert [name for name in names if name in wanted] == list(wanted)


@every("path", [path for path in TEXTS if path.stem.endswith("outs")], ids=named)
def test_an_output_that_is_an_input_is_told_from_a_copy(path, contract_of_text):
    outputs = contract_of_text(path).outputs
    assert [output.same_as for output in outputs] == [None, None, None, "args[0]", None, None, None, None]


@every("path", [path for path in TEXTS if path.stem.endswith("mutate")], ids=named)
def test_a_written_input_is_marked_in_every_release(path, contract_of_text):
    assert [leaf.mutated for leaf in contract_of_text(path).tensor_leaves()] == [None, True]


@every("path", [path for path in TEXTS if path.stem.endswith("custom")], ids=named)
def test_the_calls_of_custom_operators_have_their_tensors(path, contract_of_text):
    contract = contract_of_text(path)
    assert contract.custom_ops == ("lab::scale", "lab::pair", "lab::bump")
    calls = {call.name: call.arguments for call in contract.kernels if call.kind == "custom"}
    assert [len(calls[name]) for name in contract.custom_ops] == [2, 3, 1]


@every("path", [path for path in TEXTS if path.stem in LAUNCHES], ids=named)
def test_launches_have_grid_and_settings(path, contract_of_text):
    calls = [call for call in contract_of_text(path).kernels if call.kind == "triton"]
    assert len(calls) >= LAUNCHES[path.stem]
    for call in calls:
        assert len(call.grid) == 3
        assert int(call.warps) > 0
        assert call.shared == "0"
        assert call.device_code is not None
        assert call.guarded
        assert call.arguments


def test_a_factor_of_a_matrix_product_is_described_by_it(contract_of_text):
    """In 2.6 nothing else is; of an input that is viewed before it only the dtype follows."""
    texts = RELEASES / "2.6.0" / "wrappers"
    (leaf,) = contract_of_text(texts / "fold.cpp").tensor_leaves()
    assert (leaf.dtype, leaf.rank) == ("float32", 2)
    assert [dim.static for dim in leaf.dims] == [4, 8]
    # Any layout will do for a matrix product.
    assert leaf.strides == (None, None)
    viewed = contract_of_text(texts / "attention.cpp").tensor_leaves()[0]
    assert (viewed.dtype, viewed.rank) == ("float32", None)


def test_what_two_products_say_differently_stays_open(contract_of_text, tmp_path):
    text = (RELEASES / "2.6.0" / "wrappers" / "fold.cpp").read_text(encoding="utf-8")
    line = next(line for line in text.split("\n") if "aoti_torch_cpu_mm_out(buf0, arg1_1" in line)
    other = line.replace("buf0, arg1_1, _FOLDED_CONST_permute_1", "buf0, _FOLDED_CONST_permute_1, arg1_1")
    (tmp_path / "2.6.0" / "wrappers").mkdir(parents=True)
    path = tmp_path / "2.6.0" / "wrappers" / "fold.cpp"
    path.write_text(text.replace(line, f"{line}\n{other}"), encoding="utf-8")
    (leaf,) = contract_of_text(path).tensor_leaves()
    assert (leaf.dtype, leaf.rank) == ("float32", None)


@every("path", TEXTS, ids=named)
def test_calls_whose_status_nobody_checks(path, contract_of_text):
    """The code of no release looks at the status of a scatter up to 2.13, and of the proxy executor up to 2.12."""
    calls = [kernel for kernel in contract_of_text(path).kernels if kernel.kind in ("extern", "custom")]
    last = {"custom": (2, 12), "extern": (2, 13)}
    wanted = {
        call.name
        for call in calls
        if (call.kind == "custom" or "scatter" in call.name) and release_of(path) <= last[call.kind]
    }
    assert {call.name for call in calls if call.unchecked} == wanted


def test_alignment_of_inputs_is_part_of_the_contract(tmp_path, contract_of_text):
    """With TORCHINDUCTOR_ALIGNMENT_ASSERTS_INPUTS: the text of 2.15 with its statement after that of the strides."""
    text = (RELEASES / "2.15.0" / "wrappers" / "cuda-mlp.cpp").read_text()
    line = next(line for line in text.splitlines() if "assert_size_stride(" in line and '"input"' in line)
    name = re.search(r"assert_size_stride\((\w+),", line)[1]
    guard = "if (_check_aoti_runtime_check_inputs_env()) { "
    changed = tmp_path / "2.15.0" / "wrappers" / "cuda-mlp.cpp"
    changed.parent.mkdir(parents=True)
    for statement in (f'assert_alignment({name}, 16, "input");', f'{guard}assert_alignment({name}, 16, "input"); }}'):
        changed.write_text(text.replace(line, f"{line}\n    {statement}"))
        contract = contract_of_text(changed)
        assert [leaf.alignment for leaf in contract.leaves] == [16]
        assert leaf_text(contract.leaves[0]).endswith("cuda aligned to 16 bytes")
        assert contract.unknown_lines == 0


# What CppWrapperCpu of 2.13 and later writes around a Triton kernel for the CPU, after its code.
TRITON_ON_CPU = """
template <typename in_ptr0_type_, typename out_ptr0_type_, typename kernels_type_>
static __attribute__((noinline)) void call_triton_poi_fused_0(
    const in_ptr0_type_& in_ptr0,
    const out_ptr0_type_& out_ptr0,
    int64_t xnumel,
    kernels_type_& kernels_,
    const std::optional<std::string>& cubin_dir_ = std::nullopt
){
    using namespace torch::aot_inductor;
    static std::once_flag triton_poi_fused_0_init_flag;
    std::call_once(triton_poi_fused_0_init_flag, [&]() {
        kernels_.triton_poi_fused_0_kernel_fn = loadCpuTritonKernel(
            "/tmp/c1.so", "triton_poi_fused_0", cubin_dir_);
        kernels_.triton_poi_fused_0_launcher_fn = loadCpuTritonLauncher(
            "/tmp/c2.so", cubin_dir_);
    });
    void* args_arr[] = { in_ptr0.data_ptr(), out_ptr0.data_ptr(), &xnumel, nullptr };
    kernels_.triton_poi_fused_0_launcher_fn(
        static_cast<uint32_t>(1), static_cast<uint32_t>(1), static_cast<uint32_t>(1),
        /*num_cpu_threads=*/1,
        args_arr,
        kernels_.triton_poi_fused_0_kernel_fn);
}
"""


def test_triton_kernel_of_the_cpu_is_a_call_with_its_tensors(tmp_path, contract_of_text):
    text = (RELEASES / "2.15.0" / "wrappers" / "outs.cpp").read_text()
    line = next(line for line in text.splitlines() if line.lstrip().startswith("cpp_fused_add_mul_relu_0((const"))
    call = "    call_triton_poi_fused_0(arg1_1, buf0, 8L*s17, kernels, this->cubin_dir_);"
    changed = tmp_path / "2.15.0" / "wrappers" / "outs.cpp"
    changed.parent.mkdir(parents=True)
    at = text.index("void AOTInductorModel::_const_run_impl(")
    changed.write_text(text[:at] + TRITON_ON_CPU + text[at:].replace(line, call))
    contract = contract_of_text(changed)
    assert (contract.unknown_lines, contract.unread) == (0, ())
    (launch,) = [one for one in contract.kernels if one.kind == "triton"]
    assert launch.name == "triton_poi_fused_0"
    assert launch.arguments == ("arg1_1", "buf0", "8L*s17")
    assert (launch.device_code, launch.warps, launch.grid) == ("c1.so", None, ("1", "1", "1"))
