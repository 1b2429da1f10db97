"""A rehearsal without a child: what is meant, what is planned, and recorded outcomes read."""

from __future__ import annotations

import pytest

from aotidoctor.commands.explain import find, markdown
from aotidoctor.model.case import Host
from aotidoctor.model.contract import Dim
from aotidoctor.model.jobs import Run
from aotidoctor.model.run import ChildError, Exited, NotStarted, Outcome, Request, Signalled, TimedOut
from aotidoctor.model.serving_config import NameRow, NameTable
from aotidoctor.triton.init_library import read_hook_run
from aotidoctor.triton.rehearsal import CannotRehearseError, plan_rehearsal, rehearsal_payload
from aotidoctor.triton.rehearsal_findings import REHEARSAL_CODE, RehearsalReading
from aotidoctor.triton.serving import PLATFORM, Release, ServedModel, Settled
from aotidoctor.triton.text_format import parse_config, read_fields

PATHS = ("args[0]", "args[1]['b']", "args[1]['a']")
FORWARD = ("ARGS[0]", "ARGS[1][b]", "ARGS[1][a]")


def rows(kind: str, paths, forward, *, static: int | None = 4, dtype: str = "float32"):
    dims = (Dim(static=static, min=2), Dim(static=16))
    return tuple(
        NameRow(
            slot=at, ordinal=f"{kind}__{at}", forward=name, path=path, dtype=dtype, data_type="TYPE_FP32", dims=dims
        )
        for at, (path, name) in enumerate(zip(paths, forward, strict=True))
    )


def table(release: str = "26.05", **more) -> NameTable:
    named = release >= "26.05"
    inputs = rows("INPUT", PATHS, FORWARD if named else (None,) * 3, **more)
    outputs = rows("OUTPUT", ("result[0]", "result[1]"), ("RESULT[0]", "RESULT[1]") if named else (None,) * 2, **more)
    return NameTable(release=release, inputs=inputs, outputs=outputs, wanted=3)


def tensor(name: str, comment: str = "", dtype: str = "TYPE_FP32", dims: str = "[ 4, 16 ]") -> str:
    return f'{{ name: "{name}" data_type: {dtype} dims: {dims} }}, # {comment}\n'


def model_of(
    inputs, outputs=("OUTPUT__0",), *, extra: str = "", release: str = "26.05", dims="[ 4, 16 ]"
) -> ServedModel:
    made = [item if item.startswith("{") else tensor(item, dims=dims) for item in inputs]
    given = [item if item.startswith("{") else tensor(item, dims=dims) for item in outputs]
    text = f'platform: "torch_aoti"\n{extra}input [\n{_list(made)}]\noutput [\n{_list(given)}]\n'
    return ServedModel(
        name="m",
        path="m",
        release=Release(name=release),
        host=Host(system="Linux", machine="x86_64", python="3.11.7"),
        text=text,
        config=read_fields(parse_config(text), text),
        config_path="m/config.pbtxt",
        settled=Settled(backend="pytorch", platform=PLATFORM, filename="model.pt2", kinds=("KIND_CPU",)),
    )


def _list(items: list[str]) -> str:
    """The last element has no comma behind it."""
    return "".join([*items[:-1], items[-1].replace("}, #", "} #")])


def meanings(model: ServedModel, release: str = "26.05", **more):
    made = plan_rehearsal(model, table(release), **more)
    return [
        (wire.name, wire.intended.row and wire.intended.row.path, wire.intended.why, wire.row.path)
        for wire in made.inputs
    ]


# What is meant.


def test_ordinals_are_taken_at_their_word() -> None:
    assert meanings(model_of(["INPUT__0", "INPUT__2", "INPUT__1"])) == [
        ("INPUT__0", "args[0]", "ordinal", "args[0]"),
        ("INPUT__2", "args[1]['a']", "ordinal", "args[1]['a']"),
        ("INPUT__1", "args[1]['b']", "ordinal", "args[1]['b']"),
    ]


@pytest.mark.parametrize("comment", ["a", "args[1]['a']", 'args[1]["a"]', "the opts: a"])
def test_a_comment_says_what_is_meant(comment: str) -> None:
    made = plan_rehearsal(model_of(["INPUT__0", tensor("INPUT__1", comment), "INPUT__2"]), table())
    assert (made.inputs[1].intended.why, made.inputs[1].crossed) == ("comment", True)


