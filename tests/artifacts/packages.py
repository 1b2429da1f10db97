"""Builds AOTI packages and torch.export archives of a few kilobytes: the real layout around tiny contents."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path

from tests.artifacts.elfs import ElfSpec, build_elf
from tests.artifacts.zips import Part, build_zip

HASH = "cabc"
DEVICE = {
    "AOTI_DEVICE_KEY": "cpu",
    "AOTI_PLATFORM": "linux",
    "AOTI_MACHINE": "x86_64",
    "AOTI_CPU_ISA": "AVX2",
    "AOTI_COMPUTE_CAPABILITY": "",
}
EXTERN = {
    "nodes": [
        {
            "name": "buf1",
            "node": {
                "target": "lab::scale",
                "inputs": [
                    {"name": "x", "arg": {"as_tensor": {"name": "buf0"}}, "kind": 1},
                    {"name": "factor", "arg": {"as_float": 2.0}, "kind": 1},
                ],
                "outputs": [{"as_tensor": {"name": "buf2"}}],
                "metadata": {},
            },
        }
    ]
}
LEAF = {"type": None, "context": None, "children_spec": []}


def wrapper_cpp(constants: int = 1, *, included: bool = True) -> str:
    """A constructor as the compiler writes it."""
    return (
        "AOTInductorModel::AOTInductorModel(std::shared_ptr<ConstantMap> constants_map)\n"
        f"    : AOTInductorModelBase(1,\n      1,\n      {constants},\n      device_str,\n"
        f"      std::move(cubin_dir),\n      {'true' if included else 'false'}) {{\n"
        '    inputs_info_[0].name = "arg1_1";\n}\n'
    )


def model_parts(
    folder: str = "model/data/aotinductor/model",
    *,
    so: bytes | None = None,
    wrapper: str | None = None,
    extern: object = None,
    extra: Iterable[tuple[str, bytes]] = (),
    **spec: object,
) -> list[Part]:
    """The members of one model, 2.7+ names."""
    library = build_elf(ElfSpec(**spec)) if so is None else so  # type: ignore[arg-type]
    parts = [
        Part(f"{folder}/{HASH}.wrapper.cpp", (wrapper_cpp() if wrapper is None else wrapper).encode()),
        Part(f"{folder}/cdef.kernel.cpp", b'extern "C" void cpp_fused_add_0() {}\n'),
        Part(f"{folder}/{HASH}.wrapper_metadata.json", json.dumps(DEVICE).encode()),
        Part(f"{folder}/cdef.kernel_metadata.json", json.dumps(DEVICE).encode()),
        Part(f"{folder}/{HASH}.wrapper.so", library),
    ]
    if extern is not None:
        parts.append(Part(f"{folder}/{HASH}.wrapper.json", json.dumps(extern).encode()))
    return parts + [Part(f"{folder}/{name}", data) for name, data in extra]


def archive_parts(prefix: str = "model") -> list[Part]:
    """The members that every PT2 archive has."""
    top = f"{prefix}/" if prefix else ""
    return [
        Part(f"{top}archive_format", b"pt2"),
        Part(f"{top}archive_version", b"0"),
        Part(f"{top}.data/version", b"6\n"),
        Part(f"{top}byteorder", b"little"),
    ]


def package_parts(**changes: object) -> list[Part]:
    """A whole package with one model called ``model``."""
    return model_parts(**changes) + archive_parts()  # type: ignore[arg-type]


def edit_part(parts: list[Part], suffix: str, change: Callable[[Part], Part | None]) -> list[Part]:
    """Replace (or with None remove) the members whose name ends with ``suffix``."""
    found = [change(part) if str(part.name).endswith(suffix) else part for part in parts]
    return [part for part in found if part is not None]


def write_zip(path: Path, parts: Iterable[Part], **options: object) -> str:
    """Write an archive and give its path as text."""
    path.write_bytes(build_zip(parts, **options))  # type: ignore[arg-type]
    return str(path)


def program_json(**changes: object) -> dict[str, object]:
    """A small exported program: tensor x, int n = 3, dict with a tensor and a string, keyword float."""
    in_spec = [
        1,
        {
            "type": "builtins.tuple",
            "context": "null",
            "children_spec": [
                {
                    "type": "builtins.tuple",
                    "context": "null",
                    "children_spec": [
                        LEAF,
                        LEAF,
                        {"type": "builtins.dict", "context": '["t", "mode"]', "children_spec": [LEAF, LEAF]},
                    ],
                },
                {"type": "builtins.dict", "context": '["scale"]', "children_spec": [LEAF]},
            ],
        },
    ]
    inner = {"nodes": [{"target": "torch.ops.lab.inner.default", "inputs": [], "outputs": []}]}
    graph = {
        "nodes": [
            {"target": "torch.ops.aten.mul.Tensor", "inputs": [], "outputs": []},
            {"target": "torch.ops.aten.mul.Tensor", "inputs": [], "outputs": []},
            {"target": "torch.ops.lab.scale.default", "inputs": [], "outputs": []},
            {
                "target": "torch.ops.higher_order.cond",
                "inputs": [{"name": "", "arg": {"as_graph": {"name": "true_graph", "graph": inner}}}],
                "outputs": [],
            },
            {"target": "_operator.gt", "inputs": [], "outputs": []},
        ]
    }
    specs = [
        {"parameter": {"arg": {"name": "p_w"}, "parameter_name": "w"}},
        {"user_input": {"arg": {"as_tensor": {"name": "x"}}}},
        {"constant_input": {"name": "n", "value": {"as_int": 3}}},
        {"user_input": {"arg": {"as_tensor": {"name": "d_t"}}}},
        {"constant_input": {"name": "d_mode", "value": {"as_string": "fast"}}},
        {"constant_input": {"name": "scale", "value": {"as_none": True}}},
    ]
    module = {
        "graph": graph,
        "signature": {"input_specs": specs, "output_specs": []},
        "module_call_graph": [{"fqn": "", "signature": {"in_spec": json.dumps(in_spec)}}],
    }
    return {"graph_module": module, "torch_version": "2.13.0+cpu", **changes}


def program_parts(name: str = "model", prefix: str = "exported", program: object = None) -> list[Part]:
    """A torch.export archive."""
    text = json.dumps(program_json() if program is None else program).encode()
    return [Part(f"{prefix}/models/{name}.json", text), *archive_parts(prefix)]
