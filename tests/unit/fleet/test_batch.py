"""``aotidoctor batch`` from the command line: results, reports, resume, cache, bad input."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

import aotidoctor
from aotidoctor.cli import build_app
from aotidoctor.fleet.results import read_results
from aotidoctor.model.fleet import FleetResult

pytestmark = pytest.mark.slow

DATA = Path(__file__).parents[2] / "data"
REAL = DATA / "releases" / "2.12.1" / "custop" / "model.pt2"
# Of a result: what differs from run to run.
VOLATILE = ("started", "seconds", "attempts")


def words(*more, cwd, cache=None):
    cached = ["--cache", str(cache)] if cache is not None else ["--no-cache"]
    jobs = [] if "--jobs" in more else ["--jobs", "1"]
    return [sys.executable, "-m", "aotidoctor", "batch", *map(str, more), *jobs, *cached]


def environ():
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "NO_COLOR": "1", "PYTHONSAFEPATH": "1"}


def batch(*more, cwd, cache=None, expect=None):
    """The summary, and what was written to stderr. The command is asked in this process; who judges is not."""
    given = words(*more, "--json", cwd=cwd, cache=cache)[3:]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(cwd)
        patch.setattr(sys, "argv", ["aotidoctor", *given])
        for name, value in environ().items():
            patch.setenv(name, value)
        done = CliRunner().invoke(build_app(), given)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    if expect is not None:
        assert done.exit_code == expect, done.stderr
    return json.loads(done.stdout) if done.stdout else None, done.stderr


def results(folder) -> dict[str, FleetResult]:
    found = list(read_results(str(folder)))
    assert len({one.item for one in found}) == len(found)
    return {one.name: one for one in found}


def steady(folder):
    """The lines without what differs from run to run, in the order of the file."""
    lines = [json.loads(line) for line in (Path(folder) / "results.jsonl").read_text().splitlines()]
    return [{name: value for name, value in line.items() if name not in VOLATILE} for line in lines]


@pytest.fixture
def fleet(tmp_path):
    """Real, cut off, of another kind, and a log."""
    models = tmp_path / "m"
    models.mkdir()
    shutil.copy(REAL, models / "good.pt2")
    (models / "cut.pt2").write_bytes(REAL.read_bytes()[:5000])
    (models / "text.pt2").write_text("hello\n")
    return tmp_path


def test_a_line_for_each_item_and_a_report_for_each_failure(fleet):
    (fleet / "crash.log").write_text(
        "RuntimeError: Expected dtype int64 for input 0 but got int32\nSegmentation fault\n"
    )
    summary, _ = batch("m", "m/gone.pt2", "crash.log", "-o", "out", cwd=fleet)
    found = results(fleet / "out")
    assert list(found) == ["m/cut.pt2", "m/good.pt2", "m/text.pt2", "m/gone.pt2", "crash.log"]
    assert summary["items"] == summary["judged"] == 5
    assert (found["m/cut.pt2"].verdict, found["m/cut.pt2"].cause) == ("problem", "artifact-corrupt")
    assert (found["m/text.pt2"].verdict, found["m/text.pt2"].cause) == ("problem", "artifact-wrong-kind")
    gone = found["m/gone.pt2"]
    assert (gone.ending, gone.status, gone.sha256) == ("unreadable", 4, None)
    assert "no such file" in gone.problem
    assert found["crash.log"].command == "classify"
    for result in found.values():
        path = fleet / "out" / "reports" / f"{result.item}.json"
        assert path.exists() == (result.report is not None)
        if result.ending == "judged" and not result.is_healthy:
            report = json.loads(path.read_text())
            assert report["schema"] == "aotidoctor.report/1"
            assert (report["verdict"], report["signature"]) == (result.verdict, result.signature)
            assert report["tool"]["argv"][:3] == ["aotidoctor", result.command, result.name]
    run = json.loads((fleet / "out" / "fleet.json").read_text())
    assert (run["items"], bool(run["finished"])) == (5, True)


def test_the_same_answer_as_the_command_gives_alone(fleet):
    batch("m", "-o", "out", cwd=fleet, expect=1)
    for name, result in results(fleet / "out").items():
        alone = subprocess.run(
            check=False, args=[sys.executable, "-m", "aotidoctor", "check", name, "--json"],
            cwd=fleet, capture_output=True, text=True, env=environ(), timeout=120,
        )  # fmt: skip
        report = json.loads(alone.stdout)
        assert (result.status, result.verdict, result.signature) == (
            alone.returncode,
            report["verdict"],
            report["signature"],
        )
        assert result.causes == tuple(one["cause"] for one in report["diagnoses"])
        assert result.sha256 == report["artifact"]["sha256"]


def test_what_is_unchanged_is_kept_and_what_has_changed_is_judged_again(fleet):
    cache = fleet / "c.sqlite"
    first, _ = batch("m", "-o", "out", cwd=fleet, cache=cache)
    before = steady(fleet / "out")
    again, _ = batch("m", "-o", "out", cwd=fleet, cache=cache)
    assert (first["judged"], again["judged"], again["kept"]) == (3, 0, 3)
    other, _ = batch("m", "-o", "other", cwd=fleet, cache=cache)
    assert (other["judged"], other["cached"]) == (0, 3)
    assert steady(fleet / "other") == before == steady(fleet / "out")
    assert sorted(os.listdir(fleet / "other" / "reports")) == sorted(os.listdir(fleet / "out" / "reports"))
    (fleet / "m" / "text.pt2").write_text("changed")
    changed, _ = batch("m", "-o", "out", cwd=fleet, cache=cache)
    assert (changed["judged"], changed["kept"]) == (1, 2)
    option, _ = batch("m", "-o", "out", "--device", "cuda", cwd=fleet, cache=cache)
    assert option["judged"] == 3


def test_the_same_content_under_another_path_is_taken_from_the_cache_where_it_is_healthy(fleet):
    cache = fleet / "c.sqlite"
    batch("m", "-o", "out", cwd=fleet, cache=cache)
    healthy = [one for one in results(fleet / "out").values() if one.is_healthy]
    shutil.copytree(fleet / "m", fleet / "copy")
    summary, _ = batch("copy", "-o", "other", cwd=fleet, cache=cache)
    # A report names the path that it is about.
    assert summary["cached"] == len(healthy)
    for name, result in results(fleet / "other").items():
        assert name.startswith("copy/")
        if result.report is not None:
            assert '"m/' not in (fleet / "other" / result.report).read_text()


def test_a_cache_that_is_damaged_costs_nothing_but_itself(fleet):
    cache = fleet / "c.sqlite"
    cache.write_bytes(b"no database at all" * 100)
    assert batch("m", "-o", "out", cwd=fleet, cache=cache)[0]["judged"] == 3
    # It may be somebody's file: it stays, and nothing is kept in it.
    summary, _ = batch("m", "-o", "other", cwd=fleet, cache=cache)
    assert (summary["cached"], summary["judged"]) == (0, 3)
    assert cache.read_bytes() == b"no database at all" * 100
    (fleet / "folder").mkdir()
    summary, _ = batch("m", "-o", "third", cwd=fleet, cache=fleet / "folder")
    assert summary["judged"] == 3
    # It was asked for.
    assert "cache" in summary["problem"]


def test_expected_causes_are_no_failures(fleet):
    (fleet / "f.csv").write_text(
        "package,expected,labels\nm/cut.pt2,artifact-corrupt,team=a\nm/text.pt2,artifact-wrong-kind,\n"
    )
    summary, _ = batch("f.csv", "-o", "out", cwd=fleet, expect=0)
    found = results(fleet / "out")
    assert summary["as_expected"] == 2
    assert (found["m/cut.pt2"].as_expected, dict(found["m/cut.pt2"].labels)) == (True, {"team": "a"})
    (fleet / "f.csv").write_text("package,expected,labels\nm/cut.pt2,healthy,team=b\n")
    summary, _ = batch("f.csv", "-o", "out", cwd=fleet, expect=1)
    found = results(fleet / "out")
    assert summary["kept"] == 1
    assert (found["m/cut.pt2"].as_expected, dict(found["m/cut.pt2"].labels)) == (False, {"team": "b"})
    assert list(found) == ["m/cut.pt2"]


def test_labels_are_redacted(fleet):
    token = "ghp_" + "a1" * 18
    (fleet / "f.csv").write_text(f"package,expected,labels\nm/cut.pt2,{token},team=/home/zaphod/x;{token}=b\n")
    batch("f.csv", "-o", "out", cwd=fleet, expect=1)
    text = (fleet / "out" / "results.jsonl").read_text()
    assert token not in text
    assert "zaphod" not in text
    assert results(fleet / "out")["m/cut.pt2"].labels["team"].startswith("/home/<user-")
    batch("f.csv", "-o", "plain", "--no-redact", cwd=fleet, expect=1)
    assert token in (fleet / "plain" / "results.jsonl").read_text()


def many(folder, count):
    """Small files that differ, most of them damaged packages; each takes some milliseconds."""
    folder.mkdir()
    for at in range(count):
        (folder / f"{at:03}.pt2").write_bytes(b"PK\3\4" + str(at).encode() * 50 if at % 3 else f"text {at}".encode())


def undisturbed(tmp_path):
    batch("m", "-o", "undisturbed", "--jobs", "2", cwd=tmp_path)
    return steady(tmp_path / "undisturbed"), sorted(os.listdir(tmp_path / "undisturbed" / "reports"))


def test_killed_at_six_moments_it_ends_with_the_same_file(tmp_path):
    many(tmp_path / "m", 180)
    expected, reports = undisturbed(tmp_path)
    lines = tmp_path / "out" / "results.jsonl"
    chance = random.Random(16)
    killed = 0
    for at in range(6):
        wanted = 4 + 26 * at + chance.randrange(20)
        running = subprocess.Popen(
            words("m", "-o", "out", "--jobs", "2", cwd=tmp_path), cwd=tmp_path, env=environ(),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        while running.poll() is None and (not lines.exists() or lines.read_bytes().count(b"\n") < wanted):
            time.sleep(0.002)
        time.sleep(chance.random() * 0.02)
        if running.poll() is None:
            running.send_signal(signal.SIGKILL)
            killed += 1
        running.wait()
        # The partial file is valid: every line but a torn last one can be read.
        whole = lines.read_bytes().rpartition(b"\n")[0].splitlines()
        assert all(json.loads(line)["item"] for line in whole)
    assert killed >= 5
    summary, _ = batch("m", "-o", "out", "--jobs", "2", cwd=tmp_path)
    assert summary["kept"] >= wanted - 10
    assert steady(tmp_path / "out") == expected
    assert sorted(os.listdir(tmp_path / "out" / "reports")) == reports
    assert not [name for name in os.listdir(tmp_path / "out") if name.startswith(".results")]


def test_an_interrupt_leaves_a_valid_part_and_the_status_says_so(tmp_path):
    many(tmp_path / "m", 200)
    running = subprocess.Popen(
        words("m", "-o", "out", "--json", cwd=tmp_path), cwd=tmp_path, env=environ(), stdout=subprocess.PIPE
    )
    lines = tmp_path / "out" / "results.jsonl"
    while not lines.exists() or lines.read_bytes().count(b"\n") < 5:
        time.sleep(0.005)
    running.send_signal(signal.SIGTERM)
    summary = json.loads(running.communicate(timeout=60)[0])
    assert running.returncode == 143
    assert summary["interrupted"] is True
    assert 5 <= len(results(tmp_path / "out")) == summary["judged"] < 200
    assert json.loads((tmp_path / "out" / "fleet.json").read_text())["finished"] == ""


def test_names_of_strangers_stay_names(tmp_path):
    names = ["a\nb.pt2", "\x1b[31mred.pt2", "..%2f..%2fetc.pt2", "=cmd|x.pt2", "<script>.pt2", "-o.pt2", "\udcff.pt2"]
    (tmp_path / "m").mkdir()
    for name in names:
        (tmp_path / "m" / name).write_text("x")
    (tmp_path / "f.jsonl").write_text(
        json.dumps({"package": "../../../../../../etc/passwd", "labels": {"../x": "../../y"}})
    )
    before = {path for path in tmp_path.rglob("*") if "out" not in path.parts}
    summary, stderr = batch("m", "f.jsonl", "-o", "out", cwd=tmp_path)
    assert summary["items"] == len(names) + 1
    raw = (tmp_path / "out" / "results.jsonl").read_bytes()
    assert raw.isascii()
    assert b"\x1b" not in raw
    assert raw.count(b"\n") == len(names) + 1
    assert "\x1b" not in stderr
    assert {path for path in tmp_path.rglob("*") if "out" not in path.parts} == before
    assert {path.name for path in (tmp_path / "out").iterdir()} == {".lock", "fleet.json", "results.jsonl", "reports"}
    assert all(len(path.stem) == 16 for path in (tmp_path / "out" / "reports").iterdir())


@pytest.mark.parametrize(
    "more",
    [
        ["nothing*.pt2"], ["f.csv"], ["m", "--host", "no-such-host"], ["m", "--command", "run", "--host", "debian-13"],
        ["m", "--command", "everything"], ["m", "--jobs", "0"], ["m", "-o", "older"],
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_a_usage_error_and_nothing_is_written(fleet, more):
    (fleet / "f.csv").write_text("package,zzz\nm/good.pt2,1\n")
    (fleet / "older").mkdir()
    (fleet / "older" / "fleet.json").write_text('{"schema": "aotidoctor.fleet/0"}')
    batch(*more, cwd=fleet, expect=2)
    assert not (fleet / "results").exists()
    assert os.listdir(fleet / "older") == ["fleet.json"]


def test_a_disk_that_is_full_is_an_error_and_leaves_what_was_there(tmp_path):
    many(tmp_path / "m", 60)
    # No file of more than 32 kB: twice a report, and less than the lines of all.
    command = ["bash", "-c", 'ulimit -f 32; exec "$@"', "-", *words("m", "-o", "out", cwd=tmp_path)]
    done = subprocess.run(
        command, check=False, cwd=tmp_path, env=environ(), capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 4
    assert "Traceback" not in done.stderr
    part = results(tmp_path / "out")
    assert 0 < len(part) < 60
    summary, _ = batch("m", "-o", "out", cwd=tmp_path)
    assert summary["kept"] == len(part)
    assert len(results(tmp_path / "out")) == 60


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path):
    many(tmp_path / "m", 1)
    (tmp_path / "file").write_text("")
    _, stderr = batch("m", "-o", "file/out", cwd=tmp_path, expect=4)
    assert "file" in stderr


def test_packages_times_hosts(fleet):
    summary, _ = batch(
        "m/good.pt2", "--command", "compat", "--host", "debian-13", "--host", "ubuntu-24.04", "-o", "out", cwd=fleet
    )
    found = list(read_results(str(fleet / "out")))
    assert summary["items"] == 2
    assert [one.host for one in found] == ["debian-13", "ubuntu-24.04"]
    assert all(one.command == "compat" for one in found)


def test_private_names_are_hidden(fleet):
    home = fleet / "home"
    (home / "m").mkdir(parents=True)
    (home / "m" / "x.pt2").write_text("x")
    command = words(home / "m", "-o", "out", cwd=fleet)
    subprocess.run(command, check=False, cwd=fleet, env={**environ(), "HOME": str(home)}, timeout=120)
    text = (fleet / "out" / "results.jsonl").read_text()
    assert str(home) not in text
    assert not any(str(home) in path.read_text() for path in (fleet / "out" / "reports").iterdir())
    assert str(home) not in (fleet / "out" / "fleet.json").read_text()


def test_items_that_are_urls(fleet):
    pytest.importorskip("fsspec")
    url = f"file://{fleet}/m"
    (fleet / "f.csv").write_text(f"package,labels\n{url}/good.pt2,a=b\n{url}/cut.pt2,\n{url}/gone.pt2,\n")
    cache = fleet / "c.sqlite"
    batch("f.csv", "-o", "out", cwd=fleet, cache=cache, expect=1)
    found = {name.rpartition("/")[2]: one for name, one in results(fleet / "out").items()}
    assert {name: one.verdict for name, one in found.items()} == {
        # As the file itself is judged here: its code needs vector units that not every machine has.
        "good.pt2": aotidoctor.check(str(REAL)).verdict, "cut.pt2": "problem", "gone.pt2": "unknown",
    }  # fmt: skip
    assert found["gone.pt2"].ending == "unreadable"
    assert 0 < found["good.pt2"].bytes_read <= REAL.stat().st_size == found["good.pt2"].size
    assert found["good.pt2"].sha256 is None
    summary, _ = batch("f.csv", "-o", "out", cwd=fleet, cache=cache)
    assert (summary["kept"], summary["judged"]) == (2, 1)
