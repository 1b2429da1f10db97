"""Reports made by hand: fixed clock, paths and versions. One per kind of verdict."""

from __future__ import annotations

from dataclasses import replace

from aotidoctor.model.artifact import (
    Artifact,
    ArtifactKind,
    CrcState,
    Member,
    Metadata,
    ModelEntry,
    SharedObject,
    SymbolRef,
)
from aotidoctor.model.case import Case, Host, Options, TmpdirState, TorchBuild
from aotidoctor.model.contract import (
    ConstantSpec,
    Dim,
    HostNeeds,
    KernelCall,
    LeafSpec,
    ModelContract,
    OutputSpec,
    Symbol,
)
from aotidoctor.model.errors import InputsError
from aotidoctor.model.evidence import Evidence, FileSource, NotChecked, RunSource, Severity
from aotidoctor.model.inputs import Container, InputSet, Leaf, PlainValue, TensorDesc, ValueStats
from aotidoctor.model.jobs import Job
from aotidoctor.model.report import Diagnosis, Remedy, Report, Status
from aotidoctor.model.run import ChildError, Exited, Outcome, Request, Signalled

HOST = Host(
    system="Linux",
    machine="x86_64",
    python="3.11.9",
    cpu_model="Example CPU 2.0GHz",
    cpu_flags=frozenset({"avx2", "avx512f", "fma", "sse4_2"}),
    cores=2,
    threads=2,
    memory_available=6 * 1024**3,
    memory_total=8 * 1024**3,
    torch=TorchBuild(version="2.13.0+cpu", path="/opt/venv/lib/torch", cxx11_abi=True),
    libraries={"libtorch_cpu.so": "/opt/venv/lib/torch/lib/libtorch_cpu.so"},
    symbols_checked=40,
    glibc="2.36",
    tmpdir=TmpdirState(path="/tmp", free_bytes=10 * 1024**3),
    tools={"g++": "/usr/bin/g++", "gdb": None},
    environment={"OMP_NUM_THREADS": "2"},
)

X = LeafSpec(
    index=0,
    path="args[0]",
    kind="tensor",
    input_index=0,
    generated_name="arg3_1",
    triton_names=("INPUT__0",),
    dtype="float32",
    rank=2,
    dims=(Dim(min=2, max=64), Dim(static=16)),
    strides=(16, 1),
    device_type="cpu",
    used=True,
)
SCALE = LeafSpec(
    index=1,
    path="args[1]['scale']",
    kind="tensor",
    input_index=1,
    generated_name="arg4_1",
    dtype="float32",
    rank=1,
    dims=(Dim(static=8),),
    strides=(1,),
    device_type="cpu",
    used=True,
)
IDS = LeafSpec(
    index=2,
    path="kwargs['ids']",
    kind="tensor",
    input_index=2,
    generated_name="arg5_1",
    dtype="int64",
    rank=1,
    dims=(Dim(min=2, max=64),),
    strides=(1,),
    device_type="cpu",
    used=True,
)

CONTRACT = ModelContract(
    model_name="model",
    source="wrapper.cpp",
    args=Container(
        type="tuple", children=(Leaf(value=0), Container(type="dict", children=(Leaf(value=1),), keys=("scale",)))
    ),
    kwargs=Container(type="dict", children=(Leaf(value=2),), keys=("ids",)),
    leaves=(X, SCALE, IDS),
    n_inputs=3,
    n_outputs=1,
    n_constants=2,
    outputs=(OutputSpec(index=0, path="result", dtype="float32", shape=("s77", "8"), device_type="cpu"),),
    symbols=(
        Symbol(name="s77", definition="arg3_1_size[0]", appears_in=("args[0].shape[0]", "kwargs['ids'].shape[0]")),
    ),
    constants=(
        ConstantSpec(
            name="l_weight",
            original_fqn="l.weight",
            dtype="float32",
            shape=(8, 16),
            stride=(16, 1),
            device_type="cpu",
            data_size=512,
        ),
        ConstantSpec(
            name="emb_weight",
            original_fqn="emb.weight",
            dtype="float32",
            shape=(100, 8),
            stride=(8, 1),
            device_type="cpu",
            data_size=3200,
        ),
    ),
    kernels=(
        KernelCall(name="aoti_torch_cpu_addmm_out", kind="extern", line=801, origins=("aten.addmm",)),
        KernelCall(name="cpp_fused_embedding_relu_0", kind="cpp", line=812, origins=("aten.embedding", "aten.relu")),
    ),
    needs=HostNeeds(device_type="cpu", isa=("avx512",), torch_version="2.13.0"),
    weights="so",
    member="model/data/aotinductor/model/abc.wrapper.cpp",
)

