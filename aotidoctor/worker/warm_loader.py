"""Ask once, on import, what ``aoti_load_package`` asks of this CPU.

PyTorch compiles and starts small programs to learn what the CPU can do, for some seconds, in each process that loads
a package; children that are forked after that know the answer. A module of its own: the warm worker imports it by
name where scripts are tried, and the import does the work.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module


def _ask() -> None:
    with suppress(Exception):  # Whatever is missing here is missing in the script, too, which will say so.
        for name in ("torch._inductor.package", "torch.export.pt2_archive._package"):
            import_module(name)
        import_module("torch._inductor.codecache").get_device_information("cpu")


_ask()
