"""Will it run there? What packages need of a host, and the answer for each host."""

from __future__ import annotations

import enum

from aotidoctor.model.record import record


class Answer(enum.Enum):
    """``runs``: everything that it needs is there. ``refused``: it will not load or run. ``unknown``: not told."""

    RUNS = "runs"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@record
class PackageNeeds:
    """What one package needs.

    ``built_least`` and ``built_before`` are releases of torch (``2.13``) with what they rest on: it was built by the
    former or later, and by one before the latter; None where nothing tells. ``torch_least`` is the oldest release that
    can load it. ``abi_versions`` are the newest symbol versions that it asks for (``GLIBC_2.34``). ``isa`` are CPU
    flags, ``gpu_targets`` architectures of its GPU code. ``executable_stack`` says whether it asks for one.
    ``threads`` is the least number of threads that one of its kernels has room for, None where it does not matter.
    """

    package: str
    device: str | None = None
    machine: str | None = None
    built_least: str | None = None
    built_least_because: str = ""
    built_before: str | None = None
    built_before_because: str = ""
    torch_least: str | None = None
    torch_least_because: str = ""
    abi_versions: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    isa: tuple[str, ...] = ()
    march_native: bool | None = None
    gpu_targets: tuple[str, ...] = ()
    oldest_driver: str | None = None
    custom_ops: tuple[str, ...] = ()
    threads: int | None = None
    executable_stack: bool | None = None
    problem: str | None = None


@record
class HostAnswer:
    """One cell of the matrix. ``because`` are causes and what was observed, ``unknown`` what would have to be known."""

    package: str
    host: str
    answer: Answer
    because: tuple[str, ...] = ()
    causes: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    provided: tuple[str, ...] = ()


@record
class Compatibility:
    """The needs of all packages, and every package on every host, package by package."""

    needs: tuple[PackageNeeds, ...]
    answers: tuple[HostAnswer, ...]
