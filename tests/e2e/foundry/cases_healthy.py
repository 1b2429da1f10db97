"""Cases that look odd and are not. Where the doctor may warn, it still has to exit with 0.

A tool that alarms on one of these is wrong: each was run and gives the right answer.
"""

from __future__ import annotations

import json
import os
import shutil
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path

from foundry import edit
from foundry.cases import Case, Kit, called, filed, given, made, packaged
from foundry.cases_load import HELD, POSITIONS, weights
from foundry.ops import FINE, python_op

CPP = "import torch\n\ntorch.ops.load_library('{library}')\n"


# A mapping that is no dict, saved as the tokenisers of transformers save theirs.
ENCODING = """
import sys
import types
from collections import UserDict

encoding = types.ModuleType("encoding")


class Encoding(UserDict):
    def __getitem__(self, name):
        if not isinstance(name, str):
            raise KeyError("no integers")
        return self.data[name]

    def __getstate__(self):
        return {"data": self.data, "encodings": None}


Encoding.__module__, Encoding.__qualname__ = "encoding", "Encoding"
encoding.Encoding = Encoding
sys.modules["encoding"] = encoding
"""


def _mapping(form: str):
    def make(kit: Kit, where: Path) -> Path:
        import torch

        scope: dict = {}
        exec(ENCODING, scope)
        (x,), kwargs = kit.call("kwargs")
        encoded = scope["Encoding"](kwargs)
        saved = {"kwargs": {"args": (x,), "kwargs": encoded}, "pair": ((x,), encoded)}[form]
        torch.save(saved, where / "sample.pt")
        return where / "sample.pt"

    return make


def _torch():
    import torch

    return torch


def _misaligned(x, y):
    pool = _torch().empty(257)
    view = pool[1:].view(16, 16)
    view.copy_(x)
    return view, y


def _directory(kit: Kit, where: Path) -> Path:
    with zipfile.ZipFile(kit.package("linear")) as archive:
        archive.extractall(where / "unpacked")
    return next((where / "unpacked").iterdir())


def _renamed(name: str):
    def change(kit: Kit, where: Path) -> Path:
        return Path(shutil.copy(kit.package("linear"), where / name))

    return change


def _linked(kit: Kit, where: Path) -> Path:
    (where / "store").mkdir()
    target = Path(shutil.copy(kit.package("linear"), where / "store" / "4f2a"))
    (where / "model.pt2").symlink_to(target)
    return where / "model.pt2"


def _readonly(kit: Kit, where: Path) -> Path:
    room = where / "store"
    room.mkdir()
    path = Path(shutil.copy(kit.package("linear"), room / "model.pt2"))
    path.chmod(0o444)
    room.chmod(0o555)
    return path


def _deflated(kit: Kit, where: Path) -> Path:
    members = edit.read(kit.package("linear"))
    return edit.write(where / "model.pt2", members, compression=zipfile.ZIP_DEFLATED)


def _both_kinds(kit: Kit, where: Path) -> Path:
    """An archive that holds the exported program and the compiled package."""
    members = edit.read(kit.package("linear"))
    top = edit.prefix(members)
    known = {name.partition("/")[2] for name, _ in members}
    exported = [(name.partition("/")[2], data) for name, data in edit.read(kit.exported("linear"))]
    return edit.write(
        where / "model.pt2", members + [(f"{top}/{name}", data) for name, data in exported if name not in known]
    )


def _two_models(kit: Kit, where: Path) -> Path:
    encoder = edit.read(kit.package("linear"))
    decoder = edit.rename_model(edit.read(kit.package("pointwise")), "model", "decoder")
    return edit.write(where / "model.pt2", encoder + [member for member in decoder if "/aotinductor/" in member[0]])


def _no_debug(so: bytes) -> bytes:
    start, size = edit.section_range(so, ".debug_line")
    return edit.overwrite(so, start, bytes(size))


def _npz(kit: Kit, where: Path) -> Path:
    import numpy as np

    args, _ = kit.call("pointwise")
    np.savez(where / "sample.npz", *(tensor.numpy() for tensor in args))
    return where / "sample.npz"


def _named_npz(kit: Kit, where: Path) -> Path:
    import numpy as np

    args, named = kit.call("kwargs")
    np.savez(where / "sample.npz", args[0].numpy(), **{name: tensor.numpy() for name, tensor in named.items()})
    return where / "sample.npz"


