"""Plugins as they are installed: the example by pip, and bad ones of every kind, each of which costs only itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

import aotidoctor
from aotidoctor.plugins import discover, proxies
from aotidoctor.plugins.discover import find_plugins
from aotidoctor.reports.json.schema import schema
from aotidoctor.runner.own_command import PluginHost

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
CUDA = ROOT / "tests" / "data" / "cuda" / "mlp.pt2"
HOST = "torch-2.14-cuda-13.0"
HEAD = "from aotidoctor.checks.check import Check, Finder\nAOTIDOCTOR_API = 1\nFIND = Finder('BAD-001', 'bad_one')\n"
CHECK = "CHECK = Check(code='BAD-001', name='bad_one', cause='bad-cause', stage='inputs', needs=(), run=run)\n"


@pytest.fixture(scope="session")
def acme(tmp_path_factory):
    """The example, installed as its users install it, but for the index and the dependencies."""
    pytest.importorskip("hatchling", reason="hatchling is not installed")
    target = tmp_path_factory.mktemp("acme")
    words = ["install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--target", str(target)]
    command = [sys.executable, "-m", "pip", *words, "--disable-pip-version-check", str(ROOT / "examples" / "plugin")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return target


@pytest.fixture
def install(tmp_path):
    """``install(text, group="checks")``: a plugin with one module, by hand; its folder."""

    def make(text, group="checks", attribute="CHECK", name="bad"):
        folder = tmp_path / f"site-{name}"
        info = folder / f"{name}_plugin-2.5.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}-plugin\nVersion: 2.5\n")
        target = f"{name}_plugin:{attribute}" if attribute else f"{name}_plugin"
        (info / "entry_points.txt").write_text(
            f"[console_scripts]\nx = y:z\n\n[aotidoctor.{group}]\n{name} = {target}\n"
        )
        (folder / f"{name}_plugin.py").write_text(text)
        return folder

    return make


def call(*words, sites=(), cwd=None, **environ):
    """The command line with plugins on its path: exit status and what it says."""
    path = os.pathsep.join([*map(str, sites), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-m", "aotidoctor", *map(str, words)],
        capture_output=True, text=True, check=False, cwd=cwd, timeout=240, env={**os.environ, "PYTHONPATH": path, **environ},
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    return done


def report(*words, sites=(), **more):
    done = call(*words, "--json", sites=sites, **more)
    document = json.loads(done.stdout)
    jsonschema.Draft202012Validator(schema()).validate(document)
    return document


def test_the_example_takes_part(acme, tmp_path):
    table = tmp_path / "acme.csv"
    words = ("check", CUDA, "--host", HOST, "--report", f"acme-csv:{table}")
    document = report(*words, sites=[acme], ACME_RACK="r7")
    assert document["verdict"] == "problem"
    first = document["diagnoses"][0]
    assert (first["cause"], first["subject"]) == ("acme-batch-limit", "args[0]")
    assert first["title"].startswith("args[0] is compiled for batches up to 1024")
    finding = next(item for item in document["findings"] if item["code"] == "ACME-001")
    assert finding["id"] in first["evidence"]
    assert document["extra"]["plugins"] == "; ".join(
        f"acme_aoti 1.0: {group} acme" for group in ("checks", "playbooks", "host_facts")
    )
    assert document["extra"]["host.acme.rack"] == "r7"
    assert table.read_text().strip().endswith(",problem,acme-batch-limit")


def test_off(acme):
    document = report("check", CUDA, "--host", HOST, "--no-plugins", sites=[acme])
    assert document["verdict"] == "healthy"
    assert "plugins" not in document["extra"]


def test_a_log_and_a_page(acme, monkeypatch):
    log = b"acme-launcher: cannot map libacme_ops.so.3\n"
    assert aotidoctor.classify(log).diagnoses == ()
    monkeypatch.syspath_prepend(str(acme))
    first = aotidoctor.classify(log).diagnoses[0]
    assert (first.cause, first.subject) == ("missing-library", "libacme_ops.so.3")
    assert aotidoctor.classify(log, no_plugins=True).diagnoses == ()
    assert "512" in call("explain", "acme-batch-limit", sites=[acme]).stdout
    assert call("explain", "acme-batch-limit").returncode == 2


def test_the_validator(acme, install):
    done = call("plugins", "--json", sites=[acme])
    listed = json.loads(done.stdout)
    assert (done.returncode, listed["schema"], listed["api"]) == (0, "aotidoctor.plugins/1", 1)
    groups = {row["group"] for row in listed["plugins"]}
    assert groups == {"checks", "probes", "playbooks", "reports", "host_facts", "log_patterns", "setup"}
    assert all(row["problem"] is None for row in listed["plugins"])
    assert all((row["distribution"], row["version"]) == ("acme_aoti", "1.0") for row in listed["plugins"])
    broken = call("plugins", sites=[acme, install("raise RuntimeError('no licence')\n")])
    assert broken.returncode == 1
    assert "bad_plugin 2.5 checks bad = bad_plugin:CHECK: RuntimeError: no licence" in broken.stdout
    assert (
        "no licence"
        not in call("plugins", "--list", sites=[install("raise RuntimeError('no licence')\n", name="x")]).stdout
    )
    assert call("plugins").stdout == "no plugins are installed (interface 1)\n"


USING = {
    "raises": ("def run(case): raise ValueError('odd')\n", "ValueError: odd"),
    "exits": ("import sys\ndef run(case): sys.exit(3)\n", "SystemExit: 3"),
    "dies": ("import os\ndef run(case): os._exit(3)\n", "it ended its process: exit status 3"),
    "crashes": ("import ctypes\ndef run(case): ctypes.string_at(0)\n", "it ended its process: signal 11"),
    "hangs": ("import time\ndef run(case): time.sleep(600)\n", "no answer within"),
    "holds the interpreter": ("import re\ndef run(case): re.match('(a+)+$', 'a' * 60 + 'b')\n", "no answer within"),
    "floods": ("def run(case): return [FIND.info('k', str(i), observed='x', expected='y') for i in range(10**4)]\n", "findings|no answer"),
    "floods without end": ("import itertools\ndef run(case): return (FIND.info('k', None, observed='x', expected='y') for _ in itertools.count())\n", "findings|no answer"),
    "says too much": ("def run(case): return [FIND.info('k', None, observed='x' * 10**7, expected='y')]\n", "bytes, expected at most"),
    "answers nonsense": ("def run(case): return 7\n", "run: observed int, expected several"),
    "answers other things": ("def run(case): return ['x', 3]\n", "observed no Evidence"),
    "speaks for others": ("def run(case): return [Finder('AD-IN-010', 'x').error('dtype', None, observed='a', expected='b')]\n", "a finding with the code AD-IN-010"),
}  # fmt: skip


@pytest.fixture
def together(install, monkeypatch):
    """All of them installed at once, and asked in this process: ``together(texts)`` is the report."""

    def make(texts):
        monkeypatch.setattr(proxies, "ASK_S", 2.5)
        for number, text in enumerate(texts):
            name = f"bad{number}"
            own = text.replace("BAD-001", f"BAD-{number:03}").replace("bad_one", f"bad_one_{number}")
            monkeypatch.syspath_prepend(str(install(own.replace("bad-cause", f"{name}-cause"), name=name)))
        return aotidoctor.check(CUDA, host=HOST)

    return make


def test_a_bad_check_costs_only_itself(together):
    head = HEAD + "print('on stdout', flush=True)\n"
    made = together([head + text + CHECK for text, _ in USING.values()])
    assert made.verdict == "healthy"
    unchecked = {item.code: item for item in made.not_checked}
    for number, (text, expected) in enumerate(USING.values()):
        reason = unchecked[f"BAD-{number:03}"].reason
        assert f"bad{number}_plugin 2.5: checks bad{number}" in reason, text
        assert any(word in reason for word in expected.split("|")), (text, reason)
        assert len(reason) < 3000


GOOD_RUN = "def run(case): return []\n"
LOADING = {
    "raises": ("raise ValueError('odd')\n", "ValueError: odd"),
    "is not there": ("AOTIDOCTOR_API = 1\n", "AttributeError"),
    "of no version": (HEAD.replace("AOTIDOCTOR_API = 1\n", "") + GOOD_RUN + CHECK, "AOTIDOCTOR_API: observed None, expected 1"),
    "of another version": (HEAD.replace("API = 1", "API = 2") + GOOD_RUN + CHECK, "observed 2, expected 1"),
    "no check": ("AOTIDOCTOR_API = 1\nCHECK = 3\n", "observed int, expected Check"),
    "code of ours": (HEAD + GOOD_RUN + CHECK.replace("BAD-001", "AD-IN-010"), "that does not begin with AD-"),
    "name of ours": (HEAD + GOOD_RUN + CHECK.replace("bad_one", "input_dtype"), "which is taken"),
    "cause of nobody": (HEAD + GOOD_RUN + CHECK.replace("bad-cause", "evil-cause"), "one that begins with bad-"),
    "stage": (HEAD + GOOD_RUN + CHECK.replace("'inputs'", "'nowhere'"), "stage: observed 'nowhere'"),
}  # fmt: skip


def test_one_that_cannot_be_loaded_is_named(together):
    made = together([text for text, _ in LOADING.values()])
    assert made.verdict == "healthy"
    problems = {item.name: item.reason for item in made.not_checked if item.code == "AD-PLUGIN"}
    for number, (_, expected) in enumerate(LOADING.values()):
        assert expected.replace("bad-", f"bad{number}-") in problems.pop(f"bad{number}_plugin 2.5: checks bad{number}")
    assert problems == {}
    assert "plugins" not in made.extra


GROUPS = {
    "nonsense": ("X = 1\n", "observed the group aotidoctor.nonsense"),
    "playbooks": ("AOTIDOCTOR_API = 1\nX = '/no/such/folder'\n", "FileNotFoundError"),
    "log_patterns": ("AOTIDOCTOR_API = 1\nX = __file__\n", "no block `toml log`"),
    "host_facts": ("AOTIDOCTOR_API = 1\ndef X(): return 3\n", "observed int, expected a mapping"),
    "reports": ("AOTIDOCTOR_API = 1\nX = 3\n", "expected a function"),
}


def test_every_group_is_checked(install):
    sites = [install(text, group=group, attribute="X", name=group) for group, (text, _) in GROUPS.items()]
    sites.append(install("AOTIDOCTOR_API = 1\nX = __file__\n", group="playbooks", attribute="X", name="other"))
    sites.append(install("AOTIDOCTOR_API = 1\n", group="setup", attribute="", name="set"))
    done = call("plugins", sites=sites)
    assert done.returncode == 1
    lines = {line.partition("_plugin")[0]: line for line in done.stdout.splitlines()}
    for group, (_, expected) in GROUPS.items():
        assert expected in lines[group]
    assert "expected a cause that begins with other-" in lines["other"]
    assert lines["set"].endswith(": ok")


def test_a_pattern_that_takes_for_ever_is_refused(install, tmp_path, monkeypatch):
    folder = tmp_path / "patterns"
    folder.mkdir()
    block = "```toml log\n[[pattern]]\nregex = '{}'\nexample = 'aaaa b'\nsource = 'x'\n```\n"
    (folder / "missing-library.md").write_text(block.format(r"(?:(?:a|a)*(?:a|a)*)*(?:a|aa)+ b$"))
    site = install(f"AOTIDOCTOR_API = 1\nX = {str(folder)!r}\n", group="log_patterns", attribute="X")
    monkeypatch.setattr(proxies, "DESCRIBE_S", 3.0)
    monkeypatch.syspath_prepend(str(site))
    with PluginHost() as host:
        ((_, problem),) = proxies.load_plugins(find_plugins(), host).broken
    assert "no answer within 3 s" in problem


def test_a_format_that_fails_is_status_4_after_the_report(install, tmp_path):
    site = install("AOTIDOCTOR_API = 1\ndef X(report): raise ValueError('odd')\n", group="reports", attribute="X")
    done = call("check", CUDA, "--host", HOST, "--report", f"bad:{tmp_path / 'out'}", "--json", sites=[site])
    assert json.loads(done.stdout)["verdict"] == "healthy"
    assert done.returncode == 4
    assert "the plugin failed: ValueError: odd" in done.stderr
    assert call("check", CUDA, "--report", "nobody:out").returncode == 2


def test_what_lies_beside_a_package_is_not_installed(install, tmp_path):
    site = install(HEAD + "open('hit', 'w').close()\n" + GOOD_RUN + CHECK)
    (site / "model.pt2").write_bytes(CUDA.read_bytes())
    document = report("check", "model.pt2", "--host", HOST, cwd=site)
    assert "plugins" not in document["extra"]
    assert all(item["code"] != "AD-PLUGIN" for item in document["not_checked"])
    assert not (site / "hit").exists()


def test_nothing_is_started_where_nothing_is_installed():
    code = (
        "import sys\nfrom aotidoctor.cli import build_app\n"
        "try:\n    build_app()(['check', '/no/such.pt2', '--json'], prog_name='aotidoctor')\nexcept SystemExit:\n    pass\n"
        "print(*(n for n in sys.modules if n.startswith(('aotidoctor.plugins', 'importlib.metadata', 'aotidoctor.runner.own_command'))), file=sys.stderr)"
    )
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environ)
    assert set(done.stderr.split()) <= {"aotidoctor.plugins", "aotidoctor.plugins.discover"}


def test_the_library(acme, monkeypatch):
    monkeypatch.syspath_prepend(str(acme))
    assert {entry.name for entry in find_plugins()} == {"acme", "acme-csv"}
    used = aotidoctor.check(CUDA, host=HOST)
    assert (used.cause, "acme_aoti" in used.extra["plugins"]) == ("acme-batch-limit", True)
    unused = aotidoctor.check(CUDA, host=HOST, no_plugins=True)
    assert (unused.cause, "plugins" in unused.extra) == (None, False)
    for shown in (used.to_html(), used.to_markdown(), used.to_text()):
        assert "acme_aoti 1.0: checks acme" in shown.replace("\\", "")


def test_entry_points_of_strangers_are_text(tmp_path, monkeypatch):
    info = tmp_path / "odd-1.dist-info"
    info.mkdir()
    (info / "entry_points.txt").write_bytes(
        b"[aotidoctor.checks]\n\xff\xfe = \x00\n= x\na = b c d\n[aotidoctor.checks\nok = m:n\n" + b"x" * 10**6
    )
    monkeypatch.setattr(discover, "import_path", lambda: [str(tmp_path), "/no/such", str(info / "entry_points.txt")])
    assert [(entry.name, entry.target, entry.version) for entry in find_plugins()] in ([], [("ok", "m:n", "?")])
