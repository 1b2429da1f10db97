"""The table of C shims, the script that makes it, and the releases that may have built real packages."""

from __future__ import annotations

import importlib.util
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from aotidoctor.readers.package.read_package import read_artifact
from aotidoctor.readers.releases import torch_releases
from aotidoctor.readers.releases.torch_releases import built_by, loads_from

ROOT = Path(__file__).parents[4]
PACKAGES = sorted((ROOT / "tests" / "data" / "releases").glob("*/*/model.pt2"))
CUDA = ROOT / "tests" / "data" / "cuda" / "mlp.pt2"


def opened(path):
    model = read_artifact(str(path)).models[0]
    return model, model.shared_objects[-1]


@pytest.mark.parametrize("path", PACKAGES, ids=lambda path: "-".join(path.parts[-3:-1]))
def test_the_release_that_built_a_package_is_in_the_range(path):
    release = torch_releases.release_of(path.parts[-3])
    found = built_by(*opened(path))
    assert found.least is not None
    assert found.least <= release < (found.before or (99, 0))
    assert found.because
    assert loads_from(*opened(path))[0] <= release


def test_new_entry_points_narrow_the_range():
    # Built by torch 2.13.
    found = built_by(*opened(CUDA))
    assert (found.least, found.before) == ((2, 13), (2, 14))


def test_there_are_packages_of_both_layouts():
    assert {opened(path)[0].layout for path in PACKAGES} == {"legacy", "pt2"}


@pytest.mark.parametrize(
    ("name", "release", "has"),
    [
        ("aoti_torch_cpu_addmm_out", (2, 6), True),
        ("aoti_torch_new_tensor_handle", (2, 6), False),
        ("aoti_torch_new_tensor_handle", (2, 7), True),
        # In the headers of 2.7, in those of 2.8 no more.
        ("aoti_torch_cpu__qconv2d_pointwise_tensor", (2, 7), True),
        ("aoti_torch_cpu__qconv2d_pointwise_tensor", (2, 8), False),
        ("aoti_torch_xpu_geqrf", (2, 14), False),
        ("aoti_torch_xpu_geqrf", (2, 15), True),
        ("torch_call_dispatcher", (2, 9), False),
        ("torch_call_dispatcher", (2, 10), True),
        ("aoti_torch_no_such_thing", (2, 15), None),
    ],
)
def test_which_release_has_a_shim(name, release, has):
    assert torch_releases.shim_table().has(name, release) is has


def test_the_table_has_all_releases_in_order():
    assert torch_releases.shim_table().releases == tuple((2, minor) for minor in range(6, 16))


@pytest.mark.parametrize(
    ("version", "release"),
    [("2.13.0+cpu", (2, 13)), ("2.7", (2, 7)), ("2.10.0a0+git1", (2, 10)), ("nightly", None), ("2", None), ("", None)],
)
def test_release_of_a_version(version, release):
    assert torch_releases.release_of(version) == release


HEADER = "torch/include/torch/csrc/inductor/aoti_torch/c/shim.h"
STABLE = "torch/include/torch/csrc/stable/c/shim.h"
GENERATED = "torch/include/torch/csrc/inductor/aoti_torch/generated/c_shim_cpu.h"


@pytest.fixture
def script():
    spec = importlib.util.spec_from_file_location("shims_script", ROOT / "scripts" / "shims.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def wheel(path, version, files):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("torch/version.py", f"__version__ = '{version}'\n")
        for name, text in files.items():
            archive.writestr(name, text)
    return path


def declared(*names):
    return "\n".join(f"AOTI_TORCH_EXPORT AOTITorchError\n{name}(AtenTensorHandle self);" for name in names)


def test_the_script_reads_wheels_and_folders(script, tmp_path):
    old = wheel(tmp_path / "a.whl", "2.6.0", {HEADER: declared("aoti_torch_one", "aoti_torch_two")})
    text = declared("aoti_torch_one") + "\n// AOTI_TORCH_EXPORT int aoti_torch_dead(int);\nint aoti_torch_other();"
    new = wheel(tmp_path / "b.whl", "2.7.1", {HEADER: text, STABLE: declared("torch_list"), GENERATED: ""})
    with zipfile.ZipFile(new) as archive:
        archive.extractall(tmp_path / "unpacked")
    releases = dict(script.read_release(place) for place in (tmp_path / "unpacked", old))
    assert list(script.changes(releases)) == [
        ((2, 6), ["aoti_torch_one", "aoti_torch_two"]),
        ((2, 7), ["torch_list", "-aoti_torch_two"]),
    ]


INTERFACE = "torch/include/torch/csrc/inductor/aoti_runtime/interface.h"


def test_a_release_that_is_added_by_the_script_is_known_everywhere(script, tmp_path, monkeypatch):
    """What CONTRIBUTING says of a new release of torch: its section of the table is all that the readers need."""
    table = script.TABLE.read_text()
    assert script.table_with(table, {}) == table
    had = {name for name in torch_releases.shim_table().first if name not in torch_releases.shim_table().gone}
    kept, dropped = had - {"aoti_torch_xpu_geqrf"}, "aoti_torch_xpu_geqrf"
    functions = [*(name for _, name in torch_releases.shim_table().exported), "AOTInductorModelContainerThink"]
    interface = "\n".join(f"AOTI_API AOTIRuntimeError\n{name}(\n    int a);" for name in functions)
    more = "AOTI_API AOTIRuntimeError AOTInductorModelRunMinimalArrayrefInterfaceV3(int a);"
    files = {HEADER: declared(*kept, "aoti_torch_cpu_think"), INTERFACE: f"{interface}\n{more}"}
    release, names = script.read_release(wheel(tmp_path / "torch.whl", "2.16.0", files))
    made = script.table_with(table, {release: names})
    assert made.partition("\n[2.16]\n")[2].split() == [
        "+AOTInductorModelContainerThink", "aoti_torch_cpu_think", f"-{dropped}",
    ]  # fmt: skip
    (tmp_path / "shims.txt").write_text(made)
    model, compiled = opened(next(path for path in PACKAGES if path.parts[-3].startswith("2.15")))
    assert built_by(model, compiled).least == (2, 15)
    newer = replace(compiled, defined_entry_points=(*compiled.defined_entry_points, "AOTInductorModelContainerThink"))
    importing = replace(
        compiled, undefined=(*compiled.undefined, replace(compiled.undefined[0], name="aoti_torch_cpu_think"))
    )
    monkeypatch.setattr(torch_releases, "_TABLE", tmp_path / "shims.txt")
    torch_releases.shim_table.cache_clear()
    try:
        assert torch_releases.shim_table().has(dropped, (2, 16)) is False
        assert torch_releases.shim_table().has("aoti_torch_cpu_think", (2, 16)) is True
        assert (built_by(model, compiled).least, built_by(model, compiled).before) == ((2, 15), (2, 16))
        assert built_by(model, newer).because == "it exports AOTInductorModelContainerThink"
        assert loads_from(model, importing) == ((2, 16), "it imports aoti_torch_cpu_think")
    finally:
        torch_releases.shim_table.cache_clear()


def test_the_script_refuses_what_is_no_wheel_of_torch(script, tmp_path):
    with pytest.raises(SystemExit, match="expected a wheel of torch"):
        script.read_release(wheel(tmp_path / "x.whl", "2.6.0", {}))