SO = SharedObject(
    member="model/data/aotinductor/model/abc.wrapper.so",
    format="elf",
    size=70_000,
    machine="x86_64",
    bits=64,
    type="ET_DYN",
    needed=("libtorch_cpu.so", "libc.so.6"),
    undefined=(SymbolRef(name="aoti_torch_cpu_addmm_out"),),
)

MODEL = ModelEntry(
    name="model",
    layout="pt2",
    members=(
        Member(
            name=SO.member, size=70_000, compressed_size=70_000, crc=CrcState.GOOD, data_offset=64, path="model.pt2"
        ),
    ),
    shared_objects=(SO,),
    wrapper_member=CONTRACT.member,
    wrapper_cpp="// a source\n" * 10,
    metadata=(
        Metadata(member="model/data/aotinductor/model/abc.wrapper_metadata.json", values={"AOTI_DEVICE_KEY": "cpu"}),
    ),
    weights_location="so",
)

ARTIFACT = Artifact(
    path="model.pt2",
    kind=ArtifactKind.AOTI_PACKAGE,
    size=81_234,
    sha256="0" * 64,
    prefix="model",
    archive_version="0",
    archive_format="pt2",
    members=MODEL.members,
    models=(MODEL,),
)


def tensor(dtype="float32", shape=(4, 16), stride=(16, 1), **more):
    return TensorDesc(dtype=dtype, shape=shape, stride=stride, **more)


def inputs(x=None, scale=None, ids=None):
    return InputSet(
        path="sample.pt",
        format="pt",
        form="args-kwargs",
        args=Container(
            type="tuple",
            children=(
                Leaf(value=x or tensor()),
                Container(
                    type="dict", children=(Leaf(value=scale or tensor(shape=(8,), stride=(1,))),), keys=("scale",)
                ),
            ),
        ),
        kwargs=Container(type="dict", children=(Leaf(value=ids or tensor("int64", (4,), (1,))),), keys=("ids",)),
        sha256="1" * 64,
    )


def request(probe="plain-run", **more):
    return Request(probe=probe, job="run", payload=Job(), **more)


def outcome(id_="R1", ending=None, **more):
    given = {
        "request": request(),
        "stage": "done",
        "seconds": 1.25,
        "stages": {"load": 0.2, "run1": 0.01},
        "argv": ("python", "-m", "aotidoctor.worker"),
    }
    return Outcome(id=id_, ending=ending or Exited(code=0, done=True), **(given | more))


def report(**more):
    given = {
        "verdict": "healthy",
        "stage": None,
        "case": Case(
            artifact=ARTIFACT,
            host=HOST,
            options=Options(),
            model=MODEL,
            contract=CONTRACT,
            inputs=inputs(),
            inputs_path="sample.pt",
        ),
        "diagnoses": (),
        "findings": (),
        "not_checked": (),
        "runs": (),
        "argv": ("aotidoctor", "run", "model.pt2", "--inputs", "sample.pt"),
        "command": "run",
        "version": "0.1.0",
        "started": "2026-01-02T03:04:05Z",
        "seconds": 2.5,
    }
    return Report(**(given | more))