@pytest.mark.parametrize("comment", ["a or b", "another thing", "alpha", ""])
def test_a_comment_that_says_nothing_clear(comment: str) -> None:
    made = plan_rehearsal(model_of(["INPUT__0", tensor("INPUT__1", comment), "INPUT__2"]), table())
    assert (made.inputs[1].intended.why, made.inputs[1].crossed) == ("ordinal", False)


def test_whoever_asks_says_what_is_meant() -> None:
    model = model_of(["INPUT__0", "INPUT__1", "INPUT__2"])
    said = {"INPUT__1": "args[1]['a']", "INPUT__2": "args[1]['b']"}
    made = plan_rehearsal(model, table(), sends=said)
    assert [wire.crossed for wire in made.inputs] == [False, True, True]


def test_names_by_place_mean_their_place_where_the_order_counts() -> None:
    """26.03 and 26.04 do not look names up."""
    assert meanings(model_of(["ARGS[1][a]", "ARGS[0]", "x"], release="26.04"), "26.04") == [
        ("ARGS[1][a]", "args[1]['a']", "name", "args[0]"),
        ("ARGS[0]", "args[0]", "name", "args[1]['b']"),
        ("x", "args[1]['a']", "order", "args[1]['a']"),
    ]


# What is planned.


@pytest.mark.parametrize(
    ("inputs", "problem"),
    [
        (["INPUT__0", "ARGS[0]", "INPUT__2"], "both args[0]"),
        (["INPUT__0", "input_1", "INPUT__2"], "no tensor for the name input_1"),
        (["INPUT__0", tensor("INPUT__1", dtype="TYPE_STRING"), "INPUT__2"], "TYPE_STRING"),
        (["INPUT__0", tensor("INPUT__1", dtype="TYPE_BF16"), "INPUT__2"], "TYPE_BF16"),
    ],
)
def test_nothing_to_rehearse(inputs, problem: str) -> None:
    with pytest.raises(CannotRehearseError, match=problem.replace("[", r"\[")):
        plan_rehearsal(model_of(inputs), table())


@pytest.mark.parametrize(
    ("extra", "release", "asked", "requests", "splits"),
    [
        ("", "26.06", None, 1, True),
        ("max_batch_size: 8\n", "26.06", None, 1, True),
        ("max_batch_size: 8\ndynamic_batching { }\n", "26.05", None, 2, False),
        ("max_batch_size: 8\ndynamic_batching { }\n", "26.06", None, 2, True),
        ("max_batch_size: 8\ndynamic_batching { }\n", "26.06", 4, 4, True),
        ("max_batch_size: 1\ndynamic_batching { }\n", "26.06", 4, 1, True),
        ("max_batch_size: 8\n", "26.06", 4, 1, True),
    ],
)
def test_batching(extra: str, release: str, asked, requests: int, splits: bool) -> None:
    model = model_of(["INPUT__0", "INPUT__1", "INPUT__2"], extra=extra, release=release, dims="[ 16 ]")
    made = plan_rehearsal(model, table(release), requests=asked)
    assert (made.requests, made.splits) == (requests, splits)
    assert bool(made.notes) == (asked is not None and requests == 1)


def test_the_payload() -> None:
    extra = "instance_group [ { kind: KIND_CPU } ]\n"
    model = model_of(["INPUT__0", tensor("INPUT__1", "a", "TYPE_FP64"), "INPUT__2"], extra=extra)
    told = rehearsal_payload(plan_rehearsal(model, table()))
    assert told["inputs"][1] == {
        "name": "INPUT__1", "path": "args[1]['a']", "sent_slot": 2, "slot": 1, "dtype": "float64", "shape": [4, 16],
        "compiled": {"dtype": "float32", "dims": [4, 16], "least": 2},
    }  # fmt: skip
    assert (told["gpu"], told["max_batch"], told["requests"]) == (None, 0, 1)


# What is read.


def outcome(result=None, *, ending=None, stage="done", error=None) -> Outcome:
    return Outcome(
        id="R1",
        request=Request(probe="rehearse", job="rehearse", payload=Run()),
        ending=ending or Exited(code=0, done=True),
        stage=stage,
        error=error,
        result=result or {},
    )


