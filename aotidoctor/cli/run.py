"""``aotidoctor run``: everything — inspect, check, probe, diagnose, confirm, report."""

from __future__ import annotations

import os
from dataclasses import replace

from aotidoctor.cli import options as opt
from aotidoctor.cli.execute import argv, execute
from aotidoctor.cli.show import EmulateWhen, Show
from aotidoctor.cli.shown import shown
from aotidoctor.model.case import Options


@shown("package", "inputs", "reference", "host", "setup", "custom_op_library", "weights", "cases")
def run(
    package: opt.Package,
    inputs: opt.Inputs = None,
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
    probes: opt.Probes = None,
    skip_probes: opt.SkipProbes = None,
    shrink: opt.Shrink = False,
    plan: opt.Plan = False,
    cases: opt.Cases = None,
    show: Show,
) -> None:
    """Find the cause of a failure, and prove it by removing it.

    Executes native code from PACKAGE, in child processes with limits of time and memory.
    """
    opt.one_source(inputs, generate=generate)
    opt.plan_only(host, plan=plan)
    wanted = Options(
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
        emulate=emulate.value,
        shrink=shrink,
    )
    from aotidoctor.commands import diagnose  # noqa: PLC0415 - `--help` does not need the stages

    if plan:
        execute("run", package, show, lambda _: diagnose.plan(package, inputs, wanted, argv=argv(), environ=os.environ))
    execute(
        "run",
        package,
        replace(show, cases=cases),
        lambda on_event: diagnose.diagnose(package, inputs, wanted, argv=argv(), environ=os.environ, on_event=on_event),
    )
