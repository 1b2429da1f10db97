"""Load a package, call it, and report each step: jobs ``run``, ``printed``, ``load_time`` and ``executorch``.

Job ``run`` sends each part of the result at once (``channel.put``), so that a crash in the second call still leaves
the outputs of the first. The stages are ``setup``, ``inputs``, ``load``, ``trace``, ``after_load``, ``constants``,
``run1``, ``scan``, ``run2``..., ``reference``, ``unload``, ``done``; of a captured call ``capture`` and ``replay``.

Job ``printed`` makes one call of a package that was compiled with the value printer. Level 2 prints to stdout, more
than a tail of it would hold: while the model runs, stdout is a file of the run's directory. Level 1 saves each tensor
below the current directory. The result has ``printed`` (text) or ``saved`` (one object per file), and the parts of job
``run``. A call that fails gives neither: with ``unbuffered`` all goes to stdout as it is printed, and the tail of it
survives in any case.

Job ``load_time`` loads and calls a package as ``aoti_load_package`` does, and measures each part. The parts of
PyTorch's Python side are stages of their own: ``imports`` (Inductor's modules), ``cpu_checks`` (checks of this CPU,
which compile and start small programs). Inside the loader the call of ``dlopen`` is timed: before it the package is
unpacked, after it the model is made with its constants. ``load_parts`` in the result has the seconds of ``unpack``,
``link`` and ``create``; it is missing where that call was not observed.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from aotidoctor.model.artifact import RUNNABLE_KINDS
from aotidoctor.model.jobs import ExecutorchRun, Run
from aotidoctor.model.printer_lines import KEPT, SAVED_FILE, SAVED_FILES
from aotidoctor.model.run import PRIVATE_PREFIX
from aotidoctor.worker.call import ModelCall, make_calls, make_cuda_calls, read_call, set_threads
from aotidoctor.worker.call_hooks.package_calls import call_around, call_slot, start_trace
from aotidoctor.worker.channel import Channel
from aotidoctor.worker.forkserver import keep_files, start_keeper
from aotidoctor.worker.load_package import DEFAULT_TMPDIR, LoadedModel, load_compiled, load_model
from aotidoctor.worker.sandbox import confine_run, limit_file_size
from aotidoctor.worker.serve import fill_new_memory, heap_checks_loaded
from aotidoctor.worker.tensors import describe, digest, result_tensors, walk_call
from aotidoctor.worker.treatments import treat
from aotidoctor.worker.user_code import after_load, defined_operators, load_setup
from aotidoctor.worker.weights import describe_constants, describe_given_weights


def run(payload: Run, channel: Channel) -> dict[str, Any]:
    """Load the package, call it, and report each step; the modules of the parts describe the result."""
    payload, applied = treat.prepare_payload(payload, channel)
    if payload.heap_checks:
        channel.put(heap_checks=heap_checks_loaded())
    confine_run(payload, channel)
    known = defined_operators()
    module = load_setup(payload, channel)
    if defined_operators() - known:
        # The first call of such an operator would import it: a second in each process that is forked from this one.
        with suppress(ImportError):
            import_module("torch._dynamo")
    applied += treat.replace_operators(payload)
    set_threads(payload.threads, channel)
    call = _inputs(payload, channel, applied)
    facts: dict[str, Any] = {}
    channel.enter("load")
    _fill_memory(payload, channel)
    if payload.kind not in (kind.value for kind in RUNNABLE_KINDS):
        if payload.cache:
            from aotidoctor.worker.compile_program import use_compiler_cache

            use_compiler_cache(payload.cache)
        function = load_compiled(channel.user_cwd / payload.package, module, payload.grad_mode, channel.run_dir)
        if call is not None:
            channel.put(inputs=call.describe(values=False))
            make_calls(function, replace(call, described=call.describe(values=False)), payload, channel)
        return {}
    model = load_model(payload, channel.user_cwd / payload.package)
    _trace(model, payload, channel)
    _send_facts(channel, facts, call_spec=list(model.loader.get_call_spec()), metadata=model.get_metadata())
    channel.enter("after_load")
    _follow_weights(model, payload, channel, facts)
    _send_facts(channel, facts, after_load=after_load(module, model, channel))
    # Setup files may set the number, before or after the load.
    set_threads(None, channel)
    applied += treat.load_weights(payload, model, channel)
    channel.put(applied=applied)
    if payload.share_reference:
        from aotidoctor.worker.reference_program import share_reference

        share_reference(payload.share_reference, channel)
    # The unpacked package can stay only in a directory of this run alone.
    files = model.directory
    private = channel.run_dir in files.parents or files.name.startswith(PRIVATE_PREFIX)
    keeper = None
    if private and str(files) == os.environ.get("TMPDIR"):
        keeper = start_keeper(partial(_run_loaded, model, facts, files))
    channel.put(kept=keeper)
    return _call_model(model, call, payload, channel, files if keeper is not None else None)


def _run_loaded(
    model: LoadedModel, facts: dict[str, Any], files: Path, payload: Run, channel: Channel
) -> dict[str, Any]:
    """Job ``run`` for a model that another process has loaded; ``facts`` are the parts of the result from that load."""
    payload, applied = treat.prepare_payload(payload, channel)
    set_threads(payload.threads, channel)
    call = _inputs(payload, channel, applied)
    channel.put(**facts)
    _fill_memory(payload, channel)
    _trace(model, payload, channel)
    return _call_model(model, call, payload, channel, files)


def _call_model(
    model: LoadedModel, call: ModelCall | None, payload: Run, channel: Channel, files: Path | None
) -> dict[str, Any]:
    """Make the calls that ``payload`` requests, report on them, and unload.

    ``files`` is the unpacked package that other processes will still need; None where none will.
    """
    if call is not None:
        channel.enter("inputs")
        described = call.describe(values="values" in payload.observe)
        channel.put(inputs=described)
        call = replace(call, described=described)
    if "constants" in payload.observe:
        channel.enter("constants")
        channel.put(**describe_constants(model, payload))
    if payload.samples:
        from aotidoctor.worker.values.varied_calls import call_samples

        call_samples(model, payload, channel)
    elif call is None or not _special_calls(model, call, payload, channel):
        _make_calls(model, call, payload, channel)
    channel.enter("unload")
    if files is not None:
        keep_files(files)
    model.close()
    return {}


def _special_calls(model: LoadedModel, call: ModelCall, payload: Run, channel: Channel) -> bool:
    """Make calls that are followed, or that differ in one thing and are compared; False where none are requested."""
    if not (
        payload.watch or payload.read_beyond or payload.sub_batch or payload.next_weights or payload.against_threads
    ):
        return False
    from aotidoctor.worker.values import match_values, varied_calls, weight_swap

    if payload.watch:
        match_values.watch_call(model, call, payload, channel)
    elif payload.read_beyond:
        varied_calls.read_beyond(model, call, channel)
    elif payload.sub_batch:
        varied_calls.compare_rows(model, call, payload.sub_batch, channel)
    elif payload.next_weights:
        weight_swap.swap_weights(model, call, payload, channel)
    elif payload.against_threads:
        varied_calls.compare_threads(model, call, payload.against_threads, channel)
    return True


def _make_calls(model: LoadedModel, call: ModelCall | None, payload: Run, channel: Channel) -> None:
    """Make the usual calls, those of a captured CUDA graph, or none, and compare with the reference."""
    if payload.file_limit:
        limit_file_size(payload.file_limit)
    if call is not None and (payload.launch_trace or payload.cuda_variant):
        make_cuda_calls(model, call, payload, channel)
        return
    outputs = None
    if call is not None:
        function: Callable[..., Any] = model
        if treat.changes_results(payload):
            from aotidoctor.worker.values.match_values import model_with_treatment

            function = model_with_treatment(model, call, payload, channel)
        outputs = make_calls(function, call, payload, channel)
    if payload.reference:
        from aotidoctor.worker.run_reference import check_reference

        channel.enter("reference")
        channel.put(**check_reference(payload, model, call, outputs, channel))


def _inputs(payload: Run, channel: Channel, applied: list[str]) -> ModelCall | None:
    channel.enter("inputs")
    if payload.inputs is None:
        return None
    call = read_call(payload.inputs, channel)
    call = treat.apply_steps(payload.treatment, call, applied)
    channel.put(applied=applied, inputs=call.describe(values=False))
    return call


def _fill_memory(payload: Run, channel: Channel) -> None:
    if payload.perturb is not None:
        channel.put(memory_filled=fill_new_memory(payload.perturb))


def _send_facts(channel: Channel, facts: dict[str, Any], **values: Any) -> None:
    """Send ``values`` now, and keep them for later requests to the same model."""
    facts.update(values)
    channel.put(**values)


def _trace(model: LoadedModel, payload: Run, channel: Channel) -> None:
    """Record every call of the compiled code from now on, if the payload requests it."""
    if not payload.trace:
        return
    channel.enter("trace")
    start_trace(model.directory, channel)


def _follow_weights(model: LoadedModel, payload: Run, channel: Channel, facts: dict[str, Any]) -> None:
    """Report the weights that the setup loads, and keep them with the model, to be described and compared."""
    known: dict[str, dict[str, Any]] = {}

    def note(given: Any) -> Any:
        if not isinstance(given, dict):
            return given  # PyTorch refuses it, in its own words.
        known.update((fact["name"], fact) for fact in describe_given_weights(given))
        _send_facts(channel, facts, loaded_constants=list(known.values()))
        loaded = treat.fit_weights(payload, given, channel)
        model.given.update(loaded)
        return loaded

    model.on_constants = note


# Job printed.
_MAX_TEXT = 4 * 1024 * 1024
_MAX_FILES = 5_000
_NO_BUFFER = 2  # _IONBF


def run_printing(payload: Run, channel: Channel) -> dict[str, Any]:
    """Run ``payload`` as job ``run`` would; ``level`` is that of the value printer that was compiled in."""
    plain = replace(payload, reference=None)
    if payload.level == 1:
        result = run(plain, channel)
        return {**result, "saved": _saved_values(payload, channel)}
    if payload.unbuffered:
        # The C library writes each line at once: buffered lines are lost when the process aborts.
        library = ctypes.CDLL(None)
        library.setvbuf.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_size_t]
        library.setvbuf(ctypes.c_void_p.in_dll(library, "stdout"), None, _NO_BUFFER, 0)
        return run(plain, channel)
    # Everything that C, C++ and Python write to stdout goes to a file.
    path = channel.run_dir / "printed"
    stdout, file = os.dup(1), os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(file, 1)
    os.close(file)
    try:
        result = run(plain, channel)
    finally:
        ctypes.CDLL(None).fflush(None)
        os.dup2(stdout, 1)
        os.close(stdout)
    return {**result, "printed": _read_bounded(path)}


def _read_bounded(path: Path) -> str:
    """The text of a file; without the values if it is long, and only the beginning if it is still long then."""
    if path.stat().st_size <= _MAX_TEXT:
        return path.read_text(encoding="utf-8", errors="replace")
    lines, size = [], 0
    with path.open(encoding="utf-8", errors="replace") as stream:
        for line in stream:
            if KEPT.compiled.search(line):
                lines.append(line)
                size += len(line)
            if size > _MAX_TEXT:
                break
    return "".join(lines)


def _saved_values(payload: Run, channel: Channel) -> list[dict[str, Any]]:
    """``when``, ``kernel``, ``buffer``, statistics and digest of each file; ``near``: the closest reference node.

    A kernel that is called again has overwritten the files of its earlier calls.
    """
    channel.enter("reference")
    nodes = None
    if payload.reference and payload.inputs is not None:
        from aotidoctor.worker.values.match_values import gather_candidates

        # The values of the exported program, node by node.
        program = torch.export.load(str(channel.user_cwd / payload.reference))
        nodes = gather_candidates(program, read_call(payload.inputs, channel))
    channel.enter("scan")
    found = []
    for path in sorted((Path.cwd() / "tmp").glob(SAVED_FILES))[:_MAX_FILES]:
        name = SAVED_FILE.fullmatch(path.name)
        if name is None:
            continue
        tensor = torch.load(path, weights_only=True)
        record = {**name.groupdict(), **describe(name["buffer"], tensor, values=True), "sha256": digest(tensor)}
        if nodes is not None and name["when"] == "after":
            record["near"] = nodes.closest(tensor)
        found.append(record)
    return found


# Job load_time.
_OPEN = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)
CALLS = 3


def load_time(payload: Run, channel: Channel) -> dict[str, Any]:
    """Measure load and calls.

    The stages are ``setup``, ``imports``, ``cpu_checks``, ``load``, ``after_load``, ``run1``..., ``done``.
    """
    module = load_setup(payload, channel)
    channel.enter("inputs")
    call = read_call(payload.inputs, channel) if payload.inputs is not None else None
    if payload.kind != "bare-so":
        # Imports and checks of `aoti_load_package` before its loader begins; older releases have no checks.
        channel.enter("imports")
        for name in ("torch._inductor.package", "torch._inductor.codecache", "torch.export.pt2_archive._package"):
            with suppress(ImportError):
                import_module(name)
        channel.put(compile_cache=_use_compile_cache(payload.tmpdir or DEFAULT_TMPDIR))
        channel.enter("cpu_checks")
        check = getattr(import_module("torch._inductor.codecache"), "get_device_information", None)
        if check is not None:
            # Whatever it raises, the loader itself does not need the answer.
            with suppress(Exception):
                check(payload.device)
    # What PyTorch compiles for its checks is not the package's.
    confine_run(payload, channel)
    opened = _time_opening(channel)
    channel.enter("load")
    began = time.monotonic()
    model = load_model(payload, channel.user_cwd / payload.package)
    ended = time.monotonic()
    if opened:
        first, last = opened[0][0], opened[-1][1]
        channel.put(load_parts={"unpack": first - began, "link": last - first, "create": ended - last})
    channel.enter("after_load")
    after_load(module, model, channel)
    treat.load_weights(payload, model, channel)
    if call is not None:
        # A call may write to its inputs, which changes no time.
        for number in range(1, CALLS + 1):
            channel.enter(f"run{number}")
            model(*call.args, **call.kwargs)
    channel.enter("unload")
    model.close()
    return {}


def _use_compile_cache(tmpdir: str) -> bool:
    """Use the folder in which an earlier process left the answers (this one has its own TMPDIR); whether it exists."""
    from torch._inductor.runtime.cache_dir_utils import default_cache_dir

    if not os.environ.get("TORCHINDUCTOR_CACHE_DIR"):
        folder = Path(tmpdir) / Path(default_cache_dir()).name
        if not folder.is_dir():
            return False
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder)
    return Path(os.environ["TORCHINDUCTOR_CACHE_DIR"]).is_dir()


def _time_opening(channel: Channel) -> list[tuple[float, float]]:
    """Times at which each opening of compiled code by libtorch began and ended, filled from now on."""
    times: list[tuple[float, float]] = []

    def opening(real: Any, name: int | None, flags: int) -> int | None:
        began = time.monotonic()
        handle: int | None = real(name, flags)
        # PyTorch's own libraries are opened by name.
        if name and b"/" in ctypes.string_at(name):
            times.append((began, time.monotonic()))
        return handle

    call_around(call_slot("dlopen"), _OPEN, opening, channel, "unpacking and linking could not be separated")
    return times


# A method of an ExecuTorch program.
def executorch(payload: ExecutorchRun, channel: Channel) -> dict[str, Any]:
    """Load the program in ExecuTorch's own runtime and call the method twice, as job ``run`` calls a package."""
    channel.enter("import")
    runtime = import_module("executorch.extension.pybindings.portable_lib")
    channel.put(backends=list(runtime._get_registered_backend_names()))
    call = read_call(payload.inputs, channel) if payload.inputs is not None else None
    channel.enter("load")
    data = str(channel.user_cwd / payload.data) if payload.data is not None else None
    program = runtime._load_for_executorch(str(channel.user_cwd / payload.program), data)
    outputs: list[list[dict[str, Any]]] = []
    for number in (1, 2) if call is not None else ():
        channel.enter(f"run{number}")
        given = [leaf for _, leaf in walk_call(call.args, call.kwargs)] if call is not None else []
        answer = program.run_method(payload.method, given)
        outputs.append([describe(path, tensor, values=True) for path, tensor in result_tensors(answer)])
        channel.put(outputs=outputs)
    return {}
