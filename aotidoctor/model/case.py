"""Describe a case: everything that a check may look at, with the options, the host and the tolerances; known cases.

The tolerance of an output is ``|ours - theirs| <= atol + rtol * |theirs|`` for each element. The host is described
without importing torch. Memory is in bytes, times are in seconds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from aotidoctor.model.record import record

if TYPE_CHECKING:
    from aotidoctor.model.artifact import Artifact, ExportedFacts, ModelEntry, StampSeen
    from aotidoctor.model.contract import ConstantSpec, HostNeeds, ModelContract
    from aotidoctor.model.errors import InputsError
    from aotidoctor.model.inputs import InputSet, TensorDesc
    from aotidoctor.model.other_artifacts import ExecutorchFile
    from aotidoctor.model.record import JsonObject


# Functions of the user's own: module.py:function.
def user_function(text: str) -> tuple[str, str] | None:
    """The file and the function's name; None for a path to anything else."""
    path, _, function = text.rpartition(":")
    return (path, function) if path.endswith(".py") and function.isidentifier() else None


def file_of(text: str) -> str:
    """The file of ``module.py:function``, and any other path as it is."""
    named = user_function(text)
    return text if named is None else named[0]


# How far an output may be from the reference's.
GRID = (0.0, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
"""Values of rtol for which a report keeps the atol that agreement needs."""


@record
class Tolerance:
    """One ``--rtol`` or ``--atol``. ``output`` is a path (``result[0]``) or the number of a leaf; None for all."""

    output: str | None
    value: float


@record
class Tolerances:
    """Tolerances of the user. A value for one output goes before one for all; of equal ones the last counts."""

    rtol: tuple[Tolerance, ...] = ()
    atol: tuple[Tolerance, ...] = ()

    def of(self, path: str, index: int) -> tuple[float, float] | None:
        """``(rtol, atol)`` for an output leaf, None where neither was given. One that was not given is 0 then."""
        rtol, atol = _pick(self.rtol, path, index), _pick(self.atol, path, index)
        return None if rtol is None and atol is None else (rtol or 0.0, atol or 0.0)

    def missing_outputs(self, paths: Sequence[str]) -> tuple[str, ...]:
        """Outputs that were named and are not there."""
        known = {*paths, *(str(index) for index in range(len(paths)))}
        named = [one.output for one in (*self.rtol, *self.atol) if one.output is not None]
        return tuple(dict.fromkeys(name for name in named if name not in known))


def parse_tolerance(text: str) -> Tolerance:
    """``1e-3``, ``result[0]:1e-3`` or ``0:1e-3``. Raises ValueError."""
    output, _, number = text.strip().rpartition(":")
    value = float(number)
    if not math.isfinite(value) or value < 0:
        raise ValueError(text)
    return Tolerance(output=output or None, value=value)


def agrees_within(needed: Sequence[tuple[float, float]], rtol: float, atol: float) -> bool:
    """Whether an output agrees, from the ``(rtol, atol needed)`` pairs that a report keeps.

    Exact at the points of the grid. Between two of them the smaller rtol is taken, which needs the larger atol: the
    answer may be no where a run would say yes, never the other way round.
    """
    below = [allowed for point, allowed in needed if point <= rtol]
    return bool(below) and min(below) <= atol


def _pick(given: Sequence[Tolerance], path: str, index: int) -> float | None:
    for names in ((path, str(index)), (None,)):
        found = [one.value for one in given if one.output in names]
        if found:
            return found[-1]
    return None


# What this machine offers.
@record
class TorchBuild:
    """The torch that the worker would import.

    ``cuda``, ``hip`` and ``xpu`` are the toolkit versions it was built for, None where it was not. ``debug`` tells
    a debug build, None where its version.py does not say.
    """

    version: str
    path: str
    cuda: str | None = None
    cxx11_abi: bool | None = None
    hip: str | None = None
    xpu: str | None = None
    debug: bool | None = None


@record
class Gpu:
    """One GPU; ``compute_capability`` like ``90``, memory in bytes."""

    index: int
    name: str
    compute_capability: str | None = None
    memory_total: int | None = None


@record
class MissingSymbol:
    """A symbol that no library of this host provides. ``wanted_from`` is the library the package names for it."""

    name: str
    version: str | None = None
    wanted_from: str | None = None


@record
class TmpdirState:
    """The temporary directory a load would use. ``problem`` is None when it can be used.

    ``fixed`` tells that the loader goes there whatever TMPDIR says: torch before 2.13.
    """

    path: str
    exists: bool = True
    writable: bool = True
    noexec: bool = False
    free_bytes: int | None = None
    problem: str | None = None
    fixed: bool = False

    def problem_with(self, needed: int) -> str | None:
        """The reason why a package of ``needed`` bytes unpacked cannot use it; None where there is none."""
        if self.problem is not None or self.free_bytes is None or self.free_bytes >= needed:
            return self.problem
        return f"has {self.free_bytes} bytes free, the unpacked package takes {needed}"


@record
class Host:
    """Facts about a machine.

    ``cpu_flags`` are those of /proc/cpuinfo. ``threads`` is what torch would use by default (cores, unless the
    environment says otherwise). ``libraries`` maps a NEEDED name to the file it resolves to (None when not found).
    ``missing_symbols`` are undefined symbols of the package that nothing here provides; ``symbols_checked`` is how many
    were looked up (0 and ``symbols_problem`` set when it could not be done). ``tools`` maps tool name to path, the
    header ``cuda.h`` among them. ``missing_folders`` are those that the package hands to a compiler and that do not
    exist here, None where nobody looked. ``environment`` holds allow-listed variables only. ``distribution`` is the
    name that /etc/os-release gives (``Debian GNU/Linux 12``), ``platform`` what Python's ``platform.platform()``
    prints, and ``packages`` are the installed distributions that PyTorch's collect_env lists.

    ``abi_versions`` maps a family of symbol versions to the newest one here (``GLIBCXX`` to ``3.4.30``).
    ``executable_stack`` says whether a library that asks for an executable stack is loaded here, None where that is
    not known; ``executable_stack_why`` is the reason. ``executorch_backends`` are those that its ExecuTorch registers,
    which only a profile states.

    ``profile`` is None for this machine, else the name of the profile that describes another one. ``unstated`` are the
    fields that the profile says nothing about: their values here are defaults, not facts.
    """

    system: str
    machine: str
    python: str
    cpu_model: str | None = None
    cpu_flags: frozenset[str] = frozenset()
    cores: int = 1
    threads: int = 1
    memory_available: int | None = None
    memory_total: int | None = None
    address_space_limit: int | None = None
    torch: TorchBuild | None = None
    torch_problem: str | None = None
    gpus: tuple[Gpu, ...] = ()
    cuda_driver: str | None = None
    libraries: Mapping[str, str | None] = field(default_factory=dict)
    missing_symbols: tuple[MissingSymbol, ...] = ()
    symbols_checked: int = 0
    symbols_problem: str | None = None
    missing_folders: tuple[str, ...] | None = None
    glibc: str | None = None
    openmp_runtimes: tuple[str, ...] = ()
    tmpdir: TmpdirState | None = None
    tools: Mapping[str, str | None] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    in_container: bool | None = None
    distribution: str | None = None
    platform: str | None = None
    packages: Mapping[str, str] = field(default_factory=dict)
    abi_versions: Mapping[str, str] = field(default_factory=dict)
    executable_stack: bool | None = None
    executable_stack_why: str | None = None
    executorch_backends: tuple[str, ...] = ()
    profile: str | None = None
    unstated: frozenset[str] = frozenset()


# Options and the case.
@record
class Options:
    """Options of the user: seconds, counts, and paths as given.

    ``threads`` is the thread count to run with (None: torch's default). ``model_name`` None means: ``model`` as the
    loader does, or the only model there is. ``localize`` asks for the place of a failure whatever it costs, also where
    the diagnosis does not need it; ``shrink`` for the smallest inputs that still fail. ``host`` is the profile of the
    machine to use instead of this one, ``torch`` the release to use instead of the host's, ``weights`` a
    file whose weights are to be loaded, ``next_weights`` one whose weights take their place, by ``weight_protocol``.
    ``tolerances`` are for outputs against the reference's; ``measure`` asks for their distance from a float64 run
    also where they agree. ``emulate`` tells when a CUDA package is carried out on the CPU: ``always``, ``auto``
    (where it cannot run here, or failed without an explanation) or ``never``; ``emulate_kernel`` is the kernel that a
    GPU elsewhere has named.
    ``model`` is the ``module.py:function`` of the model that was exported.
    ``imports`` are modules that every child imports first: setups of plugins. ``data`` are the ``.ptd`` files of an
    ExecuTorch program; ``verify_data`` compares all checksums in it and in them, or of a package's members, however
    large they are. ``values`` is ``statistics`` or ``hash``: what a report has of values, ranges or only digests.
    """

    model_name: str | None = None
    device: str | None = None
    setup: str | None = None
    custom_op_libraries: tuple[str, ...] = ()
    reference: str | None = None
    model: str | None = None
    generate: bool = False
    seed: int = 0
    timeout: float = 60.0
    budget: float | None = None
    repeat: int = 2
    jobs: int = 1
    threads: int | None = None
    trust_pickle: bool = False
    # The probes that --probes and --skip-probes name; the fields are called so in bundles, and plugins read them.
    rungs: tuple[str, ...] | None = None
    skip_rungs: tuple[str, ...] = ()
    memory_limit: int | None = None
    localize: bool = False
    shrink: bool = False
    host: str | None = None
    torch: str | None = None
    weights: str | None = None
    next_weights: str | None = None
    weight_protocol: str = "double-buffer"
    tolerances: Tolerances = field(default_factory=Tolerances)
    measure: bool = False
    emulate: str = "auto"
    emulate_kernel: str | None = None
    imports: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    verify_data: bool = False
    values: str = "statistics"

    def asks_for(self, probe: str) -> bool:
        """Whether ``--probes`` names it."""
        return self.rungs is not None and probe in self.rungs


# The fields of options and arguments that have another name.
FIELDS = {"custom_op_library": "custom_op_libraries", "probes": "rungs", "skip_probes": "skip_rungs"}


@record
class Case:
    """Artifact, contract, inputs and host. ``model`` is the entry the loader would take, None if it would find none.

    ``inputs`` is None when no inputs were given or they could not be read; ``inputs_error`` then says why.
    ``weights`` are the tensors of --weights, None where there are none or they could not be read, ``next_weights``
    those of a second file.
    ``setup_loads`` is False where the setup file does not speak of ``after_load``, None where that is not known.
    ``stamp`` is what the package says of its own origin, None where it carries no stamp.
    ``reference`` holds the static facts of ``--reference`` when it is an exported program, ``merged`` the inputs that
    it does not read because export took them for another one, with that one. ``generated`` is the JSON inputs document
    that the worker makes tensors from under ``--generate``. ``data`` are the files of --data.
    """

    artifact: Artifact
    host: Host
    options: Options = field(default_factory=Options)
    model: ModelEntry | None = None
    contract: ModelContract | None = None
    inputs: InputSet | None = None
    inputs_path: str | None = None
    inputs_error: InputsError | None = None
    setup_loads: bool | None = None
    weights: tuple[ConstantSpec, ...] | None = None
    next_weights: tuple[ConstantSpec, ...] | None = None
    reference: ExportedFacts | None = None
    merged: Mapping[str, str] = field(default_factory=dict)
    generated: JsonObject | None = None
    stamp: StampSeen | None = None
    data: tuple[ExecutorchFile, ...] = ()

    @property
    def needs(self) -> HostNeeds:
        """Requirements of the package on a host, as far as the contract has them."""
        # Not every command that imports this module reads contracts.
        from aotidoctor.model.contract import HostNeeds

        return self.contract.needs if self.contract is not None else HostNeeds()

    @property
    def tensors(self) -> dict[str, TensorDesc]:
        """The tensors that are given, by the caller's path."""
        return dict(self.inputs.tensors()) if self.inputs is not None else {}


# How often a failure was seen before, where last, and what solved it.
CASES_SCHEMA = "aotidoctor.cases/1"


@record
class CaseNote:
    """A note about a case. ``at`` is RFC 3339 UTC; ``solved`` says that it is what solved it."""

    text: str
    at: str
    solved: bool = False


@record
class Sighting:
    """One diagnosis of a failure. ``host_class`` is the kind of machine, empty where nobody knows.

    ``key`` are 32 hex digits over what makes it this sighting: two stores that both have it have it once.
    ``status`` is ``confirmed`` or ``suspected``, empty without a cause.
    """

    key: str
    at: str
    command: str
    subject: str = ""
    package: str = ""
    sha256: str = ""
    host_class: str = ""
    status: str = ""
    tool: str = ""


@record
class CaseRecord:
    """The record of one failure in a store, by its exact signature. ``number`` is its place in one store only."""

    signature: str
    family: str = ""
    cause: str = "unknown"
    stage: str = ""
    title: str = ""
    looked_like: str = ""
    number: int = 0
    count: int = 0
    first_seen: str = ""
    last_seen: str = ""
    sightings: tuple[Sighting, ...] = ()
    notes: tuple[CaseNote, ...] = ()


@record
class SeenBefore:
    """Earlier occurrences of the failure of a report, from a store.

    ``of`` is ``exact`` for the same signature, ``family`` where only its family was seen. ``count`` times since
    ``since``, last at ``last`` (RFC 3339) on ``host_class`` (empty: not known). ``solved`` is the latest note that says
    what solved it; ``notes`` are all there are.
    """

    of: str
    count: int
    since: str
    last: str
    host_class: str = ""
    solved: CaseNote | None = None
    notes: int = 0
    number: int = 0
