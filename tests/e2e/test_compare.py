"""Four packages, four verdicts: a wrong decomposition, a flipped bit of a weight, rounding only, and nothing wrong."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path

import jsonschema
import pytest
import warm
from foundry import edit
from foundry.cases import Kit

from aotidoctor.reports.json.schema import schema

pytestmark = pytest.mark.torch


def ask(*words: str | Path, command: str = "compare") -> tuple[int, dict]:
    """Exit status and report."""
    done = warm.command(command, *words, "--format", "json", "--no-redact")
    report = json.loads(done.stdout)
    jsonschema.Draft202012Validator(schema()).validate(report)
    return done.returncode, report


def compared(kit: Kit, name: str, *words: str | Path, package: Path | None = None) -> tuple[int, dict]:
    model = package or kit.package(name)
    return ask(model, "--inputs", kit.sample_path(name), "--reference", kit.exported(name), *words)


def of_reference(report: dict) -> list[tuple[str, str]]:
    found = [item for item in report["findings"] if item["code"] == "AD-RUN-011"]
    return [(item["kind"], item["severity"]) for item in found]


def verdicts(report: dict) -> list[str]:
    return [item["verdict"] for item in report["localization"]["comparison"]]


def edited(kit: Kit, where: Path, change) -> Path:
    """The linear package with other constants: ``change`` gets and gives their bytes, those of ``w`` first."""

    def in_library(so: bytes) -> bytes:
        start, _ = edit.symbol_range(so, "_binary_constants_bin_start")
        end, _ = edit.symbol_range(so, "_binary_constants_bin_end")
        return edit.overwrite(so, start, change(so[start:end]))

    members = edit.replace(edit.read(kit.package("linear")), ".so", in_library)
    return edit.write(where / "model.pt2", members)


def flipped(constants: bytes) -> bytes:
    (bits,) = struct.unpack_from("<I", constants, 20)
    return constants[:20] + struct.pack("<I", bits ^ (1 << 30)) + constants[24:]


def test_nothing_wrong(packages: Kit) -> None:
    status, report = compared(packages, "linear")
    assert (status, report["verdict"], of_reference(report), verdicts(report)) == (
        0,
        "healthy",
        [("agrees", "info")],
        ["agrees"],
    )
    assert "3 weights equal" in str(report["findings"])
    assert {run["probe"] for run in report["runs"]} == {"plain_run", "again", "reference"}


def test_rounding_only(packages: Kit) -> None:
    status, report = compared(packages, "bfloat16")
    assert (status, report["verdict"], of_reference(report)) == (0, "healthy", [("precision", "info")])
    first = report["localization"]["comparison"][0]
    assert first["verdict"] == "both-within"
    # One rounding where eager has ten: the package is the closer one.
    assert first["error"] < 1 < 10 < first["reference_error"] < first["allowed"]


def test_a_wrong_decomposition(packages: Kit) -> None:
    status, report = compared(packages, "wronggelu")
    assert (status, of_reference(report)) == (1, [("differs", "error")])
    assert (report["diagnoses"][0]["cause"], report["diagnoses"][0]["confidence"]) == ("numeric-difference", 0.9)
    assert verdicts(report) == ["package-wrong", "package-wrong"]
    first = report["localization"]["comparison"][0]
    assert first["error"] > 1000 > first["allowed"] > first["reference_error"]


def test_a_flipped_bit(packages: Kit, case_dir: Path) -> None:
    status, report = compared(packages, "linear", package=edited(packages, case_dir, flipped))
    assert (status, of_reference(report)) == (1, [("weights", "error")])
    first = report["diagnoses"][0]
    assert (first["cause"], first["subject"]) == ("weights-differ", "w")
    assert "w[0, 5]: bit 30 is flipped" in first["title"]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda held: b"".join(struct.pack("<f", value / 2) for (value,) in struct.iter_unpack("<f", held)),
         "other-checkpoint"),
        (lambda held: b"".join(struct.pack("<f", value + 1) for (value,) in struct.iter_unpack("<f", held[:384]))
         + held[384:], "stale-one"),
    ],
)  # fmt: skip
def test_other_weights(packages: Kit, case_dir: Path, change, what: str) -> None:
    _, report = compared(packages, "linear", package=edited(packages, case_dir, change))
    (found,) = [item for item in report["findings"] if item["code"] == "AD-RUN-011"]
    assert (found["kind"], found["facts"]["what"]) == ("weights", what), found


def test_a_nan_in_a_weight_needs_no_reference(packages: Kit, case_dir: Path) -> None:
    package = edited(packages, case_dir, lambda held: struct.pack("<I", 0x7FC00000) + held[4:])
    status, report = ask(package, "--inputs", packages.sample_path("linear"), command="run")
    first = report["diagnoses"][0]
    assert (status, first["cause"], first["subject"]) == (1, "weights-differ", "w"), report["findings"]


def test_run_agrees_with_compare(packages: Kit) -> None:
    """Rounding is no problem for ``run`` either; without --probes it would try to name a step of the compiler."""
    name = "bfloat16"
    words = ("--inputs", packages.sample_path(name), "--reference", packages.exported(name))
    status, report = ask(packages.package(name), *words, command="run")
    assert (status, report["verdict"], of_reference(report)) == (0, "healthy", [("precision", "info")])


def test_a_saved_report_is_judged_anew(packages: Kit, case_dir: Path) -> None:
    saved = case_dir / "report.json"
    status, before = compared(packages, "wronggelu", "--report", f"json:{saved}")
    assert status == 1
    assert verdicts(ask("--from", saved)[1]) == verdicts(before)
    status, report = ask("--from", saved, "--rtol", "1e-3")
    assert (status, report["verdict"], verdicts(report)) == (0, "healthy", ["agrees", "agrees"])
    status, report = ask("--from", saved, "--rtol", "1:1e-3")
    assert (status, verdicts(report)) == (1, ["package-wrong", "agrees"])
    # The same as with a run, on a point of the grid.
    assert verdicts(compared(packages, "wronggelu", "--rtol", "1e-4")[1]) == verdicts(
        ask("--from", saved, "--rtol", "1e-4")[1]
    )


def test_side_effects_are_those_of_the_program(packages: Kit) -> None:
    """Writing to an input, or giving it back, is no difference where the program does so too."""
    for name in ("inplace", "alias", "batchnorm"):
        status, report = compared(packages, name)
        kinds = {kind for kind, _ in of_reference(report)}
        assert not kinds & {"mutation", "alias"}, (name, report["findings"])
        assert kinds == {"agrees"}, (name, report["findings"])
        assert status == 0 or name == "batchnorm"  # which was exported in training mode


def test_a_function_as_reference(packages: Kit, case_dir: Path) -> None:
    module = case_dir / "eager.py"
    module.write_text(
        "import torch\ndef gelu(x):\n    y = torch.nn.functional.gelu(x * 1.5) + 1\n    return y, y.mean(1)\n"
    )
    name = "wronggelu"
    status, report = ask(
        packages.package(name), "--inputs", packages.sample_path(name), "--reference", f"{module}:gelu"
    )
    assert (status, verdicts(report)[0]) == (1, "package-wrong"), report["localization"]


@pytest.mark.parametrize("command", ["compare", "run", "localize"])
def test_a_damaged_reference_says_nothing_of_the_package(command: str, packages: Kit, case_dir: Path) -> None:
    """One bit of its weights, which PyTorch loads as they are: the package would have other weights than it."""
    damaged = damaged_weights(packages.exported("linear"), case_dir / "damaged.pt2")
    words = ("--inputs", packages.sample_path("linear"), "--reference", damaged)
    status, report = ask(packages.package("linear"), *words, command=command)
    assert (status, report["diagnoses"]) == (4, [])
    assert "damaged.pt2 is damaged: the data of " in report["cannot_examine"]
    assert "weight" in report["cannot_examine"]


def test_nothing_is_measured_against_a_damaged_reference(packages: Kit, case_dir: Path) -> None:
    damaged = damaged_weights(packages.exported("linear"), case_dir / "damaged.pt2")
    package, sample = packages.package("linear"), packages.sample_path("linear")
    for words in (["sweep", package], ["minimize", package, "--inputs", sample, "-o", case_dir / "small"]):
        done = warm.line()(*words, "--reference", damaged)
        assert done.returncode == 4, done.stdout
        assert "damaged.pt2 is damaged: the data of " in done.stderr


def damaged_weights(program: Path, path: Path) -> Path:
    """A copy of the program in whose first weight one bit is flipped."""
    shutil.copyfile(program, path)
    edit.corrupt_member(path, "/weight_0", offset=3)
    return path


@pytest.mark.parametrize("command", ["compare", "run"])
def test_a_reference_that_takes_other_inputs_is_no_comparison(command: str, packages: Kit) -> None:
    words = ("--inputs", packages.sample_path("linear"), "--reference", packages.exported("embedding"))
    status, report = ask(packages.package("linear"), *words, command=command)
    assert status == 4
    assert report["cannot_examine"].startswith("no comparison with the reference, which is a different program")
    assert report["diagnoses"] == []
    assert ("AD-REF-001", "another-program") in [(item["code"], item["kind"]) for item in report["findings"]]