def answer(**more):
    facts = {
        "request": 1,
        "name": "OUTPUT__0",
        "slot": 0,
        "dtype": "float32",
        "wanted_dtype": "float32",
        "shape": [4, 16],
    }
    return {**facts, "agrees": False, "what": "values", "far": 3, "numel": 64, "max_abs_diff": 0.5, **more}


def read(model: ServedModel, ran: Outcome, release: str = "26.05", **more):
    made = plan_rehearsal(model, table(release, **more.pop("rows", {})), **more)
    return [
        (item.code, item.kind, item.severity.value)
        for item in RehearsalReading(model=model, plan=made, outcome=ran).findings()
    ]


STRAIGHT = ("INPUT__0", "INPUT__1", "INPUT__2")
SWAPPED = ("INPUT__0", tensor("INPUT__1", "a"), tensor("INPUT__2", "b"))


def test_the_same() -> None:
    ran = outcome({"answers": [answer(agrees=True, what=None)]})
    assert read(model_of(STRAIGHT), ran) == [(REHEARSAL_CODE, "same", "info")]


def test_swapped_inputs() -> None:
    assert read(model_of(SWAPPED), outcome({"answers": [answer()]})) == [("TRITON-R27", "rehearsed-swapped", "error")]


def test_swapped_by_the_order_of_the_config() -> None:
    model = model_of(("ARGS[1][a]", "ARGS[0]", "x"), release="26.04")
    found = read(model, outcome({"answers": [answer()]}), "26.04")
    assert found == [("TRITON-R26", "rehearsed-swapped", "error")]


def test_swapped_without_a_difference() -> None:
    found = read(model_of(SWAPPED), outcome({"answers": [answer(agrees=True, what=None)]}))
    assert found == [
        ("TRITON-R27", "rehearsed-unseen", "warn"),
        ("TRITON-R27", "rehearsed-unseen", "warn"),
        (REHEARSAL_CODE, "same", "info"),
    ]


def test_a_swapped_output_is_named() -> None:
    model = model_of(STRAIGHT, (tensor("OUTPUT__1", "result[0]"),))
    made = plan_rehearsal(model, table())
    ran = outcome({"answers": [answer(name="OUTPUT__1", slot=1, same_as=1)]})
    (found,) = RehearsalReading(model=model, plan=made, outcome=ran).findings()
    assert (found.code, found.subject, found.source.line) == ("TRITON-R27", "m: OUTPUT__1", 8)
    assert "meant to be result[0], answers with result[1]" in found.message
    assert found.facts["remedy"] == 'name: "OUTPUT__0" for result[0]'


def test_a_type_that_is_read_as_another() -> None:
    model = model_of(("INPUT__0", tensor("INPUT__1", dtype="TYPE_FP16"), "INPUT__2"))
    ran = outcome({"answers": [answer()], "padded": [{"name": "INPUT__1", "bytes": 128}]})
    (found,) = RehearsalReading(model=model, plan=plan_rehearsal(model, table()), outcome=ran).findings()
    assert (found.code, found.kind) == ("TRITON-R19", "rehearsed-retyped")
    assert "128 of them beyond what was sent" in found.message


BATCHES = "max_batch_size: 64\ndynamic_batching { }\n"


def test_merged_requests() -> None:
    model = model_of(STRAIGHT, extra=BATCHES, dims="[ 16 ]")
    answers = [answer(what="shape", shape=[[8, 16], [4, 16]], foreign=4), answer(request=2, what="beyond", bytes=512)]
    made = plan_rehearsal(model, table(static=None))
    found = RehearsalReading(model=model, plan=made, outcome=outcome({"answers": answers})).findings()
    assert [(item.code, item.kind) for item in found] == [("TRITON-R34", "rehearsed-merged")] * 2
    assert "4 rows of it belong to a different client's request" in found[0].message
    assert "512 bytes from beyond the end" in found[1].message


def test_a_static_batch() -> None:
    model = model_of(STRAIGHT, extra=BATCHES, release="26.06", dims="[ 16 ]")
    ran = outcome(
        {"answers": [answer(what="shape", shape=[[0, 16], [4, 16]])], "sent": [{"name": "INPUT__0", "shape": [8, 16]}]}
    )
    assert read(model, ran, "26.06") == [("TRITON-R31", "rehearsed-static-batch", "error")]


