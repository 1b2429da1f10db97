"""Job ``recompile``: make a package from an exported program with the compiler of this host.

What environment variables set at the start of a compiling program is set here as options of the one compile, which
works in a forked child as well: the value printer, provenance, and the compiler's own bisect switch. Only options of
the compile are changed; the generated kernels are the same with and without printer or provenance.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from aotidoctor.model.jobs import Recompile
from aotidoctor.worker.channel import Channel
from aotidoctor.worker.compiler_switch import counted
from aotidoctor.worker.setup_module import load_setup


def recompile(payload: Recompile, channel: Channel) -> dict[str, Any]:
    """Compile ``payload.reference`` to ``payload.target``.

    ``cache`` is where the compiler keeps precompiled headers, ``printer`` the level of the value printer (0 to 3) and
    ``printed_kernels`` the kernels that level 2 shows (all without it),
    ``provenance`` whether the package tells source lines, ``config`` are further options of Inductor, ``bisect`` is
    ``{"backend", "subsystem", "max"}`` of the compiler's switch or None. The result's ``switchable`` are the steps that
    the switch can turn off, in order, by subsystem.
    """
    load_setup(payload, channel)
    channel.enter("import_compiler")
    import torch
    from torch._inductor import aoti_compile_and_package

    if payload.cache:
        _keep_between_compiles(Path(payload.cache))
    channel.enter("load_reference")
    program = torch.export.load(str(channel.user_cwd / payload.reference))
    channel.enter("compile")
    began = time.monotonic()
    with counted(payload.bisect) as steps:
        made = aoti_compile_and_package(program, package_path=payload.target, inductor_configs=_options(payload))
    if Path(made) != Path(payload.target):
        os.replace(made, payload.target)  # noqa: PTH105 - to any place on the same disk
    return {"seconds": time.monotonic() - began, "torch": torch.__version__, "switchable": steps}


def _options(payload: Recompile) -> dict[str, Any]:
    """Options of Inductor. Its cache of graphs does not see what a setup file changed in the compiler: off."""
    options: dict[str, Any] = {"fx_graph_cache": False, **(payload.config or {})}
    if payload.printer:
        options["aot_inductor.debug_intermediate_value_printer"] = str(payload.printer)
        if payload.printed_kernels:
            options["aot_inductor.filtered_kernel_names"] = payload.printed_kernels
    if payload.provenance:
        from torch._inductor import config

        if hasattr(config.trace, "provenance_tracking_level"):
            options["trace.provenance_tracking_level"] = 1
    return options


def _keep_between_compiles(folder: Path) -> None:
    """Precompiled headers and what Inductor learnt of the CPU: making them anew takes longer than all the rest.

    The headers depend on the other directory's name, too, so both have to stay where they are.
    """
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder)
    from torch._inductor import codecache

    headers = folder / "precompiled_headers"
    for name, place in (("_HEADER_DIR", headers), ("_HEADER_LOCK_DIR", headers / "locks")):
        if hasattr(codecache, name):
            setattr(codecache, name, str(place))
