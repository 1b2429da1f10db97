"""A case of ``aotidoctor triton``: texts and package facts in, rule ids with lines out, through the whole reading.

The package is the real layout around a recorded wrapper; the host is made up, so that the rules about it see what the
case says.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from aotidoctor.model.case import Gpu, Host
from aotidoctor.model.evidence import Evidence, FileSource, Severity
from aotidoctor.triton import open_models
from aotidoctor.triton.call_spec import find_release
from aotidoctor.triton.judge import judge_model
from tests.artifacts.packages import DEVICE, archive_parts, edit_part, model_parts
from tests.artifacts.zips import Part, build_zip

WRAPPERS = Path(__file__).parents[2] / "data" / "wrappers"
FLAGS = frozenset({"avx", "avx2", "fma", "avx512f", "avx512dq", "avx512bw", "avx512vl", "avx512_vnni"})

MLP = """\
platform: "torch_aoti"
max_batch_size: 64
input [
  { name: "ARGS[0]" data_type: TYPE_FP32 dims: [ 1024 ] },
  { name: "ARGS[1]" data_type: TYPE_FP32 dims: [ 1024 ] }
]
output [ { name: "RESULT" data_type: TYPE_FP32 dims: [ 1024 ] } ]
instance_group [ { kind: KIND_CPU } ]
"""
"""A healthy config of the package ``mlp``: two inputs float32[2..64, 1024], one output of the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingCase:
    """``expected`` are the findings above a note, ``R29:6`` for rule 29 at line 6 of config.pbtxt and ``R4`` for one in
    another file; ``notes`` the notes that must be among the others. ``config`` None: no config.pbtxt.

    ``wrapper`` names a recorded wrapper, None for a version directory without a package. ``files`` are more files of
    the model's folder; ``siblings`` the configs of other models of the repository.
    """

    name: str
    config: str | None = MLP
    expected: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    release: str = "26.06"
    wrapper: str | None = "mlp"
    filename: str = "model.pt2"
    version: str = "1"
    inner: str = "model"
    device: str = "cpu"
    gpus: int = 0
    compiled: bool = True
    extern: object = None
    files: dict[str, bytes] = field(default_factory=dict)
    siblings: dict[str, str] = field(default_factory=dict)

    @property
    def healthy(self) -> bool:
        return not self.expected


@lru_cache(maxsize=32)
def package(wrapper: str, inner: str = "model", device: str = "cpu", *, compiled: bool = True) -> bytes:
    """A package of a few kilobytes around a recorded wrapper."""
    text = (WRAPPERS / f"{wrapper}.wrapper.cpp").read_text()
    parts = model_parts(f"model/data/aotinductor/{inner}", wrapper=text)
    metadata = json.dumps({**DEVICE, "AOTI_DEVICE_KEY": device}).encode()
    parts = edit_part(parts, "wrapper_metadata.json", lambda part: Part(part.name, metadata))
    if not compiled:
        parts = edit_part(parts, ".so", lambda _: None)
    return build_zip(parts + archive_parts())


def lay_out(case: ServingCase, folder: Path) -> Path:
    """The repository of a case, with the model ``mlp`` in it; gives the model's folder."""
    model = folder / "mlp"
    (model / case.version).mkdir(parents=True)
    if case.config is not None:
        (model / "config.pbtxt").write_bytes(case.config.encode("utf-8", "surrogateescape"))
    if case.wrapper is not None:
        data = package(case.wrapper, case.inner, case.device, compiled=case.compiled)
        (model / case.version / case.filename).write_bytes(data)
    for name, content in case.files.items():
        (model / name).parent.mkdir(parents=True, exist_ok=True)
        (model / name).write_bytes(content)
    for name, text in case.siblings.items():
        (folder / name / "1").mkdir(parents=True)
        (folder / name / "config.pbtxt").write_text(text)
    return model


def host_of(case: ServingCase) -> Host:
    gpus = tuple(Gpu(index=at, name="NVIDIA H200", compute_capability="90") for at in range(case.gpus))
    return Host(system="Linux", machine="x86_64", python="3.11.7", cpu_flags=FLAGS, gpus=gpus)


def findings_of(case: ServingCase, folder: Path, monkeypatch) -> tuple[Evidence, ...]:
    """What the rules say of the model of a case."""
    model = lay_out(case, folder)
    monkeypatch.setattr(open_models, "read_host", lambda *, artifact, environ: host_of(case))
    place = folder if case.siblings else model
    served = open_models.open_models(str(place), find_release(case.release), {})
    mine = next(item for item in served.models if item.name == "mlp")
    found, not_checked = judge_model(mine)
    own = [item for item in not_checked if item.is_fault]
    assert not own, own
    return found


def label(item: Evidence) -> str:
    """``R29:6``; without a line where it is not about config.pbtxt of this model."""
    source = item.source
    line = source.line if isinstance(source, FileSource) and source.file.endswith("mlp/config.pbtxt") else None
    rule = item.code.removeprefix("TRITON-")
    return rule if line is None else f"{rule}:{line}"


def loud(found: tuple[Evidence, ...]) -> list[str]:
    return sorted(label(item) for item in found if item.severity is not Severity.INFO)


def notes(found: tuple[Evidence, ...]) -> set[str]:
    return {label(item) for item in found if item.severity is Severity.INFO}
