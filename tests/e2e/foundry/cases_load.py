"""Faults of loading: operators that are not what they were at export, and weights."""

from __future__ import annotations

import struct
from pathlib import Path

from foundry import edit
from foundry.cases import EITHER, Case, Kit, called, made
from foundry.ops import python_op

# A container class of a library, as output classes of transformers are: a mapping that forbids ``update``.
ANSWER = """
from collections import OrderedDict
from torch.utils import _pytree


class Answer(OrderedDict):
    def update(self, *args, **kwargs):
        raise Exception("You cannot use update on an Answer instance.")


def put_together(values, names):
    answer = Answer()
    for name, value in zip("abc", values):
        answer[name] = value
    return answer


_pytree.register_pytree_node(Answer, lambda answer: (list(answer.values()), None), put_together, serialized_type_name="zoo_out.Answer")
"""


def answers(members: list[edit.Member]) -> list[edit.Member]:
    """The outputs in an ``Answer`` instead of a tuple: the names are of one length."""
    old = b'[1, {"type": "builtins.tuple", "context": "null", "children_spec": [{"type": null'

    def change(data: bytes) -> bytes:
        assert data.count(old) == 1
        return data.replace(old, old.replace(b"builtins.tuple", b"zoo_out.Answer"))

    return edit.replace(edit.replace(members, ".so", change), ".wrapper.cpp", change)


def _answer_module(kit: Kit, where: Path) -> Path:
    (where / "zoo_out.py").write_text(ANSWER)
    return edit.write(where / "model.pt2", answers(edit.read(kit.package("nested"))))


# The weights as they were compiled in, under the names that the package asks for.
WEIGHTS = """
import torch


def after_load(model):
    weights = dict(torch.export.load("{exported:linear}").state_dict)
    weights = {{name: value.detach().clone() for name, value in weights.items()}}
    {change}
    model.load_constants(weights, check_full_update=True)
""".replace("{{", "{").replace("}}", "}")


def weights(change: str = "") -> str:
    """A setup file that loads the weights, after ``change`` to the dictionary ``weights``."""
    return WEIGHTS.replace("{change}", change)


def _flip_weight(kit: Kit, where: Path) -> Path:
    def change(so: bytes) -> bytes:
        start, _ = edit.symbol_range(so, "_binary_constants_bin_start")
        value = struct.unpack_from("<I", so, start)[0]
        return edit.overwrite(so, start, struct.pack("<I", value ^ (1 << 30)))

    return edit.write(where / "model.pt2", edit.replace(edit.read(kit.package("linear")), ".so", change))


def _scale_weights(kit: Kit, where: Path) -> Path:
    """Another checkpoint: every weight is half of what it was."""

    def change(so: bytes) -> bytes:
        start, _ = edit.symbol_range(so, "_binary_constants_bin_start")
        end, _ = edit.symbol_range(so, "_binary_constants_bin_end")
        values = struct.unpack_from(f"<{(end - start) // 4}f", so, start)
        return edit.overwrite(so, start, struct.pack(f"<{len(values)}f", *(value / 2 for value in values)))

    return edit.write(where / "model.pt2", edit.replace(edit.read(kit.package("linear")), ".so", change))


def _nan_weight(kit: Kit, where: Path) -> Path:
    def change(so: bytes) -> bytes:
        start, _ = edit.symbol_range(so, "_binary_constants_bin_start")
        return edit.overwrite(so, start, struct.pack("<I", 0x7FC00000))

    return edit.write(where / "model.pt2", edit.replace(edit.read(kit.package("linear")), ".so", change))


def _not_a_library(kit: Kit, where: Path) -> Path:
    (where / "broken.so").write_bytes(b"\x7fELF but no more")
    return edit.write(where / "model.pt2", edit.read(kit.package("misbehave")))


# What a package needs whose weights are left to the caller: by the names that it asks for.
HELD = """
import torch


def after_load(model):
    program = torch.export.load("{exported:positions}")
    state = {name: value.detach().clone() for name, value in program.state_dict.items()}
    held = {**state, **program.constants}
    fit = {name: held[name] for name in model.get_constant_fqns()}
    %s
"""
REFERENCE = ("--reference", "{exported:linear}")
POSITIONS = ("--reference", "{exported:positions}")