def _json(kit: Kit, where: Path) -> Path:
    leaf = '{"tensor": {"dtype": "float32", "shape": [16, 16], "seed": 1}}'
    (where / "sample.json").write_text('{"args": [' + leaf + ", " + leaf + "]}")
    return where / "sample.json"


def _safetensors(kit: Kit, where: Path) -> Path:
    """The format is a length, a JSON header and the bytes: no library needed to write it."""
    args, _ = kit.call("pointwise")
    blobs = [tensor.numpy().tobytes() for tensor in args]
    header, start = {}, 0
    for index, blob in enumerate(blobs):
        header[f"args.{index}"] = {"dtype": "F32", "shape": [16, 16], "data_offsets": [start, start + len(blob)]}
        start += len(blob)
    text = json.dumps(header).encode()
    (where / "sample.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))
    return where / "sample.safetensors"


def _legacy(kit: Kit, where: Path) -> Path:
    args, _ = kit.call("pointwise")
    _torch().save(args, where / "sample.pt", _use_new_zipfile_serialization=False)
    return where / "sample.pt"


def _both(*args, **kwargs) -> Mapping[str, object]:
    return {"args": args, "kwargs": kwargs}


CORES = str(os.cpu_count() or 1)

CONTROLS: tuple[Case, ...] = tuple(
    called(f"ok_{name}", name)
    for name in ("pointwise", "embedding", "mlp", "kwargs", "nested", "linear", "masked", "constants", "gather",
                 "integers", "div8", "complex", "conv", "numeric", "item", "cube", "total", "blob", "mmapped")
)  # fmt: skip

CASES: tuple[Case, ...] = (
    *CONTROLS,
    called("ok_cpp_op", "misbehave", setup=CPP),
    called("ok_cpp_op_library_option", "misbehave", options=("--custom-op-library", "{library}")),
    called("ok_python_op", "scale", setup=python_op()),
    called("ok_op_default_added", "scale",
           setup=python_op(schema="scale(Tensor x, float factor, int mode=0) -> Tensor")),
    called("ok_two_ops", "twoops", setup=CPP),
    called("ok_two_ops_reference", "twoops", setup=CPP, options=("--reference", "{exported:twoops}")),
    called("ok_odd_ops", "fineops", setup=FINE),
    called("ok_odd_ops_reference", "fineops", setup=FINE, options=("--reference", "{exported:fineops}")),
    given("ok_odd_ops_batch_7", "fineops", lambda x: (_torch().randn(7, 16),), setup=FINE),
    given("ok_odd_ops_zeros", "fineops", lambda x: (_torch().zeros(4, 16),), setup=FINE),
    called("ok_op_composite_kernel", "scale", setup=python_op(key="CompositeExplicitAutograd")),
    called("ok_weights_loaded", "external", setup=weights()),
    *(filed(f"ok_mapping_{form}", "kwargs", _mapping(form), setup=ENCODING, options=("--trust-pickle",))
      for form in ("kwargs", "pair")),
    called("ok_every_constant_loaded", "positions",
           setup=HELD % "model.load_constants(fit, check_full_update=True)", options=POSITIONS),
    called("ok_weights_loaded_again", "linear", setup=weights()),
    called("ok_weights_loaded_pickled", "pickled", setup=weights()),
    called("ok_reference", "linear", options=("--reference", "{exported:linear}")),
    # The program itself hands out its input, and writes to it.
    called("ok_reference_alias", "alias", options=("--reference", "{exported:alias}")),
    called("ok_reference_mutation", "inplace", options=("--reference", "{exported:inplace}")),
    # Rounding in bfloat16: other numbers than the program's, and none of them wrong.
    called("ok_reference_bfloat16", "bfloat16", options=("--reference", "{exported:bfloat16}")),
    called("ok_rows_influence_rows", "crowd"),
    called("ok_lookup", "lookup"),
    called("ok_reference_mlp", "mlp", options=("--reference", "{exported:mlp}")),
    given("ok_kwargs_reordered", "kwargs", lambda x, scale, bias: {"args": (x,), "kwargs": {
        "bias": bias, "scale": scale}}),
    given("ok_list_of_args", "pointwise", lambda x, y: [x, y]),
    given("ok_args_kwargs_pair", "kwargs", lambda x, scale, bias: ((x,), {"scale": scale, "bias": bias})),
    given("ok_single_tensor", "linear", lambda x: x),
    given("ok_misaligned", "pointwise", _misaligned),
    given("ok_parameter", "pointwise", lambda x, y: (_torch().nn.Parameter(x), y)),
    given("ok_requires_grad", "pointwise", lambda x, y: (x.requires_grad_(), y)),
    given("ok_same_tensor_twice", "pointwise", lambda x, y: (x, x)),
    given("ok_batch_2", "mlp", lambda x, y: (x[:2], y[:2])),
    given("ok_batch_64", "mlp", lambda x, y: (_torch().randn(64, 1024), _torch().randn(64, 1024))),
    given("ok_batch_1", "mlp", lambda x, y: (x[:1], y[:1])),
    given("ok_one_element_for_0d", "masked", lambda x, mask, fill: (x, mask, fill.reshape(1))),
    given("ok_uint8_mask", "masked", lambda x, mask, fill: (x, mask.to(_torch().uint8), fill)),
    given("ok_int8_mask", "masked", lambda x, mask, fill: (x, mask.to(_torch().int8), fill)),
    given("ok_tuple_for_list", "nested", lambda x, o, p: (x, o, tuple(p))),
    given("ok_index_zero", "gather", lambda x, index: (x, index * 0)),
    given("ok_length_40", "div8", lambda x: (_torch().randn(40),)),
    given("ok_zero_count", "item", lambda x, n: (x, _torch().tensor(0))),
    given("ok_cube_2", "cube", lambda x: (x[:2].clone(),)),
    given("ok_one_row_stride", "mlp", lambda x, y: (x[:2], y[:2].clone())),
    given("ok_infinity_masked", "masked", lambda x, mask, fill: (x * 1e30, mask, fill)),
    filed("ok_npz", "pointwise", _npz),
    filed("ok_npz_named", "kwargs", _named_npz),
    filed("ok_safetensors", "pointwise", _safetensors),
    filed("ok_json", "pointwise", _json),
    filed("ok_legacy_file", "pointwise", _legacy),
    made("ok_directory", "linear", _directory),
    made("ok_no_extension", "linear", _renamed("model.bin")),
    made("ok_renamed", "linear", _renamed("encoder v2 (final).pt2")),
    made("ok_unicode_name", "linear", _renamed("modèle-编码器.pt2")),
    made("ok_symlink", "linear", _linked),
    made("ok_readonly_folder", "linear", _readonly),
    made("ok_deflated", "linear", _deflated),
    made("ok_export_and_aoti", "linear", _both_kinds),
    made("ok_two_models", "linear", _two_models),
    made("ok_two_models_named", "linear", _two_models, options=("--model-name", "model")),
    packaged("ok_model_named", "linear", lambda m: edit.rename_model(m, "model", "encoder"),
             options=("--model-name", "encoder")),
    packaged("ok_no_sources", "linear", lambda m: edit.drop(m, ".cpp")),
    packaged("ok_no_sources_mlp", "mlp", lambda m: edit.drop(m, ".cpp")),
    packaged("ok_extra_files", "linear", lambda m: [*m, ("model/extra/README.md", b"# the encoder\n")]),
    packaged("ok_user_metadata", "linear", lambda m: edit.edit_metadata(m, owner="team")),
    packaged("ok_metadata_isa", "linear", lambda m: edit.edit_metadata(m, AOTI_CPU_ISA="AMX AVX1024")),
    packaged("ok_stripped_debug", "linear", lambda m: edit.replace(m, ".so", _no_debug)),
    called("ok_threads_1", "total", setup="import torch\ntorch.set_num_threads(1)\n"),
    called("ok_omp_thread_limit", "total", env={"OMP_THREAD_LIMIT": "1"}),
    called("ok_omp_num_threads_1", "total", env={"OMP_NUM_THREADS": "1"}),
    called("ok_omp_num_threads_exact", "total", env={"OMP_NUM_THREADS": CORES}),
    called("ok_other_tmpdir", "linear", env={"TMPDIR": "{where}"}),
    called("ok_no_home", "linear", env={"HOME": "/nonexistent"}),
    called("ok_locale_c", "linear", env={"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0"}),
)  # fmt: skip
