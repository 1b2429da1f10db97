"""Paths that are URLs: fetched or read by ranges, bounded, and without credentials in anything that is written."""

from __future__ import annotations

import hashlib
import json
import os
import re
import threading
import zipfile
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from typer.testing import CliRunner

from aotidoctor.cli import build_app
from aotidoctor.fleet.results import read_results
from aotidoctor.remote.remote_files import base_name, clean_text, clean_url, is_url
from aotidoctor.remote.remote_packages import fetch_file
from tests.artifacts.machines import with_every_vector_unit
from tests.optional import optional

optional("fsspec")
optional("aiohttp")

REAL = Path(__file__).parents[2] / "data" / "releases" / "2.12.1" / "custop" / "model.pt2"
SECRETS = ("s3cret", "t0ken", "alice")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with_every_vector_unit(monkeypatch)


class Handler(BaseHTTPRequestHandler):
    """Serves ``server.files`` as ``server.ways`` says: with ranges, without, refusing, or cut off."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def do_HEAD(self):
        self.answer(body=False)

    def do_GET(self):
        self.answer(body=True)

    def answer(self, *, body):
        server = self.server
        name = self.path.partition("?")[0].lstrip("/")
        server.asked.append((self.command, name, self.headers.get("Range")))
        data = server.files.get(name)
        status = server.ways.get("status") or (404 if data is None else 200)
        if status != 200:
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        wanted = re.match(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        if wanted and server.ways.get("ranges", True):
            start, end = int(wanted[1]), int(wanted[2] or len(data) - 1)
            part = data[start : end + 1]
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{end}/{len(data)}")
        else:
            part = data
            self.send_response(200)
        if server.ways.get("etag"):
            self.send_header("ETag", server.ways["etag"])
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        if body:
            server.sent += len(part)
            cut = server.ways.get("cut")
            self.wfile.write(part[:cut] if cut else part)
            if cut and cut < len(part):
                self.close_connection = True


@contextmanager
def serving(files, **ways):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.files, server.ways, server.asked, server.sent = files, ways, [], 0
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server, f"http://alice:s3cret@127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def call(*words):
    done = CliRunner().invoke(build_app(), [*map(str, words), "--json"])
    assert not any(secret in done.stdout + done.stderr for secret in SECRETS)
    return done.exit_code, json.loads(done.stdout) if done.stdout.startswith("{") else done.stderr


def alone(*words):
    return call(*words)[1]


def essential(report):
    return report["verdict"], [one["cause"] for one in report["diagnoses"]], [one["code"] for one in report["findings"]]


def big(tmp_path, size):
    """A real package with a member of ``size`` random bytes, stored."""
    path = tmp_path / "big.pt2"
    path.write_bytes(REAL.read_bytes())
    with zipfile.ZipFile(path, "a") as archive:
        root = archive.namelist()[0].partition("/")[0]
        archive.writestr(f"{root}/data/weights/weight_0", os.urandom(size))
    return path.read_bytes()


def test_a_package_is_judged_by_a_few_of_its_bytes(tmp_path):
    data = big(tmp_path, 8 << 20)
    with serving({"m.pt2": data}) as (server, url):
        status, report = call("check", f"{url}/m.pt2?X-Signature=t0ken#part")
    local = alone("check", tmp_path / "big.pt2")
    assert status == 0
    assert essential(report) == essential(local)
    assert report["contract"] == local["contract"]
    assert report["artifact"]["size"] == len(data)
    assert re.fullmatch(r"http://[^/@?]+/m\.pt2", report["artifact"]["path"])
    assert int(report["extra"]["bytes_total"]) == len(data)
    assert int(report["extra"]["bytes_read"]) <= server.sent < len(data) // 8
    assert any(one["code"] == "AD-REMOTE" for one in report["not_checked"])
    assert not any(path.is_file() for path in (tmp_path / "cache").rglob("*"))


@pytest.mark.parametrize("command", ["check", "inspect"])
def test_a_server_without_ranges_gives_the_whole_file(tmp_path, command):
    data = big(tmp_path, 1 << 20)
    with serving({"m.pt2": data}, ranges=False) as (_, url):
        status, report = call(command, f"{url}/m.pt2")
    local = alone(command, tmp_path / "big.pt2")
    assert status == 0
    assert essential(report) == essential(local)
    assert report["artifact"]["sha256"] == local["artifact"]["sha256"] is not None
    assert report["artifact"]["path"].startswith("http://")
    assert str(tmp_path / "cache") not in json.dumps(report)


@pytest.mark.parametrize("cut", [100, 30_000])
def test_what_is_damaged_there_is_damaged_and_what_is_cut_on_the_way_is_not(tmp_path, cut):
    data = REAL.read_bytes()
    with serving({"m.pt2": data[: len(data) // 2]}) as (_, url):
        status, report = call("check", f"{url}/m.pt2")
        assert (status, essential(report)[:2]) == (1, ("problem", ["artifact-corrupt"]))
    with serving({"m.pt2": data}, cut=cut) as (_, url):
        status, report = call("check", f"{url}/m.pt2")
        assert status == 4
        assert report["diagnoses"] == report["findings"] == []
    with serving({"m.pt2": data}, cut=cut, ranges=False) as (_, url):
        assert call("check", f"{url}/m.pt2")[0] == 4


@pytest.mark.parametrize("status", [401, 403, 404, 500])
@pytest.mark.parametrize("command", ["check", "inspect", "classify", "analyze"])
def test_a_server_that_refuses_is_told(status, command):
    with serving({}, status=status) as (_, url):
        code, report = call(command, f"{url}/m.pt2?sig=t0ken")
    assert code == 4
    assert "127.0.0.1" in report["cannot_examine"]
    assert (
        report["cannot_examine"].startswith("no such file")
        if status == 404
        else str(status) in report["cannot_examine"]
    )


def test_an_item_of_a_fleet_that_is_refused_costs_itself_only(tmp_path):
    out = tmp_path / "out"
    with serving({}, status=403) as (_, url):
        code, summary = call("batch", f"{url}/m.pt2?sig=t0ken", REAL, "-o", out, "--jobs", "1", "--no-cache")
    lines = {one.name.rpartition("/")[2]: one for one in read_results(str(out))}
    refused, judged = lines["m.pt2"], lines["model.pt2"]
    # The children judge for the real CPU, and the code of the package needs vector units that not every one has.
    assert (judged.verdict, judged.cause) in (("healthy", None), ("problem", "isa-mismatch"))
    assert (code, summary["judged"]) == (4 if judged.verdict == "healthy" else 1, 2)
    assert (refused.status, refused.cause) == (4, None)
    assert "403" in refused.problem
    assert not any(secret in path.read_text() for path in out.rglob("*.json*") for secret in SECRETS)


def test_nobody_there():
    code, report = call("check", "http://alice:s3cret@127.0.0.1:9/m.pt2?sig=t0ken")
    assert (code, bool(report["cannot_examine"])) == (4, True)


def test_an_unknown_protocol_is_told():
    code, report = call("check", "nosuch://alice:s3cret@host/m.pt2")
    assert (code, "nosuch://host/m.pt2" in report["cannot_examine"]) == (4, True)


def test_memory_and_file_are_protocols_too(tmp_path):
    import fsspec

    fsspec.filesystem("memory").pipe("/fleet/m.pt2", REAL.read_bytes())
    local = essential(alone("check", REAL))
    for url in ("memory://fleet/m.pt2", f"file://{REAL}"):
        report = alone("check", url)
        assert essential(report) == local
        # A folder of the checkout may be hidden.
        assert report["artifact"]["path"].partition("://")[0] == url.partition("://")[0]
        assert report["artifact"]["path"].endswith(url[url.rindex("/") :])
        assert 0 < int(report["extra"]["bytes_read"]) <= REAL.stat().st_size


def test_inputs_logs_and_reports_are_fetched(tmp_path):
    (tmp_path / "in.json").write_text("[1, 2]")
    log = b"RuntimeError: Expected dtype int64 but got int32\n"
    with serving({"in.json": (tmp_path / "in.json").read_bytes(), "x.log": log}) as (_, url):
        report = alone("check", REAL, "-i", f"{url}/in.json?key=t0ken")
        assert essential(report) == essential(alone("check", REAL, "-i", tmp_path / "in.json"))
        (tmp_path / "x.log").write_bytes(log)
        assert essential(alone("classify", f"{url}/x.log")) == essential(alone("classify", tmp_path / "x.log"))
        (tmp_path / "r.json").write_text(json.dumps(alone("check", REAL)))
    with serving({"r.json": (tmp_path / "r.json").read_bytes()}) as (_, url):
        assert essential(alone("analyze", f"{url}/r.json"))[0] == "healthy"


def fetches(server):
    return sum(1 for verb, _, part in server.asked if verb == "GET" and part is None)


def test_a_file_is_fetched_once_for_each_version_and_checked_by_its_checksum(tmp_path):
    log = b"RuntimeError: Expected dtype int64 but got int32\n"
    with serving({"x.log": log}, etag='"1"') as (server, url):
        first = alone("classify", f"{url}/x.log")
        again = alone("classify", f"{url}/x.log")
        assert (fetches(server), essential(first)) == (1, essential(again))
        [kept] = list((tmp_path / "cache").rglob("x.log"))
        kept.write_bytes(b"x" * len(log))
        assert essential(alone("classify", f"{url}/x.log")) == essential(first)
        assert fetches(server) == 2
        server.ways["etag"] = '"2"'
        alone("classify", f"{url}/x.log")
        assert fetches(server) == 3
    with serving({"x.log": log}) as (server, url):
        alone("classify", f"{url}/x.log")
        alone("classify", f"{url}/x.log")
        # Nothing tells whether it has changed.
        assert fetches(server) == 2


def test_the_cache_has_a_bound(tmp_path):
    with serving({f"{at}.bin": os.urandom(50_000) for at in range(8)}, etag='"1"') as (_, url):
        for at in range(8):
            got = fetch_file(f"{url}/{at}.bin", str(tmp_path / "c"), largest=200_000)
            assert Path(got.path).stat().st_size == 50_000
            os.utime(Path(got.path).parent, (at, at))
    kept = sorted(path.name for path in (tmp_path / "c").rglob("*.bin"))
    assert kept == ["5.bin", "6.bin", "7.bin"] or kept == ["4.bin", "5.bin", "6.bin", "7.bin"]


def test_a_folder_of_a_repository_is_fetched(tmp_path):
    import fsspec

    system = fsspec.filesystem("memory")
    system.pipe("/models/mlp/config.pbtxt", b'backend: "pytorch"\nplatform: "torch_aoti"\n')
    system.pipe("/models/mlp/1/model.pt2", REAL.read_bytes())
    local = tmp_path / "models" / "mlp" / "1"
    local.mkdir(parents=True)
    (local / "model.pt2").write_bytes(REAL.read_bytes())
    (local.parent / "config.pbtxt").write_text('backend: "pytorch"\nplatform: "torch_aoti"\n')
    report = alone("triton", "memory://models")
    assert essential(report) == essential(alone("triton", tmp_path / "models"))
    assert str(tmp_path / "cache") not in json.dumps(report)


def hub_system(place):
    """What huggingface_hub's file system gives fsspec, over a local folder: ``org/name/file``, kinds and blob ids."""
    import fsspec

    class Hub(fsspec.AbstractFileSystem):
        protocol = "hf"
        cachable = False

        def info(self, path, **_):
            target = place / self._strip_protocol(path)
            if target.is_dir():
                return {"name": path, "size": 0, "type": "directory"}
            blob = hashlib.sha1(target.read_bytes()).hexdigest()
            return {"name": path, "size": target.stat().st_size, "type": "file", "blob_id": blob, "lfs": None}

        def ls(self, path, detail=True, **_):
            path = self._strip_protocol(path)
            names = sorted(f"{path}/{one.name}" for one in (place / path).iterdir())
            return [self.info(name) for name in names] if detail else names

        def _open(self, path, mode="rb", **_):
            return (place / path).open(mode)

        def cat_file(self, path, start=None, end=None, **_):
            return (place / path).read_bytes()[start:end]

    return Hub


