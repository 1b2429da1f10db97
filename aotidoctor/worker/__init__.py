"""The child program: one file per job. The only package that may import torch, and only inside functions.

A job is a function ``(payload, channel) -> result`` in its own module. It is named here and imported when it is asked
for, so that a request pays for its own job only. The modules use the standard library, torch and ``aotidoctor.model``;
the emulation also reads the package itself (``aotidoctor.readers``).
"""

from __future__ import annotations

JOBS: dict[str, tuple[str, str]] = {
    "cut": ("aotidoctor.worker.cut", "cut"),
    "run": ("aotidoctor.worker.run_model", "run"),
    "emulate": ("aotidoctor.worker.emulation.job", "emulate"),
    "hook": ("aotidoctor.worker.hook", "hook"),
    "load_time": ("aotidoctor.worker.load_time", "load_time"),
    "op_alone": ("aotidoctor.worker.operators.alone", "op_alone"),
    "op_inputs": ("aotidoctor.worker.operators.inputs", "op_inputs"),
    "ops": ("aotidoctor.worker.operators.ops", "ops"),
    "printed": ("aotidoctor.worker.printed_run", "printed"),
    "recompile": ("aotidoctor.worker.recompile", "recompile"),
    "recover": ("aotidoctor.worker.recover", "recover"),
    "rehearse": ("aotidoctor.worker.rehearse", "rehearse"),
    "reference": ("aotidoctor.worker.reference", "reference"),
    "demo_build": ("aotidoctor.worker.demo_build", "demo_build"),
    "verify": ("aotidoctor.worker.verify.job", "verify"),
    "save_inputs": ("aotidoctor.worker.save_inputs", "save_inputs"),
    "setup_only": ("aotidoctor.worker.setup_only", "setup_only"),
    "script": ("aotidoctor.worker.script", "script"),
}
"""Name of a job -> module and function."""
