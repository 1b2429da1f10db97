"""Archives of exported programs with one edit each, as damage on disk or another version of torch would make them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import torch
from foundry import edit

from programs import healthy

Document = dict
BASES = {
    "linear": healthy.linear,
    "dynamic": healthy.dynamic,
    "counter": healthy.counter_aten,
    "two": healthy.two,
    "custom": healthy.custom,
    "constants": healthy.constants,
}


def write(folder: Path) -> None:
    """Every archive, named as in ``EDITS``."""
    made = {name: _members(folder, name, make()) for name, make in BASES.items()}
    for name, (base, change) in EDITS.items():
        edit.write(folder / f"{name}.pt2", change(list(made[base])))


def _members(folder: Path, name: str, program) -> list[edit.Member]:
    path = folder / f"base_{name}.pt2"
    torch.export.save(program, path)
    return edit.read(path)


def _document(change: Callable[[Document], object]):
    def run(members):
        def edited(data):
            document = json.loads(data)
            change(document)
            return json.dumps(document).encode()

        return edit.replace(members, "models/model.json", edited)

    return run


def _dropped(*endings):
    return lambda members: edit.drop(members, *endings)


def _ranges(low, high):
    def change(document):
        for symbol in document["range_constraints"]:
            document["range_constraints"][symbol] = {"min_val": low, "max_val": high}

    return _document(change)


def _node(document, at=0):
    return document["graph_module"]["graph"]["nodes"][at]


def _specs(document, which="input_specs"):
    return document["graph_module"]["signature"][which]


def _swap(document):
    specs = _specs(document)
    specs[0], specs[1] = specs[1], specs[0]


def _to_gpu(document):
    values = document["graph_module"]["graph"]["tensor_values"]
    values["y"]["device"] = {"type": "cuda", "index": 0}


def _weight(document, name):
    _specs(document)[0]["parameter"]["parameter_name"] = name


EDITS = {
    "as_saved": ("linear", lambda members: members),
    "dialect": ("two", _document(lambda d: d.update(verifiers=["EDGE"]))),
    "not_functional": ("two", _document(lambda d: _node(d).update(target="torch.ops.aten.add_.Tensor"))),
    "inputs_swapped": ("two", _document(_swap)),
    "weight_renamed": ("linear", _document(lambda d: _weight(d, "body.wait"))),
    "outputs_swapped": ("two", _document(lambda d: _specs(d, "output_specs").reverse())),
    "buffer_renamed": (
        "counter",
        _document(lambda d: _specs(d, "output_specs")[0]["buffer_mutation"].update(buffer_name="stops")),
    ),
    "mixed_devices": ("two", _document(_to_gpu)),
    "empty_range": ("dynamic", _ranges(64, 2)),
    "one_value": ("dynamic", _ranges(6, 6)),
    "example_outside": ("dynamic", _ranges(10, 64)),
    "json": ("two", lambda members: edit.replace(members, "models/model.json", lambda data: data[:-40])),
    "node": ("two", _document(lambda d: _node(d).update(inputs=[]))),
    "program": ("two", _document(lambda d: d["graph_module"]["graph"]["outputs"].append({"as_tensor": {"name": "z"}}))),
    "operator": ("custom", _document(lambda d: _node(d).update(target="torch.ops.zoogone.scale.default"))),
    "weights": ("linear", _dropped("model_weights_config.json")),
    "constants_gone": ("constants", _dropped("model_constants_config.json")),
    "sample_inputs": ("two", _dropped("sample_inputs/model.pt")),
    "schema": ("two", _document(lambda d: d["schema_version"].update(major=7))),
}
