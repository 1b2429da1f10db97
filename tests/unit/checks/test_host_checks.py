"""Checks of the package against this host, and of loading."""

from __future__ import annotations

import importlib
from dataclasses import replace

import pytest

from aotidoctor.checks.gpu_arch_mismatch import runs_on
from aotidoctor.checks.registry import CHECKS
from aotidoctor.diagnosis.treatments import plan_treatment
from aotidoctor.model.artifact import ArtifactKind, ExternNode
from aotidoctor.model.case import Gpu, MissingSymbol, TmpdirState, TorchBuild
from aotidoctor.model.contract import ConstantSpec
from aotidoctor.model.evidence import NotChecked
from aotidoctor.model.inputs import Container, InputSet, Leaf, TensorDesc
from tests.unit.checks.package_builders import (
    FLAGS,
    artifact,
    ask,
    case,
    contract,
    first,
    member,
    shared_object,
    with_model,
    with_object,
    with_values,
)

ERROR, WARN, INFO = "error", "warn", "info"
CUDA_TORCH = TorchBuild(version="2.13.0+cu130", path="/site/torch", cuda="13.0")
H200, A100 = Gpu(index=0, name="H200", compute_capability="90"), Gpu(index=1, name="A100", compute_capability="80")
CUDA = with_values(AOTI_DEVICE_KEY="cuda", AOTI_COMPUTE_CAPABILITY="90")
ON_GPU = {"torch": CUDA_TORCH, "gpus": (H200,), "cuda_driver": "580.82.07"}
MINE = [check for check in CHECKS if check.stage in {"artifact", "host", "load"}]


def test_a_fitting_case_has_no_findings():
    found = {check.name: ask(check.name, case(contract=contract())) for check in MINE}
    assert {name: kinds for name, kinds in found.items() if kinds not in ([], NotChecked)} == {}


def test_codes_and_names_are_unique_and_needs_come_earlier():
    assert len({check.code for check in CHECKS}) == len({check.name for check in CHECKS}) == len(CHECKS)
    seen = set()
    for check in CHECKS:
        assert set(check.needs) <= seen, check.name
        seen.add(check.name)


@pytest.mark.parametrize("check", MINE, ids=lambda check: check.name)
def test_docstring_is_a_manual_page(check):
    page = importlib.import_module(f"aotidoctor.checks.{check.name}").__doc__ or ""
    headings = [line.rstrip(":") for line in page.splitlines() if line and not line.startswith(" ")][1:]
    assert headings == ["What it does", "Why it matters", "Example", "When it is wrong"]


@pytest.mark.parametrize(
    ("art", "expected"),
    [
        (with_object(machine="aarch64"), [("elf-machine", ERROR)]),
        (with_object(format="pe", machine="AMD64"), [("file-format", ERROR)]),
        (with_object(format="macho", machine="arm64"), [("file-format", ERROR)]),
        (with_object(bits=32), [("bits", ERROR)]),
        (with_values(AOTI_MACHINE="aarch64"), [("metadata", WARN)]),
        (with_values(AOTI_PLATFORM="win32"), [("metadata", WARN)]),
        (with_values(AOTI_MACHINE="AMD64"), []),
        (with_values(AOTI_MACHINE=None, AOTI_PLATFORM=None), []),
    ],
)
def test_platform(art, expected):
    assert ask("platform_mismatch", case(art)) == expected


@pytest.mark.parametrize(
    ("isa", "flags", "expected"),
    [
        ("AVX512 AVX512_VNNI", FLAGS, []),
        ("AVX512 AVX512_VNNI", FLAGS - {"avx512_vnni"}, [("isa", ERROR)]),
        ("AVX512", frozenset({"avx2", "fma"}), [("isa", ERROR)]),
        ("AVX2", frozenset({"avx2", "fma"}), []),
        ("AMX AVX1024", FLAGS | {"amx_tile"}, [("isa", WARN)]),
        ("AMX_TILE", FLAGS, [("isa", WARN)]),
        ("asimd", FLAGS, []),
        (None, FLAGS, NotChecked),
        ("AVX512", frozenset(), NotChecked),
    ],
)
def test_isa(isa, flags, expected):
    assert ask("isa_mismatch", case(with_values(AOTI_CPU_ISA=isa), cpu_flags=flags)) == expected