def healthy():
    runs = (outcome("R1"), outcome("R2", request=request("again"), forked=True, took_effect=True))
    return report(
        runs=runs, not_checked=(NotChecked(code="AD-RUN-011", name="reference", reason="no --reference given"),)
    )


def misleading():
    """int32 ids: looks like an index error, is a dtype; confirmed."""
    message = "index out of bounds: 0 <= tmp2 < 100L"
    runs = (
        outcome(
            "R1",
            ending=Exited(code=0, done=True),
            stage="run1",
            error=ChildError(type="RuntimeError", message=message, traceback=f"Traceback:\nRuntimeError: {message}"),
            stderr_tail=f"Error: {message}\n",
        ),
        outcome(
            "R2",
            request=request("check-inputs", env={"AOTI_RUNTIME_CHECK_INPUTS": "1"}),
            stage="run1",
            error=ChildError(type="RuntimeError", message="dtype"),
            took_effect=True,
            took_effect_why="its message names a dtype",
        ),
        outcome("R3", request=request("treatment: cast"), forked=True),
    )
    findings = (
        Evidence(
            id="E1",
            code="AD-IN-010",
            kind="dtype",
            severity=Severity.ERROR,
            subject="kwargs['ids']",
            observed="int32",
            expected="int64",
            source=FileSource(file="abc.wrapper.cpp", line=412),
            facts={"leaf": "kwargs['ids']", "widths": (4, 8)},
        ),
        Evidence(
            id="E2",
            code="AD-RUN-001",
            kind="raised",
            severity=Severity.ERROR,
            subject=None,
            observed=message,
            expected="no exception",
            source=RunSource(run="R1", stream="stderr", line=1),
            facts={"symptom": "index-out-of-bounds", "ratio": float("nan")},
        ),
    )
    diagnoses = (
        Diagnosis(
            cause="input-dtype",
            rank=1,
            status=Status.CONFIRMED,
            confidence=0.98,
            title="an input has another dtype than the package was compiled for",
            looked_like=message,
            subject="kwargs['ids']",
            evidence=("E1", "E2"),
            remedy=Remedy(text="Pass int64.", command="kwargs['ids'] = kwargs['ids'].to(torch.int64)", verified=True),
            playbook="input-dtype",
            confirmation="R3 ran with the input cast to int64; without it R1 failed",
        ),
        Diagnosis(
            cause="index-out-of-range",
            rank=2,
            status=Status.SUSPECTED,
            confidence=0.2,
            title="an index in the data exceeds the indexed dim",
            looked_like=message,
            subject=None,
            evidence=("E2",),
            remedy=Remedy(text="Check the ids."),
            playbook="index-out-of-range",
            would_confirm="ids above 99",
        ),
    )
    base = report()
    case = replace(
        base.case,
        inputs=inputs(ids=tensor("int32", (4,), (1,), stats=ValueStats(low=0, high=99, nan=0, inf=0, zeros=1))),
    )
    return report(
        verdict="problem",
        stage="inputs",
        case=case,
        diagnoses=diagnoses,
        findings=findings,
        runs=runs,
        signature="sig1:input-dtype:1234abcd",
        not_checked=(NotChecked(code="AD-IN-016", name="input_shape_disagree", reason="input_dtype failed first"),),
    )


def unknown():
    """A crash that nothing explains."""
    runs = (
        outcome(
            "R1",
            ending=Signalled(signal=11, name="SIGSEGV", core_dumped=True),
            stage="run1",
            stderr_tail="Fatal Python error: Segmentation fault\n",
        ),
    )
    findings = (
        Evidence(
            id="E1",
            code="AD-RUN-001",
            kind="signalled",
            severity=Severity.ERROR,
            subject=None,
            observed="SIGSEGV in run1",
            expected="no signal",
            source=RunSource(run="R1", stream="stderr"),
        ),
    )
    return report(verdict="unknown", stage="run", findings=findings, runs=runs)


