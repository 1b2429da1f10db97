"""Weights from a file against the constants of a package: names that wrappers and subclasses change."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest

from aotidoctor.checks import weights_file
from aotidoctor.model.case import Options
from aotidoctor.model.contract import ConstantSpec
from aotidoctor.readers.inputs.saved_weights import read_weights
from aotidoctor.readers.releases.torch_releases import shim_table
from tests.optional import needs
from tests.unit.checks.package_builders import case as package_case
from tests.unit.checks.package_builders import contract, with_object
from tests.unit.probes.outcomes import case as any_case


def spec(name: str, dtype: str | None = "float32", shape: tuple[int, ...] = (2, 3)) -> ConstantSpec:
    return ConstantSpec(name=name, original_fqn=name, dtype=dtype, shape=shape)


def found(package: dict[str, ConstantSpec], given: dict[str, ConstantSpec]):
    case = any_case()
    assert case.contract is not None
    case = replace(
        case,
        options=Options(weights="w.pt"),
        contract=replace(case.contract, constants=tuple(package.values())),
        weights=tuple(given.values()),
    )
    return [(item.kind, item.subject, item.severity.value) for item in weights_file.CHECK.run(case)]


def named(*specs: ConstantSpec) -> dict[str, ConstantSpec]:
    return {one.name: one for one in specs}


@pytest.mark.parametrize(
    ("package", "given", "word"),
    [
        ("encoder.l.weight", "encoder._orig_mod.l.weight", "_orig_mod."),
        ("encoder._orig_mod.l.weight", "encoder.l.weight", "_orig_mod."),
        ("encoder.l.weight", "_fsdp_wrapped_module.encoder._checkpoint_wrapped_module.l.weight", "_fsdp_wrapped_module."),
    ],
)  # fmt: skip
def test_a_wrapper_s_word_within_a_name(package, given, word):
    """Others fit as they are, so nothing is a prefix of all names."""
    other = spec("head.bias")
    assert found(named(spec(package), other), named(spec(given), other)) == [("prefix", word, "error")]


def test_properties_are_compared_all_the_same():
    given = spec("encoder._orig_mod.l.weight", dtype="float64")
    kinds = found(named(spec("encoder.l.weight")), named(given))
    assert kinds == [("prefix", "_orig_mod.", "error"), ("dtype", "encoder.l.weight", "error")]


def test_a_name_that_only_looks_alike_is_another():
    kinds = found(named(spec("l.weight")), named(spec("l.my_orig_mod.weight")))
    assert [kind for kind, _, _ in kinds] == ["missing", "unexpected"]


def test_a_subclass_is_one_tensor_in_the_file_and_parts_in_the_package():
    parts = [spec(f"l.parametrizations.weight.original{at}") for at in range(2)]
    for dtype in (None, "float32"):
        kinds = found(named(*parts, spec("l.bias")), named(spec("l.weight", dtype=dtype), spec("l.bias")))
        assert kinds == [("subclass", "l.weight", "error"), ("missing", "l.parametrizations.weight.original0", "error")]


def test_extra_state_is_not_unexpected():
    assert found(named(spec("l.weight")), named(spec("l.weight"), spec("_extra_state", dtype=None))) == []


@needs("torch")
@pytest.mark.torch
def test_a_subclass_keeps_its_name(tmp_path):
    """A tensor that its class makes of others, as torchao does; nothing of it is executed."""
    import torch

    class Scaled(torch.Tensor):
        @staticmethod
        def __new__(cls, raw):
            return torch.Tensor._make_wrapper_subclass(cls, raw.shape, dtype=raw.dtype)

        def __init__(self, raw):
            self.raw = raw

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            raise NotImplementedError(func)

    globals()["Scaled"] = Scaled
    Scaled.__qualname__ = "Scaled"
    buffer = io.BytesIO()
    torch.save({"l.weight": Scaled(torch.ones(2, 3)), "l.bias": torch.ones(3)}, buffer)
    path = tmp_path / "state.pt"
    path.write_bytes(buffer.getvalue())
    assert [one.name for one in read_weights(str(path))] == ["l.weight", "l.bias"]


@pytest.mark.parametrize(("release", "told"), [((2, 6), True), ((2, 7), True), ((2, 8), False), ((2, 13), False)])
def test_what_is_computed_once_of_weights_is_noted(release, told):
    """The runtime of 2.6 and 2.7, which is in the package, folds in the first call; that of 2.8 after each load."""
    names = tuple(name for since, name in shim_table().exported if since <= release)
    constants = (spec("l.weight"), replace(spec("folded"), from_folded=True))
    given = package_case(
        with_object(defined_entry_points=names), contract=contract(constants=constants), options={"weights": "w.pt"}
    )
    given = replace(given, weights=(spec("l.weight"),))
    expected = [("folded-once", "folded", "info")] if told else []
    assert [(item.kind, item.subject, item.severity.value) for item in weights_file.CHECK.run(given)] == expected


NUMBERS = """
    auto tmp1 = static_cast<float>(0.7310585975646973);
    auto tmp5 = static_cast<float>(1.2039728164672852);
    auto tmp7 = static_cast<float>(0.7071067811865476);
    auto tmp8 = static_cast<float>(0.5);
"""
T, GAIN = 0.7310585975646973, 1.2039728164672852


@pytest.mark.parametrize(
    ("values", "dtype", "kinds"),
    [
        ({"temperature": T, "l.gain": GAIN}, "float32", [("literal", "temperature", "info"), ("literal", "l.gain", "info")]),
        # The one that differs is named first, with the number that no other tensor has.
        ({"temperature": T, "l.gain": 2.5}, "float32", [("literal", "l.gain", "error"), ("literal", "temperature", "info")]),
        ({"temperature": T, "l.gain": GAIN, "l.half": 0.5}, "float32", [("literal", name, "info") for name in ("temperature", "l.gain", "l.half")]),
        # The code has no number to spare for it: nothing uses it, as far as can be seen.
        ({"temperature": T, "l.gain": GAIN, "l.old": 3.25}, "float32", [("literal", "temperature", "info"), ("literal", "l.gain", "info"), ("unexpected", "l.old", "warn")]),
        # A counter; and a number of a module of which the package has nothing.
        ({"l.num_batches_tracked": 7.0}, "int64", [("unexpected", "l.num_batches_tracked", "warn")]),
        ({"head.scale": 2.5}, "float32", [("unexpected", "head.scale", "warn")]),
    ],
)  # fmt: skip
def test_a_number_is_compared_with_those_of_the_code(values, dtype, kinds):
    case = any_case()
    weight = spec("l.weight")
    given = [replace(spec(name, dtype, ()), values=(value,)) for name, value in values.items()]
    case = replace(
        case,
        options=Options(weights="w.pt"),
        contract=replace(case.contract, constants=(weight,)),
        model=replace(case.model, kernel_sources={"a.kernel.cpp": NUMBERS}),
        weights=(weight, *given),
    )
    assert [(item.kind, item.subject, item.severity.value) for item in weights_file.CHECK.run(case)] == kinds


def test_what_freezing_computed_is_not_missing_and_its_weights_cannot_be_loaded():
    package = named(spec("l.bias"), spec("_frozen_param3"), spec("_frozen_param12"))
    assert found(package, named(spec("l.bias"), spec("l.weight"), spec("c.weight"))) == [
        ("frozen", "l.weight", "error")
    ]
    assert found(package, named(spec("l.bias"))) == []
    # Somebody kept them under their new names.
    assert found(package, package) == []
