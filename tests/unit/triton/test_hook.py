"""R46 and R47: an init library as compilers make it, and what lies beside the package."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from aotidoctor.model.artifact import Artifact, ArtifactKind
from aotidoctor.model.case import Host
from aotidoctor.model.contract import ModelContract
from aotidoctor.model.serving_config import Position
from aotidoctor.triton.init_library import read_hook, read_library
from aotidoctor.triton.judge import judge_model
from aotidoctor.triton.rules.hook import RULES
from aotidoctor.triton.serving import PLATFORM, Release, ServedModel, ServedVersion, Settled
from aotidoctor.triton.text_format import parse_config, read_fields

R46, R47 = RULES
INIT = "void *triton_pytorch_model_init(const char *folder, int device) { return 0; }\n"
RELEASE = "void triton_pytorch_model_release(void *handle) {}\n"
OLD = "void triton_pytorch_model_fini(void *handle) {}\n"
HOST = Host(system="Linux", machine=os.uname().machine, python="3.11.7")
PACKAGE = Artifact(path="m/1/model.pt2", kind=ArtifactKind.AOTI_PACKAGE, size=1000)

needs_gcc = pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++ to make a library with")


def build(folder: Path, source: str, *flags: str, language: str = "c") -> str:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "libinit.so"
    command = ["gcc", "-shared", "-fPIC", "-x", language, "-", "-o", str(path), "-x", "none", *flags]
    subprocess.run(command, input=source, text=True, check=True)
    return str(path)


def model_of(path: str | None, *, release: str = "26.07", extra: str = "", **changes) -> ServedModel:
    text = 'platform: "torch_aoti"\n' + extra
    if path is not None:
        text += f'parameters {{\n  key: "MODEL_INIT_LIBRARY"\n  value {{ string_value: "{path}" }}\n}}\n'
    config = read_fields(parse_config(text), text)
    version = ServedVersion(
        number=1,
        directory="m/1",
        package="m/1/model.pt2",
        served=True,
        files=changes.pop("files", ("model.pt2", "tables.nve")),
        artifact=PACKAGE,
        contract=changes.pop("contract", None),
    )
    return ServedModel(
        name="m",
        path="m",
        release=Release(name=release),
        host=HOST,
        text=text,
        config_path="m/config.pbtxt",
        config=config,
        settled=Settled(backend="pytorch", platform=PLATFORM, filename="model.pt2"),
        versions=(version,),
        hook=changes.pop("hook", None) or read_hook(config, {}),
        **changes,
    )


def said(rule, model: ServedModel) -> list[tuple[str, str]]:
    findings, not_checked = judge_model(model, (rule,))
    assert not_checked == ()
    assert all(item.code == rule.code and item.message and item.facts["remedy"] for item in findings)
    return [(item.kind, str(item.facts["consequence"])) for item in findings]


@needs_gcc
def test_a_good_library(tmp_path: Path) -> None:
    path = build(tmp_path, INIT + RELEASE)
    hook = read_library(path, {})
    assert hook.symbols == ("triton_pytorch_model_init", "triton_pytorch_model_release")
    assert (hook.problem, hook.target, hook.writable, hook.machine) == (None, None, (), HOST.machine)
    assert said(R46, model_of(path)) == []
    assert said(R47, model_of(path)) == []


@needs_gcc
@pytest.mark.parametrize(
    ("source", "language", "flags", "expected"),
    [
        (INIT, "c", (), [("no-release", "W")]),
        (INIT + OLD, "c", (), [("old-abi", "W")]),
        (RELEASE, "c", (), [("no-init", "F")]),
        ("int x;", "c", (), [("no-init", "F"), ("no-release", "W")]),
        (INIT + RELEASE, "c++", (), [("mangled", "F"), ("no-release", "W")]),
        (INIT + RELEASE, "c", ("-fvisibility=hidden",), [("hidden", "F"), ("no-release", "W")]),
    ],
)
def test_symbols(tmp_path: Path, source: str, language: str, flags: tuple[str, ...], expected) -> None:
    assert said(R46, model_of(build(tmp_path, source, *flags, language=language))) == expected


@needs_gcc
def test_a_library_it_needs_is_missing(tmp_path: Path) -> None:
    other = build(tmp_path / "other", "int other(void) { return 1; }", "-Wl,-soname,libother_of_ours.so")
    path = build(tmp_path, INIT + RELEASE, "-Wl,--no-as-needed", other)
    assert read_library(path, {}).libraries["libother_of_ours.so"] is None
    assert said(R46, model_of(path)) == [("needed", "F")]
    shutil.copy(other, tmp_path / "other/libother_of_ours.so")
    found = read_library(path, {"LD_LIBRARY_PATH": str(tmp_path / "other")})
    assert said(R46, model_of(path, hook=found)) == []


@needs_gcc
def test_the_backends_own_libraries_are_there(tmp_path: Path) -> None:
    torch = build(tmp_path / "torch", "int t(void) { return 1; }", "-Wl,-soname,libtorch_cpu.so")
    assert said(R46, model_of(build(tmp_path, INIT + RELEASE, "-Wl,--no-as-needed", torch))) == []


@needs_gcc
def test_who_may_change_it(tmp_path: Path) -> None:
    path = build(tmp_path / "lib", INIT + RELEASE)
    Path(path).chmod(0o775)
    assert read_library(path, {}).writable == (path,)
    assert said(R46, model_of(path)) == [("writable", "W")]
    Path(path).chmod(0o755)
    (tmp_path / "lib").chmod(0o777)
    assert read_library(path, {}).writable == (str(tmp_path / "lib"),)
    (tmp_path / "lib").chmod(0o1777)
    assert said(R46, model_of(path)) == []


@needs_gcc
def test_a_link(tmp_path: Path) -> None:
    path = build(tmp_path / "lib", INIT + RELEASE)
    link = tmp_path / "link.so"
    link.symlink_to(path)
    assert said(R46, model_of(str(link))) == [("link", "I")]


def test_nothing_there(tmp_path: Path) -> None:
    (tmp_path / "broken.so").symlink_to(tmp_path / "gone.so")
    assert said(R46, model_of(str(tmp_path / "none.so"))) == [("missing", "F")]
    assert said(R46, model_of(str(tmp_path / "broken.so"))) == [("missing", "F")]


def test_no_library(tmp_path: Path) -> None:
    text = tmp_path / "text.so"
    text.write_text("not a library")
    assert said(R46, model_of(str(text))) == [("unreadable", "F")]
    assert said(R46, model_of(str(tmp_path))) == [("unreadable", "F")]


@needs_gcc
def test_for_another_machine(tmp_path: Path) -> None:
    path = build(tmp_path, INIT + RELEASE)
    model = replace(model_of(path), host=replace(HOST, machine="riscv64"))
    assert said(R46, model) == [("machine", "F")]


@pytest.mark.parametrize(("path", "kind"), [("libinit.so", "relative"), ("./libinit.so", "relative"), ("", "empty")])
def test_paths(path: str, kind: str) -> None:
    assert said(R46, model_of(path)) == [(kind, "W")]


@pytest.mark.parametrize(("release", "expected"), [("26.06", [("ignored", "E")]), ("26.05", [("ignored", "E")])])
def test_releases_before(release: str, expected) -> None:
    assert said(R46, model_of("/none.so", release=release)) == expected


def test_no_parameter() -> None:
    assert said(R46, model_of(None)) == []


@needs_gcc
def test_the_finding_stands_at_the_value_and_instances_are_counted(tmp_path: Path) -> None:
    model = model_of(build(tmp_path, INIT + RELEASE), extra="instance_group [ { count: 3 kind: KIND_CPU } ]\n")
    found = judge_model(model, (R46,))[0]
    assert [(item.kind, item.severity.value) for item in found] == [("several-instances", "info")]
    assert found[0].source.line == 5
    assert model.config.parameters[0].value.at == Position(line=5, column=25)


# What lies beside the package.


@pytest.mark.parametrize("release", ["26.05", "26.07"])
def test_tables_that_nobody_loads(release: str) -> None:
    assert said(R47, model_of(None, release=release)) == [("not-loaded", "E")]
    assert said(R47, model_of(None, release=release, files=("model.pt2",))) == []


def test_tables_with_a_library_that_is_ignored() -> None:
    assert said(R47, model_of("/lib.so", release="26.06")) == [("not-loaded", "E")]


def test_a_library_with_nothing_to_load() -> None:
    assert said(R47, model_of("/lib.so", files=("model.pt2",))) == [("nothing-to-load", "I")]


def test_tables_in_the_wrong_folder() -> None:
    model = model_of("/lib.so", files=("model.pt2",), loose=("weights/a.nve",))
    assert ("misplaced", "E") in said(R47, model)


@pytest.mark.parametrize(
    ("weights", "constants", "expected"),
    [
        ("external", 2, [("unset-weights", "E")]),
        ("disk", 1, [("unset-weights", "E")]),
        ("so", 2, []),
        ("external", 0, []),
    ],
)
def test_weights_outside(weights: str, constants: int, expected) -> None:
    contract = ModelContract(
        model_name="model", source="wrapper.cpp", args=None, kwargs=None, leaves=(), n_inputs=1, n_constants=constants,
        weights=weights,
    )  # fmt: skip
    assert said(R47, model_of(None, files=("model.pt2",), contract=contract)) == expected
