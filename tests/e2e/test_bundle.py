"""``aotidoctor bundle`` and ``analyze`` on real packages: nothing private leaves, and the cause arrives."""

from __future__ import annotations

import base64
import io
import json
import os
import struct
import subprocess
import sys
import zipfile
from pathlib import Path
from urllib.parse import quote

import jsonschema
import pytest
from foundry import edit
from foundry.cases import Kit
from foundry.registry import FAULTS
from warm import line

pytestmark = pytest.mark.torch

SECONDS = 240
USER, OTHER, MACHINE, TOKEN, WORD = (
    "zebulonq",
    "hildegunde",
    "quokka7.corp.example.net",
    "kT9-opaque-value-41",
    "Nightjar",
)
PRIVATE = (USER, OTHER, MACHINE, "quokka7", "corp.example.net", TOKEN, WORD)
# Values that no program has by chance, exact in every floating-point format of 32 bits and more.
VALUES = (-9173.640625, 6402.3828125)


def call(*words, env=None, cwd=None):
    """Through the shell: what is private of a process is hidden, and what runs is run."""
    return subprocess.run(
        [sys.executable, "-m", "aotidoctor", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env={**os.environ, "PYTHONPATH": str(Path.cwd()), **(env or {})},
        cwd=cwd,
        check=False,
    )


def quick(*words, env=None, cwd=None):
    """In this process: for what runs nothing."""
    return line()(*words, env=env or {}, cwd=cwd)


def contents(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def encodings(word):
    """The forms of a word, written down here once more: the test must not trust what it tests."""
    lower = word.lower()
    yield from (lower.encode(), lower.encode("utf-16-le"), lower.encode("utf-16-be"), lower[::-1].encode())
    yield from (quote(lower, safe="").encode(), json.dumps(lower)[1:-1].encode(), lower.encode().hex().encode())
    yield "".join(f"\\u{ord(char):04x}" for char in lower).encode()
    yield "".join(f"%{ord(char):02x}" for char in lower).encode()


def leaks(path):
    """Private words in the raw file, in names and in members, in any encoding; and values of tensors."""
    raw = path.read_bytes()
    found = []
    for name, data in {"the file": raw, "names": "\n".join(contents(path)).encode(), **contents(path)}.items():
        lowered = data.lower()
        found += [(word, name, form) for word in PRIVATE for form in encodings(word) if form in lowered]
        for word in PRIVATE:
            for shift in range(3):
                core = base64.b64encode(b"\0" * shift + word.encode())[4:-4]
                found += [(word, name, "base64")] if len(core) > 5 and core in data else []
        for value in VALUES:
            texts = [repr(value), f"{value:.4f}", f"{value:.4e}"]
            patterns = [text.encode() for text in texts] + [struct.pack("<f", value), struct.pack("<d", value)]
            found += [(value, name, pattern) for pattern in patterns if pattern in data]
    return found


@pytest.fixture
def scene(packages: Kit, case_dir: Path):
    """A user's home with a package, inputs, a log and a set-up file that tell who it is."""
    import torch

    home = case_dir / "home" / USER
    work = home / f"{WORD}-project"
    work.mkdir(parents=True)
    members = edit.read(packages.package("pointwise"))
    source = f"\n// {home}/src/{WORD}.py by {OTHER}: /tmp/torchinductor_{OTHER}/a.py\n// {MACHINE.upper()} _ZN8{USER}3runEv\n"
    members = edit.replace(
        members, ".cpp", lambda data: data + source.encode() + f"void {USER}_fused_kernel_0();".encode()
    )
    members = edit.edit_metadata(members, trained_by=f"{USER}@{MACHINE}", notes=f"{TOKEN} in %2Fhome%2F{OTHER}%2Fx")
    edit.write(work / f"{USER}_net.pt2", members)
    x, y = packages.call("pointwise")[0]
    bad = torch.full_like(x, VALUES[0])
    bad[1, 2] = VALUES[1]
    torch.save((bad.t(), y), work / "sample.pt")
    setup = work / "setup_ops.py"
    setup.write_text(
        "import base64, sys, torch\n"
        f"print('\\x1b[1m{USER} on git.corp.example.net and {MACHINE} with {TOKEN}, token=abc123def456ghi789')\n"
        f"print(base64.b64encode(b'x{USER}y').decode(), '{USER}'.encode().hex(), flush=True)\n"
        f"print(torch.tensor([{VALUES[0]}, {VALUES[1]}], dtype=torch.float64), file=sys.stderr)\n"
    )
    log = work / f"{USER}.log"
    log.write_bytes(f"{USER}@{MACHINE}: /home/{OTHER}/x {TOKEN}\n {VALUES[0]} {VALUES[1]}\n".encode("utf-16"))
    env = {
        "HOME": str(home),
        "USER": USER,
        "HOSTNAME": MACHINE,
        "HF_TOKEN": TOKEN,
        "TRITON_CACHE_DIR": f"{home}/cache-{WORD}",
        "TORCH_EXTENSIONS_DIR": f"/home/{OTHER}/ext",
    }
    return work, env


@pytest.mark.parametrize("runs", [(), ("--run",)], ids=["check", "run"])
def test_nothing_private_leaves(scene, runs):
    work, env = scene
    package = f"{USER}_net.pt2"
    words = (
        "bundle",
        package,
        "-i",
        "sample.pt",
        "--setup",
        "setup_ops.py",
        "--log",
        f"{USER}.log",
        "--redact-word",
        WORD,
    )
    done = call(*words, *runs, "-o", "out.zip", env=env, cwd=work)
    assert done.returncode == 1, done.stdout + done.stderr
    assert leaks(work / "out.zip") == []
    found = contents(work / "out.zip")
    report = json.loads(found["report.json"])
    assert report["diagnoses"][0]["cause"] == "input-stride"
    # Identifiers stay but for the word in them, and the same word is the same everywhere.
    wrapper = next(data.decode() for name, data in found.items() if name.endswith("wrapper.cpp"))
    assert "<user>_fused_kernel_0" in wrapper
    assert "_ZN8<user>3runEv" in wrapper
    table = json.loads((work / "out.zip.map.json").read_text())["placeholders"]
    other = next(key for key, text in table.items() if text == OTHER)
    assert f"/tmp/torchinductor_{other}/a.py" in wrapper
    assert f"/home/{other}/ext" in found["host.json"].decode()
    assert table[next(key for key, text in table.items() if text == TOKEN)] == TOKEN
    manifest = json.loads(found["bundle.json"])
    assert not [item for item in manifest["left_out"] if "leak test" in item["reason"]]
    assert any(name.startswith("logs/runs/") for name in found) == bool(runs)
    assert not [name for name in found if name.endswith((".so", ".bin", ".pt"))]
    again = call("analyze", "out.zip", "--json", cwd=work)
    assert again.returncode == 1, again.stderr
    assert json.loads(again.stdout)["diagnoses"][0]["cause"] == "input-stride"


def test_a_report_as_a_bundle_does_not_leak_either(scene):
    work, env = scene
    done = call("check", f"{USER}_net.pt2", "-i", "sample.pt", "--report", "bundle:r.zip", env=env, cwd=work)
    assert done.returncode == 1, done.stderr
    # --redact-word is of bundle alone.
    assert [leak for leak in leaks(work / "r.zip") if leak[0] != WORD] == []
    assert "r.zip.map.json" in done.stderr


def test_a_dry_run_lists_and_writes_nothing(scene):
    work, env = scene
    before = sorted(os.listdir(work))
    done = quick("bundle", f"{USER}_net.pt2", "-i", "sample.pt", "--dry-run", env=env, cwd=work)
    assert sorted(os.listdir(work)) == before
    assert "report.json" in done.stdout
    assert "hidden" in done.stdout
    assert "left out:" in done.stdout
    listed = json.loads(quick("bundle", f"{USER}_net.pt2", "--dry-run", "--json", env=env, cwd=work).stdout)
    assert listed["schema"] == "aotidoctor.bundle/1"


def test_words_in_what_cannot_be_redacted_refuse_it(scene, packages):
    work, env = scene
    members = edit.read(packages.package("linear"))
    hidden = f"\0/opt/{OTHER}/{USER}.cpp\0".encode("utf-16-le")
    edit.write(work / "clean.pt2", edit.replace(members, ".so", lambda data: data + hidden))
    words = ("bundle", "clean.pt2", "--include", "package", "-o", "out.zip")
    refused = quick(*words, env=env, cwd=work)
    assert refused.returncode == 4
    assert "no bundle was written" in refused.stderr
    assert "<user> as utf-16-le in included/package/clean.pt2/" in refused.stderr
    assert ".so, byte" in refused.stderr
    assert USER not in refused.stderr
    assert not (work / "out.zip").exists()
    sent = quick(*words, "--allow-leaks", USER, "--allow-leaks", OTHER, env=env, cwd=work)
    assert sent.returncode == 0, sent.stderr
    assert "included/package/clean.pt2" in contents(work / "out.zip")
    assert "NOT REDACTED" in sent.stdout


def test_a_saved_report_and_a_kept_map(scene):
    work, env = scene
    package = f"{USER}_net.pt2"
    quick("check", package, "-i", "sample.pt", "--report", "json:saved.json", env=env, cwd=work)
    first = quick("bundle", package, "--from", "saved.json", "--map", "kept.json", "-o", "a.zip", env=env, cwd=work)
    assert first.returncode == 0, first.stderr
    assert json.loads(contents(work / "a.zip")["report.json"])["diagnoses"][0]["cause"] == "input-stride"
    second = quick("bundle", package, "-i", "sample.pt", "--map", "kept.json", "-o", "b.zip", env=env, cwd=work)
    assert (work / "b.zip").exists(), second
    sources = [
        next(data for name, data in contents(work / one).items() if name.endswith("wrapper.cpp"))
        for one in ("a.zip", "b.zip")
    ]
    assert sources[0] == sources[1]
    wrong = quick("bundle", package, "--from", "kept.json", "-o", "c.zip", env=env, cwd=work)
    assert wrong.returncode == 4
    assert "expected a report" in wrong.stderr


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("bundle", "none.pt2"), 4, "no such file"),
        (("bundle", "sample.pt", "-o", "sample.pt"), 4, "not overwritten"),
        (("bundle", "sample.pt", "--redact-word", "ab"), 2, "too short"),
        (("bundle", "sample.pt", "--run", "--from", "x.json"), 2, "cannot be combined"),
        (("bundle", "sample.pt", "-o", "/proc/none/x.zip"), 4, "could not write"),
        (("analyze", "sample.pt"), 4, "expected a bundle"),
        (("analyze", "none.zip"), 4, "no such file"),
    ],
)
def test_what_cannot_be_done_is_said(scene, words, status, said):
    work, env = scene
    done = quick(*words, env=env, cwd=work)
    assert done.returncode in (status, 2 if status == 4 and "overwritten" in said else status), done.stderr
    assert said in done.stderr + done.stdout