def test_a_repository_of_hugging_face_is_one_item_and_a_file_of_it_is_kept(tmp_path, monkeypatch):
    import fsspec

    repository = tmp_path / "hub" / "org" / "net-sm120-cu130"
    for part in ("root", "submodules/blocks.0"):
        (repository / "package" / part).mkdir(parents=True)
        (repository / "package" / part / "package.pt2").write_bytes(REAL.read_bytes())
    (repository / "config.json").write_text("{}")
    fsspec.register_implementation("hf", hub_system(tmp_path / "hub"), clobber=True)
    report = alone("check", "hf://org/net-sm120-cu130")
    assert essential(report) == essential(alone("check", repository))
    assert sorted(model["name"] for model in report["artifact"]["models"]) == ["root", "submodules/blocks.0"]
    assert str(tmp_path / "cache") not in json.dumps(report)
    url = "hf://org/net-sm120-cu130/package/root/package.pt2"
    assert essential(alone("check", url)) == essential(alone("check", REAL))
    fetched, again = (fetch_file(url, str(tmp_path / "kept")) for _ in range(2))
    assert (fetched.came, again.came) == (REAL.stat().st_size, 0)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://u:p@h/a?b=c#d", "https://h/a"),
        ("s3://bucket/a b/<x>.pt2", "s3://bucket/a%20b/%3Cx%3E.pt2"),
        ("https://h:8/\x1b[31m", "https://h:8/%1B[31m"),
        ("memory://a/b", "memory://a/b"),
        ("http://[bad", "http://<not shown>"),
        ("https://u:p@x@h/a", "https://h/a"),
    ],
)
def test_urls_are_shown_without_credentials(url, shown):
    assert is_url(url)
    assert clean_url(url) == shown
    assert clean_url(shown) == shown or "<" in shown


def test_texts_and_names():
    assert clean_text("see https://u:s3cret@h/a?t0ken=1, and that") == "see https://h/a and that"
    assert not any(map(is_url, ["a/b", "C://x", "/x", "module.py:function", "://", ""]))
    for url in ("http://h/../..", "http://h/", "http://h/..%2f..%2fetc", "http://h/.hidden", "http://h/a/\0b"):
        assert re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]*", base_name(url))
