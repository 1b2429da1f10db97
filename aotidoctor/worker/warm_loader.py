"""Run once, on import, the checks of this CPU that ``aoti_load_package`` makes.

PyTorch compiles and starts small programs to detect the features of the CPU, for some seconds, in each process that
loads a package; children that are forked after that have the answer. A module of its own: the warm worker imports it
by name where scripts are tried, and the import does the work.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module

with suppress(Exception):  # A module that is missing here is missing in the script as well, which will report it.
    for name in ("torch._inductor.package", "torch.export.pt2_archive._package"):
        import_module(name)
    import_module("torch._inductor.codecache").get_device_information("cpu")