CAUSES = (
    "artifact_flat",
    "artifact_bomb",
    "artifact_two_so",
    "host_elf_aarch64",
    "host_undefined_symbol",
    "host_device_cuda",
    "file_pickled_code",
    "kwarg_missing",
    "tree_dict_order",
    "constant_int_changed",
    "dtype_float64",
    "shape_wider",
    "order_same_rank",
    "disagree_larger",
    "file_empty",
)
# These show only when something runs.
RUN_CAUSES = ("index_embedding_100", "divide_by_zero", "op_abort", "nan_from_log", "setup_raises")


@pytest.mark.parametrize("name", [*CAUSES, *RUN_CAUSES])
def test_the_cause_arrives_without_the_package(packages: Kit, case_dir: Path, name):
    [case] = [case for case in FAULTS if case.name == name]
    made = case.make(packages, case_dir)
    runs = ("--run",) if name in RUN_CAUSES else ()
    out = case_dir / "out.zip"
    options = [word for word in made.arguments() if word != str(made.model)]
    # A child that dies is one of a process of its own; the others run in the warm one.
    with line().lent():
        done = (call if name == "op_abort" else quick)("bundle", made.model, *options, *runs, "-o", out, env=made.env)
    assert done.returncode in (0, 1), done.stderr
    sent = json.loads(contents(out)["report.json"])
    alone = case_dir / "elsewhere.zip"
    out.rename(alone)
    made.model.rename(case_dir / "gone")
    answer = quick("analyze", alone, "--json", env={"PATH": "/usr/bin"})
    again = json.loads(answer.stdout)
    assert answer.returncode == done.returncode, answer.stderr
    assert [(one["cause"], one["status"]) for one in again["diagnoses"]] == [
        (one["cause"], one["status"]) for one in sent["diagnoses"]
    ]
    assert again["diagnoses"][0]["cause"] in case.causes
    assert again["signature"] == sent["signature"]
    assert [item["kind"] for item in again["findings"] if item["code"] == "AD-BUN-001"] == ["same"]
    assert again["command"] == "analyze"


