"""The command that writes a validator: a package of another release, and no torch."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from aotidoctor.cli import build_app
from aotidoctor.commands.contract.shippable import root_of, size_text
from aotidoctor.kernels.expressions import parse_expr
from aotidoctor.model.expr import evaluate, step_of

DATA = Path(__file__).parents[2] / "data"
PACKAGE = DATA / "releases" / "2.12.1" / "custop" / "model.pt2"
CUDA = DATA / "cuda" / "mlp.pt2"
TEXTS = (
    "8L*s0 + 3L",
    "(1.0/2.0)*s0",
    "c10::div_floor_integer(static_cast<int64_t>(s0 + 1L), static_cast<int64_t>(3L))",
    "(s0 % 4L) + s1",
    "std::max({static_cast<int64_t>(s0), static_cast<int64_t>(s1)})",
    "s0*s1 - 2L*s0",
)


def call(*words):
    return CliRunner().invoke(build_app(), ["contract", *map(str, words)])


@pytest.mark.parametrize("form", ["python", "json", "cpp"])
def test_each_form_is_written_twice_alike(form, tmp_path):
    target = tmp_path / "written"
    assert call(PACKAGE, "--emit", form, "-o", target).exit_code == 0
    assert call(PACKAGE, "--emit", form).stdout == target.read_text()
    if form == "python":
        compile(target.read_text(), "written", "exec")
    if form == "json":
        assert json.loads(target.read_text())["required"] == ["args"]


# The interface of torch/csrc/inductor/aoti_runner/model_container_observer.h of torch 2.15.
INTERFACE = """
#pragma once
#include <cstddef>
namespace torch::inductor {
enum class AOTIContainerEvent { kLoadConstants, kInference };
struct AOTIObserverContext {};
struct AOTIModelContainerObserver {
  virtual ~AOTIModelContainerObserver() = default;
  virtual void on_begin(AOTIContainerEvent, const AOTIObserverContext&) = 0;
  virtual void on_end(AOTIContainerEvent, const AOTIObserverContext&, bool) = 0;
};
}
"""
PROGRAM = """
int main() {
  Observer all;
  for (bool succeeded : {true, false}) {
    all.on_begin(Observer::Event::kInference, {});
    all.on_end(Observer::Event::kInference, {}, succeeded);
  }
  auto& sums = all.sums(Observer::Event::kInference);
  bool right = sums.calls == 2 && sums.failures == 1 && sums.nanoseconds >= 0;
  return right && all.sums(Observer::Event::kLoadConstants).calls == 0 ? 0 : 1;
}
"""


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no compiler")
def test_the_observer_of_the_header_counts_calls_and_failures(tmp_path):
    header = call(PACKAGE, "--emit", "cpp").stdout
    includes = re.findall(r"#include <(?!ATen|torch)[a-z]+>|#(?:if __has|include <torch)[^\n]+observer.h>\)?", header)
    begin = header.index("#if __has_include", header.index("validate_inputs"))
    observer = header[begin : header.index("#endif", begin) + len("#endif")]
    folder = tmp_path / "torch" / "csrc" / "inductor" / "aoti_runner"
    folder.mkdir(parents=True)
    (folder / "model_container_observer.h").write_text(INTERFACE)
    head = [one for one in includes if one.startswith("#include")]
    (tmp_path / "all.cpp").write_text("\n".join([*head, observer, PROGRAM]))
    command = ["g++", "-std=c++17", "-Wall", "-Werror", "-I", str(tmp_path), "-o", str(tmp_path / "all")]
    subprocess.run([*command, str(tmp_path / "all.cpp")], check=True, timeout=120)
    assert subprocess.run([str(tmp_path / "all")], timeout=60, check=False).returncode == 0


def test_what_cannot_be_read_or_meant(tmp_path):
    assert call(tmp_path / "absent").exit_code == 4
    empty = tmp_path / "empty.pt2"
    empty.write_bytes(b"")
    assert call(empty, "--emit", "cpp").exit_code == 4
    copy = tmp_path / "m.pt2"
    copy.write_bytes(PACKAGE.read_bytes())
    assert call(copy, "-o", copy).exit_code == 2
    assert call(PACKAGE, "-o", empty / "in-a-file").exit_code == 4
    # Triton serves no package with operators of its own, unless they are loaded there.
    assert call(PACKAGE, "--emit", "pbtxt").exit_code == 4
    assert call(PACKAGE, "--emit", "rust").exit_code == 2


def test_a_name_that_is_no_python_and_no_cpp(tmp_path):
    strange = tmp_path / 'a"""\\x b\n?.pt2'
    strange.write_bytes(PACKAGE.read_bytes())
    compile(call(strange).stdout, "written", "exec")
    header = call(strange, "--emit", "cpp").stdout
    assert "namespace aotidoctor_contract::a_x_b {" in header
    assert all(line.isascii() for line in header.splitlines())


