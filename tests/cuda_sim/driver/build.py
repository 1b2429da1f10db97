"""Compile the simulated driver: ``build(folder)``. Runs with the Python of the CUDA torch, whose libraries it serves.

Functions that the C files do not have are answered by stubs: a setter of cuBLAS succeeds, all else is not supported.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path

HERE = Path(__file__).parent
SITE = Path(sysconfig.get_paths()["purelib"])
SOURCES = (
    "knobs.c",
    "errors.c",
    "device.c",
    "memory.c",
    "virtual.c",
    "stream.c",
    "module.c",
    "launch.c",
    "tools.c",
    "blas.c",
    "nvml.c",
    "proc.c",
)
USERS = ("libtorch_cuda.so", "libc10_cuda.so", "libtorch_python.so", "libtorch_cpu.so")
FLAGS = shlex.split("-O1 -g -w -fPIC -shared -fvisibility=hidden -Wl,-soname,libcuda.so.1")
NOT_SUPPORTED, CUBLAS_NOT_SUPPORTED = 801, 15
QUIET = re.compile(r"cublas(Set|Destroy|Lt)")


def build(library: Path) -> None:
    """Compile to ``library``: once to see what is there, then with stubs for the rest."""
    compile_to(library, [])
    missing = sorted(wanted() - exported(library))
    stubs = library.with_suffix(".stubs.c")
    stubs.write_text('#define STUB(n, r) __attribute__((visibility("default"))) int n(void) { return r; }\n')
    with stubs.open("a") as file:
        file.writelines(f"STUB({name}, {answer(name)})\n" for name in missing)
    compile_to(library, [stubs])


def answer(name: str) -> int:
    if not name.startswith("cublas"):
        return NOT_SUPPORTED
    return 0 if QUIET.match(name) else CUBLAS_NOT_SUPPORTED


def compile_to(library: Path, more: list[Path]) -> None:
    sources = [HERE / name for name in SOURCES] + more
    run(["gcc", *FLAGS, *headers(), *map(str, sources), "-ldl", "-lpthread", "-o", str(library)])


def headers() -> list[str]:
    """Those of the runtime that torch brings; what its wheel lacks (crt/) comes with Triton."""
    return [f"-I{path}" for path in (*SITE.glob("nvidia/cu[0-9]*/include"), SITE / "triton/backends/nvidia/include")]


def wanted() -> set[str]:
    """What torch's libraries import, and the whole driver API: its functions are also asked for by name."""
    names: set[str] = set()
    for user in USERS:
        imports = run(["nm", "-D", "--undefined-only", str(SITE / "torch/lib" / user)])
        names |= set(re.findall(r" U ((?:__)?cuda\w+|cu[A-Z]\w+|cublas\w+)", imports))
    text = run(["gcc", "-E", "-P", *headers(), "-x", "c", "-"], "#include <cuda.h>\n")
    return names | set(re.findall(r"\bCUresult\s+(cu[A-Z]\w+)\s*\(", text))


def exported(library: Path) -> set[str]:
    return set(re.findall(r" T (\w+)", run(["nm", "-D", str(library)])))


def run(command: list[str], text: str | None = None) -> str:
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{shlex.join(command)}\n{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    build(Path(sys.argv[1]))
