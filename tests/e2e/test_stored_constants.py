"""Constants read from the file of a library are those that a container of it holds."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from aotidoctor.model.jobs import Run
from aotidoctor.probes.payload import stored_rows
from aotidoctor.readers.contract.read_contract import read_contract
from aotidoctor.readers.package.read_package import read_artifact

pytest.importorskip("torch")

import torch

from aotidoctor.worker.load_package import load_model
from aotidoctor.worker.weights import StoredConstants, compare_shipped, load_state, read_constants

pytestmark = pytest.mark.torch
# Parameters, buffers, integers, half precision, a storage with padding.
BASES = ("gelu", "batchnorm", "linear", "conv", "numeric", "lookup")


@pytest.fixture
def opened(packages, tmp_path, monkeypatch):
    """What the worker has of a package: the loaded model, and what the parent asks."""

    def opened(name):
        monkeypatch.setenv("TMPDIR", str(tmp_path))
        package = packages.package(name)
        artifact = read_artifact(str(package))
        rows = stored_rows(SimpleNamespace(contract=read_contract(artifact, artifact.models[0])))
        payload = Run(package=str(package), stored=rows)
        return load_model(payload, package), payload

    return opened


@pytest.mark.parametrize("name", BASES)
def test_they_are_the_same(opened, name):
    model, payload = opened(name)
    stored, owner = read_constants(model, payload)
    loaded, container = read_constants(model, payload, loaded=True)
    assert isinstance(stored.maps[1], StoredConstants)
    assert owner is None
    assert set(stored) == set(loaded)
    for key, one in loaded.items():
        assert (stored[key].dtype, stored[key].shape, stored[key].stride()) == (one.dtype, one.shape, one.stride()), key
        assert torch.equal(stored[key], one), key
    del loaded, container


@pytest.mark.parametrize("name", BASES)
def test_a_reference_has_the_same_weights(opened, packages, name):
    model, payload = opened(name)
    facts = compare_shipped(model, payload, load_state(packages.exported(name)))
    assert not [fact for fact in facts if fact["equal"] is False]
    assert any(fact["equal"] for fact in facts)


def test_rows_that_lie_make_nobody_sick(opened, packages):
    model, payload = opened("gelu")
    # The same bytes in all, in another order.
    payload = replace(payload, stored=payload.stored[::-1])
    stored, _ = read_constants(model, payload)
    right = load_state(packages.exported("gelu"))
    assert any(not torch.equal(stored[name], right[name]) for name in stored if stored[name].shape == right[name].shape)
    assert all(fact["equal"] for fact in compare_shipped(model, payload, right))


@pytest.mark.parametrize("change", ["short", "other names", "none"])
def test_rows_that_do_not_fit_are_not_followed(opened, change):
    model, payload = opened("gelu")
    renamed = tuple(replace(row, name="no such name") for row in payload.stored)
    others = {"short": payload.stored[:1], "other names": renamed, "none": None}
    constants, owner = read_constants(model, replace(payload, stored=others[change]))
    assert owner is not None
    assert set(constants) == set(model.get_constant_fqns())


def test_weights_that_differ_are_told(opened, packages):
    model, payload = opened("gelu")
    right = {name: tensor.detach().clone() for name, tensor in load_state(packages.exported("gelu")).items()}
    name = next(key for key, tensor in right.items() if tensor.dim() == 2)
    right[name][0, 1] += 1.0
    (fact,) = [one for one in compare_shipped(model, payload, right) if not one["equal"]]
    assert (fact["name"], fact["elements"][0]["index"]) == (name, [0, 1])


def test_an_ordinary_package_tells_how_its_constants_lie(packages):
    artifact = read_artifact(str(packages.package("mmapped")))
    assert stored_rows(SimpleNamespace(contract=read_contract(artifact, artifact.models[0]))) is None
    assert stored_rows(SimpleNamespace(contract=None)) is None
