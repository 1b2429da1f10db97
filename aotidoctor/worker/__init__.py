"""The child program and its jobs. The only package that may import torch.

A job is a function ``(payload, channel) -> result``. It is listed here with the record of its payload. Its module is
imported on first use, once torch is, so that a request pays for its own job only. The modules use the standard
library, torch and ``aotidoctor.model``; some also read the package itself (``aotidoctor.readers``). What runs before
torch is there imports it in functions, if at all: ``serve``, ``forkserver``, ``channel``, ``sandbox``, ``user_code``.
"""

from __future__ import annotations

from aotidoctor.model import jobs

JOBS: dict[str, tuple[str, str, type[jobs.Job]]] = {
    "cut": ("aotidoctor.worker.verify.cut_program", "cut", jobs.Cut),
    "run": ("aotidoctor.worker.run_model", "run", jobs.Run),
    "emulate": ("aotidoctor.worker.emulation.emulate", "emulate", jobs.Run),
    "executorch": ("aotidoctor.worker.run_model", "executorch", jobs.ExecutorchRun),
    "hook": ("aotidoctor.worker.server_rehearsal", "hook", jobs.Hook),
    "load_time": ("aotidoctor.worker.run_model", "load_time", jobs.Run),
    "lowered_dtypes": ("aotidoctor.worker.compile_program", "lowered_dtypes", jobs.Recompile),
    "op_alone": ("aotidoctor.worker.operators.op_calls", "op_alone", jobs.OneOperator),
    "op_inputs": ("aotidoctor.worker.operators.op_calls", "op_inputs", jobs.Run),
    "ops": ("aotidoctor.worker.operators.op_schema", "ops", jobs.Operators),
    "printed": ("aotidoctor.worker.run_model", "run_printing", jobs.Run),
    "recompile": ("aotidoctor.worker.compile_program", "recompile", jobs.Recompile),
    "recover": ("aotidoctor.worker.recover", "recover", jobs.Run),
    "rehearse": ("aotidoctor.worker.server_rehearsal", "rehearse", jobs.Run),
    "reference": ("aotidoctor.worker.run_reference", "reference", jobs.Run),
    "stage": ("aotidoctor.worker.stages", "stage", jobs.Stage),
    "demo_build": ("aotidoctor.worker.demo_build", "demo_build", jobs.DemoBuild),
    "try_remedy": ("aotidoctor.worker.verify.try_remedy", "try_remedy", jobs.TryRemedy),
    "verify": ("aotidoctor.worker.verify.verify_program", "verify", jobs.Verify),
    "save_inputs": ("aotidoctor.worker.call", "save_inputs", jobs.SaveInputs),
    "setup_only": ("aotidoctor.worker.user_code", "setup_only", jobs.Job),
    "script": ("aotidoctor.worker.user_code", "script", jobs.Script),
}
"""Name of a job -> its module, its function and the type of its payload."""
