"""Faults of the call: its tree, keywords, number of tensors, and the inputs file itself."""

from __future__ import annotations

import pickle
import zipfile
from collections import OrderedDict
from pathlib import Path

from foundry.cases import EITHER, WARNS, Case, Kit, filed, given


class _Runs:
    """Unpickling this runs a command; ``true`` is harmless, and no reader may get that far."""

    def __reduce__(self):
        import os

        return os.system, ("true",)


def _both(*args, **kwargs):
    return {"args": args, "kwargs": kwargs}


def _torch():
    import torch

    return torch


def _pickled_code(kit: Kit, where: Path) -> Path:
    with (where / "sample.pt").open("wb") as stream:
        pickle.dump(_Runs(), stream)
    return where / "sample.pt"


def _zipped_code(kit: Kit, where: Path) -> Path:
    with zipfile.ZipFile(where / "sample.pt", "w") as archive:
        archive.writestr("sample/data.pkl", pickle.dumps(_Runs(), protocol=2))
        archive.writestr("sample/byteorder", b"little")
        archive.writestr("sample/version", b"3\n")
    return where / "sample.pt"


def _module(kit: Kit, where: Path) -> Path:
    torch = _torch()
    torch.save(torch.nn.Linear(16, 8), where / "sample.pt")
    return where / "sample.pt"


def _torchscript(kit: Kit, where: Path) -> Path:
    torch = _torch()
    torch.jit.save(torch.jit.trace(torch.nn.Linear(16, 8), torch.randn(4, 16)), str(where / "sample.pt"))
    return where / "sample.pt"


def _cut(share: float):
    def change(kit: Kit, where: Path) -> Path:
        data = kit.sample_path("linear").read_bytes()
        (where / "sample.pt").write_bytes(data[: int(len(data) * share)])
        return where / "sample.pt"

    return change


def _wrote(data: bytes, name: str = "sample.pt"):
    def change(kit: Kit, where: Path) -> Path:
        (where / name).write_bytes(data)
        return where / name

    return change


def _the_model(kit: Kit, where: Path) -> Path:
    return where / "model.pt2"


def _the_export(kit: Kit, where: Path) -> Path:
    (where / "sample.pt").write_bytes(kit.exported("linear").read_bytes())
    return where / "sample.pt"


def _state_dict(kit: Kit, where: Path) -> Path:
    torch = _torch()
    torch.save(torch.nn.Linear(16, 8).state_dict(), where / "sample.pt")
    return where / "sample.pt"


def _checkpoint(kit: Kit, where: Path) -> Path:
    torch = _torch()
    weights = torch.nn.Linear(16, 8).state_dict()
    torch.save({"state_dict": weights, "epoch": 3, "optimizer": {"lr": 0.1}}, where / "sample.pt")
    return where / "sample.pt"


FILE_CASES: tuple[Case, ...] = (
    filed("file_not_there", "linear", lambda kit, where: where / "nowhere.pt", "inputs-file-missing", "nowhere.pt",
          exits=(4,), proof=True),
    filed("file_empty", "linear", _wrote(b""), "inputs-file-corrupt"),
    filed("file_truncated", "linear", _cut(0.5), "inputs-file-corrupt"),
    filed("file_truncated_early", "linear", _cut(0.05), "inputs-file-corrupt"),
    filed("file_text", "linear", _wrote(b"these are my inputs\n"), "inputs-file-corrupt", also=("inputs-file-format",)),
    filed("file_html", "linear", _wrote(b"<!DOCTYPE html><html>404</html>"), "inputs-file-corrupt",
          also=("inputs-file-format",)),
    filed("file_bad_json", "linear", _wrote(b'{"args": [', "sample.json"), "inputs-file-corrupt",
          also=("inputs-file-format",)),
    filed("file_pickled_code", "linear", _pickled_code, "inputs-file-unsafe", "system"),
    filed("file_zipped_code", "linear", _zipped_code, "inputs-file-unsafe", "system"),
    filed("file_module", "linear", _module, "inputs-file-unsafe", also=("inputs-file-format",)),
    filed("file_torchscript", "linear", _torchscript, "inputs-file-format", also=("inputs-file-unsafe",)),
    filed("file_the_model", "linear", _the_model, "inputs-file-format"),
    filed("file_the_export", "linear", _the_export, "inputs-file-format"),
    filed("file_state_dict", "linear", _state_dict, "inputs-file-format", also=("input-kwargs",)),
    filed("file_checkpoint", "linear", _checkpoint, "inputs-file-format", also=("input-kwargs",)),
    given("file_is_number", "linear", lambda x: 3, "inputs-file-format", also=("input-nontensor",)),
)  # fmt: skip

