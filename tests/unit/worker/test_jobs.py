"""What is asked of the worker arrives there as it was written; what is none of it is said with its place."""

from __future__ import annotations

import importlib
import json
from dataclasses import fields

import pytest

from aotidoctor.model.case import Tolerance, Tolerances
from aotidoctor.model.jobs import (
    Cut,
    DemoBuild,
    ExecutorchRun,
    Hook,
    InputsSource,
    Job,
    OneOperator,
    Operators,
    Recompile,
    Run,
    SaveInputs,
    Script,
    Stage,
    StoredConstant,
    SubBatch,
    TryRemedy,
    UserCode,
    Verify,
    Watch,
    change_fields,
)
from aotidoctor.model.record import to_json, values_of
from aotidoctor.model.record_json import RecordError, from_json
from aotidoctor.model.run import Request
from aotidoctor.worker import JOBS

CODE = UserCode(setup="ops.py", custom_op_libraries=("libops.so",), imports=("plugin.ops",))
SOURCE = InputsSource(
    path="inputs.pt", trusted=True, plan={"args": {"tuple": [{"place": [0, 1]}]}, "kwargs": {"dict": {}}}
)
TOLERANCES = Tolerances(
    rtol=(Tolerance(output=None, value=0.1), Tolerance(output="result", value=float("inf"))),
    atol=(Tolerance(output="result", value=0.0),),
)
ASKED = (
    Job(code=CODE),
    Run(
        code=CODE, package="m.pt2", kind="bare-so", model_name="b", device="cuda", device_index=1, inputs=SOURCE, threads=2,
        calls=3, weights="w.pt", treatment=({"op": "cast", "path": "args[0]", "dtype": "int64"},), observe=(), perturb=90,
        reference="e.pt2", measure=True, tolerances=TOLERANCES,
        share_reference="e.pt2", trace=True, heap_checks=True, watch=Watch(reference="e.pt2"),
        sub_batch=SubBatch(rows=2, inputs=("args[0]",), outputs=("result",)), against_threads=1, read_beyond=True, launch_trace=True,
        cuda_variant="stream", file_limit=1 << 40, tmpdir="/tmp/x", level=3, unbuffered=True, targets=("a::b",),
        emulate_seconds=2.5, emulate_kernels=("k",), emulate_way="quick", keep_outputs="o.pt",
        rehearsal={"outputs": [{"name": "OUTPUT__0"}]}, unread=(("args[0]", "args[1]"),), confine=True,
        grad_mode=True, cache="c", samples=(SOURCE, SOURCE), next_weights="b.pt", weight_protocol="swap",
        stored=(StoredConstant(name="l.weight", dtype="float32", shape=(12, 16), stride=(16, 1), offset=0, size=768),),
    ),
    Run(inputs=InputsSource(document={"args": [{"tensor": {"shape": [2], "data": [float("inf"), 1.5]}}], "kwargs": {}})),
    Recompile(
        code=CODE, reference="e.pt2", target="t.pt2", cache="c", config={"cpp.simdlen": 256}, printer=2,
        printed_kernels="k", provenance=True, bisect={"backend": "inductor", "subsystem": "lowerings", "max": -1},
    ),
    Operators(code=CODE, targets=("a::b", "a::c"), device="cuda"),
    OneOperator(target="a::b", files=("1.pt",), device="cuda", threads=1, loop=7, fake=True, opcheck=True),
    Cut(reference="e.pt2", inputs=SOURCE, folder="f", nodes=("add",)),
    Verify(program="e.pt2", dynamic_shapes=[{"0": "batch"}, None]),
    Stage(stage="decomposed", before="exported", model="m.py:f", program="e.pt2", inputs=SOURCE, keep="k.pt2"),
    TryRemedy(program="e.pt2", steps=({"op": "eval"},), inputs=SOURCE, cache="c", compiles=False),
    SaveInputs(inputs=SOURCE, target="t.pt", paths=("args[0]",)),
    ExecutorchRun(program="m.pte", method="forward", data="w.ptd", inputs=SOURCE),
    Hook(library="lib.so", folder="1", device_index=0),
    DemoBuild(folder="f", part="model"),
    Script(path="s.py", torch=True),
)  # fmt: skip


@pytest.mark.parametrize("job", JOBS)
def test_the_module_of_a_job_has_its_function(job: str) -> None:
    module, function, _ = JOBS[job]
    assert callable(getattr(importlib.import_module(module), function))


@pytest.mark.parametrize("asked", ASKED, ids=lambda one: type(one).__name__)
def test_it_arrives_as_it_was_written(asked: Job) -> None:
    assert from_json(type(asked), json.loads(json.dumps(asked, default=values_of))) == asked


@pytest.mark.parametrize("asked", ASKED, ids=lambda one: type(one).__name__)
def test_another_process_reads_the_request_as_it_was(asked: Job) -> None:
    request = Request(probe="p", job="j", payload=asked)
    read = from_json(Request, json.loads(json.dumps(to_json(request))))
    assert type(read.payload) is type(asked)
    assert to_json(read) == to_json(request)


def test_every_record_of_a_job_is_among_them_and_changed_in_every_field() -> None:
    assert {kind for _, _, kind in JOBS.values()} == {type(one) for one in ASKED}
    whole = next(one for one in ASKED if isinstance(one, Run))
    assert [item.name for item in fields(Run) if getattr(whole, item.name) == getattr(Run(), item.name)] == []


@pytest.mark.parametrize(
    ("kind", "value", "place", "expected"),
    [
        (Run, {"threads": "two"}, "Run.threads", "two"),
        (Run, {"calls": None}, "Run.calls", "expected int"),
        (Run, {"inputs": {"path": 1}}, "Run.inputs.path", "expected str"),
        (Run, {"treatment": {}}, "Run.treatment", "expected a list"),
        (Run, {"code": {"imports": [1]}}, "Run.code.imports[0]", "expected str"),
        (Cut, {"reference": "e.pt2", "inputs": None}, "Cut.folder", "missing"),
    ],
)
def test_what_is_none_of_it_is_said_with_its_place(kind: type[Job], value: dict, place: str, expected: str) -> None:
    with pytest.raises(RecordError) as raised:
        from_json(kind, value)
    assert str(raised.value).startswith(place)
    assert expected in str(raised.value)


def test_a_field_that_there_is_none_of_is_refused() -> None:
    with pytest.raises(TypeError, match="thread_count"):
        change_fields(Run(), {"thread_count": 1})