@pytest.mark.parametrize(
    ("isa", "metadata", "expected"),
    [
        (("avx512f", "avx512_ifma"), "AVX2", [("isa", ERROR)]),
        (("avx512f", "amx_tile"), "AVX512", [("isa", WARN)]),
        (("avx512f", "amx_tile"), "AMX_TILE", [("isa", WARN)]),
        (("avx512f",), "AMX AVX1024", []),
    ],
)
def test_isa_of_the_compile_flags_wins(isa, metadata, expected):
    given = case(with_values(AOTI_CPU_ISA=metadata), contract=contract({"isa": isa}))
    assert ask("isa_mismatch", given) == expected


@pytest.mark.parametrize(
    ("device", "changes", "expected"),
    [
        ("cuda", {}, [("torch-build", ERROR)]),
        ("xpu", {}, [("torch-build", ERROR)]),
        ("mps", {}, [("torch-build", ERROR)]),
        ("cuda", ON_GPU, []),
        ("cuda", {"torch": CUDA_TORCH}, [("no-driver", ERROR)]),
        ("cuda", {"torch": None}, [("no-driver", ERROR)]),
        ("cuda", {"torch": CUDA_TORCH, "cuda_driver": "580.82.07"}, [("no-device", ERROR)]),
        ("cuda", {"torch": CUDA_TORCH, "cuda_driver": "580.82.07", "in_container": True}, []),
        ("cuda", {"torch": replace(CUDA_TORCH, cuda=None, hip="6.2")}, []),
        ("cpu", {}, []),
    ],
)
def test_device(device, changes, expected):
    assert ask("device_unavailable", case(with_values(AOTI_DEVICE_KEY=device), **changes)) == expected


@pytest.mark.parametrize(
    ("compiled", "gpu", "ptx", "runs"),
    [
        ("90", "90", False, True), ("80", "86", False, True), ("86", "80", False, False), ("80", "90", False, False),
        ("90", "80", True, False), ("80", "90", True, True), ("90a", "90", False, True), ("90a", "100", True, False),
        ("100", "103", False, True), ("90", "100", False, False), ("gfx90a", "90", False, True),
    ],
)  # fmt: skip
def test_capability_rules(compiled, gpu, ptx, runs):
    assert runs_on(compiled, gpu, has_ptx=ptx) is runs


def test_gpu_arch():
    on_a100 = {**ON_GPU, "gpus": (replace(A100, index=0),)}
    assert ask("gpu_arch_mismatch", case(CUDA, **ON_GPU)) == []
    assert ask("gpu_arch_mismatch", case(CUDA, **on_a100)) == [("capability", ERROR)]
    assert ask("gpu_arch_mismatch", case(CUDA, **{**ON_GPU, "gpus": (Gpu(index=0, name="New"),)})) is NotChecked
    both = {**ON_GPU, "gpus": (H200, A100)}
    assert ask("gpu_arch_mismatch", case(CUDA, options={"device": "cuda:1"}, **both)) == [("capability", ERROR)]
    assert ask("gpu_arch_mismatch", case(**on_a100)) == []


def test_missing_gpu_code_needs_no_gpu():
    given = contract({"missing_gpu_code": ("k.cubin",)})
    assert ask("gpu_arch_mismatch", case(CUDA, contract=given)) == [("cubin-missing", ERROR)]


@pytest.mark.parametrize(
    ("libraries", "options", "expected"),
    [
        ({"libtorch_cpu.so": "/x"}, {}, []),
        ({"libtorch_cpu.so": None}, {}, [("needed", ERROR)]),
        ({"libtorch_cpu.so": None}, {"custom_op_libraries": ("/ops/libtorch_cpu.so",)}, [("needed", INFO)]),
        ({}, {}, NotChecked),
    ],
)
def test_missing_library(libraries, options, expected):
    assert ask("missing_library", case(options=options, libraries=libraries)) == expected


