"""What the texts of a bare library tell, held against what the wrapper of the same package says."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from aotidoctor.checks import input_shape
from aotidoctor.commands.diagnose_package import inspect
from aotidoctor.model.artifact import ArtifactKind
from aotidoctor.model.case import Case, Host, Options
from aotidoctor.model.contract import describe_spec
from aotidoctor.readers.contract.read_contract import read_contract
from aotidoctor.readers.contract.sourceless_contract import library_contract
from aotidoctor.readers.inputs.read_inputs import read_inputs
from aotidoctor.readers.package.blob import path_blob
from aotidoctor.readers.package.read_package import read_artifact
from aotidoctor.readers.package.shared_object import read_texts
from tests.unit.checks.input_builders import call, tensor

RELEASES = Path(__file__).parents[3] / "data" / "releases"
PACKAGES = sorted(RELEASES.glob("*/*/model.pt2"))


def told_by(artifact):
    return library_contract(read_texts(path_blob(artifact.path, artifact.size)), "model")


@pytest.fixture
def library(tmp_path):
    """The library of a package as a file of its own, described."""

    def read(package: Path):
        path = tmp_path / "model.so"
        with zipfile.ZipFile(package) as archive:
            name = next(name for name in archive.namelist() if name.endswith(".so"))
            path.write_bytes(archive.read(name))
        return read_artifact(str(path))

    return read


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: "-".join(path.parts[-3:-1]))
def test_it_is_what_the_wrapper_says(package, library):
    artifact = read_artifact(str(package))
    wrapper, found = read_contract(artifact, artifact.models[0]), told_by(library(package))
    assert (found.source, found.n_inputs, found.in_spec) == ("library", wrapper.n_inputs, wrapper.in_spec)
    assert [leaf.path for leaf in found.tensor_leaves()] == [leaf.path for leaf in wrapper.tensor_leaves()]
    assert found.n_outputs in (wrapper.n_outputs, None)
    assert [spec.fqn for spec in found.constants] == [spec.fqn for spec in wrapper.constants]
    checked = "2.6." not in str(package)
    for known, leaf in zip(wrapper.tensor_leaves(), found.tensor_leaves(), strict=True):
        assert (leaf.rank is not None) == checked
        assert leaf.rank in (known.rank, None)
        assert leaf.dtype in (known.dtype, None)
        for dim, told in zip(known.dims or (), leaf.dims or (), strict=False):
            assert (dim.static is not None) == (told.static is not None or bool(told.among))
            assert told.static in (dim.static, None)
            assert dim.static is None or dim.static in (told.static, *told.among)
            assert told.min is None or told.min <= dim.min
            assert told.max is None or told.max >= dim.max


def test_the_dtype_where_one_is_expected_and_no_other(library):
    """``dyn`` takes float32 alone, ``emb`` indices as well."""
    one = told_by(library(RELEASES / "2.7.1" / "dyn" / "model.pt2"))
    two = told_by(library(RELEASES / "2.7.1" / "emb" / "model.pt2"))
    assert {leaf.dtype for leaf in one.tensor_leaves()} == {"float32"}
    assert {leaf.dtype for leaf in two.tensor_leaves()} == {None}


def test_a_size_that_nothing_expects(library):
    artifact = library(RELEASES / "2.7.1" / "dyn" / "model.pt2")
    contract = told_by(artifact)
    sizes = contract.tensor_leaves()[0].dims[2].among
    assert 8 in sizes
    assert max(sizes) < 99

    def kinds(last):
        given = call(tensor(5, 7, last), tensor(5, 7, last), tensor(8, last))
        host = Host(system="Linux", machine="x86_64", python="3.11")
        case = Case(artifact=artifact, host=host, options=Options(), contract=contract, inputs=given)
        return [(item.kind, item.subject) for item in input_shape.run(case)]

    assert kinds(8) == []
    assert kinds(99) == [("among", f"args[{at}].shape[{dim}]") for at, dim in ((0, 2), (1, 2), (2, 1))]


@pytest.mark.parametrize("damage", ["cut", "no-spec", "no-names", "a-package"])
def test_what_does_not_fit_together_tells_nothing(damage, library):
    artifact = library(RELEASES / "2.7.1" / "dyn" / "model.pt2")
    path = Path(artifact.path)
    match damage:
        case "cut":
            path.write_bytes(path.read_bytes()[:2000])
        case "no-spec":
            path.write_bytes(path.read_bytes().replace(b'[1, {"type"', b'[2, {"type"'))
        case "no-names":
            path.write_bytes(path.read_bytes().replace(b"_1\0", b"_x\0"))
        case _:
            artifact = read_artifact(str(RELEASES / "2.7.1" / "dyn" / "model.pt2"))
    assert told_by(artifact) is None


def test_the_samples_are_read_by_it(library):
    artifact = library(RELEASES / "2.7.1" / "emb" / "model.pt2")
    assert artifact.kind is ArtifactKind.BARE_SO
    contract = told_by(artifact)
    inputs = read_inputs(
        str(RELEASES / "2.7.1" / "emb" / "samples" / "good.pt"), expected=(contract.args, contract.kwargs)
    )
    assert [path for path, _ in inputs.tensors()] == [leaf.path for leaf in contract.tensor_leaves()]


def test_inspect_shows_them(library):
    artifact = library(RELEASES / "2.7.1" / "dyn" / "model.pt2")
    report = inspect(artifact.path, Options(), environ={})
    assert report.case.contract.source == "library"
    assert [shown.partition("[")[0] for shown in map(describe_spec, report.case.contract.leaves)] == ["float32"] * 3
    assert "|" in describe_spec(report.case.contract.leaves[0])
