"""Find the software of this host: installed torch and packages, tools, variables, C library, temporary folder.

Torch is found and read without importing it. The packages are those that PyTorch's ``collect_env`` lists, by the
names of their folders.

A compile for CUDA also needs the assembler that Triton calls, and the driver's header. PyTorch looks for the toolkit
in CUDA_HOME or CUDA_PATH, else two folders above the nvcc on PATH, else in /usr/local/cuda; Triton takes the
assembler of its own wheel unless a variable names another.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from aotidoctor.model.case import TmpdirState, TorchBuild
from aotidoctor.model.record import record
from aotidoctor.model.torch_names import VARIABLES
from aotidoctor.readers.host.dynamic_loader import defines_symbol, gnu_hash, open_image
from aotidoctor.readers.host.hardware import text_of_file
from aotidoctor.readers.package.elf import ElfError
from aotidoctor.readers.releases.torch_releases import release_of

# Import path of this interpreter, without the working directory.
HOME = str(Path(__file__).resolve().parents[3])


def import_path() -> list[str]:
    """``sys.path`` without the working folder, with the folder that aotidoctor lies in.

    ``python -m`` puts the working folder first: what lies beside a stranger's package is not installed.
    """
    try:
        # Raises where the folder is gone.
        here = os.path.realpath(Path.cwd())
    except OSError:
        here = ""
    paths = [os.path.normpath(Path(path).absolute()) for path in sys.path if path and os.path.realpath(path) != here]
    return paths if HOME in paths else [HOME, *paths]


# Tools, allow-listed variables and the C library.
TOOLS = ("g++", "clang++", "c++", "ld", "gdb", "cuda-gdb", "py-spy", "compute-sanitizer", "valgrind", "nvcc")
# Where the toolkit's installer puts its tools without touching PATH.
CUDA_TOOLS = "/usr/local/cuda/bin"

_PREFIXES = tuple(VARIABLES)
_NAMES = frozenset({
    "CI", "CXX", "CC", "COLUMNS", "CPATH", "FORCE_COLOR", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "LD_PRELOAD",
    "LIBRARY_PATH", "NO_COLOR", "PATH", "PYTHONPATH", "PYTHONUNBUFFERED", "TERM", "TMPDIR", "VIRTUAL_ENV",
    "CONDA_PREFIX",
})  # fmt: skip
_SECRET_WORDS = ("TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "API_KEY", "ACCESS_KEY", "AUTH")


def allowed_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that can change how a package runs, in order of name; never one that sounds like a secret."""
    return {
        name: environ[name]
        for name in sorted(environ)
        if (name in _NAMES or name.startswith(_PREFIXES)) and not any(word in name.upper() for word in _SECRET_WORDS)
    }


def find_tools(environ: Mapping[str, str]) -> dict[str, str | None]:
    """Tool name → path. ``CXX`` is there when the variable is set; its first word is looked up."""
    folders = [*environ.get("PATH", os.defpath).split(os.pathsep), str(Path(sys.executable).parent), CUDA_TOOLS]
    tools = {name: _which(name, folders) for name in TOOLS}
    chosen = environ.get("CXX", "").split()
    if chosen:
        tools["CXX"] = _which(chosen[0], folders)
    return tools


def _which(name: str, folders: list[str]) -> str | None:
    # shutil.which does the same, at the price of importing every compression module.
    return first_program([name] if "/" in name else [f"{folder}/{name}" for folder in folders if folder])


def first_program(paths: Iterable[str]) -> str | None:
    """The first of ``paths`` that can be executed."""
    return next((path for path in paths if os.access(path, os.X_OK) and not Path(path).is_dir()), None)


def distribution(root: str = "/") -> str | None:
    """``Debian GNU/Linux 12 (bookworm)``, as /etc/os-release names it."""
    found = re.search(r"^PRETTY_NAME=\"?([^\"\n]+)", text_of_file(Path(root, "etc/os-release")), re.MULTILINE)
    return found[1] if found is not None else None


