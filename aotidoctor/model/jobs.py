"""Define the jobs of the worker: one record per request, written by the parent and read by the child.

A request travels as JSON: written field by field, read by ``from_json``, strictly. A field of another type is an error
of aotidoctor, with the place, what was observed and what was expected, before the job begins. Paths are absolute, or
relative to the directory that aotidoctor was started in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from aotidoctor.model.case import Tolerances
from aotidoctor.model.record import JsonObject, JsonValue, record

J = TypeVar("J", bound="Job")
OBSERVE = ("outputs", "mutation", "alias", "values")


@record
class UserCode:
    """Code that is loaded before anything else: modules of plugins, operator libraries, a setup file or module."""

    setup: str | None = None
    custom_op_libraries: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()


@record
class Job:
    """The payload that all jobs share."""

    code: UserCode = UserCode()


@record
class InputsSource:
    """The source of tensors: a file at ``path``, or a generated ``document``. ``plan`` is ``InputSet.plan``.

    Without a plan the file is read as it would be without a call spec.
    """

    path: str | None = None
    document: JsonValue = None
    trusted: bool = False
    plan: JsonObject | None = None


@record
class SubBatch:
    """The first ``rows`` rows of these inputs and outputs, held against all of them."""

    rows: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@record
class Watch:
    """The values of kernels, held against those of the exported program ``reference``."""

    reference: str | None = None


@record
class StoredConstant:
    """A constant of a library by its original name: ``size`` bytes of storage, the rest in elements of ``dtype``.

    Storages lie one after the other.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    size: int


@record
class Run(Job):
    """Load a package and call it: a plain call, against which a probe changes one thing.

    Of the jobs ``run``, ``printed``, ``load_time``, ``emulate``, ``op_inputs``, ``recover``, ``rehearse`` and
    ``reference`` (which loads no package).

    ``inputs`` None only loads. ``treatment`` are steps as ``diagnosis.treatments`` writes them. ``observe`` names what
    is looked at: outputs, mutation, alias, values, constants, rss, memory. ``perturb`` is the byte that fills fresh
    memory.
    ``stored`` tells how the constants lie in the library, None where that is not known. ``reference`` is the exported
    program to compare with; ``measure`` asks for the error against float64 of outputs that agree, too; ``unread`` are
    inputs that the package never reads, each with one of the same dtype and sizes that it reads. ``against_threads`` is
    a second number of threads; ``read_beyond`` asks how far calls read beyond their inputs. ``file_limit`` bounds the
    files it writes, in bytes. ``level`` is that of the value printer in the package, ``unbuffered`` lets each of its
    lines out at once. ``targets`` are operators. ``emulate_way`` is ``auto``, ``full`` or ``quick``; ``keep_outputs`` a
    file for what came out. ``share_reference`` loads the program once for later calls. ``tmpdir`` is the user's, of
    which compile caches are read. ``confine``: nothing of the user's own is executed, and nothing is compiled. Of an
    artifact of torch.compile ``grad_mode`` is that of the call, None as it is, and ``cache`` a folder of the
    compiler's. ``samples`` are the inputs of many calls, in the place of ``inputs``. ``next_weights`` take the place of
    ``weights`` by ``weight_protocol``.
    """

    package: str = ""
    kind: str = "aoti-package"
    model_name: str = "model"
    device: str = "cpu"
    device_index: int = -1
    inputs: InputsSource | None = None
    threads: int | None = None
    calls: int = 1
    weights: str | None = None
    treatment: tuple[JsonObject, ...] = ()
    observe: tuple[str, ...] = OBSERVE
    perturb: int | None = None
    stored: tuple[StoredConstant, ...] | None = None
    reference: str | None = None
    measure: bool = False
    unread: tuple[tuple[str, str], ...] = ()
    tolerances: Tolerances = Tolerances()
    share_reference: str | None = None
    trace: bool = False
    heap_checks: bool = False
    watch: Watch | None = None
    sub_batch: SubBatch | None = None
    against_threads: int | None = None
    read_beyond: bool = False
    launch_trace: bool = False
    cuda_variant: str | None = None
    file_limit: int | None = None
    tmpdir: str | None = None
    level: int | None = None
    unbuffered: bool = False
    targets: tuple[str, ...] = ()
    emulate_seconds: float = 60.0
    emulate_kernels: tuple[str, ...] = ()
    emulate_way: str = "auto"
    keep_outputs: str | None = None
    confine: bool = False
    grad_mode: bool | None = None
    cache: str | None = None
    rehearsal: JsonObject | None = None
    samples: tuple[InputsSource, ...] = ()
    next_weights: str | None = None
    weight_protocol: str = ""


