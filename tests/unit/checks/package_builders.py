"""A healthy package on a fitting host, to be changed in one place: no files, no torch."""

from __future__ import annotations

from dataclasses import replace

from aotidoctor.checks.registry import CHECKS
from aotidoctor.model.artifact import Artifact, ArtifactKind, CrcState, Member, Metadata, ModelEntry, SharedObject
from aotidoctor.model.case import Case, Host, Options, TmpdirState, TorchBuild
from aotidoctor.model.contract import HostNeeds, ModelContract
from aotidoctor.model.evidence import NotChecked
from aotidoctor.model.inputs import Container

CHECK = {check.name: check for check in CHECKS}
FOLDER = "m/data/aotinductor/model/"
SO, WRAPPER, KERNEL = f"{FOLDER}a.wrapper.so", f"{FOLDER}a.wrapper.cpp", f"{FOLDER}b.kernel.cpp"
META, KERNEL_META = f"{FOLDER}a.wrapper_metadata.json", f"{FOLDER}b.kernel_metadata.json"
VALUES = {
    "AOTI_DEVICE_KEY": "cpu",
    "AOTI_PLATFORM": "linux",
    "AOTI_MACHINE": "x86_64",
    "AOTI_CPU_ISA": "AVX512 AVX512_VNNI",
}
FLAGS = frozenset(["avx2", "fma", "avx512f", "avx512dq", "avx512bw", "avx512vl", "avx512_vnni"])
ENTRY_POINTS = tuple(
    f"AOTInductorModelContainer{name}" for name in ("CreateWithDevice", "Delete", "GetNumOutputs", "Run")
)


def member(name, **more):
    values = {"size": 10, "compressed_size": 10, "crc": CrcState.GOOD, "data_offset": 64, "path": "m.pt2"}
    return Member(name=name, **{**values, **more})


def shared_object(name=SO, **more):
    values = {
        "format": "elf", "size": 1000, "machine": "x86_64", "bits": 64, "type": "dyn", "needed": ("libtorch_cpu.so",),
        "defined_entry_points": ENTRY_POINTS, "constants_span": 64,
    }  # fmt: skip
    return SharedObject(member=name, **{**values, **more})


def metadata(name=KERNEL_META, values=None, **more):
    return Metadata(member=name, values=VALUES if values is None else values, **more)


def entry(**more):
    values = {
        "name": "model",
        "layout": "pt2",
        "members": tuple(member(name) for name in (WRAPPER, KERNEL, META, KERNEL_META, SO)),
        "shared_objects": (shared_object(),),
        "wrapper_member": WRAPPER,
        "wrapper_cpp": "// wrapper",
        "metadata": (metadata(META), metadata()),
        "weights_location": "so",
    }
    return ModelEntry(**{**values, **more})


MODEL = entry()


def artifact(*models, **more):
    models = models or (MODEL,)
    names = [name.name for model in models for name in model.members]
    values = {
        "path": "m.pt2",
        "kind": ArtifactKind.AOTI_PACKAGE,
        "size": 5000,
        "prefix": "m",
        "archive_version": "0",
        "archive_format": "pt2",
        "members": tuple(member(name) for name in (*names, "m/archive_format", "m/archive_version")),
        "models": models,
    }
    return Artifact(**{**values, **more})


def host(**more):
    values = {
        "system": "Linux", "machine": "x86_64", "python": "3.11.7", "cpu_flags": FLAGS, "cores": 8, "threads": 8,
        "memory_available": 1 << 30, "memory_total": 1 << 32,
        "torch": TorchBuild(version="2.13.0+cpu", path="/site/torch", cxx11_abi=True),
        "libraries": {"libtorch_cpu.so": "/site/torch/lib/libtorch_cpu.so"}, "symbols_checked": 100,
        "tmpdir": TmpdirState(path="/tmp", free_bytes=1 << 40), "tools": {"g++": "/usr/bin/g++"},
        "openmp_runtimes": ("/site/torch/lib/libgomp.so.1",),
    }  # fmt: skip
    return Host(**{**values, **more})


def contract(needs=None, **more):
    empty = Container(type="tuple", children=())
    values = {
        "model_name": "model", "source": "wrapper.cpp", "args": empty, "kwargs": empty, "leaves": (), "n_inputs": 0,
        "weights": "so", "member": WRAPPER, "needs": HostNeeds(**(needs or {})),
    }  # fmt: skip
    return ModelContract(**{**values, **more})


def case(art=None, *, contract=None, options=None, inputs=None, **host_changes):
    art = art or artifact()
    chosen = Options(**(options or {}))
    model = art.model(chosen.model_name or "model")
    if model is None and len(art.models) == 1:
        model = art.models[0]
    return Case(artifact=art, host=host(**host_changes), options=chosen, model=model, contract=contract, inputs=inputs)


def with_model(**changes):
    return artifact(replace(MODEL, **changes))


def with_object(**changes):
    return with_model(shared_objects=(shared_object(**changes),))


def with_values(**changes):
    values = {key: value for key, value in {**VALUES, **changes}.items() if value is not None}
    return with_model(metadata=(metadata(META, values), metadata(KERNEL_META, values)))


def ask(name, given):
    """``(kind, severity)`` of each finding, or ``NotChecked``."""
    result = CHECK[name].run(given)
    if isinstance(result, NotChecked):
        assert (result.code, result.name) == (CHECK[name].code, name)
        return NotChecked
    for finding in result:
        assert finding.code == CHECK[name].code
        assert finding.observed
        assert finding.expected
        assert finding.message
    return [(finding.kind, finding.severity.value) for finding in result]


def first(name, given):
    result = CHECK[name].run(given)
    assert not isinstance(result, NotChecked)
    return result[0]
