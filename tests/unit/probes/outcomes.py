"""Recorded outcomes in miniature, for the readings of probes."""

from __future__ import annotations

from aotidoctor.model.artifact import Artifact, ArtifactKind, DebugFeatures, ExternNode, ModelEntry, SharedObject
from aotidoctor.model.case import Case, Host, Options, TorchBuild
from aotidoctor.model.contract import HostNeeds, LeafSpec, ModelContract
from aotidoctor.model.inputs import Container, InputSet
from aotidoctor.model.jobs import Job
from aotidoctor.model.run import ChildError, Exited, Outcome, Request
from aotidoctor.probes.probe import History

EMPTY = Container(type="tuple", children=())


def outcome(probe="plain_run", *, ending=None, stage="done", error=None, outputs=(), id="R1", **more):
    result = more.pop("result", {})
    if outputs:
        result = {"outputs": [[value(**item) for item in call] for call in outputs], **result}
    return Outcome(
        id=id,
        request=Request(probe=probe, job="run", payload=Job()),
        ending=ending or Exited(code=0, done=True),
        stage=stage,
        error=error,
        result=result,
        **more,
    )


def value(digest="aa", path="result", dtype="float32", **more):
    return {"path": path, "dtype": dtype, "shape": [2], "sha256": digest, "nan": 0, "inf": 0, **more}


def raised(message, *, type="RuntimeError", stage="run1", **more):
    return outcome(error=ChildError(type=type, message=message), ending=Exited(code=1, done=True), stage=stage, **more)


def case(
    *,
    custom_ops=(),
    random_ops=(),
    uninitialized_ops=(),
    inputs=True,
    checks=True,
    nodes=(),
    torch=True,
    source="wrapper.cpp",
    **options,
):
    contract = ModelContract(
        model_name="model",
        source=source,
        args=EMPTY,
        kwargs=EMPTY,
        leaves=(LeafSpec(index=0, path="args[0]", kind="tensor", input_index=0),),
        n_inputs=1,
        custom_ops=tuple(custom_ops),
        needs=HostNeeds(device_type="cpu", random_ops=tuple(random_ops), uninitialized_ops=tuple(uninitialized_ops)),
    )
    features = DebugFeatures(input_checks=checks)
    library = SharedObject(member="x.so", format="elf", size=1, features=features)
    return Case(
        artifact=Artifact(path="model.pt2", kind=ArtifactKind.AOTI_PACKAGE, size=1),
        host=Host(
            system="Linux",
            machine="x86_64",
            python="3.11",
            torch=TorchBuild(version="2.13.0", path="/t") if torch else None,
        ),
        options=Options(**options),
        model=ModelEntry(name="model", layout="pt2", members=(), shared_objects=(library,), extern_nodes=tuple(nodes)),
        contract=contract,
        inputs=InputSet(path="sample.pt", format="pt", form="args", args=EMPTY, kwargs=EMPTY) if inputs else None,
    )


def node(target="ops::scale", names=("x", "s"), outputs=("as_tensor",)):
    return ExternNode(name="n", target=target, argument_names=names, output_kinds=outputs)


def history(*findings, **outcomes):
    return History(outcomes=outcomes, findings=tuple(findings))