def glibc_version() -> str | None:
    """``2.36``; None on a C library without a version."""
    try:
        text = os.confstr("CS_GNU_LIBC_VERSION")
    except (OSError, ValueError, AttributeError):
        return None
    return text.split()[-1] if text else None


def in_container(environ: Mapping[str, str]) -> bool | None:
    """True with a sign of a container; None, not False, without one, as there is no proof of the contrary."""
    if "container" in environ or "KUBERNETES_SERVICE_HOST" in environ:
        return True
    if any(Path(mark).exists() for mark in ("/.dockerenv", "/run/.containerenv")):
        return True
    return None


# CUDA toolkit.
HEADER, ASSEMBLER = "cuda.h", "ptxas"
_DEFAULT_HOME = "/usr/local/cuda"
_BUNDLED = "triton/backends/nvidia/bin/ptxas"
_USUAL = ("/usr/include", "/usr/local/include")


def find_toolkit(environ: Mapping[str, str], search: Iterable[str]) -> dict[str, str | None]:
    """The paths of header and assembler by name, None where there is none. ``search`` is ``sys.path``."""
    folders = [folder for folder in environ.get("PATH", os.defpath).split(os.pathsep) if folder]
    chosen = environ.get("TRITON_PTXAS_PATH")
    assemblers = [chosen] if chosen else []
    assemblers += [str(Path(folder, _BUNDLED)) for folder in search if folder]
    assemblers += [f"{folder}/{ASSEMBLER}" for folder in (*folders, CUDA_TOOLS)]
    given = [folder for name in ("CPATH", "CPLUS_INCLUDE_PATH") for folder in environ.get(name, "").split(os.pathsep)]
    # As PyTorch finds it: a link to nvcc in another folder leads it astray.
    home = environ.get("CUDA_HOME") or environ.get("CUDA_PATH")
    if not home:
        compiler = next((f"{folder}/nvcc" for folder in folders if os.access(f"{folder}/nvcc", os.X_OK)), None)
        home = str(Path(compiler).parent.parent) if compiler is not None else _DEFAULT_HOME
    headers = [f"{folder}/{HEADER}" for folder in (*filter(None, given), f"{home}/include", *_USUAL)]
    return {
        ASSEMBLER: first_program(assemblers),
        HEADER: next((path for path in headers if os.access(path, os.R_OK)), None),
    }


# Installed packages. Substrings of ``name==version``, as torch.utils.collect_env has them.
_WANTED = (
    "torch", "numpy", "triton", "optree", "mypy", "flake8", "onnx", "cuda-cudart", "cuda-cupti", "cuda-libraries",
    "cuda-opencl", "cuda-nvrtc", "cuda-runtime", "cublas", "cudnn", "cufft", "curand", "cusolver", "cusparse", "nccl",
    "nvjitlink", "nvtx", "mkl", "intel-openmp", "tbb", "dpcpp-cpp-rt", "intel-sycl-rt", "oneccl",
)  # fmt: skip
_METADATA = re.compile(r"(?P<name>.{1,100}?)-(?P<version>\d[^-]*)(?:-.*)?\.(?:dist|egg)-info")


def relevant_packages(search: Iterable[str]) -> dict[str, str]:
    """Name to version along ``search`` (``sys.path``), the first of each name; unreadable folders are left out."""
    found: dict[str, str] = {}
    for folder in search:
        with suppress(OSError), os.scandir(folder or ".") as entries:
            matches = [_METADATA.fullmatch(entry.name) for entry in entries if entry.name.endswith("-info")]
            for match in filter(None, matches):
                name, version = match["name"].replace("_", "-"), match["version"]
                if any(word in f"{name}=={version}" for word in _WANTED):
                    found.setdefault(name, version)
    return dict(sorted(found.items()))


# Torch.
_ASSIGNMENT = re.compile(r"^(\w+)[ \t]*(?::[^=\n]{0,200})?=[ \t]*(?:'([^']*)'|\"([^\"]*)\")", re.MULTILINE)
_DEBUG = re.compile(r"^debug\b[^=\n]*=\s*(True|False)", re.MULTILINE)
_ERROR_CONSTRUCTOR = b"_ZN3c105ErrorC1ENS_14SourceLocationE"
_NEW_STRING = b"NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
_OLD_STRING = b"Ss"


