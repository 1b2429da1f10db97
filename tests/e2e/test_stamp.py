"""Packages that state their origin: nothing else changes in them, and what they state is used and doubted."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from foundry import edit
from foundry.cases import Kit
from foundry.place import cache_dir
from warm import CommandLine
from warm_python import python

from aotidoctor.commands.stamp_and_fix import make_stamp, read_program, stamp_package
from aotidoctor.model.artifact import STAMP_KEY
from aotidoctor.model.case import Options
from aotidoctor.model.errors import CannotExamineError, UsageError
from aotidoctor.readers.package.patched_copy import copy_with_member, read_member
from aotidoctor.triage.open_case import open_case

pytestmark = pytest.mark.torch


def stamped(kit: Kit, base: str, where: Path, exported: Path | None = None) -> Path:
    target = where / f"{base}.pt2"
    stamp_package(str(kit.package(base)), str(exported or kit.exported(base)), str(target))
    return target


def checked(line: CommandLine, package: Path, inputs: Path) -> dict:
    return json.loads(line("check", package, "--inputs", inputs, "--json").stdout)


def of_stamp(report: dict) -> list[tuple[str, str]]:
    return [(item["kind"], item["severity"]) for item in report["findings"] if item["code"] == "AD-ART-012"]


def restamped(package: Path, target: Path, text: str) -> Path:
    """A copy whose stamp is another text."""
    with zipfile.ZipFile(package) as archive:
        names = [name for name in archive.namelist() if name.endswith("_metadata.json")]
    (member,) = [name for name in names if STAMP_KEY in read_member(str(package), name).decode()]
    values = json.loads(read_member(str(package), member))
    copy_with_member(str(package), str(target), member, json.dumps({**values, STAMP_KEY: text}).encode())
    return target


def test_nothing_damaged_is_stamped(packages: Kit, tmp_path: Path) -> None:
    """Neither a package whose bytes are not those that were written, nor after such a program."""
    package = Path(shutil.copy(packages.package("linear"), tmp_path / "package.pt2"))
    edit.corrupt_member(package, ".so")
    exported = Path(shutil.copy(packages.exported("linear"), tmp_path / "exported.pt2"))
    edit.corrupt_member(exported, "/weight_0", offset=3)
    pairs = ((package, packages.exported("linear")), (packages.package("linear"), exported))
    for (one, other), damaged in zip(pairs, ("package.pt2", "exported.pt2"), strict=True):
        with pytest.raises(CannotExamineError, match=f"{damaged} is damaged: the data of "):
            stamp_package(str(one), str(other), str(tmp_path / "stamped.pt2"))
    assert not (tmp_path / "stamped.pt2").exists()


def test_every_other_member_stays_where_and_what_it_is(packages: Kit, tmp_path: Path) -> None:
    before, after = packages.package("mlp"), stamped(packages, "mlp", tmp_path)
    with zipfile.ZipFile(before) as one, zipfile.ZipFile(after) as other:
        assert other.testzip() is None
        assert one.namelist() == other.namelist()
        changed = [name for name in one.namelist() if one.read(name) != other.read(name)]
        moved = [
            a.filename
            for a, b in zip(one.infolist(), other.infolist(), strict=True)
            if a.header_offset != b.header_offset
        ]
    assert changed == moved
    assert len(changed) == 1
    assert changed[0].endswith("_metadata.json")
    again = tmp_path / "again.pt2"
    stamp_package(str(after), str(packages.exported("mlp")), str(again))
    with zipfile.ZipFile(again) as twice:
        assert twice.testzip() is None
        assert twice.read(changed[0]) == zipfile.ZipFile(after).read(changed[0])


def test_torch_loads_it_and_gives_the_stamp(packages: Kit, tmp_path: Path) -> None:
    package = stamped(packages, "mlp", tmp_path)
    script = (
        "import sys, torch; m = torch._inductor.aoti_load_package(sys.argv[1]);"
        "m(*torch.load(sys.argv[2])); print('AOTIDOCTOR_STAMP' in m.loader.get_metadata())"
    )
    done = python(script, package, packages.sample_path("mlp"))
    assert done.stdout.strip() == "True", done.stderr[-2000:]


def test_values_fixed_at_export_are_known_without_the_program(
    packages: Kit, tmp_path: Path, command_line: CommandLine
) -> None:
    import torch

    x, k, m, mode = packages.call("constants")[0]
    torch.save((x, k + 2, m, mode), tmp_path / "changed.pt")
    package = stamped(packages, "constants", tmp_path)
    report = checked(command_line, package, tmp_path / "changed.pt")
    assert [item["cause"] for item in report["diagnoses"]] == ["input-constant-changed"]
    (found,) = [item for item in report["findings"] if item["code"] == "AD-IN-006" and item["kind"] == "changed"]
    assert found["source"]["file"].endswith("_metadata.json")
    assert of_stamp(report) == []
    good = checked(command_line, package, packages.sample_path("constants"))
    assert (good["verdict"], good["diagnoses"]) == ("healthy", [])


def test_the_release_is_known(packages: Kit, tmp_path: Path) -> None:
    import torch

    case, unread = open_case(str(stamped(packages, "mlp", tmp_path)), None, Options(), os.environ)
    assert unread == []
    assert case.contract is not None
    assert case.contract.needs.torch_version == torch.__version__
    assert case.stamp is not None
    assert case.stamp.stamp is not None
    ranges = case.stamp.stamp.facts.ranges
    assert [(one.low, one.high) for one in ranges.values()] == [(2, 64)]
    assert [sample.shape for sample in case.stamp.stamp.sample] == [tuple(x.shape) for x in packages.call("mlp")[0]]


def test_nothing_small_is_hashed(packages: Kit) -> None:
    """A hash of a few bytes gives them away: the bias of three numbers has none."""
    made = make_stamp(read_program(str(packages.exported("linear"))))
    small = [one.fqn for one in made.facts.constants if one.tensor is not None and one.tensor.shape == ("12",)]
    assert len(made.facts.constants) > len(made.weights)
    assert not set(small) & set(made.weights)


def test_other_weights_are_seen(packages: Kit, tmp_path: Path, command_line: CommandLine) -> None:
    with zipfile.ZipFile(packages.exported("linear")) as archive:
        (weight,) = [info.filename for info in archive.infolist() if info.file_size == 768]
    data = bytearray(read_member(str(packages.exported("linear")), weight))
    data[100] ^= 1
    copy_with_member(str(packages.exported("linear")), str(tmp_path / "other.pt2"), weight, bytes(data))
    target = tmp_path / "linear.pt2"
    done = stamp_package(str(packages.package("linear")), str(tmp_path / "other.pt2"), str(target))
    assert any("weights of the package differ" in doubt for doubt in done.doubts)
    assert of_stamp(checked(command_line, target, packages.sample_path("linear"))) == [("other-weights", "warn")]
    honest = stamp_package(str(packages.package("linear")), str(packages.exported("linear")), str(target))
    assert honest.doubts == ()
    assert honest.hashed_weights >= 1


def test_a_stamp_of_another_program_or_of_none(packages: Kit, tmp_path: Path, command_line: CommandLine) -> None:
    from aotidoctor.commands.stamp_and_fix import stamp_text

    package = stamped(packages, "linear", tmp_path)
    sample = packages.sample_path("linear")
    other = stamp_text(make_stamp(read_program(str(packages.exported("mlp")))))
    foreign = restamped(package, tmp_path / "foreign.pt2", other)
    assert ("another-program", "warn") in of_stamp(checked(command_line, foreign, sample))
    aged = json.dumps(
        {**json.loads(stamp_text(make_stamp(read_program(str(packages.exported("linear")))))), "torch": "2.6.0"}
    )
    old = restamped(package, tmp_path / "old.pt2", aged)
    assert ("other-release", "warn") in of_stamp(checked(command_line, old, sample))
    for text in (
        "",
        "{",
        "[]",
        "9" * 5000,
        '{"schema": "aotidoctor.stamp/9"}',
        '{"schema": "aotidoctor.stamp/1", "facts": 3}',
    ):
        broken = restamped(package, tmp_path / "broken.pt2", text)
        assert of_stamp(checked(command_line, broken, sample)) == [("unreadable", "warn")]


def test_what_is_refused(packages: Kit, tmp_path: Path) -> None:
    linear, program = str(packages.package("linear")), str(packages.exported("linear"))
    with pytest.raises(CannotExamineError, match="was not compiled from"):
        stamp_package(linear, str(packages.exported("mlp")), str(tmp_path / "x.pt2"))
    with pytest.raises(CannotExamineError):
        stamp_package(program, program, str(tmp_path / "x.pt2"))
    with pytest.raises(CannotExamineError):
        stamp_package(linear, linear, str(tmp_path / "x.pt2"))
    with pytest.raises(CannotExamineError):
        stamp_package(linear, program, str(tmp_path / "no" / "folder" / "x.pt2"))
    with pytest.raises(UsageError):
        stamp_package(linear, program, linear)
    damaged = tmp_path / "damaged.pt2"
    damaged.write_bytes(Path(linear).read_bytes()[:-40])
    with pytest.raises(CannotExamineError):
        stamp_package(str(damaged), program, str(tmp_path / "x.pt2"))
    assert not (tmp_path / "x.pt2").exists()


BUILD = """
import sys, torch, aotidoctor
program = torch.export.load(sys.argv[1])
configs = aotidoctor.stamp(program, {"aot_inductor.metadata": {"mine": "kept"}, "aot_inductor.precompile_headers": False})
torch._inductor.aoti_compile_and_package(program, package_path=sys.argv[2], inductor_configs=configs)
"""


def test_a_package_that_is_stamped_as_it_is_compiled(packages: Kit, tmp_path: Path) -> None:
    import torch

    kept = cache_dir() / f"stamped-{torch.__version__}.pt2"
    if not kept.exists():
        draft = tmp_path / "model.pt2"
        words = [sys.executable, "-c", BUILD, str(packages.exported("constants")), str(draft)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        shutil.move(draft, kept)
    case, _ = open_case(str(kept), None, Options(), os.environ)
    assert case.stamp is not None
    found = case.stamp.stamp
    assert found is not None
    afterwards = make_stamp(read_program(str(packages.exported("constants"))))
    assert (found.torch, found.weights) == (torch.__version__, afterwards.weights)
    assert found.facts.constant_inputs == afterwards.facts.constant_inputs
    assert found.program == afterwards.program
    assert found.compiler is not None
    assert case.model is not None
    assert {entry.values["mine"] for entry in case.model.metadata} == {"kept"}