def test_the_report_of_analyze_has_the_usual_schema(scene):
    work, env = scene
    quick("bundle", f"{USER}_net.pt2", "-i", "sample.pt", "-o", "out.zip", env=env, cwd=work)
    schema = json.loads(quick("schema").stdout)
    for form in ("md", "rich", "json"):
        done = quick("analyze", "out.zip", "--format", form, cwd=work)
        assert done.returncode == 1
        assert "input-stride" in done.stdout
    jsonschema.validate(json.loads(done.stdout), schema)


def test_a_log_in_the_bundle_is_classified_there(scene):
    work, env = scene
    (work / "server.log").write_text("RuntimeError: CUDA error: out of memory\n")
    good = work / "good.zip"
    quick("bundle", f"{USER}_net.pt2", "--log", "server.log", "-o", good, env=env, cwd=work)
    again = json.loads(quick("analyze", good, "--json", cwd=work).stdout)
    assert [one["cause"] for one in again["diagnoses"]] == ["out-of-memory"]
    assert [item["kind"] for item in again["findings"] if item["code"] == "AD-BUN-001"] == ["named-now"]


def test_an_archive_of_bundles_is_no_bundle(scene):
    work, _ = scene
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("bundle.json", "{}")
    (work / "x.zip").write_bytes(stream.getvalue())
    done = quick("analyze", "x.zip", cwd=work)
    assert done.returncode == 4
    assert "aotidoctor.bundle/1" in done.stdout