CASES: tuple[Case, ...] = (
    called("op_missing_cpp", "misbehave", "custom-op-missing", "zoo::misbehave"),
    called("op_missing_python", "scale", "custom-op-missing", "zoopy::scale"),
    called("op_missing_other_setup", "scale", "custom-op-missing", "zoopy::scale", setup="import torch\n"),
    called("op_renamed", "scale", "custom-op-missing", "zoopy::scale",
           setup=python_op().replace('LIB.define("scale', 'LIB.define("scale2').replace('impl("scale"', 'impl("scale2"')),
    made("class_missing", "nested", _answer_module, "pytree-class-missing", "zoo_out.Answer"),
    made("ok_class_imported", "nested", _answer_module, setup="import sys\nsys.path.insert(0, '{where}')\nimport zoo_out\n"),
    called("op_extra_argument", "scale", "custom-op-schema", "zoopy::scale",
           setup=python_op(schema="scale(Tensor x, float factor, Tensor bias) -> Tensor", body="return x * rest[0]")),
    called("op_argument_gone", "scale", "custom-op-schema", "zoopy::scale",
           setup=python_op(schema="scale(Tensor x) -> Tensor", body="return x").replace("(x, factor,", "(x,")),
    called("op_argument_renamed", "scale", "custom-op-schema", "zoopy::scale",
           setup=python_op(schema="scale(Tensor x, float gain) -> Tensor")),
    called("op_argument_type", "scale", "custom-op-schema", "zoopy::scale",
           setup=python_op(schema="scale(Tensor x, Tensor factor) -> Tensor")),
    called("op_two_returns", "scale", "custom-op-schema", "zoopy::scale",
           setup=python_op(schema="scale(Tensor x, float factor) -> (Tensor, Tensor)", body="return x * factor, x")),
    called("op_no_returns", "scale", "custom-op-schema", "zoopy::scale",
           setup=python_op(schema="scale(Tensor x, float factor) -> ()", body="return None")),
    called("op_no_cpu_kernel", "scale", "custom-op-no-kernel", "zoopy::scale", setup=python_op(key="CUDA")),
    called("op_no_cpu_kernel_xpu", "scale", "custom-op-no-kernel", "zoopy::scale", setup=python_op(key="XPU")),
    called("setup_raises", "scale", "setup-failed", "setup_case.py", setup='raise FileNotFoundError("vocab.json")\n'),
    called("setup_import_error", "scale", "setup-failed", setup="import my_company_operators\n"),
    called("setup_syntax_error", "scale", "setup-failed", setup="def broken(:\n"),
    called("setup_bad_library", "misbehave", "setup-failed",
           setup="import torch\ntorch.ops.load_library('{where}/sample.pt')\n"),
    called("setup_exits", "scale", "setup-failed", setup="import sys\nsys.exit(3)\n"),
    made("setup_library_option", "misbehave", _not_a_library, "setup-failed",
         options=("--custom-op-library", "{where}/broken.so")),
    called("weights_external", "external", "weights-not-loaded"),
    called("weights_on_disk", "pickled", "weights-not-loaded"),
    called("weights_external_float64", "external", "weights-mismatch", "l.weight",
           setup=weights('weights["l.weight"] = weights["l.weight"].double()')),
    called("weights_float64", "linear", "weights-mismatch", "l.weight",
           setup=weights('weights["l.weight"] = weights["l.weight"].double()')),
    called("weights_half", "linear", "weights-mismatch", "l.weight",
           setup=weights('weights["l.weight"] = weights["l.weight"].half()')),
    called("weights_too_small", "linear", "weights-mismatch", "l.weight",
           setup=weights('weights["l.weight"] = weights["l.weight"][:1] * 3')),
    called("weights_transposed", "linear", "weights-mismatch", "l.weight",
           setup=weights('weights["l.weight"] = weights["l.weight"].t().contiguous()')),
    called("weights_column_major", "linear", "weights-mismatch", "l.weight",
           setup=weights('weights["l.weight"] = weights["l.weight"].t().contiguous().t()')),
    called("weights_unknown_name", "linear", "weights-mismatch",
           setup=weights('weights["layer.weight"] = weights.pop("l.weight")')),
    called("weights_one_missing", "external", "weights-mismatch", setup=weights('weights.pop("w")'),
           also=("weights-not-loaded",)),
    called("setup_without_weights", "external", "weights-not-loaded", "w", setup="import json\n", proof=True),
    called("buffer_not_in_state_dict", "positions", "weights-not-loaded", "position_ids",
           setup=HELD % "model.load_constants({n: v for n, v in fit.items() if n in state}, check_full_update=False)", proof=True),
    called("parameter_left_out", "positions", "weights-not-loaded", "pos.weight",
           setup=HELD % "del fit['pos.weight']; model.load_constants(fit, check_full_update=True)", proof=True),
    called("tied_weight_twice", "positions", "weights-mismatch", "head.weight",
           setup=HELD % "fit['word.weight'] = fit['head.weight']; model.load_constants(fit, check_full_update=True)", proof=True),
    called("loaded_other_checkpoint", "positions", "weights-differ", "pos.weight", options=POSITIONS,
           setup=HELD % "fit['pos.weight'] *= 2; model.load_constants(fit, check_full_update=True)", proof=True),
    called("after_load_raises", "linear", "setup-failed", "setup_case.py",
           setup='def after_load(model):\n    raise KeyError("checkpoint")\n'),
    made("weights_bit_flip", "linear", _flip_weight, "weights-differ", options=REFERENCE),
    made("weights_other_checkpoint", "linear", _scale_weights, "weights-differ", options=REFERENCE),
    made("weights_hold_nan", "linear", _nan_weight, "weights-differ", exits=EITHER, also=("nan-produced",)),
)  # fmt: skip
