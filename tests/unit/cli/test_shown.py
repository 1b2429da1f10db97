"""The output options that a decorated command has without declaring them."""

from __future__ import annotations

import inspect

import pytest
import typer
from typer.testing import CliRunner

from aotidoctor.cli import options as opt
from aotidoctor.cli.document_output import Format, Show
from aotidoctor.cli.options import with_options

SHARED = ["format_", "for_", "json", "report", "output_dir", "quiet", "verbose", "fail_on", "redact", "no_plugins"]


def call(command, *words):
    app = typer.Typer(rich_markup_mode=None)
    app.command()(command)
    return CliRunner().invoke(app, [*words])


def test_the_shared_options_stand_behind_the_own_ones_and_become_one_value():
    seen = []

    @with_options("package")
    def command(package: opt.Package, *, device: opt.Device = None, show: Show) -> None:
        seen.append((package, device, show))

    assert list(inspect.signature(command).parameters) == ["package", "device", *SHARED]
    assert call(command, "a.pt2", "--device", "cpu", "--json", "-vv", "--no-redact").exit_code == 0
    assert seen == [("a.pt2", "cpu", Show(format=Format.JSON, detail=2, redact=False))]


def test_an_option_of_the_same_name_stays_the_commands_own():
    seen = []

    @with_options()
    def command(*, output_dir: opt.OutputDir = "here", show: Show) -> None:
        seen.append((output_dir, show.files))

    assert call(command, "-o", "there").exit_code == 0
    assert call(command).exit_code == 0
    assert seen == [("there", ()), ("here", ())]


@pytest.mark.parametrize(
    ("target", "refused"),
    [("m", True), ("m/config.pbtxt", True), ("b.so", True), ("m/other", False), ("config.pbtxt", False)],
)
def test_what_is_examined_is_not_overwritten(target, refused, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    @with_options("package", "package/config.pbtxt", "custom_op_library", "setup")
    def command(
        package: opt.Package, *, custom_op_library: opt.CustomOpLibrary = None, setup: opt.Setup = None, show: Show
    ) -> None:
        pass

    words = ("m", "--custom-op-library", "a.so", "--custom-op-library", "b.so", "--report", f"json:{target}")
    ended = call(command, *words)
    assert ended.exit_code == (2 if refused else 0)
    assert ("is an input of this command" in ended.stderr) is refused


def test_without_lists_and_files_nothing_is_protected():
    @with_options("package", "custom_op_library")
    def command(package: opt.Package, *, custom_op_library: opt.CustomOpLibrary = None, show: Show) -> None:
        pass

    ended = call(command, "a.pt2", "--report", "json:b.json")
    assert (ended.exit_code, ended.stderr) == (0, "")