@pytest.mark.parametrize(
    ("what", "code"), [("dtype", "TRITON-R20"), ("scalar", "TRITON-R23"), ("absent", REHEARSAL_CODE)]
)
def test_outputs_that_cannot_be_sent(what: str, code: str) -> None:
    bare = {"request": 1, "name": "OUTPUT__0", "slot": 0, "dtype": "float64", "shape": [4], "what": what}
    assert [found[0] for found in read(model_of(STRAIGHT), outcome({"answers": [bare]}))] == [code]


def test_a_difference_without_a_rule() -> None:
    assert read(model_of(STRAIGHT), outcome({"answers": [answer()]})) == [(REHEARSAL_CODE, "differs", "error")]


def test_random_numbers_are_not_compared() -> None:
    found = read(model_of(STRAIGHT), outcome({"repeatable": False, "answers": [answer()]}))
    assert found == [(REHEARSAL_CODE, "random", "info")]
    found = read(
        model_of(STRAIGHT), outcome({"repeatable": False, "answers": [answer(what="shape", shape=[[1], [2]])]})
    )
    assert found == [(REHEARSAL_CODE, "differs", "error"), (REHEARSAL_CODE, "random", "info")]


def test_refused_by_the_core() -> None:
    ran = outcome({"refused": [{"name": "INPUT__1", "what": "shape", "shape": [4, 16], "wanted": [3, 16]}]})
    assert read(model_of(STRAIGHT), ran) == [(REHEARSAL_CODE, "refused", "error")]


@pytest.mark.parametrize(
    ("ran", "kind"),
    [
        (outcome(ending=Signalled(signal=11, name="SIGSEGV"), stage="served"), "crashes"),
        (outcome(ending=TimedOut(limit=3.0), stage="served"), "crashes"),
        (
            outcome(
                ending=Exited(code=1, done=True), stage="served", error=ChildError(type="RuntimeError", message="no")
            ),
            "fails",
        ),
        (outcome(ending=Signalled(signal=11, name="SIGSEGV"), stage="plain1"), "plain-fails"),
        (
            outcome(ending=Exited(code=1, done=True), stage="load", error=ChildError(type="RuntimeError", message="")),
            "plain-fails",
        ),
    ],
)
def test_endings(ran: Outcome, kind: str) -> None:
    assert read(model_of(STRAIGHT), ran) == [(REHEARSAL_CODE, kind, "error")]


def test_a_crash_is_explained_by_a_type() -> None:
    model = model_of(("INPUT__0", tensor("INPUT__1", dtype="TYPE_INT32"), "INPUT__2"))
    ran = outcome(ending=Signalled(signal=11, name="SIGSEGV"), stage="served")
    assert read(model, ran) == [("TRITON-R19", "crashes", "error")]


# The init library.


@pytest.mark.parametrize(
    ("ran", "kind", "severity"),
    [
        (outcome({"found": ["triton_pytorch_model_init"], "handle": 0}), "hook-ran", "info"),
        (outcome({"found": []}), "hook-no-init", "error"),
        (outcome(ending=Signalled(signal=11, name="SIGSEGV"), stage="init"), "hook-init", "error"),
        (outcome(ending=TimedOut(limit=1.0), stage="init"), "hook-init", "error"),
        (outcome(ending=Signalled(signal=6, name="SIGABRT"), stage="release"), "hook-release", "error"),
        (outcome(ending=Signalled(signal=6, name="SIGABRT"), stage="dlclose"), "hook-unload", "error"),
        (
            outcome(
                ending=Exited(code=1, done=True),
                stage="dlopen",
                error=ChildError(type="OSError", message="undefined symbol: x"),
            ),
            "hook-load",
            "error",
        ),
        (outcome(ending=NotStarted(reason="no torch"), stage="import"), "hook-not-run", "info"),
    ],
)
def test_init_library(ran: Outcome, kind: str, severity: str) -> None:
    found = read_hook_run(model_of(STRAIGHT, release="26.07"), ran)
    assert (found.code, found.kind, found.severity.value) == ("TRITON-R46", kind, severity)


def test_its_manual_page() -> None:
    page = find(REHEARSAL_CODE)
    assert page is not None
    assert "plain call" in markdown(page)
