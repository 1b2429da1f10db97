"""Servers that send more than was asked for, something compressed, or nothing: we bound bytes, memory and time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
import zlib
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from aotidoctor.remote import http_files, remote_files
from aotidoctor.remote.remote_files import RemoteError, open_remote
from aotidoctor.remote.remote_packages import fetch_file
from tests.optional import optional

optional("fsspec")
optional("aiohttp")

REAL = Path(__file__).parents[2] / "data" / "releases" / "2.12.1" / "custop" / "model.pt2"
ZEROS = bytes(1 << 20)

WAITS_S = 300
# Of a test that waits for an end of ours; by far more than that end takes.


def bomb():
    """A gzip of a GiB: each of its blocks is that of the first MiB. Nobody is to come as far as the checksum."""
    packer = zlib.compressobj(1, wbits=31)
    first, again = (packer.compress(ZEROS) + packer.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    return first + again * 1023 + b"\x03\0" + bytes(8)


class Hostile(BaseHTTPRequestHandler):
    """Answers as ``server.way`` says. ``server.sent`` counts bytes of bodies, ``server.stop`` ends what never ends."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def do_HEAD(self):
        self.head(200, {"Content-Length": "0"})

    def do_GET(self):
        try:
            getattr(self, self.server.way)(self.headers.get("Range"))
        except OSError:
            # The client has had enough.
            self.server.hung_up.set()
        self.close_connection = True

    def head(self, status, headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def flood(self, mebibytes, data=ZEROS):
        for _ in range(mebibytes):
            self.wfile.write(data)
            self.server.sent += len(data)

    def real(self, wanted):
        """As a server should."""
        data = REAL.read_bytes()
        start, _, end = wanted.removeprefix("bytes=").partition("-") if wanted else ("0", "", "")
        end = min(int(end or len(data) - 1), len(data) - 1)
        part = data[int(start) : end + 1]
        head = {"Content-Length": str(len(part)), "Content-Range": f"bytes {start}-{end}/{len(data)}", "ETag": '"1"'}
        self.head(206 if wanted else 200, head)
        self.wfile.write(part)

    def no_ranges(self, wanted):
        data = REAL.read_bytes()
        self.head(200, {"Content-Length": str(len(data)), "Accept-Ranges": "none"})
        self.wfile.write(data)

    def only_the_first_is_a_range(self, wanted):
        if wanted == "bytes=0-0":
            self.real(wanted)
        else:
            self.head(200, {"Content-Length": str(2 << 30)})
            self.flood(2 << 10)

    def long_range(self, wanted):
        """2 GiB for any part but the first byte, with the headers of a part."""
        if wanted == "bytes=0-0":
            self.real(wanted)
        else:
            start, _, end = wanted.removeprefix("bytes=").partition("-")
            self.head(
                206, {"Content-Length": str(2 << 30), "Content-Range": f"bytes {start}-{end}/{REAL.stat().st_size}"}
            )
            self.flood(2 << 10)

    def long_range_without_length(self, wanted):
        if wanted == "bytes=0-0":
            self.real(wanted)
        else:
            start, _, end = wanted.removeprefix("bytes=").partition("-")
            self.head(206, {"Content-Range": f"bytes {start}-{end}/{REAL.stat().st_size}", "Connection": "close"})
            self.flood(2 << 10)

    def other_range(self, wanted):
        if wanted == "bytes=0-0":
            self.real(wanted)
        else:
            self.real("bytes=64-" + wanted.rpartition("-")[2])

    def bomb(self, wanted):
        body = bomb()
        self.head(200, {"Content-Length": str(len(body)), "Content-Encoding": "gzip"})
        self.wfile.write(body)

    def bomb_in_a_range(self, wanted):
        if wanted == "bytes=0-0":
            self.real(wanted)
        else:
            body = bomb()
            self.head(
                206,
                {"Content-Length": str(len(body)), "Content-Encoding": "gzip", "Content-Range": "bytes 0-8191/99999"},
            )
            self.wfile.write(body)

    def no_length(self, wanted):
        self.head(200, {"Connection": "close"})
        self.flood(4 << 10)

    def more_than_announced(self, wanted):
        self.head(200, {"Transfer-Encoding": "chunked", "Content-Range": "bytes 0-0/100"})
        for _ in range(4 << 10):
            self.wfile.write(b"100000\r\n" + ZEROS + b"\r\n")
            self.server.sent += len(ZEROS)

    def petabyte(self, wanted):
        self.head(200, {"Content-Length": str(1 << 50)})
        self.flood(4 << 10)

    def huge_number(self, wanted):
        self.head(206, {"Content-Length": "1", "Content-Range": f"bytes 0-0/{'9' * 5000}"})
        self.wfile.write(b"P")

    def silent(self, wanted):
        self.server.stop.wait(WAITS_S)

    def silent_after_the_head(self, wanted):
        self.head(200, {"Content-Length": "5000"})
        self.wfile.flush()
        self.server.stop.wait(WAITS_S)

    def drip(self, wanted):
        """A byte in a while, of headers first and then of the body, and so for ever."""
        self.head(200, {"Content-Length": str(1 << 20)})
        while not self.server.stop.wait(0.02):
            self.wfile.write(b"x")

    def drip_headers(self, wanted):
        self.wfile.write(b"HTTP/1.1 200 OK\r\nX-A: ")
        while not self.server.stop.wait(0.02):
            self.wfile.write(b"x")

    def to_a_file(self, wanted):
        self.head(302, {"Location": "file:///etc/passwd", "Content-Length": "0"})

    def around(self, wanted):
        self.head(302, {"Location": f"/again?{time.monotonic_ns()}", "Content-Length": "0", "Connection": "close"})


@contextmanager
def serving(way):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hostile)
    server.way, server.sent, server.stop, server.hung_up = way, 0, threading.Event(), threading.Event()
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield server, f"http://127.0.0.1:{server.server_address[1]}/m.pt2"
    finally:
        server.stop.set()
        server.shutdown()
        server.server_close()