def test_gpu_libraries_are_explained_by_the_missing_device():
    compiled = shared_object(needed=("libcuda.so.1", "libtorch_cuda.so", "libmine.so"))
    art = replace(CUDA, models=(replace(CUDA.models[0], shared_objects=(compiled,)),))
    given = case(art, libraries=dict.fromkeys(compiled.needed))
    assert [finding.subject for finding in [first("missing_library", given)]] == ["libmine.so"]
    assert ask("missing_library", given) == [("needed", ERROR)]


def gone(name, version=None, library=None):
    return MissingSymbol(name=name, version=version, wanted_from=library)


@pytest.mark.parametrize(
    ("symbols", "options", "expected"),
    [
        ((), {}, []),
        ((gone("aoti_torch_new"), gone("other")), {}, [("symbol", ERROR)]),
        ((gone("my_op"),), {"custom_op_libraries": ("x.so",)}, [("symbol", WARN)]),
        ((gone("f", "GLIBC_2.99", "libc.so.6"), gone("g", "GLIBC_2.99", "libc.so.6")), {}, [("version", ERROR)]),
        ((gone("f", "GLIBC_2.99", "libc.so.6"), gone("g")), {}, [("version", ERROR), ("symbol", ERROR)]),
    ],
)
def test_abi(symbols, options, expected):
    assert ask("abi_mismatch", case(options=options, missing_symbols=symbols)) == expected


@pytest.mark.parametrize(
    ("needed", "symbols", "options", "expected"),
    [
        (("libgomp.so.1", "libc.so.6"), ("aoti_torch_check", "Sleef_expf16_u10"), {}, [("unlinked", ERROR)]),
        (("libgomp.so.1", "libc.so.6"), ("aoti_torch_check",), {"setup": "before.py"}, [("unlinked", WARN)]),
        (("libtorch_cpu.so",), ("aoti_torch_check",), {}, [("symbol", ERROR)]),
        (("libc10.so",), ("aoti_torch_check",), {}, [("symbol", ERROR)]),
        (("libgomp.so.1",), ("my_op",), {}, [("symbol", ERROR)]),
    ],
)
def test_what_was_not_linked_with_torch_is_no_matter_of_its_release(needed, symbols, options, expected):
    art = with_object(needed=needed)
    lacking = case(art, options=options, missing_symbols=tuple(map(gone, symbols)))
    assert ask("abi_mismatch", lacking) == expected


def test_entry_points_are_checked_without_torch():
    art = with_object(defined_entry_points=("AOTInductorModelContainerDelete",))
    found = ask("abi_mismatch", case(art, symbols_checked=0, symbols_problem="torch is not installed"))
    assert found == [("entry-point", ERROR)] * 3


def test_symbols_not_looked_up():
    assert ask("abi_mismatch", case(symbols_checked=0, symbols_problem="no torch")) is NotChecked


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (TmpdirState(path="/tmp"), []),
        (TmpdirState(path="/x", exists=False, writable=False, problem="gone"), [("missing", ERROR)]),
        (TmpdirState(path="/x", writable=False, problem="ro"), [("readonly", ERROR)]),
        (TmpdirState(path="/x", noexec=True, problem="noexec"), [("noexec", ERROR)]),
        (TmpdirState(path="/x", free_bytes=1, problem="small"), [("full", ERROR)]),
        (None, NotChecked),
    ],
)
def test_tmpdir(state, expected):
    assert ask("tmpdir", case(tmpdir=state)) == expected


@pytest.mark.parametrize("fixed", [True, False])
def test_tmpdir_is_no_remedy_for_a_loader_that_does_not_heed_it(fixed):
    state = TmpdirState(path="/tmp", noexec=True, problem="noexec", fixed=fixed)
    check = next(one for one in CHECKS if one.name == "tmpdir")
    given = case(tmpdir=state, torch=replace(CUDA_TORCH, version="2.12.1"))
    (found,) = check.run(given)
    assert ("2.12.1 unpacks to /tmp" in str(found.facts.get("advice"))) is fixed
    assert (plan_treatment("tmpdir", given, [found]) is None) is fixed


