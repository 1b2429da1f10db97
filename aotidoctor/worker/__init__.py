"""The child program: one file per job. The only package that may import torch, and only inside functions.

A job is a function ``(payload, channel) -> result`` in its own module. It is named here, with the record that it is
given, and imported when it is asked for, so that a request pays for its own job only. The modules use the standard
library, torch and ``aotidoctor.model``; the emulation also reads the package itself (``aotidoctor.readers``).
"""

from __future__ import annotations

from aotidoctor.model import jobs

JOBS: dict[str, tuple[str, str, type[jobs.Job]]] = {
    "cut": ("aotidoctor.worker.cut", "cut", jobs.Cut),
    "run": ("aotidoctor.worker.run_model", "run", jobs.Run),
    "emulate": ("aotidoctor.worker.emulation.job", "emulate", jobs.Run),
    "hook": ("aotidoctor.worker.hook", "hook", jobs.Hook),
    "load_time": ("aotidoctor.worker.load_time", "load_time", jobs.Run),
    "op_alone": ("aotidoctor.worker.operators.alone", "op_alone", jobs.OneOperator),
    "op_inputs": ("aotidoctor.worker.operators.inputs", "op_inputs", jobs.Run),
    "ops": ("aotidoctor.worker.operators.ops", "ops", jobs.Operators),
    "printed": ("aotidoctor.worker.printed_run", "printed", jobs.Run),
    "recompile": ("aotidoctor.worker.recompile", "recompile", jobs.Recompile),
    "recover": ("aotidoctor.worker.recover", "recover", jobs.Run),
    "rehearse": ("aotidoctor.worker.rehearse", "rehearse", jobs.Run),
    "reference": ("aotidoctor.worker.reference", "reference", jobs.Run),
    "demo_build": ("aotidoctor.worker.demo_build", "demo_build", jobs.DemoBuild),
    "verify": ("aotidoctor.worker.verify.job", "verify", jobs.Verify),
    "save_inputs": ("aotidoctor.worker.save_inputs", "save_inputs", jobs.SaveInputs),
    "setup_only": ("aotidoctor.worker.setup_only", "setup_only", jobs.Job),
    "script": ("aotidoctor.worker.script", "script", jobs.Script),
}
"""Name of a job -> module, function and payload."""