TREE_CASES: tuple[Case, ...] = (
    given("tree_dict_order", "nested", lambda x, o, p: (x, {"b": o["b"], "a": o["a"]}, p), "input-tree", "args[1]"),
    given("tree_dict_wrong_key", "nested", lambda x, o, p: (x, {"a": o["a"], "beta": o["b"]}, p), "input-tree",
          "args[1]"),
    given("tree_dict_extra_key", "nested", lambda x, o, p: (x, {**o, "c": o["a"]}, p), "input-tree", "args[1]"),
    given("tree_dict_missing_key", "nested", lambda x, o, p: (x, {"a": o["a"]}, p), "input-tree", "args[1]"),
    given("tree_list_for_dict", "nested", lambda x, o, p: (x, [o["b"], o["a"]], p), "input-tree", "args[1]"),
    given("tree_ordereddict", "nested", lambda x, o, p: (x, OrderedDict(a=o["a"], b=o["b"]), p), "input-tree",
          "args[1]", exits=EITHER),
    given("tree_ordereddict_order", "nested", lambda x, o, p: (x, OrderedDict(b=o["b"], a=o["a"]), p), "input-tree",
          "args[1]"),
    given("tree_flat_for_nested", "nested", lambda x, o, p: (x, o["b"], o["a"], p[1], p[0]), "input-tree",
          also=("input-count",)),
    given("tree_nested_deeper", "nested", lambda x, o, p: (x, {"a": [o["a"]], "b": o["b"]}, p), "input-tree",
          "args[1]", exits=EITHER),
    given("tree_tuple_for_list", "nested", lambda x, o, p: (x, o, tuple(p)), "input-tree", "args[2]", exits=WARNS),
    given("tree_dict_for_list", "nested", lambda x, o, p: (x, o, {"first": p[1], "second": p[0]}), "input-tree",
          "args[2]"),
    given("tree_list_too_long", "nested", lambda x, o, p: (x, o, [*p, p[0]]), "input-tree", "args[2]",
          also=("input-count",)),
    given("tree_list_too_short", "nested", lambda x, o, p: (x, o, p[:1]), "input-tree", "args[2]",
          also=("input-count",)),
    given("tree_tensor_for_dict", "nested", lambda x, o, p: (x, o["a"], p), "input-tree", "args[1]",
          also=("input-count",)),
    given("tree_arguments_traded", "nested", lambda x, o, p: (x, p, o), "input-tree", "args[1]"),
    # PyTorch computes it: it takes the tensors in their order.
    given("tree_args_wrapped_again", "linear", lambda x: ((x,),)),
)  # fmt: skip

KWARG_CASES: tuple[Case, ...] = (
    given("kwarg_missing", "kwargs", lambda x, scale, bias: _both(x, scale=scale), "input-kwargs", "bias"),
    given("kwarg_extra", "kwargs", lambda x, scale, bias: _both(x, scale=scale, bias=bias, gamma=bias),
          "input-kwargs", "gamma"),
    given("kwarg_renamed", "kwargs", lambda x, scale, bias: _both(x, scale=scale, offset=bias), "input-kwargs",
          "offset"),
    given("kwarg_as_positional", "kwargs", lambda x, scale, bias: (x, scale, bias), "input-kwargs"),
    given("kwarg_one_as_positional", "kwargs", lambda x, scale, bias: _both(x, scale, bias=bias), "input-kwargs"),
    given("kwarg_positional_as_kwarg", "kwargs", lambda x, scale, bias: _both(x=x, scale=scale, bias=bias),
          "input-kwargs", "x"),
    given("kwarg_all_missing", "kwargs", lambda x, scale, bias: (x,), "input-kwargs"),
    given("kwarg_typo_case", "kwargs", lambda x, scale, bias: _both(x, Scale=scale, bias=bias), "input-kwargs",
          "Scale"),
    given("kwarg_for_positional_model", "pointwise", lambda x, y: _both(x=x, y=y), "input-kwargs"),
    given("kwarg_flat_dict", "kwargs", lambda x, scale, bias: {"x": x, "scale": scale, "bias": bias}, "input-kwargs",
          "x"),
)  # fmt: skip

COUNT_CASES: tuple[Case, ...] = (
    given("count_one_missing", "pointwise", lambda x, y: (x,), "input-count"),
    given("count_one_too_many", "pointwise", lambda x, y: (x, y, x), "input-count"),
    given("count_none_given", "pointwise", lambda x, y: (), "input-count", also=("inputs-file-format",)),
    given("count_batch_of_samples", "linear", lambda x: (x, x, x, x), "input-count"),
    given("count_int_constant_as_tensor", "constants", lambda x, k, m, mode: (x, _torch().tensor(k), m, mode),
          "input-count", "args[1]", also=("input-nontensor",)),
    given("count_optional_given", "constants", lambda x, k, m, mode: (x, k, x, mode), "input-count", "args[2]",
          also=("input-nontensor",)),
    given("nontensor_none", "pointwise", lambda x, y: (x, None), "input-nontensor", "args[1]"),
    given("nontensor_none_kwarg", "kwargs", lambda x, scale, bias: _both(x, scale=None, bias=bias), "input-nontensor",
          "kwargs['scale']"),
    given("nontensor_float", "pointwise", lambda x, y: (x, 2.0), "input-nontensor", "args[1]"),
    given("nontensor_int", "masked", lambda x, mask, fill: (x, mask, 2), "input-nontensor", "args[2]"),
    given("nontensor_numpy", "pointwise", lambda x, y: (x, y.numpy()), "input-nontensor", "args[1]",
          also=("inputs-file-unsafe",)),
    given("nontensor_list", "linear", lambda x: (x.tolist(),), "input-nontensor", "args[0]", also=("input-tree",)),
    given("nontensor_string", "linear", lambda x: ("x.png",), "input-nontensor", "args[0]"),
    given("nontensor_in_dict", "nested", lambda x, o, p: (x, {"a": 1.5, "b": o["b"]}, p), "input-nontensor",
          "args[1]['a']"),
    given("constant_int_changed", "constants", lambda x, k, m, mode: (x, 5, m, mode), "input-constant-changed",
          "args[1]", exits=EITHER, options=("--reference", "{exported:constants}")),
    given("constant_str_changed", "constants", lambda x, k, m, mode: (x, k, m, "add"), "input-constant-changed",
          "args[3]", exits=EITHER, options=("--reference", "{exported:constants}")),
)  # fmt: skip

CASES: tuple[Case, ...] = (*FILE_CASES, *TREE_CASES, *KWARG_CASES, *COUNT_CASES)
