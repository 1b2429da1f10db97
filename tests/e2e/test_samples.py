"""Many samples of one package: a folder, a pattern, a list of calls; what fails alike, and which one is the first."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
import warm
from foundry.cases import Kit

from aotidoctor.reports.json.schema import schema
from tests.optional import optional

torch = optional("torch")

pytestmark = pytest.mark.torch


def ask(command: str, *words: str | Path) -> dict:
    """The report of ``command``."""
    done = warm.command(command, *words, "--format", "json", "--no-redact")
    report = json.loads(done.stdout)
    jsonschema.Draft202012Validator(schema()).validate(report)
    return report


def saved(folder: Path, calls: list[tuple]) -> Path:
    """A folder with a file for each call."""
    folder.mkdir()
    for at, call in enumerate(calls):
        torch.save(call, folder / f"s{at}.pt")
    return folder


def tokens(count: int) -> list[tuple]:
    return [(torch.arange(at, at + 8),) for at in range(count)]


def test_a_folder_of_good_samples(packages: Kit, tmp_path: Path) -> None:
    report = ask("run", packages.package("embedding"), "-i", saved(tmp_path / "good", tokens(12)))
    found = report["samples"]
    assert (report["verdict"], found["given"], found["called"], found["bad"], found["processes"]) == (
        "healthy",
        12,
        12,
        0,
        1,
    )
    # In the order of their numbers: s10 comes behind s9.
    assert [Path(row["name"]).stem for row in found["rows"]] == [f"s{at}" for at in range(12)]
    (output,) = found["outputs"]
    assert (output["path"], output["samples"], output["distinct"], output["shapes"]) == ("result", 12, 12, ["[8, 16]"])
    assert output["low"] < output["high"]


def test_failures_alike_stand_together(packages: Kit, tmp_path: Path) -> None:
    calls = tokens(8)
    calls[2], calls[6], calls[4] = (torch.full((8,), 100),), (torch.full((8,), 700),), (calls[4][0].int(),)
    folder = saved(tmp_path / "mixed", calls)
    (folder / "s5.pt").write_bytes(b"no tensors")
    report = ask("run", packages.package("embedding"), "-i", f"{folder}/s*.pt")
    found = report["samples"]
    clusters = [(one["cause"], one["subject"], one["status"], one["count"]) for one in found["clusters"]]
    assert clusters[:2] == [
        ("index-out-of-range", "args[0]", "confirmed", 2),
        ("input-dtype", "args[0]", "confirmed", 1),
    ]
    assert clusters[2][0].startswith("inputs-file-")
    assert (found["bad"], Path(found["first_bad"]).name, Path(found["examined"]).name) == (4, "s2.pt", "s2.pt")
    # The rest of the report is about the first bad one.
    assert (report["verdict"], report["diagnoses"][0]["cause"]) == ("problem", "index-out-of-range")
    assert [row["verdict"] for row in found["rows"]].count("healthy") == 4


def test_a_sample_that_ends_its_process_loses_no_other(packages: Kit, tmp_path: Path) -> None:
    calls = [(torch.randn(16, 16), torch.randn(16, 16)) for _ in range(6)]
    folder = saved(tmp_path / "crash", calls)
    kill = tmp_path / "kill.py"
    kill.write_text(
        "import os, signal\n"
        "def after_load(model):\n"
        "    flat = model.flat\n"
        "    def checked(args, kwargs):\n"
        "        if float(args[0][0, 0]) > 1e6:\n"
        "            os.kill(os.getpid(), signal.SIGSEGV)\n"
        "        return flat(args, kwargs)\n"
        "    model.flat = checked\n"
    )
    for at in (1, 4):
        calls[at][0][0, 0] = 1e7
        torch.save(calls[at], folder / f"s{at}.pt")
    report = ask("run", packages.package("pointwise"), "-i", folder, "--setup", kill)
    found = report["samples"]
    verdicts = [row["verdict"] for row in found["rows"]]
    assert [at for at, verdict in enumerate(verdicts) if verdict != "healthy"] == [1, 4], found["rows"]
    assert "SIGSEGV" in found["rows"][1]["observed"]
    # Each of the two ends one process behind others, and one of its own.
    assert found["processes"] == 5
    assert (len(found["clusters"]), found["clusters"][0]["count"]) == (1, 2)


def test_a_list_is_many_calls_where_it_is_not_one(packages: Kit, tmp_path: Path) -> None:
    many, one = tmp_path / "many.pt", tmp_path / "one.pt"
    torch.save(tokens(5), many)
    torch.save([torch.randn(16, 16), torch.randn(16, 16)], one)
    found = ask("run", packages.package("embedding"), "-i", many)["samples"]
    assert (found["given"], found["bad"], found["rows"][3]["name"]) == (5, 0, f"{many}[3]")
    assert ask("run", packages.package("pointwise"), "-i", one).get("samples") is None


def test_samples_against_the_reference_and_judged_anew(packages: Kit, tmp_path: Path) -> None:
    folder = saved(tmp_path / "gelu", [(torch.randn(8, 32) * scale,) for scale in (0.0, 1.0, 3.0)])
    given = torch.load(packages.sample_path("wronggelu"), weights_only=True)
    args = given["args"] if isinstance(given, dict) else given
    for at, scale in enumerate((0.0, 1.0, 3.0)):
        torch.save(tuple(one * scale for one in args), folder / f"s{at}.pt")
    words = (packages.package("wronggelu"), "-i", folder, "--reference", packages.exported("wronggelu"))
    report = ask("compare", *words)
    found = report["samples"]
    assert [row["verdict"] for row in found["rows"]] == ["healthy", "problem", "problem"]
    assert (found["bad"], Path(found["first_bad"]).name) == (2, "s1.pt")
    worst = max(found["outputs"], key=lambda one: one["max_abs"])
    assert (worst["differing"], worst["samples"]) == (2, 3)
    file = tmp_path / "report.json"
    file.write_text(json.dumps(report))
    for again in (ask("analyze", file, "--atol", "10"), ask("compare", "--from", file, "--atol", "10")):
        assert (again["verdict"], again["samples"]["bad"], again["samples"]["clusters"]) == ("healthy", 0, [])
    strict = ask("analyze", file, "--atol", "1e-12")
    assert (strict["verdict"], strict["samples"]["bad"]) == ("problem", 2)


def test_digests_in_the_place_of_values(packages: Kit, tmp_path: Path) -> None:
    folder = saved(tmp_path / "good", tokens(2))
    report = ask("run", packages.package("embedding"), "-i", folder, "--values", "hash")
    found = report["samples"]
    assert [len(row["outputs"][0]) for row in found["rows"]] == [64, 64]
    assert (found["outputs"][0]["low"], found["outputs"][0]["high"]) == (None, None)
    assert all(not {"min", "max", "mean"} & set(one) for run in report["runs"] for one in run["outputs"])
    assert [leaf["stats"] for leaf in report["inputs"]["leaves"]] == [None]


@pytest.mark.parametrize("given", ["empty", "nothing*.pt"])
def test_nothing_to_call(packages: Kit, tmp_path: Path, given: str) -> None:
    (tmp_path / "empty").mkdir()
    report = ask("run", packages.package("embedding"), "-i", tmp_path / given)
    assert given in report["cannot_examine"]
