"""R48, R49 and R51: what the package needs of the machine that serves it."""

from __future__ import annotations

import pytest

from aotidoctor.model.artifact import Artifact, ArtifactKind, CrcState, ExternNode, Member, ModelEntry
from aotidoctor.model.case import Host, TmpdirState
from aotidoctor.model.contract import HostNeeds, ModelContract
from aotidoctor.model.evidence import Evidence, Severity
from aotidoctor.triton.judge import judge_model
from aotidoctor.triton.rules.package import RULES
from aotidoctor.triton.serving import PLATFORM, Release, ServedModel, ServedVersion, Settled
from aotidoctor.triton.text_format import parse_config, read_fields

R48, R49, R51 = RULES
GIB = 1 << 30


def artifact_of(size: int = 1000) -> Artifact:
    member = Member(
        name="m/a.so", size=size, compressed_size=size, crc=CrcState.GOOD, data_offset=64, path="m/1/model.pt2"
    )
    return Artifact(path="m/1/model.pt2", kind=ArtifactKind.AOTI_PACKAGE, size=size, members=(member,))


def contract_of(*, ops: tuple[str, ...] = (), torch: str | None = None) -> ModelContract:
    return ModelContract(
        model_name="model", source="wrapper.cpp", args=None, kwargs=None, leaves=(), n_inputs=1, custom_ops=ops,
        needs=HostNeeds(torch_version=torch),
    )  # fmt: skip


def model_of(
    *, release: str = "26.05", size: int = 1000, text: str = "", targets=(), ops=(), torch=None, host=None, found=()
):
    text = 'platform: "torch_aoti"\n' + text
    nodes = tuple(ExternNode(name=f"n{at}", target=target) for at, target in enumerate(targets))
    version = ServedVersion(
        number=1,
        directory="m/1",
        package="m/1/model.pt2",
        served=True,
        artifact=artifact_of(size),
        entry=ModelEntry(name="model", layout="pt2", members=(), extern_nodes=nodes),
        contract=contract_of(ops=ops, torch=torch),
        host_findings=found,
    )
    return ServedModel(
        name="m",
        path="m",
        release=Release(name=release),
        host=host or Host(system="Linux", machine="x86_64", python="3.11.7", memory_total=8 * GIB),
        config=read_fields(parse_config(text), text),
        config_path="m/config.pbtxt",
        settled=Settled(backend="pytorch", platform=PLATFORM, filename="model.pt2"),
        versions=(version,),
    )


def said(rule, model: ServedModel) -> list[tuple[str, str]]:
    findings, not_checked = judge_model(model, (rule,))
    assert not_checked == ()
    return [(item.kind, str(item.facts["consequence"])) for item in findings]


@pytest.mark.parametrize("target", ["aten::cumsum.default", "torch.ops.prims.convert.default", "inductor::x"])
def test_operators_of_torch(target: str) -> None:
    assert said(R48, model_of(targets=[target])) == []


def test_custom_operators() -> None:
    model = model_of(targets=["torch.ops.zoo.misbehave.default", "aten::add.Tensor"])
    assert said(R48, model) == [("custom-operators", "E")]
    assert judge_model(model, (R48,))[0][0].facts["ops"] == ("zoo::misbehave",)
    assert said(R48, model_of(ops=("zoopy::scale",))) == [("custom-operators", "E")]


def host_finding(code: str, severity: Severity) -> Evidence:
    return Evidence(code=code, kind="k", severity=severity, subject="s", observed="aarch64", expected="x86_64")


@pytest.mark.parametrize(
    ("code", "severity", "expected"),
    [
        ("AD-HOST-001", Severity.ERROR, [("machine", "F")]),
        ("AD-HOST-001", Severity.WARN, []),
        ("AD-HOST-002", Severity.ERROR, [("instructions", "F")]),
        ("AD-HOST-004", Severity.ERROR, [("gpu-code", "E")]),
        ("AD-HOST-011", Severity.ERROR, []),
    ],
)
def test_this_host(code: str, severity: Severity, expected) -> None:
    assert said(R49, model_of(found=(host_finding(code, severity),))) == expected


@pytest.mark.parametrize(
    ("torch", "release", "expected"),
    [
        ("2.13.0", "26.03", [("newer-torch", "W")]),
        ("2.13.0", "26.04", [("newer-torch", "W")]),
        ("2.12.1", "26.04", []),
        ("2.13.0", "26.05", []),  # what it brings is not known
        (None, "26.04", []),
    ],
)
def test_torch(torch, release: str, expected) -> None:
    assert said(R49, model_of(torch=torch, release=release)) == expected


def test_memory() -> None:
    assert said(R51, model_of()) == []
    assert said(R51, model_of(size=GIB)) == [("size", "I")]
    assert said(R51, model_of(size=6 * GIB)) == [("memory", "W")]


def test_instances_are_named() -> None:
    model = model_of(size=GIB, text="instance_group [ { count: 3 kind: KIND_CPU } ]\n")
    assert "Each of 3 instances" in judge_model(model, (R51,))[0][0].message


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (TmpdirState(path="/tmp", free_bytes=GIB), []),
        (TmpdirState(path="/tmp", free_bytes=10), [("temporary-folder", "F")]),
        (TmpdirState(path="/tmp", noexec=True, problem="is mounted noexec"), [("temporary-folder", "F")]),
    ],
)
def test_temporary_folder(state: TmpdirState, expected) -> None:
    host = Host(system="Linux", machine="x86_64", python="3.11.7", memory_total=8 * GIB, tmpdir=state)
    assert said(R51, model_of(host=host)) == expected