MEASURED = """
import sys
from typer.testing import CliRunner
from aotidoctor.cli import build_app
done = CliRunner().invoke(build_app(), [*sys.argv[1:], "--json"])
most = int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])
print(most >> 10, done.exit_code, done.stdout)
"""


def measured(tmp_path, *words):
    """The most memory that a command takes (MiB), its exit status and report."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *map(str, words)], capture_output=True, text=True, timeout=WAITS_S, check=True,
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")},
    )  # fmt: skip
    memory, status, report = done.stdout.split(" ", 2)
    return int(memory), int(status), json.loads(report)


def in_cache(tmp_path):
    return sum(path.stat().st_size for path in (tmp_path / "cache").rglob("*") if path.is_file())


@pytest.mark.parametrize(
    "way",
    ["long_range", "long_range_without_length", "only_the_first_is_a_range", "bomb", "bomb_in_a_range", "petabyte"],
)
def test_what_a_server_sends_beyond_the_question_is_not_read(tmp_path, way):
    with serving(way) as (server, url):
        memory, status, report = measured(tmp_path, "check", url)
    assert status == 4
    assert "127.0.0.1" in report["cannot_examine"]
    assert report["diagnoses"] == report["findings"] == []
    assert memory < 200
    assert server.sent < 64 << 20
    assert in_cache(tmp_path) == 0


def test_a_file_without_a_size_has_one_of_ours(tmp_path, monkeypatch):
    monkeypatch.setattr(remote_files, "MOST_UNANNOUNCED", 8 << 20)
    with serving("no_length") as (server, url):
        with pytest.raises(RemoteError, match="without a size"):
            fetch_file(url, str(tmp_path / "cache"))
        assert server.hung_up.wait(WAITS_S)
    assert server.sent < 64 << 20
    assert in_cache(tmp_path) == 0


def test_more_than_was_announced_is_not_read_to_its_end(tmp_path):
    with serving("more_than_announced") as (server, url):
        with pytest.raises(RemoteError):
            fetch_file(url, str(tmp_path / "cache"), largest=1 << 20)
        assert server.hung_up.wait(WAITS_S)
    assert in_cache(tmp_path) == 0


def test_a_file_that_the_cache_does_not_hold_is_not_begun(tmp_path):
    with serving("petabyte") as (_, url), pytest.raises(RemoteError, match="more than"):
        fetch_file(url, str(tmp_path / "cache"))
    assert in_cache(tmp_path) == 0


def test_a_size_without_end_is_no_size():
    with serving("huge_number") as (_, url):
        assert open_remote(url).size is None


def test_parts_that_were_not_asked_for_are_refused():
    with serving("other_range") as (_, url):
        file = open_remote(url)
        with pytest.raises(RemoteError, match="part"):
            file.read_ranges([(0, 100)])


@pytest.mark.parametrize("way", ["silent", "silent_after_the_head", "drip", "drip_headers"])
def test_a_server_that_does_not_answer_has_an_end(tmp_path, monkeypatch, way):
    monkeypatch.setattr(http_files, "WAIT_S", 0.5)
    with serving(way) as (_, url), pytest.raises(RemoteError, match=r"127\.0\.0\.1"):
        fetch_file(url, str(tmp_path / "cache"))
    assert in_cache(tmp_path) == 0


@pytest.mark.parametrize(("way", "where"), [("around", "again and again"), ("to_a_file", "no address of the web")])
def test_a_server_that_sends_one_to_another_place_for_ever_or_to_a_file_has_an_end(way, where):
    with serving(way) as (_, url), pytest.raises(RemoteError, match=f"it redirects .*{where}$"):
        open_remote(url)


def test_a_server_that_says_that_it_has_no_ranges_gives_the_whole_file(tmp_path):
    with serving("no_ranges") as (_, url):
        assert not open_remote(url).has_ranges
        _, status, report = measured(tmp_path, "inspect", url)
    assert (status, report["artifact"]["size"]) == (0, REAL.stat().st_size)


def test_a_server_that_serves_parts_is_read_by_parts():
    data = REAL.read_bytes()
    with serving("real") as (_, url):
        file = open_remote(url)
        assert (file.size, file.has_ranges) == (len(data), True)
        assert file.read_ranges([(0, 10), (100, 5000)]) == [data[:10], data[100:5000]]
        assert b"".join(file.chunks()) == data


def test_a_connection_that_is_refused_is_no_missing_file():
    with pytest.raises(RemoteError, match="no connection") as raised:
        open_remote("http://127.0.0.1:9/m.pt2")
    assert "no such file" not in str(raised.value)
