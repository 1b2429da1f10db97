"""The options that describe a case, declared once for the commands that ask about one.

``@asked("model_name device")`` over a command that takes ``wanted`` puts these options in its place, in this order,
and hands over one ``Options``. Typer reads options from a function's signature: the decorated function states them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter

from aotidoctor.cli import options as opt
from aotidoctor.cli.show import EmulateWhen
from aotidoctor.cli.shown import Command, parameters, stating
from aotidoctor.model.case import Options

OptionsMaker = Callable[..., Options]  # type: ignore[explicit-any]  # what is given to it came through Typer


def asked(names: str, **defaults: object) -> Callable[[Command], Command]:
    """Give a command that takes ``wanted`` the options ``names``; ``defaults`` are those that differ here."""
    declared = {each.name: each for each in parameters(_options)}
    options = [declared[name].replace(default=defaults.get(name, declared[name].default)) for name in names.split()]

    def decorate(function: Command) -> Command:
        @wraps(function)
        def command(**given: object) -> None:
            make: OptionsMaker = _options
            wanted = make(**{each.name: given.pop(each.name) for each in options})
            function(**given, wanted=wanted)

        stated: list[Parameter] = []
        for each in parameters(function):
            stated += options if each.name == "wanted" else [each]
        return stating(command, stated)

    return decorate


def _options(
    *,
    generate: opt.Generate = False,
    model_name: opt.ModelName = None,
    device: opt.Device = None,
    setup: opt.Setup = None,
    custom_op_library: opt.CustomOpLibrary = None,
    reference: opt.Reference = None,
    host: opt.Host = None,
    weights: opt.Weights = None,
    rtol: opt.Rtol = None,
    atol: opt.Atol = None,
    trust_pickle: opt.TrustPickle = False,
    seed: opt.Seed = 0,
    timeout: opt.Timeout = 60.0,
    budget: opt.Budget = None,
    repeat: opt.Repeat = 2,
    jobs: opt.Jobs = 1,
    threads: opt.Threads = None,
    memory_limit: opt.MemoryLimit = None,
    emulate: opt.Emulate = EmulateWhen.AUTO,
    emulate_kernel: opt.EmulateKernel = None,
    probes: opt.Probes = None,
    skip_probes: opt.SkipProbes = None,
    shrink: opt.Shrink = False,
) -> Options:
    return Options(
        model_name=model_name,
        device=device,
        setup=setup,
        custom_op_libraries=tuple(custom_op_library or ()),
        reference=reference,
        host=host,
        weights=weights,
        tolerances=opt.tolerances(rtol, atol),
        generate=generate,
        seed=seed,
        timeout=timeout,
        budget=budget,
        repeat=repeat,
        jobs=jobs,
        threads=threads,
        trust_pickle=trust_pickle,
        rungs=opt.names(probes),
        skip_rungs=opt.names(skip_probes) or (),
        memory_limit=memory_limit,
        # A kernel that is named is to be emulated, whatever this machine has.
        emulate=emulate.value if emulate_kernel is None else EmulateWhen.ALWAYS.value,
        emulate_kernel=emulate_kernel,
        shrink=shrink,
    )