def nested(folder, levels):
    """The package with a call spec of so many containers within each other."""
    import zipfile

    leaf = '{"type": null, "context": null, "children_spec": []}'
    inner = '{"type": "builtins.tuple", "context": "null", "children_spec": ['
    spec = inner * (levels - 1) + leaf + "]}" * (levels - 1)
    keywords = '{"type": "builtins.dict", "context": "[]", "children_spec": []}'
    made = folder / f"{levels}.pt2"
    with zipfile.ZipFile(CUDA) as package, zipfile.ZipFile(made, "w") as written:
        for item in package.infolist():
            data = package.read(item)
            if item.filename.endswith(".wrapper.cpp"):
                mark = b' in_spec_ = R"('
                head, _, rest = data.partition(mark)
                assert rest
                new = f"[1, {inner}{spec}, {keywords}]}}]".encode()
                # As long strings as compilers take are what the compiler writes.
                parts = b')"\nR"('.join(new[at : at + 4000] for at in range(0, len(new), 4000))
                data = head + mark + parts + rest[rest.index(b')";') :]
            written.writestr(item, data)
    return made


@pytest.mark.parametrize("levels", [3, 64])
def test_what_lies_in_many_containers_is_written(tmp_path, levels):
    package = nested(tmp_path, levels)
    written = call(package).stdout
    namespace = {"__name__": "written"}
    exec(compile(written, "written", "exec"), namespace)
    value = "x"
    for _ in range(levels - 2):
        value = (value,)
    [found] = namespace["find_problems"]((value,))
    assert (found.cause, found.path) == ("input-nontensor", "args[0]" + "[0]" * (levels - 2))
    assert json.loads(call(package, "--emit", "json").stdout)["required"] == ["args"]
    assert call(package, "--emit", "cpp").exit_code == 0


@pytest.mark.parametrize("levels", [65, 150, 200, 400, 5000])
def test_what_lies_in_too_many_containers_is_not_read_and_said_to_be(tmp_path, levels):
    package = nested(tmp_path, levels)
    for form in ("python", "json", "cpp"):
        done = call(package, "--emit", form)
        assert (done.exit_code, "call spec" in done.output) == (4, True), form
    # Triton flattens it in a way of its own.
    assert call(package, "--emit", "pbtxt").exit_code in (0, 4)
    for words in (["check"], ["inspect"], ["compat"], ["run"], ["check", "--reference", package]):
        done = CliRunner().invoke(build_app(), [words[0], str(package), *map(str, words[1:]), "--json", "--quiet"])
        document = json.loads(done.stdout)
        assert done.exit_code in (0, 1, 3), words
        assert document["internal_error"] is None
        causes = [item["cause"] for item in document["diagnoses"]]
        assert not [cause for cause in causes if cause.startswith(("input-", "output-", "artifact-"))], words


@pytest.mark.parametrize("text", TEXTS)
def test_sizes_are_computed_as_the_compiled_code_does(text):
    from aotidoctor.commands.contract import validator

    expr = parse_expr(text)
    written = size_text(expr, {"s0": "v[0]", "s1": "v[1]"})
    assert written is not None
    for first in range(12):
        for second in range(5):
            found = eval(written, {**vars(validator), "v": {0: first, 1: second}})
            assert found == evaluate(expr, {"s0": first, "s1": second})


def test_a_line_is_turned_round():
    assert root_of(parse_expr("8L*s0 + 3L")) == (8, 1, 3, 1)
    assert step_of(parse_expr("8L*s0 + 3L")) == (8, 3)
    assert root_of(parse_expr("s0*s1")) is None
    assert step_of(parse_expr("s0*s0")) is None