@record
class Recompile(Job):
    """Compile the exported program ``reference`` to ``target``.

    ``config`` are settings of Inductor; ``printer`` is the level of the value printer (0: none), for
    ``printed_kernels`` alone where they are named; ``bisect`` is the state of the compiler's own switch; ``cache`` a
    folder that compiles share.
    """

    reference: str
    config: JsonObject | None
    target: str = ""
    cache: str | None = None
    printer: int = 0
    printed_kernels: str | None = None
    provenance: bool = False
    bisect: JsonObject | None = None


@record
class Operators(Job):
    """Job ``ops``: what is registered under these names."""

    targets: tuple[str, ...] = ()
    device: str = "cpu"


@record
class OneOperator(Job):
    """Job ``op_alone``: one operator on the calls saved in ``files``; ``loop`` calls more, the other two on request."""

    target: str
    files: tuple[str, ...] = ()
    device: str = "cpu"
    threads: int | None = None
    loop: int = 0
    fake: bool = False
    opcheck: bool = False


@record
class Cut(Job):
    """Write the part of ``reference`` that these ``nodes`` are (None: all), with its inputs, to ``folder``."""

    reference: str
    inputs: InputsSource | None
    folder: str
    nodes: tuple[str, ...] | None = None


@record
class Verify(Job):
    """Judge an exported program: an archive, or ``module.py:function`` that returns one."""

    program: str
    dynamic_shapes: JsonValue = None


@record
class Stage(Job):
    """Compute one ``stage`` of the way from ``model`` (``module.py:function``) to its package, as of ``program``.

    ``before`` is the stage that it is held against, None for the first. ``inputs`` None are the examples of the model's
    function, else those of the program. A program that is exported here is written to ``keep``.
    """

    stage: str
    before: str | None = None
    model: str | None = None
    program: str | None = None
    inputs: InputsSource | None = None
    keep: str | None = None


@record
class TryRemedy(Job):
    """Export the model of ``program`` again with ``steps`` carried out, compile it, and compare it with eager.

    ``program`` is an archive or ``module.py:function``. ``inputs`` None are the examples of the export. ``cache`` is a
    folder that compiles share; without ``compiles`` the exported program is compared.
    """

    program: str
    steps: tuple[JsonObject, ...]
    inputs: InputsSource | None = None
    cache: str | None = None
    compiles: bool = True


@record
class SaveInputs(Job):
    """Write the inputs to ``target``; ``paths`` names the leaves that are wanted, None all of them."""

    inputs: InputsSource
    target: str
    paths: tuple[str, ...] | None = None


@record
class ExecutorchRun(Job):
    """Call ``method`` of the ExecuTorch program ``program``, whose data are in the file ``data``, if there is one."""

    program: str
    method: str
    data: str | None = None
    inputs: InputsSource | None = None


@record
class Hook(Job):
    """Call the init functions of ``library`` as the server would, for the version in ``folder``."""

    library: str
    folder: str
    device_index: int = -1


@record
class DemoBuild(Job):
    """Make one ``part`` of the demo in ``folder``: ``model`` or ``separate_weights``."""

    folder: str
    part: str


@record
class Script(Job):
    """Execute the file at ``path``; ``torch`` is imported only where this asks for it."""

    path: str
    torch: bool = False


# In this order, one that is read from JSON is recognised by its fields.
Payload = (
    Script | DemoBuild | Hook | SaveInputs | ExecutorchRun | Stage | TryRemedy | Verify | Cut | Recompile | OneOperator
    | Job | Operators | Run
)  # fmt: skip


def change_fields(record: J, changes: Mapping[str, object]) -> J:
    """``record`` with other values in some fields; TypeError for a field that it does not have."""
    return replace(record, **changes)  # type: ignore[arg-type]  # of which type each is, the child checks
