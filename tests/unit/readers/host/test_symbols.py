"""Would the loader accept the package: against made-up libraries in the place of torch's."""

from __future__ import annotations

import os

import pytest

from aotidoctor.model.artifact import Artifact, ArtifactKind, ModelEntry, SharedObject, SymbolRef
from aotidoctor.readers.host.linkage import predict_linkage
from tests.unit.readers.host.elf_builder import shared_object


@pytest.fixture
def torch(tmp_path):
    """A folder like torch's: the extension module needs libtorch_cpu, which defines two shims."""
    folder = tmp_path / "site" / "torch"
    (folder / "lib").mkdir(parents=True)
    libraries = {
        "libtorch_global_deps.so": shared_object(soname="libtorch_global_deps.so"),
        "libtorch_python.so": shared_object(needed=("libtorch_cpu.so",), runpath="$ORIGIN"),
        "libtorch_cpu.so": shared_object(
            ["aoti_torch_empty", ("aoti_torch_clone", "T_1")],
            versions=("T_1",),
            soname="libtorch_cpu.so",
            needed=("libgomp.so.1",),
            runpath="$ORIGIN",
        ),
        "libgomp.so.1": shared_object(["GOMP_parallel"], soname="libgomp.so.1"),
    }
    for name, data in libraries.items():
        (folder / "lib" / name).write_bytes(data)
    return folder


def package(*undefined, needed=("libtorch_cpu.so",), **more):
    item = SharedObject(
        member="x.wrapper.so",
        format=more.pop("format", "elf"),
        size=1,
        machine=more.pop("machine", os.uname().machine),
        needed=needed,
        undefined=tuple(ref if isinstance(ref, SymbolRef) else SymbolRef(name=ref) for ref in undefined),
        **more,
    )
    model = ModelEntry(name="model", layout="pt2", members=(), shared_objects=(item,))
    return Artifact(path="model.pt2", kind=ArtifactKind.AOTI_PACKAGE, size=1, models=(model,))


def missing(linkage):
    return [(symbol.name, symbol.version) for symbol in linkage.missing]


def test_all_there(torch):
    linkage = predict_linkage(package("aoti_torch_empty", "aoti_torch_clone", "GOMP_parallel"), torch, {})
    assert missing(linkage) == []
    assert linkage.checked == 3
    assert linkage.problem is None
    assert linkage.libraries == {"libtorch_cpu.so": str(torch / "lib" / "libtorch_cpu.so")}


def test_missing_symbol_and_weak_symbol(torch):
    linkage = predict_linkage(package("aoti_torch_new", SymbolRef(name="_ITM_register", weak=True)), torch, {})
    assert missing(linkage) == [("aoti_torch_new", None)]
    assert linkage.checked == 1


def test_missing_version(torch):
    here = SymbolRef(name="aoti_torch_clone", version="T_1", library="libtorch_cpu.so")
    newer = SymbolRef(name="aoti_torch_clone", version="T_2", library="libtorch_cpu.so")
    linkage = predict_linkage(package(here, newer), torch, {})
    assert missing(linkage) == [("aoti_torch_clone", "T_2")]
    assert linkage.missing[0].wanted_from == "libtorch_cpu.so"


def test_library_that_is_not_needed_is_not_searched(torch):
    assert missing(predict_linkage(package("aoti_torch_empty", needed=()), torch, {})) == [("aoti_torch_empty", None)]


def test_symbols_of_the_interpreter_are_in_scope(torch):
    assert missing(predict_linkage(package("malloc", needed=()), torch, {})) == []


def test_missing_library_leaves_plain_symbols_unjudged(torch):
    from_there = SymbolRef(name="cuInit", version="CU_1", library="libcuda_of_test.so.1")
    linkage = predict_linkage(
        package("cuLaunchKernel", from_there, needed=("libtorch_cpu.so", "libcuda_of_test.so.1")), torch, {}
    )
    assert linkage.libraries["libcuda_of_test.so.1"] is None
    assert missing(linkage) == []
    assert linkage.problem is not None
    assert linkage.problem.startswith("1 symbols")


def test_preload_is_in_scope_and_second_openmp_is_seen(torch, tmp_path):
    preload = tmp_path / "libiomp5.so"
    preload.write_bytes(shared_object(["kmp_only"]))
    linkage = predict_linkage(package("kmp_only"), torch, {"LD_PRELOAD": str(preload)})
    assert missing(linkage) == []
    assert [path.rpartition("/")[2] for path in linkage.openmp] == ["libiomp5.so", "libgomp.so.1"]


def test_own_runpath(torch, tmp_path):
    (tmp_path / "opt").mkdir()
    (tmp_path / "opt" / "libmine.so").write_bytes(shared_object(["mine"]))
    linkage = predict_linkage(
        package("mine", needed=("libmine.so",), runpath=("$ORIGIN", str(tmp_path / "opt"))), torch, {}
    )
    assert missing(linkage) == []
    assert linkage.libraries == {"libmine.so": str(tmp_path / "opt" / "libmine.so")}


@pytest.mark.parametrize(
    "artifact",
    [
        package("x", machine="riscv64"),
        package("x", format="pe"),
        package("x", problem="cut off"),
        Artifact(path="x", kind=ArtifactKind.MISSING, size=0),
        None,
    ],
)
def test_nothing_to_look_up(torch, artifact):
    linkage = predict_linkage(artifact, torch, {})
    assert (linkage.checked, linkage.missing, dict(linkage.libraries)) == (0, (), {})


def test_without_torch():
    linkage = predict_linkage(package("x"), None, {})
    assert linkage.checked == 0
    assert "torch" in (linkage.problem or "")