@pytest.mark.parametrize(
    ("files", "environment", "expected"),
    [
        (("/t/libgomp.so.1",), {}, []),
        (("/t/libgomp-a34b3233.so.1", "/lib/libgomp.so.1"), {}, []),
        (("/i/libiomp5.so", "/t/libgomp.so.1"), {}, [("two-runtimes", WARN)]),
        (("/i/libiomp5.so", "/c/libomp.so"), {}, [("two-runtimes", ERROR)]),
        (("/i/libiomp5.so", "/c/libomp.so"), {"KMP_DUPLICATE_LIB_OK": "TRUE"}, [("two-runtimes", WARN)]),
    ],
)
def test_openmp(files, environment, expected):
    assert ask("openmp_conflict", case(openmp_runtimes=files, environment=environment)) == expected


@pytest.mark.parametrize(
    ("baked", "threads", "expected"),
    [(8, None, []), (2, None, [("baked", ERROR)]), (2, 2, []), (2, 3, [("baked", ERROR)]), (16, None, [])],
)
def test_threads(baked, threads, expected):
    given = contract({"baked_threads": {"cpp_fused_sum_0": baked}})
    found = case(contract=given, options={"threads": threads})
    assert ask("threads_exceed_build", found) == expected
    if expected:
        assert first("threads_exceed_build", found).subject == "cpp_fused_sum_0"


def test_threads_without_sources():
    assert ask("threads_exceed_build", case()) is NotChecked


def heavy(size, **more):
    return contract(constants=(ConstantSpec(name="w", original_fqn="w", data_size=size),), **more)


@pytest.mark.parametrize(
    ("given", "changes", "expected"),
    [
        (heavy(1 << 29), {}, []),
        (heavy(1 << 31), {}, [("estimate", WARN)]),
        (heavy(1 << 33), {}, [("estimate", ERROR)]),
        (heavy(1 << 33), {"memory_available": None}, [("estimate", ERROR)]),
        (heavy(1 << 33, weights="mmap"), {}, []),
        (heavy(1 << 20), {"address_space_limit": 1 << 20}, [("estimate", ERROR)]),
        (None, {}, []),
    ],
)
def test_memory(given, changes, expected):
    assert ask("out_of_memory", case(contract=given, **changes)) == expected


@pytest.mark.parametrize(
    ("driver", "cuda", "expected"),
    [
        ("580.82.07", "13.0", []), ("570.86.15", "13.0", [("driver-older", ERROR)]), ("570.86.15", "12.8", []),
        ("470.57.02", "12.1", [("driver-older", ERROR)]), (None, "13.0", NotChecked), ("580.1", "99.0", NotChecked),
    ],
)  # fmt: skip
def test_driver(driver, cuda, expected):
    changes = {**ON_GPU, "cuda_driver": driver, "torch": replace(CUDA_TORCH, cuda=cuda)}
    assert ask("driver_mismatch", case(CUDA, **changes)) == expected


def test_driver_does_not_matter_to_the_cpu():
    assert ask("driver_mismatch", case(cuda_driver="470.57.02", torch=CUDA_TORCH)) == []


def test_torch_missing_is_a_note():
    assert ask("torch_missing", case(torch=None, torch_problem="no torch")) == [("not-installed", INFO)]


def calling(*targets):
    return with_model(extern_nodes=tuple(ExternNode(name="n", target=target) for target in targets))


@pytest.mark.parametrize(
    ("targets", "options", "expected"),
    [
        (("ops::scale",), {}, [("needs", WARN)]),
        (("torch.ops.ops.scale.default", "ops::scale.default"), {}, [("needs", WARN)]),
        (("ops::scale",), {"setup": "setup.py"}, [("needs", INFO)]),
        (("ops::scale",), {"custom_op_libraries": ("libops.so",)}, [("needs", INFO)]),
        (("aten::sort.stable", "torch.ops.aten.sort.default", "_c10d_functional::all_reduce"), {}, []),
        ((), {}, []),
    ],
)
def test_custom_ops(targets, options, expected):
    assert ask("custom_op_missing", case(calling(*targets), options=options)) == expected


