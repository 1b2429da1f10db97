"""``diagnose``, ``check`` and ``compare``: examine a package with the inputs of a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from aotidoctor.api.live_arguments import LiveSource, described_inputs, source_of
from aotidoctor.api.option_arguments import (
    PathLike,
    ToleranceLike,
    case_memory,
    environment,
    explicit_options,
    options_of,
    path,
    use_plugins,
)
from aotidoctor.api.returned_report import Report, public_report
from aotidoctor.commands import diagnose_package as diagnose_package_module
from aotidoctor.commands.case_options import option_words
from aotidoctor.model.case import Options
from aotidoctor.model.errors import CannotExamineError, LimitReachedError, UsageError
from aotidoctor.model.record import record

if TYPE_CHECKING:
    from aotidoctor.model.report import Event
    from aotidoctor.runner.runner import Runner


# What the three share: environment, inputs, stated command.
# What a report shows in place of a file that there is none of.
_LIVE = "(args and kwargs of the calling program)"


@record(kw_only=False)
class RunRequest:
    """Parameters shared by diagnose, check and compare: environment, command as stated, progress, runner."""

    environ: Mapping[str, str]
    argv: tuple[str, ...]
    on_event: Callable[[Event], None] | None
    runner: Runner | None
    command: str
    plugins: bool
    plan: bool = False
    static: bool = False
    cases: PathLike | None = None

    @property
    def name(self) -> str:
        """The name that the command line has for it."""
        return "check" if self.static and not self.plan else self.command


def examine_package(
    package: PathLike, source: LiveSource, options: Options, values: Mapping[str, object], request: RunRequest
) -> Report:
    """The public report on ``package`` with the inputs of ``source``; ``asked`` are the keywords as given."""
    if options.generate and (source.path or source.is_live):
        raise UsageError("inputs and generate cannot be combined")
    place = path("package", package)
    argv = request.argv or _argv(place, source, values, request)
    keep = case_memory(request.cases)
    try:
        with (
            use_plugins(request.name, wanted=request.plugins),
            described_inputs(source, to_run=not request.static) as live,
        ):
            if request.plan:
                return public_report(
                    diagnose_package_module.plan(
                        place, source.path, options, argv=argv, environ=request.environ, live=live
                    )
                )
            found = diagnose_package_module.diagnose(
                place,
                source.path,
                options,
                argv=argv,
                environ=request.environ,
                static_only=request.static,
                command=request.command,
                on_event=request.on_event,
                runner=request.runner,
                live=live,
            )
            return public_report(keep(found, request.environ))
    except LimitReachedError as reached:
        raise CannotExamineError(f"{place}: {reached}") from reached


def _argv(package: str, source: LiveSource, values: Mapping[str, object], request: RunRequest) -> tuple[str, ...]:
    inputs = source.path or (_LIVE if source.is_live else None)
    return (
        "aotidoctor",
        request.name,
        package,
        *(("--inputs", inputs) if inputs is not None else ()),
        *option_words(values),
        *(("--plan",) if request.plan else ()),
    )


OnEvent = Callable[["Event"], None]


def diagnose(
    package: PathLike,
    inputs: object = None,
    options: Options | None = None,
    *,
    args: object = None,
    kwargs: object = None,
    generate: bool = False,
    model_name: str | None = None,
    device: str | None = None,
    setup: PathLike | None = None,
    custom_op_library: PathLike | tuple[PathLike, ...] | list[PathLike] | None = None,
    reference: PathLike | None = None,
    model: PathLike | None = None,
    host: PathLike | None = None,
    weights: PathLike | tuple[PathLike, ...] | list[PathLike] | None = None,
    weight_protocol: str = "double-buffer",
    data: PathLike | tuple[PathLike, ...] | list[PathLike] | None = None,
    rtol: ToleranceLike | None = None,
    atol: ToleranceLike | None = None,
    trust_pickle: bool = False,
    seed: int = 0,
    values: str = "statistics",
    timeout: float = 60.0,
    budget: float | None = None,
    repeat: int = 2,
    jobs: int = 1,
    threads: int | None = None,
    memory_limit: int | None = None,
    emulate: str = "auto",
    probes: str | tuple[str, ...] | list[str] | None = None,
    skip_probes: str | tuple[str, ...] | list[str] | None = None,
    shrink: bool = False,
    plan: bool = False,
    cases: PathLike | None = None,
    no_plugins: bool = False,
    environ: Mapping[str, str] | None = None,
    argv: tuple[str, ...] = (),
    on_event: OnEvent | None = None,
    runner: Runner | None = None,
    static_only: bool = False,
    command: str = "run",
) -> Report:
    """Find the cause of a failure and prove it by removing it, as ``aotidoctor run`` does.

    Executes native code from the package, in child processes with limits of time and memory; this process imports
    nothing of it.

    Args:
        package: the .pt2 file.
        inputs: a file (.pt, .npz, .npy, .safetensors, .json), or the objects themselves: a tensor, a tuple or list of
            args, a dict of kwargs, ``{"args": ..., "kwargs": ...}``; or many samples: a folder or pattern of files, or
            a file with a list of calls.
        options: an ``Options`` to begin with; keywords that have not their default value replace its fields.
        args: the positional arguments of the call: tensors, NumPy arrays (as ``torch.from_numpy`` makes tensors of
            them), numbers, texts and None, in nested tuples, lists, dicts and registered classes; any shapes.
        kwargs: the keyword arguments, likewise.
        generate: make inputs from the contract instead, with ``seed``.
        model_name: the model inside the package.
        device: ``cpu``, ``cuda`` or ``cuda:1``.
        setup: a Python file that the child imports first.
        custom_op_library: libraries of custom operators, loaded first.
        reference: ``exported.pt2`` or ``module.py:function`` to compare with.
        model: ``module.py:function`` of the model, or one that returns it: shows which stage is at fault.
        host: a profile; only with ``plan``.
        weights: .safetensors or a state dict to load; of two files the second takes the place of the first.
        weight_protocol: how it does: ``double-buffer`` by a swap, ``user-managed`` copied in place by their owner.
        data: the ``.ptd`` file of an ExecuTorch program.
        rtol: a number for all outputs, ``{"result[0]": 1e-3}``, or texts as on the command line.
        atol: likewise, absolute.
        trust_pickle: unpickle an inputs file even if that runs code from it.
        seed: of ``generate``.
        values: ``hash`` leaves ranges of values out of the report: only digests of the outputs stay.
        timeout: limit of one child run in seconds.
        budget: limit of everything together in seconds.
        repeat: plain runs in fresh processes.
        jobs: child runs at a time.
        threads: threads to run with.
        memory_limit: address space of a child in bytes.
        emulate: ``always``, ``auto`` or ``never`` carry a CUDA package out on the CPU.
        probes: run only these probes.
        skip_probes: skip these probes.
        shrink: find the smallest inputs that still fail.
        plan: say what would run and why, and run nothing.
        cases: a store of ``aotidoctor cases``: keeps the diagnosis, and the report says whether it was seen before.
        no_plugins: use no installed plugin.
        environ: the environment of the children; by default that of this process.
        argv: what the report states as the command; by default the same question on the command line.
        on_event: is called with each ``Event`` of the progress, in the calling thread.
        runner: a ``Runner`` to use and not to close.
        static_only: run nothing; ``check`` says the same.
        command: the name that the report gets; ``compare`` runs only what the comparison needs.

    Raises:
        ArgumentError: a value of the wrong type or out of range, with ``where``, ``observed`` and ``expected``.
        UsageError: options that contradict each other, an unknown probe.
        InputsError: arguments that cannot be handed to a child process. (What is wrong with an inputs *file* is a
            finding of the report.)
        KeyboardInterrupt: the user interrupted it.

    >>> report = aotidoctor.diagnose("model.pt2", args=args, kwargs={"ids": ids.int()})
    >>> report.cause, report.diagnoses[0].status.value, report.diagnoses[0].subject
    ('input-dtype', 'confirmed', "kwargs['ids']")
    >>> report.diagnoses[0].remedy.command
    "kwargs['ids'] = kwargs['ids'].to(torch.int64)"
    """
    keywords = explicit_options(locals())
    if host is not None and not (plan or static_only):
        raise UsageError("host: only a plan can be made for a different machine: use plan=True, or check()")
    is_static = static_only or plan
    return examine_package(
        package,
        source_of(inputs, args, kwargs),
        options_of(options, keywords),
        keywords,
        RunRequest(environment(environ), argv, on_event, runner, command, not no_plugins, plan, is_static, cases),
    )


def check(
    package: PathLike,
    inputs: object = None,
    options: Options | None = None,
    *,
    args: object = None,
    kwargs: object = None,
    generate: bool = False,
    model_name: str | None = None,
    device: str | None = None,
    setup: PathLike | None = None,
    custom_op_library: PathLike | tuple[PathLike, ...] | list[PathLike] | None = None,
    reference: PathLike | None = None,
    host: PathLike | None = None,
    weights: PathLike | tuple[PathLike, ...] | list[PathLike] | None = None,
    data: PathLike | tuple[PathLike, ...] | list[PathLike] | None = None,
    verify_data: bool = False,
    trust_pickle: bool = False,
    seed: int = 0,
    threads: int | None = None,
    no_plugins: bool = False,
    environ: Mapping[str, str] | None = None,
    argv: tuple[str, ...] = (),
    on_event: OnEvent | None = None,
) -> Report:
    """Compare package, inputs and host without running anything, as ``aotidoctor check`` does.

    No child process, no torch, nothing executed. Arguments that are objects are described where they are: nothing is
    copied but the values of small tensors, which are looked at. Arguments and errors are those of ``diagnose``;
    ``host`` is the profile of another machine, ``data`` are the ``.ptd`` files of an ExecuTorch program;
    ``verify_data`` compares every checksum of a package or sha256 of those, however large.

    >>> report = aotidoctor.check("model.pt2", args=(x.t().contiguous().t(), *args[1:]), kwargs={"ids": ids})
    >>> report.cause, report.diagnoses[0].subject
    ('input-stride', 'args[0].stride')
    """
    keywords = explicit_options(locals())
    return examine_package(
        package,
        source_of(inputs, args, kwargs),
        options_of(options, keywords),
        keywords,
        RunRequest(environment(environ), argv, on_event, None, "check", not no_plugins, static=True),
    )


def compare(
    package: PathLike | None = None,
    inputs: object = None,
    options: Options | None = None,
    *,
    args: object = None,
    kwargs: object = None,
    from_: PathLike | None = None,
    reference: PathLike | None = None,
    rtol: ToleranceLike | None = None,
    atol: ToleranceLike | None = None,
    generate: bool = False,
    model_name: str | None = None,
    device: str | None = None,
    setup: PathLike | None = None,
    custom_op_library: PathLike | tuple[PathLike, ...] | list[PathLike] | None = None,
    trust_pickle: bool = False,
    seed: int = 0,
    values: str = "statistics",
    timeout: float = 60.0,
    budget: float | None = None,
    threads: int | None = None,
    memory_limit: int | None = None,
    emulate: str = "auto",
    no_plugins: bool = False,
    environ: Mapping[str, str] | None = None,
    argv: tuple[str, ...] = (),
    on_event: OnEvent | None = None,
    runner: Runner | None = None,
) -> Report:
    """Compare outputs, weights and side effects with the reference, as ``aotidoctor compare`` does.

    Either ``package`` with inputs and a ``reference``, or ``from_``: a saved JSON report to judge again with other
    tolerances. Arguments and errors are those of ``diagnose``; ``CannotExamineError`` where ``from_`` holds no
    comparison.

    >>> report = aotidoctor.compare("model.pt2", args=args, kwargs={"ids": ids}, reference="exported.pt2")
    >>> report.verdict, [output.verdict for output in report.localization.comparison]
    ('healthy', ['agrees'])
    """
    keywords = explicit_options(locals())
    wanted = replace(options_of(options, keywords), measure=True)
    source = source_of(inputs, args, kwargs)
    if from_ is not None:
        return _judge_saved(from_, package, source, wanted, argv or ("aotidoctor", "compare", "--from", str(from_)))
    if package is None or wanted.reference is None or not (source.path or source.is_live or wanted.generate):
        raise UsageError("compare needs a package, a reference and inputs (or generate=True); or from_ a report")
    return examine_package(
        package,
        source,
        wanted,
        keywords,
        RunRequest(environment(environ), argv, on_event, runner, "compare", not no_plugins),
    )


def _judge_saved(
    saved: PathLike, package: PathLike | None, source: LiveSource, options: Options, argv: tuple[str, ...]
) -> Report:
    from aotidoctor.commands.analyze.saved_report import judge_saved_comparison

    if package is not None or options.reference is not None or source.path or source.is_live:
        raise UsageError("from_ takes only a report and runs nothing")
    return public_report(judge_saved_comparison(path("from_", saved), options, argv=argv))
