"""What a server would do with real packages and real tensors, done in a child."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import nullcontext
from pathlib import Path

import pytest
from foundry.cases import Kit

from aotidoctor.commands.triton import RehearsalRequest, rehearse
from aotidoctor.model.case import Options
from aotidoctor.runner import portable

pytestmark = pytest.mark.torch

CPU = "instance_group [ { kind: KIND_CPU } ]\n"


def tensor(name: str, dims: str, kind: str = "FP32", comment: str = "") -> str:
    return f'{{ name: "{name}" data_type: TYPE_{kind} dims: {dims} }} # {comment}\n'


def config(inputs: list[str], outputs: list[str], extra: str = "") -> str:
    def listed(items: list[str]) -> str:
        return "".join([*(item.replace("} #", "}, #") for item in items[:-1]), items[-1]])

    return f'platform: "torch_aoti"\n{CPU}{extra}input [\n{listed(inputs)}]\noutput [\n{listed(outputs)}]\n'


def lay_out(packages: Kit, folder: Path, name: str, text: str) -> Path:
    model = folder / name
    (model / "1").mkdir(parents=True)
    shutil.copy(packages.package(name), model / "1" / "model.pt2")
    (model / "config.pbtxt").write_text(text)
    return model


def rehearsed(packages: Kit, folder: Path, name: str, text: str, release: str, **wish):
    """``code kind`` of what the rehearsal itself found, and the report."""
    model = lay_out(packages, folder, name, text)
    sample = packages.package(name).parent / "sample.pt"
    report = rehearse(
        str(model), RehearsalRequest(inputs=str(sample), triton=release, **wish), argv=(), environ=dict(os.environ)
    )
    own = [item for item in report.findings if item.facts.get("rehearsed")]
    return [f"{item.code.removeprefix('TRITON-')} {item.kind}" for item in own], report


@pytest.fixture(autouse=True)
def lent(request, monkeypatch):
    """All but the first are asked of a runner that is warm already."""
    if request.node.name != "test_nested_by_ordinals":
        warm = request.getfixturevalue("runner")
        monkeypatch.setattr(portable, "make_runner", lambda **_: nullcontext(warm))


SAME = ["REHEARSAL same"]
NESTED = [tensor(f"INPUT__{at}", "[ 4, 16 ]") for at in range(5)]
RESULTS = [tensor("OUTPUT__0", "[ 4, 16 ]"), tensor("RESULT[1]", "[ 4, 16 ]")]


def test_nested_by_ordinals(packages: Kit, case_dir: Path) -> None:
    found, report = rehearsed(packages, case_dir, "nested", config(NESTED, RESULTS), "26.05")
    assert found == SAME
    assert report.verdict == "healthy"


def test_nested_with_two_ordinals_swapped(packages: Kit, case_dir: Path) -> None:
    inputs = list(NESTED)
    inputs[1] = tensor("INPUT__1", "[ 4, 16 ]", comment='opts["b"]')
    inputs[2] = tensor("INPUT__2", "[ 4, 16 ]", comment='opts["a"]')
    found, report = rehearsed(packages, case_dir, "nested", config(inputs, RESULTS), "26.05")
    assert found == ["R27 rehearsed-swapped"] * 2
    assert report.diagnoses[0].cause == "serving-config"


def test_nested_with_a_swapped_output(packages: Kit, case_dir: Path) -> None:
    outputs = [tensor("OUTPUT__1", "[ 4, 16 ]", comment="result[0]"), tensor("OUTPUT__2", "[ 4, 16 ]")]
    found, report = rehearsed(packages, case_dir, "nested", config(NESTED, outputs), "26.05")
    assert found == ["R27 rehearsed-swapped"]
    assert next(item for item in report.findings if item.kind == "rehearsed-swapped").facts["same_as"] == 1


def test_kwargs_as_a_client_means_them(packages: Kit, case_dir: Path) -> None:
    text = config([tensor(f"INPUT__{at}", "[ 4, 16 ]") for at in range(3)], [tensor("RESULT", "[ 4, 16 ]")])
    said = {"INPUT__1": "kwargs['bias']", "INPUT__2": "kwargs['scale']"}
    assert rehearsed(packages, case_dir / "one", "kwargs", text, "26.05")[0] == SAME
    assert rehearsed(packages, case_dir / "two", "kwargs", text, "26.05", sends=said)[0] == ["R27 rehearsed-swapped"]


def test_the_order_of_the_config_in_the_first_releases(packages: Kit, case_dir: Path) -> None:
    inputs = [tensor("ARGS[1]", "[ 16, 16 ]"), tensor("ARGS[0]", "[ 16, 16 ]")]
    text = config(inputs, [tensor("OUTPUT__0", "[ 16, 16 ]")])
    assert rehearsed(packages, case_dir / "new", "pointwise", text, "26.05")[0] == SAME
    assert rehearsed(packages, case_dir / "old", "pointwise", text, "26.04")[0] == ["R26 rehearsed-swapped"]


BATCH = "max_batch_size: 64\ndynamic_batching { }\n"
MLP = config([tensor("ARGS[0]", "[ 1024 ]"), tensor("ARGS[1]", "[ 1024 ]")], [tensor("RESULT", "[ 1024 ]")], BATCH)


def test_merged_requests_by_release(packages: Kit, case_dir: Path) -> None:
    found, report = rehearsed(packages, case_dir / "old", "mlp", MLP, "26.05")
    assert found == ["R34 rehearsed-merged"] * 2
    facts = [item.facts for item in report.findings if item.kind == "rehearsed-merged"]
    assert (facts[0]["foreign"], facts[1]["bytes"]) == (8, 16 * 1024 * 4)
    assert rehearsed(packages, case_dir / "new", "mlp", MLP, "26.06")[0] == SAME
    found, report = rehearsed(packages, case_dir / "many", "mlp", MLP, "26.06", requests=20)
    assert found == SAME
    assert report.runs[0].result["cut"] == 3


def test_a_sample_beyond_the_largest_batch(packages: Kit, case_dir: Path) -> None:
    text = MLP.replace("max_batch_size: 64", "max_batch_size: 4")
    assert rehearsed(packages, case_dir, "mlp", text, "26.06")[0] == ["REHEARSAL refused"] * 2


def test_a_static_batch(packages: Kit, case_dir: Path) -> None:
    inputs = [tensor("INPUT__0", "[ 16 ]"), tensor("INPUT__1", "[ 16 ]")]
    text = config(inputs, [tensor("OUTPUT__0", "[ 16 ]")], BATCH)
    assert rehearsed(packages, case_dir, "pointwise", text, "26.06")[0] == ["R31 rehearsed-static-batch"]


@pytest.mark.parametrize(("kind", "beyond"), [("FP64", None), ("FP16", "512 of them beyond"), ("INT32", None)])
def test_a_type_that_is_read_as_another(packages: Kit, case_dir: Path, kind: str, beyond: str | None) -> None:
    inputs = [tensor("INPUT__0", "[ 16, 16 ]", kind), tensor("INPUT__1", "[ 16, 16 ]")]
    text = config(inputs, [tensor("OUTPUT__0", "[ 16, 16 ]")])
    found, report = rehearsed(packages, case_dir, "pointwise", text, "26.05")
    assert found == ["R19 rehearsed-retyped"]
    message = next(item.message for item in report.findings if item.kind == "rehearsed-retyped")
    assert beyond in message if beyond else "beyond" not in message


def test_indices_of_half_their_size(packages: Kit, case_dir: Path) -> None:
    text = config([tensor("INPUT__0", "[ 8 ]", "INT32")], [tensor("OUTPUT__0", "[ 8, 16 ]")])
    assert rehearsed(packages, case_dir, "embedding", text, "26.05")[0] == ["R19 fails"]


def test_a_scalar_is_sent_as_one_element(packages: Kit, case_dir: Path) -> None:
    inputs = [tensor("INPUT__0", "[ 4, 16 ]"), tensor("INPUT__1", "[ 4, 16 ]", "BOOL"), tensor("INPUT__2", "[ 1 ]")]
    assert rehearsed(packages, case_dir, "masked", config(inputs, RESULTS[:1]), "26.05")[0] == SAME


def test_random_numbers_say_nothing(packages: Kit, case_dir: Path) -> None:
    text = config([tensor("INPUT__0", "[ 64, 64 ]")], [tensor("OUTPUT__0", "[ 64, 64 ]")])
    assert rehearsed(packages, case_dir, "rand", text, "26.05")[0] == ["REHEARSAL random"]


def test_a_config_that_refuses_the_sample(packages: Kit, case_dir: Path) -> None:
    inputs = [tensor("INPUT__0", "[ 16, 8 ]"), tensor("INPUT__1", "[ 16, 16 ]")]
    text = config(inputs, [tensor("OUTPUT__0", "[ 16, 16 ]")])
    assert rehearsed(packages, case_dir, "pointwise", text, "26.05")[0] == ["REHEARSAL refused"]


def test_what_does_not_load_is_not_rehearsed(packages: Kit, case_dir: Path) -> None:
    text = MLP.replace("torch_aoti", "torch_aot")
    found, report = rehearsed(packages, case_dir, "mlp", text, "26.06")
    assert (found, report.verdict, report.runs) == ([], "problem", ())
    assert any(item.name == "rehearse" for item in report.not_checked)


# The init library.

RELEASE = "void triton_pytorch_model_release(void *handle) {}\n"
LIBRARIES = {
    "hook-ran": "void *triton_pytorch_model_init(const char *folder, int device) { return device == -1 ? (void *)folder : 0; }\n",
    "hook-init": "void *triton_pytorch_model_init(const char *folder, int device) { return *(void **)0; }\n",
    "hook-load": "int nowhere(void);\nvoid *triton_pytorch_model_init(const char *folder, int device) { nowhere(); return 0; }\n",
}


@pytest.mark.parametrize("kind", list(LIBRARIES))
def test_the_init_library_is_called(packages: Kit, case_dir: Path, kind: str) -> None:
    library = case_dir / "libinit.so"
    command = ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(library)]
    subprocess.run(command, input=LIBRARIES[kind] + RELEASE, text=True, check=True)
    text = MLP + f'parameters {{ key: "MODEL_INIT_LIBRARY" value {{ string_value: "{library}" }} }}\n'
    model = lay_out(packages, case_dir, "mlp", text)
    wish = RehearsalRequest(triton="26.07", load_hook=True, options=Options(timeout=20.0))
    report = rehearse(str(model), wish, argv=(), environ=dict(os.environ))
    assert kind in [item.kind for item in report.findings if item.code == "TRITON-R46"]
    assert report.runs[0].result.get("handle") if kind == "hook-ran" else report.verdict == "problem"
