"""What is damaged: real inputs, logs, wrappers and configurations of the test data, and packages built around them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tests.artifacts import precompiled as precompiled_files
from tests.artifacts.executorch import content, library, with_code
from tests.artifacts.packages import EXTERN, LEAF, archive_parts, model_parts, wrapper_cpp
from tests.artifacts.zips import build_zip

DATA = Path(__file__).parents[1] / "data"
_LARGEST = 120_000
CONFIG = """name: "mlp"
platform: "torch_aoti"
max_batch_size: 8
input [ { name: "INPUT__0" data_type: TYPE_FP32 dims: [ 16 ] } ]
output [ { name: "OUTPUT__0" data_type: TYPE_FP32 dims: [ 4 ] } ]
instance_group [ { kind: KIND_CPU count: 1 } ]
parameters { key: "INTER_OP_THREAD_COUNT" value { string_value: "2" } }
"""


@dataclass(frozen=True, slots=True)
class Seed:
    """``kind`` is the dictionary, ``name`` the file's name."""

    kind: str
    name: str
    data: bytes


def _package(wrapper: str | None = None, **more: object) -> bytes:
    return build_zip([*archive_parts(), *model_parts(wrapper=wrapper, **more)])


def _specified() -> str:
    spec = json.dumps(
        [1, {"type": "builtins.tuple", "context": "null", "children_spec": [
            {"type": "builtins.tuple", "context": "null", "children_spec": [LEAF, LEAF]},
            {"type": "builtins.dict", "context": '["a", "b"]', "children_spec": [LEAF, LEAF]},
        ]}]
    )  # fmt: skip
    return wrapper_cpp().replace("\n}\n", f'\n    in_spec_ = R"({spec})";\n    out_spec_ = R"({spec})";\n}}\n')


@lru_cache(maxsize=1)
def packages() -> tuple[Seed, ...]:
    """Packages of a few kilobytes, with real wrappers among them."""
    made = [_package(), _package(_specified()), _package(extern=EXTERN), _package(wrapper_cpp(3, included=False))]
    texts = sorted(path for path in DATA.rglob("*.cpp") if path.stat().st_size < _LARGEST)[::7]
    made += [_package(path.read_text(encoding="utf-8", errors="replace")) for path in texts]
    return tuple(Seed("zip", "model.pt2", data) for data in made)


@lru_cache(maxsize=1)
def inputs() -> tuple[Seed, ...]:
    """Inputs files of each format."""
    found = [path for path in sorted((DATA / "inputs").iterdir()) if path.is_file() and path.stat().st_size < _LARGEST]
    seeds = [Seed("pickle", path.name, path.read_bytes()) for path in found]
    document = {
        "args": [[[1.0, 2.0]], {"tensor": {"dtype": "int64", "shape": [3], "low": 0, "high": 9}}],
        "kwargs": {"a": [1]},
    }
    seeds.append(Seed("json", "x.json", json.dumps(document).encode()))
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }".ljust(117) + b"\n"
    array = b"\x93NUMPY\x01\x00\x76\x00" + header + bytes(24)
    tensors = {"a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}
    head = json.dumps(tensors).encode()
    seeds.append(Seed("any", "x.npy", array))
    seeds.append(Seed("any", "x.safetensors", len(head).to_bytes(8, "little") + head + bytes(24)))
    return tuple(seeds)


@lru_cache(maxsize=1)
def logs() -> tuple[Seed, ...]:
    """Logs of each stage."""
    found = [path for path in sorted((DATA / "logs").rglob("*")) if path.is_file() and path.stat().st_size < _LARGEST]
    return tuple(Seed("log", "x.log", path.read_bytes()) for path in found)


@lru_cache(maxsize=1)
def programs() -> tuple[Seed, ...]:
    """Exported programs: archives, and the documents in them as archives."""
    found = [path for path in sorted(DATA.rglob("exported.pt2")) if path.stat().st_size < _LARGEST]
    return tuple(Seed("zip", "exported.pt2", path.read_bytes()) for path in found)


@lru_cache(maxsize=1)
def precompiled() -> tuple[Seed, ...]:
    """Artifacts of torch.compile: pickles, frames, and the pair of torch.compiler.precompile."""
    made = [Seed("pickle", f"{name}.bin", precompiled_files.content(name)) for name in precompiled_files.NAMES]
    code = precompiled_files.CODE
    made.append(Seed("any", "m.py", code.encode()))
    made.append(
        Seed("zip", "m.cache", precompiled_files.cache_of(code, precompiled_files.mega_cache({"inductor": []})))
    )
    return tuple(seed for seed in made if len(seed.data) < _LARGEST)


@lru_cache(maxsize=1)
def executorch() -> tuple[Seed, ...]:
    """ExecuTorch programs and their data, in this order."""
    found = sorted((DATA / "executorch").iterdir(), key=lambda path: (path.suffix == ".ptd", path.name))
    windows = with_code(content("cuda_mlp.pte"), library("cuda_windows.dll"))
    return (
        Seed("flatbuffer", "windows.pte", windows),
        *(Seed("flatbuffer", one.name, content(one.name)) for one in found),
    )
