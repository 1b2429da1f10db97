"""A folder of packages is one item with a model for each, and is compared with what its name promises."""

from __future__ import annotations

import json

import pytest

import aotidoctor
from aotidoctor.model.artifact import ArtifactKind
from aotidoctor.model.evidence import Severity
from aotidoctor.readers.package.read_package import read_artifact
from tests.artifacts.packages import archive_parts, model_parts, wrapper_cpp
from tests.artifacts.zips import Part, build_zip


@pytest.fixture
def folder(tmp_path):
    """ZeroGPU's layout: a package for the whole and one for a block, no weights in either."""

    def made(name="hub"):
        package = build_zip([*archive_parts(), *model_parts(wrapper=wrapper_cpp(3, included=False))])
        for part in ("root", "submodules/blocks.0"):
            place = tmp_path / name / "package" / part
            place.mkdir(parents=True)
            (place / "package.pt2").write_bytes(package)
        (tmp_path / name / "config.json").write_text('{"_class_name": "Root"}')
        return tmp_path / name

    return made


def test_each_package_is_a_model_of_the_folder(folder):
    artifact = read_artifact(str(folder()))
    assert artifact.kind is ArtifactKind.PACKAGE_FOLDER
    assert sorted(model.name for model in artifact.models) == ["root", "submodules/blocks.0"]
    report = aotidoctor.inspect(folder("other"))
    found = json.loads(report.to_json())["artifact"]
    assert [model["weights_location"] for model in found["models"]] == ["so"] * 2


def test_folder_says_that_no_package_of_it_was_examined(folder):
    report = aotidoctor.check(folder())
    assert report.verdict == "healthy"
    reasons = {item.name: item.reason for item in report.not_checked if not item.moot}
    assert "--model-name" in reasons["artifact_wrong_kind"]
    (finding,) = report.findings
    assert (finding.kind, finding.severity) == ("package-folder", Severity.INFO)


def test_chosen_package_is_checked_as_a_package_is(folder):
    report = aotidoctor.check(folder(), model_name="root")
    assert report.case.contract is not None
    assert report.case.model.name == "root"


@pytest.mark.parametrize(
    ("name", "kinds"), [("m-sm120-cu130-raa", ["promise"]), ("m.sm_90a", ["promise"]), ("prism120", []), ("hub", [])]
)
def test_name_that_promises_a_gpu_is_compared_with_the_code(folder, name, kinds):
    report = aotidoctor.check(folder(name))
    assert [item.kind for item in report.findings if item.code == "AD-HOST-004"] == kinds


def test_folder_without_packages_is_a_directory(tmp_path):
    (tmp_path / "model.pt2").write_bytes(b"no package")
    assert read_artifact(str(tmp_path)).kind is ArtifactKind.DIRECTORY


def test_package_that_its_load_compiles_for_windows(tmp_path):
    flags = json.dumps({"compiler": "x86_64-w64-mingw32-g++", "include_dirs": ["/opt/torch/include"]}).encode()
    parts = [part for part in model_parts(wrapper=wrapper_cpp()) if not part.name.endswith(".so")]
    stem = next(part.name for part in parts if part.name.endswith(".wrapper.cpp")).removesuffix(".cpp")
    parts.append(Part(f"{stem}_compile_flags.json", flags))
    (tmp_path / "m.pt2").write_bytes(build_zip([*archive_parts(), *parts]))
    report = aotidoctor.check(tmp_path / "m.pt2")
    assert (report.cause, report.diagnoses[0].subject) == ("platform-mismatch", "x86_64-w64-mingw32-g++")


@pytest.mark.parametrize(
    ("operator", "maker"),
    [
        ("tensorrt::execute_engine", "torch_tensorrt"),
        ("fbgemm::jagged_to_padded_dense", "fbgemm_gpu"),
        ("deepmd::x", "deepmd"),
    ],
)
def test_operators_of_others_packages_are_known_by_their_library(tmp_path, operator, maker):
    nodes = {"nodes": [{"name": "a", "node": {"target": f"{operator}.default", "inputs": [], "outputs": []}}]}
    data = build_zip([*archive_parts(), *model_parts(extern=nodes)])
    (tmp_path / "m.pt2").write_bytes(data)
    (finding,) = [item for item in aotidoctor.check(tmp_path / "m.pt2").findings if item.code == "AD-LOAD-001"]
    assert f"import {maker}" in finding.message
