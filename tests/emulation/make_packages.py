"""Compile the packages of tests/data/emulation for CUDA on a machine without a GPU; run under a fake CUDA driver.

    python make_packages.py FOLDER [NAME...]     # a torch for CUDA, a libcuda.so.1 that accepts everything preloaded
    python make_packages.py --slim FOLDER DATA   # the same Python: what the tests keep of them

What is kept of a package: the wrapper, its metadata, and of the library, stripped, only what holds constants.
"""

import io
import lzma
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path


def compile_all(folder, names):
    import torch
    import torch._inductor.config as config
    from models import CONFIG, MODELS, made
    from user_kernels import KERNELS

    # On a device that only pretends, folding would make constants of memory that nothing filled.
    config.joint_graph_constant_folding = False
    for name in names or MODELS:
        path = folder / f"{name}.pt2"
        if path.exists():
            continue
        model, args = made(name)
        for method, kernel in KERNELS.get(name, {}).items():
            setattr(type(model), method, staticmethod(kernel))
        program = torch.export.export(model.cuda(), tuple(one.cuda() for one in args), dynamic_shapes=MODELS[name][2])
        with torch.no_grad(), config.patch(CONFIG.get(name, {})):
            torch._inductor.aoti_compile_and_package(program, package_path=str(path))


def slim(folder, data):
    for package in sorted(folder.glob("*.pt2")):
        if not package.name.endswith(".exported.pt2"):
            (data / f"{package.name}.xz").write_bytes(lzma.compress(_kept(package), preset=9))


def _kept(package):
    made = io.BytesIO()
    with zipfile.ZipFile(package) as old, zipfile.ZipFile(made, "w") as new:
        wrapper = next(old.read(name).decode() for name in old.namelist() if name.endswith(".wrapper.cpp"))
        for name in old.namelist():
            content = old.read(name)
            if name.endswith((".cubin", ".kernel.cpp", ".kernel_metadata.json")):
                continue
            if name.endswith(".so"):
                if "constants_info_[0]" not in wrapper:
                    continue
                content = _stripped(content)
            new.writestr(zipfile.ZipInfo(name), without_paths(content))
    return made.getvalue()


def without_paths(content):
    """The names of the machine that compiled it, replaced by others of the same length."""
    for path in (sys.prefix, str(Path.home()), f"torchinductor_{Path.home().name}"):
        plain = ("/opt/build/" + "x" * len(path))[: len(path)] if path.startswith("/") else path[:14] + "user"
        content = content.replace(path.encode(), plain.encode()[: len(path)])
    return content


def _stripped(content):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.so"
        path.write_bytes(content)
        subprocess.run(["strip", str(path)], check=True)
        return path.read_bytes()


if __name__ == "__main__":
    if sys.argv[1] == "--slim":
        slim(Path(sys.argv[2]), Path(sys.argv[3]))
    else:
        compile_all(Path(sys.argv[1]), sys.argv[2:])
