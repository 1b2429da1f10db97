"""One limit over everything that a static command reads: 3 s of CPU time, 300 MB, a valid report of what was left out."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time

import jsonschema
import pytest

from aotidoctor.cli import execute
from aotidoctor.model.errors import LimitReachedError
from aotidoctor.model.inputs import MOST_LEAVES
from aotidoctor.reports.json.schema import schema
from tests.artifacts.packages import LEAF, archive_parts, model_parts, wrapper_cpp
from tests.artifacts.zips import Part, build_zip

pytestmark = pytest.mark.slow

MODEL = "model/data/aotinductor/model"
# What Python and the packages of the command itself cost is not the file's.
CPU_S, MEMORY = 3.0, 300 << 20


def package(path, *, wrapper=None, extra=()):
    parts = [*archive_parts(), *model_parts(wrapper=wrapper), *(Part(f"{MODEL}/{name}", data) for name, data in extra)]
    path.write_bytes(build_zip(parts))
    return str(path)


def wide_spec(leaves):
    many = {"type": "builtins.list", "context": "null", "children_spec": [LEAF] * leaves}
    none = {"type": "builtins.dict", "context": "[]", "children_spec": []}
    spec = json.dumps([1, {"type": "builtins.tuple", "context": "null", "children_spec": [many, none]}])
    return wrapper_cpp().replace("\n}\n", f'\n    in_spec_ = R"({spec})";\n}}\n')


def calls(count):
    lines = "".join(f"    cpp_fused_{at % 7}((float*)(buf{at}.data_ptr()));\n" for at in range(count))
    return f"{wrapper_cpp()}void AOTInductorModel::run_impl(\n    AtenTensorHandle* input_handles\n) {{\n{lines}}}\n"


# A new process counts the memory of the one that started it as its own peak: a small one stands in between.
MEASURED = """
import json, resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
sys.stdout.buffer.write(done.stdout)
print(json.dumps([done.returncode, used.ru_utime + used.ru_stime, used.ru_maxrss << 10, done.stderr.decode()]), file=sys.stderr)
"""


def examined(*words, inputs=None):
    """Exit status, report, CPU seconds and peak memory of a command in a process of its own."""
    command = [sys.executable, "-c", MEASURED, sys.executable, "-m", "aotidoctor", *map(str, words), "--json"]
    done = subprocess.run(command, capture_output=True, input=inputs, timeout=120, check=True)
    out, (status, seconds, memory, err) = done.stdout, json.loads(done.stderr)
    report = json.loads(out)
    assert "Traceback" not in err
    jsonschema.Draft202012Validator(schema()).validate(report)
    assert report["internal_error"] is None
    assert seconds < CPU_S
    assert memory < MEMORY
    return status, report


INPUTS = {
    "digits of a shape": (
        "x.npy",
        lambda: (
            b"\x93NUMPY\x01\x00\x76\x00"
            + b"{'descr': '<f4', 'fortran_order': False, 'shape': (".ljust(50)
            + b"9" * 60
            + b" x      "
        ),
    ),
    "keywords": ("k.json", lambda: json.dumps({"kwargs": {f"k{at}": 1 for at in range(3000)}}).encode()),
    "numbers": ("n.json", lambda: b"[" + b",".join([b"1"] * 900_000) + b"]"),
    "empty lists": ("l.json", lambda: b'{"args":[' + b",".join([b"[]"] * 1_500_000) + b"]}"),
    "deep lists": ("d.json", lambda: b"[" * 200_000 + b"]" * 200_000),
}


@pytest.mark.parametrize("kind", INPUTS)
def test_inputs_out_of_proportion(kind, tmp_path):
    name, make = INPUTS[kind]
    (tmp_path / name).write_bytes(make())
    status, report = examined("check", package(tmp_path / "m.pt2", wrapper=wide_spec(3)), "-i", tmp_path / name)
    assert status in (1, 6)
    assert len(json.dumps(report)) < 8 << 20
    left_out = [item for item in report["not_checked"] if item["code"] == "AD-LIMIT"]
    assert bool(left_out) == (status == 6)


PACKAGES = {
    "spaces before a control character": {
        "extra": [("k.kernel.cpp", b'extern "C" void kernel(const float' + b" " * 100_000 + b"\x01) {\n}\n")]
    },
    "outputs": {"wrapper": wrapper_cpp().replace("Base(1,\n      1,", "Base(1,\n      100000,")},
    "many outputs": {"wrapper": wrapper_cpp().replace("Base(1,\n      1,", "Base(1,\n      999999,")},
    "spaces in the constructor": {"wrapper": wrapper_cpp().replace("Base(1,", "Base(1" + " " * 300_000 + ",")},
    "leaves": {"wrapper": wide_spec(60_000)},
    "calls": {"wrapper": calls(50_000)},
    "metadata": {"extra": [(f"m{at}.wrapper_metadata.json", b"{}") for at in range(60_000)]},
    "digits": {"wrapper": wide_spec(1).replace("[1, ", "[" + "1" * 5000 + ", ")},
}


@pytest.mark.parametrize("kind", PACKAGES)
def test_packages_out_of_proportion(kind, tmp_path):
    path = package(tmp_path / "m.pt2", **PACKAGES[kind])
    status, report = examined("inspect", path)
    assert status in (0, 1, 3, 6)
    assert len(json.dumps(report)) < 8 << 20


def test_leaves_beyond_the_limit_are_reported(tmp_path):
    status, report = examined("check", package(tmp_path / "m.pt2", wrapper=wide_spec(MOST_LEAVES + 1)))
    assert status == 6
    said = [item["reason"] for item in report["not_checked"] if item["name"] == "read_contract"]
    assert said
    assert re.search(rf"not read beyond {MOST_LEAVES:,}", said[0])


@pytest.mark.parametrize(
    "body",
    [
        "input [\n" + ",\n".join(["{ name: 'INPUT__0' data_type: TYPE_FP32 dims: [1] }"] * 5000) + "\n]\n",
        "input [ { name: 'INPUT__0' data_type: TYPE_FP32 dims: [" + ",".join(["1"] * 300_000) + "] } ]\n",
    ],
    ids=["tensors of one name", "dims"],
)
def test_a_serving_config_out_of_proportion(body, tmp_path):
    (tmp_path / "1").mkdir()
    package(tmp_path / "1" / "model.pt2")
    (tmp_path / "config.pbtxt").write_text(f'platform: "torch_aoti"\n{body}')
    status, _ = examined("triton", tmp_path)
    assert status in (0, 1, 6)


LINES = {
    "a version and spaces": lambda at: f"{at} torch version" + " " * 3850,
    "dots": lambda at: f"RuntimeError {at}" + "." * 3850,
    "folders": lambda at: f"Error {at} " + "/a" * 1920,
    "table rows": lambda at: f"| {at} | 1 | UNAVAILABLE: " + " " * 3840,
}


@pytest.mark.parametrize(("how", "kind"), [*(("file", kind) for kind in LINES), ("stdin", "dots")])
def test_a_log_out_of_proportion(how, kind, tmp_path):
    text = "\n".join(map(LINES[kind], range(1500))).encode()
    (tmp_path / "x.log").write_bytes(text)
    words = ("classify", "-") if how == "stdin" else ("classify", tmp_path / "x.log")
    status, report = examined(*words, inputs=text if how == "stdin" else None)
    assert status in (0, 1, 3, 6)
    assert (status == 6) == report["out_of_time"]


@pytest.fixture
def short(monkeypatch):
    """A tenth of the time: how long it is, the commands above are asked."""
    monkeypatch.setattr(execute, "CPU_S", CPU_S / 10)
    return CPU_S / 10


def test_what_takes_too_long_is_interrupted_and_what_is_quick_is_not(short):
    with pytest.raises(LimitReachedError, match="CPU time"), execute.within_limits(()):
        re.search(r"(a|aa)+$", "a" * 60 + "b")
    with execute.within_limits(()):
        assert sum(range(1000)) == 499_500
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)


def test_memory_is_limited():
    kept = []
    with pytest.raises(LimitReachedError, match="memory"), execute.within_limits(()):
        kept.extend(os.urandom(1 << 16) for _ in range(MEMORY >> 15))
    assert len(kept) << 16 < MEMORY


def test_a_bigger_file_may_take_more(tmp_path, short):
    big = tmp_path / "big"
    with big.open("wb") as stream:
        stream.truncate(40 << 20)
    with execute.within_limits((str(big),)):
        _compute(short)
    with pytest.raises(LimitReachedError, match="CPU time"), execute.within_limits(()):
        _compute(short)


def _compute(seconds):
    start = time.process_time()
    while time.process_time() - start < seconds:
        pass