def test_custom_ops_have_one_name():
    found = first("custom_op_missing", case(calling("torch.ops.ops.scale.default", "ops::scale", "ops::tr.out")))
    assert found.facts["ops"] == ("ops::scale", "ops::tr")


@pytest.mark.parametrize(
    ("where", "options", "expected"),
    [
        ("so", {}, []), ("mmap", {}, []), ("blob", {}, []), ("none", {}, []), ("unknown", {}, NotChecked),
        ("external", {}, [("external", ERROR)]), ("disk", {}, [("on-disk", ERROR)]),
        ("external", {"setup": "s.py"}, [("external", INFO)]), ("disk", {"setup": "s.py"}, [("on-disk", INFO)]),
    ],
)  # fmt: skip
def test_weights(where, options, expected):
    assert ask("weights_not_loaded", case(contract=contract(weights=where), options=options)) == expected
    assert ask("weights_not_loaded", case(with_model(weights_location=where), options=options)) == expected


def test_no_constants_to_load():
    assert ask("weights_not_loaded", case(contract=contract(weights="external", n_constants=0))) == []


@pytest.mark.parametrize(
    ("asked", "expected"), [(None, []), ("cpu", []), ("cuda", [("device", ERROR)]), ("cuda:1", [("device", ERROR)])]
)
def test_load_device(asked, expected):
    assert ask("load_device", case(options={"device": asked})) == expected


@pytest.mark.parametrize(
    ("art", "asked", "expected"),
    [
        (artifact(), "cpu", []), (artifact(), "cpu:0", [("index", ERROR)]), (CUDA, "cuda:0", []),
        (CUDA, "cuda:1", [("index", ERROR)]), (CUDA, "cuda", []),
    ],
)  # fmt: skip
def test_device_index(art, asked, expected):
    assert ask("device_index", case(art, options={"device": asked}, **ON_GPU)) == expected


def test_inputs_on_another_index():
    leaf = Leaf(value=TensorDesc(dtype="float32", shape=(2,), stride=(1,), device="cuda:1"))
    inputs = InputSet(
        path="s.pt",
        format="pt",
        form="args",
        args=Container(type="tuple", children=(leaf,)),
        kwargs=Container(type="dict", children=()),
    )
    assert ask("device_index", case(CUDA, inputs=inputs, **ON_GPU)) == [("index", WARN)]
    both = {**ON_GPU, "gpus": (H200, A100)}
    assert ask("device_index", case(CUDA, inputs=inputs, options={"device": "cuda:1"}, **both)) == []


@pytest.mark.parametrize(
    ("environment", "gpus", "expected"),
    [
        ({"LOCAL_RANK": "1"}, (H200, A100), [("rank", WARN)]),
        ({"SLURM_LOCALID": "3"}, (H200, A100), [("rank", WARN)]),
        ({"LOCAL_RANK": "0", "RANK": "4"}, (H200, A100), []),
        ({"LOCAL_RANK": "1", "CUDA_VISIBLE_DEVICES": "1"}, (H200,), []),
        ({"LOCAL_RANK": "1", "CUDA_VISIBLE_DEVICES": "0,1"}, (H200, A100), [("rank", WARN)]),
        ({"LOCAL_RANK": "one"}, (H200, A100), []),
        # A host without a GPU that is known, and a rank of AMD's with one of its own.
        ({"SLURM_LOCALID": "3"}, (), []),
        ({"LOCAL_RANK": "1", "ROCR_VISIBLE_DEVICES": "1"}, (H200, A100), []),
    ],
)
def test_ranks_of_one_host_that_load_on_the_same_gpu(environment, gpus, expected):
    host = {**ON_GPU, "gpus": gpus, "environment": environment}
    assert ask("device_index", case(CUDA, **host)) == expected
    assert ask("device_index", case(CUDA, options={"device": "cuda:1"}, **{**host, "gpus": (H200, A100)})) == []
    assert ask("device_index", case(artifact(), **host)) == []


def _spec(*types):
    inner = ", ".join(f'{{"type": "{name}", "context": "[\\"type\\"]", "children_spec": []}}' for name in types)
    return f'[1, {{"type": "builtins.tuple", "context": "null", "children_spec": [{inner}]}}]'


