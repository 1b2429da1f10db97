"""Build the page as a folder of static files, and serve it to this machine alone.

The folder has everything that the page ever loads: Pyodide (Python for WebAssembly, from npm, compared with its
checksum), aotidoctor as it is installed here, and the packages that it needs. The server listens on the loopback
interface; its addresses begin with a random word, so that no other page and no other user finds it.
"""

from __future__ import annotations

import hashlib
import http.server
import json
import lzma
import re
import secrets
import shutil
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path, PurePosixPath

from aotidoctor.commands import demo
from aotidoctor.commands.demo import cache_folder
from aotidoctor.files import write_file
from aotidoctor.model.errors import CannotExamineError
from aotidoctor.model.report import playbook_folder
from aotidoctor.readers.host.profiles import built_in_profiles
from aotidoctor.runner.helper_processes import pack_npm
from aotidoctor.version import __version__

PYODIDE = "314.0.7"
PYODIDE_SHA256 = "66b7949e5a0cba2250b586d7e368bf12fb482800748d182c4618254b685ffaa0"
_PYODIDE_FILES = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
# What the commands without torch need, by the names of distributions; those that are not installed are not needed.
_NEEDED = (
    "typer", "click", "rich", "jinja2", "markupsafe", "pygments", "markdown-it-py", "mdurl", "shellingham",
    "typing-extensions", "annotated-doc",
)  # fmt: skip
_HERE, _PACKAGE = Path(__file__).parent, Path(__file__).parents[2]
_PAGE_FILES = ("index.html", "page.css", "page.js", "worker.js")
# No address but those of the site itself; WebAssembly is compiled, and the report has a style of its own.
POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-src 'self' blob:; "
    "base-uri 'none'; form-action 'none'"
)
_TYPES = {
    ".mjs": "text/javascript",
    ".js": "text/javascript",
    ".wasm": "application/wasm",
    ".json": "application/json",
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".zip": "application/zip",
}
EXAMPLE = ("embedding_cuda.pt2", "int32_ids.json")


def site_folder(environ: Mapping[str, str]) -> Path:
    """The folder of this version's site in the user's cache."""
    return cache_folder(environ).parent / "web" / f"{__version__}-{PYODIDE}"


def build_site(folder: Path) -> None:
    """Write the site to ``folder``; Pyodide comes by npm, once. Raises CannotExamineError and OSError."""
    runtime = folder / "pyodide"
    if not all((runtime / name).is_file() for name in _PYODIDE_FILES):
        _unpack_pyodide(runtime)
    write_file(folder / "python.zip", _python_archive())
    for name in _PAGE_FILES:
        text = (_HERE / name).read_text(encoding="utf-8")
        if name == "index.html":
            options = "".join(f'<option value="{one}">{one}</option>' for one in built_in_profiles())
            text = text.replace("{policy}", POLICY).replace("{machines}", options).replace("{version}", __version__)
        write_file(folder / name, text)
    write_file(folder / "example" / EXAMPLE[0], lzma.decompress(demo.CUDA_FILES.read_bytes()))
    ids = demo.cuda_ids()
    write_file(
        folder / "example" / EXAMPLE[1],
        json.dumps({"args": [{"tensor": {"dtype": "int32", "device": "cuda", "data": ids}}]}),
    )


def _unpack_pyodide(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as room:
        try:
            pack_npm(f"pyodide@{PYODIDE}", room)
        except OSError as error:
            raise CannotExamineError(f"Pyodide {PYODIDE} (14 MB): {error}") from error
        archive = Path(room, f"pyodide-{PYODIDE}.tgz")
        digest = hashlib.sha256(archive.read_bytes()).hexdigest()
        if digest != PYODIDE_SHA256:
            raise CannotExamineError(f"Pyodide {PYODIDE}: observed sha256 {digest}, expected {PYODIDE_SHA256}")
        with tarfile.open(archive) as members:
            for name in _PYODIDE_FILES:
                stream = members.extractfile(f"package/{name}")
                if stream is None:
                    raise CannotExamineError(f"Pyodide {PYODIDE} has no file {name}")
                write_file(folder / name, stream.read())


def _python_archive() -> bytes:
    """A zip archive of aotidoctor, its playbooks and what it needs; Python's own code only."""
    with tempfile.TemporaryFile() as stream:
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            for path, name in _python_files():
                # Dates as zip archives begin: the same files are the same archive.
                archive.writestr(zipfile.ZipInfo(name), path.read_bytes(), zipfile.ZIP_DEFLATED)
        stream.seek(0)
        return stream.read()


def _python_files() -> Iterator[tuple[Path, str]]:
    """``(file, name in the archive)`` of each."""
    for path in sorted(_PACKAGE.rglob("*")):
        inside = path.relative_to(_PACKAGE)
        if path.is_file() and "__pycache__" not in inside.parts and inside.parts[0] not in ("worker", "_playbooks"):
            yield path, f"aotidoctor/{inside.as_posix()}"
    playbooks = playbook_folder()
    for path in sorted(playbooks.glob("*.md")) if playbooks is not None else ():
        yield path, f"aotidoctor/_playbooks/{path.name}"
    for name in _NEEDED:
        try:
            files = metadata.files(name) or []
        except metadata.PackageNotFoundError:
            continue
        for file in files:
            if file.suffix in (".py", ".typed") and ".." not in file.parts:
                yield Path(str(file.locate())), PurePosixPath(file).as_posix()


class _Handler(http.server.SimpleHTTPRequestHandler):
    """Files of the site below the random word, and nothing else."""

    server: SiteServer

    def do_GET(self) -> None:
        """Answer with a file of the site. Everything else is 404, whatever is asked for."""
        path = re.sub(r"[?#].*", "", self.path).removeprefix(f"/{self.server.word}/")
        name = path or "index.html"
        file = self.server.folder / name
        if path == self.path or ".." in PurePosixPath(name).parts or not file.is_file():
            self.send_error(404)
            return
        size = file.stat().st_size
        self.send_response(200)
        for key, value in (
            ("Content-Type", _TYPES.get(file.suffix, "application/octet-stream")),
            ("Content-Length", str(size)),
            ("Content-Security-Policy", POLICY),
            ("Cache-Control", "no-cache"),
            ("X-Content-Type-Options", "nosniff"),
            ("Referrer-Policy", "no-referrer"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
        ):
            self.send_header(key, value)
        self.end_headers()
        with file.open("rb") as stream:
            shutil.copyfileobj(stream, self.wfile)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base class's
        """Print nothing: the terminal belongs to the user."""


class SiteServer(http.server.ThreadingHTTPServer):
    """Serves ``folder`` on the loopback interface at ``address``, until it is closed."""

    daemon_threads = True

    def __init__(self, folder: Path, port: int) -> None:
        """Raise CannotExamineError where the port is taken."""
        self.folder, self.word = folder, secrets.token_urlsafe(16)
        try:
            super().__init__(("127.0.0.1", port), _Handler)
        except OSError as error:
            raise CannotExamineError(f"port {port}: {error.strerror or error}") from error
        self.address = f"http://127.0.0.1:{self.server_port}/{self.word}/"