def wrong_kind():
    """Not an AOTI package; static only, no contract."""
    artifact = Artifact(path="model.pt2", kind=ArtifactKind.TORCHSCRIPT, size=2048)
    findings = (
        Evidence(
            id="E1",
            code="AD-ART-002",
            kind="torchscript",
            severity=Severity.ERROR,
            subject="model.pt2",
            observed="TorchScript archive",
            expected="AOTInductor package",
        ),
    )
    diagnoses = (
        Diagnosis(
            cause="artifact-wrong-kind",
            rank=1,
            status=Status.SUSPECTED,
            confidence=0.99,
            title="this is not an AOTInductor package",
            looked_like="Failed to find a generated cpp file",
            subject="model.pt2",
            evidence=("E1",),
            remedy=Remedy(text="Load it with torch.jit.load."),
            playbook="artifact-wrong-kind",
        ),
    )
    return report(
        command="check",
        argv=("aotidoctor", "check", "model.pt2"),
        verdict="problem",
        stage="artifact",
        case=Case(artifact=artifact, host=HOST),
        findings=findings,
        diagnoses=diagnoses,
    )


def bad_inputs():
    error = InputsError("sample.pt is empty", cause="inputs-file-corrupt", subject="sample.pt")
    base = report()
    case = replace(base.case, inputs=None, inputs_error=error)
    findings = (
        Evidence(
            id="E1",
            code="AD-IN-001",
            kind="corrupt",
            severity=Severity.ERROR,
            subject="sample.pt",
            observed="0 bytes",
            expected="a file of inputs",
        ),
    )
    diagnoses = (
        Diagnosis(
            cause="inputs-file-corrupt",
            rank=1,
            status=Status.SUSPECTED,
            confidence=0.99,
            title="the inputs file is damaged",
            looked_like="EOFError",
            subject="sample.pt",
            evidence=("E1",),
            remedy=Remedy(text="Save it again."),
            playbook="inputs-file-corrupt",
        ),
    )
    return report(verdict="problem", stage="inputs", case=case, findings=findings, diagnoses=diagnoses)


def inspected():
    base = report()
    case = replace(base.case, inputs=None, inputs_path=None)
    return report(command="inspect", argv=("aotidoctor", "inspect", "model.pt2"), case=case)


def environment():
    case = Case(artifact=Artifact(path="", kind=ArtifactKind.MISSING, size=0), host=HOST)
    return report(command="env", argv=("aotidoctor", "env"), case=case)


def hostile():
    """Names and output that try to break out of every format."""
    nasty = "\x1b]0;owned\x07\x1b[2J```\n````\n</details><script>alert(1)</script>\n| a | b |\n[link](javascript:x) @everyone <!-- \ud800 \x00 \u202e"
    base = misleading()
    findings = tuple(replace(item, observed=nasty, subject=f"kwargs['{nasty}']") for item in base.findings)
    runs = tuple(
        replace(
            item, stdout_tail=nasty * 3, stderr_tail=nasty, error=ChildError(type=nasty, message=nasty, traceback=nasty)
        )
        for item in base.runs
    )
    plain = PlainValue(type="str", text=nasty)
    args = Container(type="tuple", children=(Leaf(value=plain),))
    given = replace(base.case.inputs, args=args, path=nasty)
    first = replace(base.diagnoses[0], looked_like=nasty, title=nasty, remedy=Remedy(text=nasty, command=nasty))
    return replace(base, findings=findings, runs=runs, case=replace(base.case, inputs=given), diagnoses=(first,))


GOLDEN = {
    "healthy": healthy,
    "misleading": misleading,
    "unknown": unknown,
    "wrong_kind": wrong_kind,
    "bad_inputs": bad_inputs,
    "inspected": inspected,
    "environment": environment,
}