@pytest.mark.parametrize(
    ("given", "returned", "options", "expected"),
    [
        ((), ("transformers.modeling_outputs.BaseModelOutput",), {}, [("needs", WARN)]),
        (("transformers.cache_utils.DynamicCache",), (), {}, [("needs", WARN)]),
        ((), ("zoo_out.Answer",), {"setup": "setup.py"}, [("needs", INFO)]),
        (("builtins.dict", "collections.OrderedDict"), ("torch.return_types.max",), {}, []),
    ],
)
def test_classes_of_libraries_in_the_call_spec(given, returned, options, expected):
    made = contract(in_spec=_spec(*given), out_spec=_spec(*returned))
    assert ask("pytree_class_missing", case(contract=made, options=options)) == expected


def test_classes_are_named_once_with_their_modules():
    made = contract(in_spec=_spec("zoo_in.Cache"), out_spec=_spec("zoo_out.Answer", "zoo_in.Cache"))
    found = first("pytree_class_missing", case(contract=made))
    assert found.facts["classes"] == ("zoo_in.Cache", "zoo_out.Answer")
    assert found.facts["registrations"] == ("zoo_in", "zoo_out")


def test_a_class_that_an_import_does_not_register():
    found = first(
        "pytree_class_missing", case(contract=contract(out_spec=_spec("transformers.cache_utils.DynamicCache")))
    )
    assert found.facts["register"].endswith("register_dynamic_cache_export_support()")


@pytest.mark.parametrize(
    ("asks", "permitted", "expected"),
    [
        (True, False, [("refused", ERROR)]),
        (True, True, [("asked-for", INFO)]),
        (True, None, [("asked-for", INFO)]),
        (False, False, []),
        (None, False, []),
    ],
)
def test_executable_stack(asks, permitted, expected):
    given = case(with_object(executable_stack=asks), executable_stack=permitted, executable_stack_why="glibc 2.41")
    assert ask("executable_stack", given) == expected


@pytest.mark.parametrize(
    ("version", "art", "expected"),
    [
        ("2.10.0+cu128", artifact(), [("import", INFO)]),
        # Only this release of 2.10 there is.
        ("2.10", artifact(), [("import", INFO)]),
        ("2.9.1", artifact(), []),
        ("2.11.0", artifact(), []),
        # The layout of 2.6 and 2.7 goes to the loader in C++ before the name is looked up.
        ("2.10.0", artifact(members=(member("version"), member("data/aotinductor/model/a.so"))), []),
        ("2.10.0", artifact(kind=ArtifactKind.BARE_SO), []),
    ],
)
def test_the_release_that_forgets_an_import(version, art, expected):
    assert ask("load_call", case(art, torch=TorchBuild(version=version, path="/site/torch"))) == expected


def missing_shim(name, torch="2.13.0+cpu"):
    build = TorchBuild(version=torch, path="/site/torch")
    return case(missing_symbols=(MissingSymbol(name=name),), torch=build)


def test_a_missing_shim_is_dated():
    found = first("abi_mismatch", missing_shim("aoti_torch_xpu_geqrf"))
    assert (found.facts["torch_needed"], found.expected) == ("2.15", "torch 2.15 or later")
    assert found.subject == "aoti_torch_xpu_geqrf"


def test_age_is_not_the_reason_for_a_shim_that_this_release_has():
    assert first("abi_mismatch", missing_shim("aoti_torch_cuda_addmm_out")).facts["torch_needed"] is None
    assert first("abi_mismatch", missing_shim("_ZN2at4addE")).facts["torch_needed"] is None


@pytest.mark.parametrize(
    ("torch", "root", "kinds"), [("2.7.1", "m", ["release"]), ("2.8.0", "m", []), ("2.7.1", "", [])]
)
def test_the_loader_of_an_older_torch(torch, root, kinds):
    build = TorchBuild(version=torch, path="/site/torch")
    found = ask("abi_mismatch", case(with_model(root=root), torch=build))
    assert [kind for kind, _ in found] == kinds