@record
class FoundTorch:
    """``build`` is None when there is no torch; ``problem`` then says why. ``folder`` is the package's folder."""

    build: TorchBuild | None
    folder: Path | None
    problem: str | None


def find_torch(search: Iterable[str]) -> FoundTorch:
    """Look for ``torch`` on ``search`` (``sys.path``). Raises nothing."""
    for entry in search:
        folder = Path(entry or ".", "torch")
        if (folder / "__init__.py").is_file() and (folder / "version.py").is_file():
            return _read(folder)
    return FoundTorch(build=None, folder=None, problem="torch is not installed for this Python interpreter")


def _read(folder: Path) -> FoundTorch:
    try:
        text = (folder / "version.py").read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        return FoundTorch(build=None, folder=folder, problem=f"{folder}/version.py cannot be read: {error.strerror}")
    values = {name: single or double for name, single, double in _ASSIGNMENT.findall(text)}
    if "__version__" not in values:
        return FoundTorch(build=None, folder=folder, problem=f"{folder}/version.py states no version")
    debug = _DEBUG.search(text)
    build = TorchBuild(
        version=values["__version__"],
        path=str(folder),
        cuda=values.get("cuda"),
        cxx11_abi=_cxx11_abi(folder / "lib" / "libc10.so"),
        hip=values.get("hip"),
        xpu=values.get("xpu"),
        debug=debug[1] == "True" if debug is not None else None,
    )
    return FoundTorch(build=build, folder=folder, problem=None)


def _cxx11_abi(library: Path) -> bool | None:
    # c10::Error takes a std::string, so its mangled name tells which std::string torch was built with.
    try:
        image = open_image(str(library))
        for string, answer in ((_NEW_STRING, True), (_OLD_STRING, False)):
            name = _ERROR_CONSTRUCTOR + string
            if defines_symbol(image, name, gnu_hash(name), None):
                return answer
    except (OSError, ElfError):
        return None
    return None


# Folder that a load unpacks the package into, and whether that can work.
_DEFAULT = "/tmp"  # noqa: S108 - the loader's own
# Before, the loader unpacks to /tmp in any case.
_HEEDED_SINCE = (2, 13)


def read_tmpdir(environ: Mapping[str, str], *, needed_bytes: int = 0, torch: str | None = None) -> TmpdirState:
    """State of the folder that the loader of ``torch`` uses: ``$TMPDIR`` or ``/tmp``. Looks only; creates nothing.

    ``needed_bytes`` is what the package takes unpacked.
    """
    release = release_of(torch or "")
    fixed = release is not None and release < _HEEDED_SINCE
    state = _state(_DEFAULT if fixed else environ.get("TMPDIR") or _DEFAULT)
    return replace(state, fixed=fixed, problem=state.problem_with(needed_bytes))


def _state(path: str) -> TmpdirState:
    if not Path(path).is_dir():
        return TmpdirState(
            path=path,
            exists=False,
            writable=False,
            problem="is not a directory" if Path(path).exists() else "does not exist",
        )
    writable = os.access(path, os.W_OK | os.X_OK)
    try:
        state = os.statvfs(path)
    except OSError as error:
        return TmpdirState(path=path, writable=writable, problem=f"cannot be examined: {error.strerror}")
    noexec = bool(state.f_flag & os.ST_NOEXEC)
    # Some file systems (btrfs) have no fixed number of inodes and report 0 of 0.
    no_inodes = state.f_files > 0 and state.f_favail == 0
    problem = None
    if not writable:
        problem = "is not writable"
    elif noexec:
        problem = "is mounted noexec, so no shared object can be mapped from it"
    elif no_inodes:
        problem = "has no free inodes"
    return TmpdirState(
        path=path,
        writable=writable,
        noexec=noexec,
        free_bytes=0 if no_inodes else state.f_bavail * state.f_frsize,
        problem=problem,
    )
