"""Read every fact about this machine that a check may need, without torch, ctypes or a child process."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping

from aotidoctor.model.artifact import Artifact
from aotidoctor.model.case import Host
from aotidoctor.readers.host.environment import (
    allowed_variables,
    distribution,
    find_toolkit,
    find_tools,
    find_torch,
    glibc_version,
    in_container,
    read_tmpdir,
    relevant_packages,
)
from aotidoctor.readers.host.hardware import default_threads, read_cpu, read_driver, read_gpus, read_memory
from aotidoctor.readers.host.linkage import executable_stack, predict_linkage


def read_host(*, artifact: Artifact | None, environ: Mapping[str, str], survey: bool = False) -> Host:
    """Facts about this machine for the worker, which runs in this interpreter.

    With ``artifact``, the libraries and symbols that its shared objects need are looked up too, and the temporary
    folder is compared with its unpacked size. With ``survey``, the libraries that packages usually need are looked up:
    a profile of this machine is then of use for any package. Raises nothing for a machine that lacks something.
    """
    if not sys.platform.startswith("linux"):
        from aotidoctor.readers.host.other_systems import read_other_host

        return read_other_host(environ)
    name = platform.uname()
    cpu = read_cpu()
    memory = read_memory()
    torch = find_torch(sys.path)
    linkage = predict_linkage(artifact, torch.folder if torch.build else None, environ, survey=survey)
    glibc = glibc_version()
    stack, why = executable_stack(glibc, environ)
    return Host(
        system=name.system,
        machine=name.machine,
        python=".".join(str(part) for part in sys.version_info[:3]),
        cpu_model=cpu.model,
        cpu_flags=cpu.flags,
        cores=cpu.cores,
        threads=default_threads(cpu, name.machine, environ),
        memory_available=memory.available,
        memory_total=memory.total,
        address_space_limit=memory.address_space_limit,
        torch=torch.build,
        torch_problem=torch.problem,
        gpus=read_gpus(),
        cuda_driver=read_driver(linkage.libcuda),
        libraries=linkage.libraries,
        missing_symbols=linkage.missing,
        symbols_checked=linkage.checked,
        symbols_problem=linkage.problem,
        missing_folders=_missing_folders(artifact, environ) if artifact is not None else None,
        glibc=glibc,
        openmp_runtimes=linkage.openmp,
        tmpdir=read_tmpdir(
            environ,
            needed_bytes=artifact.unpacked_size if artifact is not None else 0,
            torch=torch.build.version if torch.build is not None else None,
        ),
        tools={**find_tools(environ), **find_toolkit(environ, sys.path)},
        environment=allowed_variables(environ),
        in_container=in_container(environ),
        distribution=distribution(),
        # As ``platform.platform()`` has it, which would read the interpreter's file for it.
        platform=f"{name.system}-{name.release}-{name.machine}" + (f"-with-glibc{glibc}" if glibc else ""),
        packages=relevant_packages(sys.path),
        abi_versions=linkage.abi_versions,
        executable_stack=stack,
        executable_stack_why=why,
    )


def _missing_folders(artifact: Artifact, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Include and library folders of a compile that do not exist, in the order in which they are named.

    Left out where the compiler's own variables lead it to what such a folder of another PyTorch held.
    """

    def leads_to(file: str, *variables: str) -> bool:
        paths = [path for name in variables for path in environ.get(name, "").split(os.pathsep) if path]
        return any(os.access(f"{path}/{file}", os.F_OK) for path in paths)

    headers = leads_to("torch/csrc/inductor", "CPATH", "CPLUS_INCLUDE_PATH")
    libraries = leads_to("libtorch.so", "LIBRARY_PATH")
    named = dict.fromkeys(folder for model in artifact.models for folder in model.build_folders)
    lacking = (folder for folder in named if not (headers if folder.endswith("include") else libraries))
    # No error for strange names, as of pathlib.
    return tuple(folder for folder in lacking if not os.path.isdir(folder))  # noqa: PTH112
