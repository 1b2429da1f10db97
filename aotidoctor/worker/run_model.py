"""Job ``run``: load a package and call it on the user's inputs, and tell all that was seen on the way.

Everything learnt is handed over at once (``channel.put``), so that a crash in the second call still leaves the outputs
of the first. The stages are ``setup``, ``inputs``, ``load``, ``trace``, ``after_load``, ``constants``, ``run1``,
``scan``, ``run2``..., ``reference``, ``unload``, ``done``; of a captured call ``capture`` and ``replay``.
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from aotidoctor.model.child_protocol import PRIVATE
from aotidoctor.model.jobs import Run
from aotidoctor.worker.call import Call, read_call
from aotidoctor.worker.calls import make_calls, set_threads
from aotidoctor.worker.channel import Channel
from aotidoctor.worker.cuda_calls import limit_files, make_cuda_calls
from aotidoctor.worker.keeper import keep, keep_files
from aotidoctor.worker.limits import fill_new_memory, heap_checks_loaded
from aotidoctor.worker.load import LoadedModel, load_model
from aotidoctor.worker.setup_module import after_load, load_setup
from aotidoctor.worker.treatments import treat
from aotidoctor.worker.weights import describe_constants, describe_given


def run(payload: Run, channel: Channel) -> dict[str, Any]:
    """Do it. The parts of the result are described where they are made: ``calls``, ``weights``, ``reference``, here."""
    payload, applied = treat.prepare(payload, channel)
    if payload.heap_checks:
        channel.put(heap_checks=heap_checks_loaded())
    module = load_setup(payload, channel)
    applied += treat.replace_operators(payload)
    set_threads(payload.threads, channel)
    call = _inputs(payload, channel, applied)
    facts: dict[str, Any] = {}
    model = _load(payload, channel, facts)
    channel.enter("after_load")
    _follow_weights(model, payload, channel, facts)
    _put(channel, facts, after_load=after_load(module, model, channel))
    # Setup files may set the number, before or after the load.
    set_threads(None, channel)
    applied += treat.load_weights(payload, model, channel)
    channel.put(applied=applied)
    if payload.share_reference:
        from aotidoctor.worker.reference import share_reference

        share_reference(payload.share_reference, channel)
    files = _unpacked(model, channel)
    kept = keep(partial(_again, model, facts, files)) if files is not None else None
    channel.put(kept=kept)
    return _ask(model, call, payload, channel, files if kept is not None else None)


def _again(model: LoadedModel, facts: dict[str, Any], files: Path, payload: Run, channel: Channel) -> dict[str, Any]:
    """The same for a model that another process has loaded: ``facts`` are what it told of that."""
    payload, applied = treat.prepare(payload, channel)
    set_threads(payload.threads, channel)
    call = _inputs(payload, channel, applied)
    channel.put(**facts)
    _fill_memory(payload, channel)
    _trace(model, payload, channel)
    return _ask(model, call, payload, channel, files)


def _ask(model: LoadedModel, call: Call | None, payload: Run, channel: Channel, files: Path | None) -> dict[str, Any]:
    """The question itself: the calls that ``payload`` asks for, and what is to be seen of them.

    ``files`` is where the unpacked package lies that others will still need; None where nobody will.
    """
    if call is not None:
        call = _described(call, payload, channel)
    _constants(payload, model, channel)
    if call is None or not _special_calls(model, call, payload, channel):
        _calls(model, call, payload, channel)
    channel.enter("unload")
    if files is not None:
        keep_files(files)
    model.close()
    return {}


def _special_calls(model: LoadedModel, call: Call, payload: Run, channel: Channel) -> bool:
    """Calls that are followed, or that differ in one thing and are compared here; False where none are asked for."""
    if payload.watch:
        from aotidoctor.worker.values.observe import watch_call

        watch_call(model, call, payload, channel)
    elif payload.read_beyond:
        from aotidoctor.worker.beyond import read_beyond

        read_beyond(model, call, channel)
    elif payload.sub_batch:
        from aotidoctor.worker.sub_batch import compare_rows

        compare_rows(model, call, payload.sub_batch, channel)
    elif payload.against_threads:
        from aotidoctor.worker.thread_counts import compare_threads

        compare_threads(model, call, payload.against_threads, channel)
    else:
        return False
    return True


def _calls(model: LoadedModel, call: Call | None, payload: Run, channel: Channel) -> None:
    """The usual calls, those of a captured CUDA graph, or none; and what the reference says of them."""
    if payload.file_limit:
        limit_files(payload.file_limit)
    if call is not None and (payload.launch_trace or payload.cuda_variant):
        make_cuda_calls(model, call, payload, channel)
        return
    outputs = _made(model, call, payload, channel) if call is not None else None
    if payload.reference:
        _reference(payload, model, call, outputs, channel)


def _made(model: LoadedModel, call: Call, payload: Run, channel: Channel) -> tuple[Call | None, Any]:
    """The usual calls, of the model as it is or with what one call of its code writes replaced."""
    if not treat.changes_results(payload):
        return make_calls(model, call, payload, channel)
    from aotidoctor.worker.treatments.results import mended

    return make_calls(mended(model, call, payload, channel), call, payload, channel)


def _inputs(payload: Run, channel: Channel, applied: list[str]) -> Call | None:
    channel.enter("inputs")
    if payload.inputs is None:
        return None
    call = read_call(payload.inputs, channel)
    call = treat.apply(payload.treatment, call, applied)
    channel.put(applied=applied, inputs=call.describe(values=False))
    return call


def _described(call: Call, payload: Run, channel: Channel) -> Call:
    """With what the values are. Not before the load: to look at many values starts threads, which no fork survives."""
    channel.enter("inputs")
    described = call.describe(values="values" in payload.observe)
    channel.put(inputs=described)
    return replace(call, described=described)


def _load(payload: Run, channel: Channel, facts: dict[str, Any]) -> LoadedModel:
    channel.enter("load")
    _fill_memory(payload, channel)
    model = load_model(payload, channel.user_cwd / payload.package)
    _trace(model, payload, channel)
    _put(channel, facts, call_spec=list(model.loader.get_call_spec()), metadata=model.get_metadata())
    return model


def _fill_memory(payload: Run, channel: Channel) -> None:
    if payload.perturb is not None:
        channel.put(memory_filled=fill_new_memory(payload.perturb))


def _put(channel: Channel, facts: dict[str, Any], **values: Any) -> None:
    """Tell ``values`` now, and keep them for those who ask the same model later."""
    facts.update(values)
    channel.put(**values)


def _unpacked(model: LoadedModel, channel: Channel) -> Path | None:
    """Where the loader unpacked the package, if that is a directory of this run alone; only then it can stay there."""
    directory = model.directory
    if str(directory) != os.environ.get("TMPDIR"):
        return None
    return directory if channel.run_dir in directory.parents or directory.name.startswith(PRIVATE) else None


def _trace(model: LoadedModel, payload: Run, channel: Channel) -> None:
    """From here on every call of the compiled code is written down, where that is asked for."""
    if not payload.trace:
        return
    from aotidoctor.worker.hooks import start_trace

    channel.enter("trace")
    start_trace(model.directory, channel)


def _follow_weights(model: LoadedModel, payload: Run, channel: Channel, facts: dict[str, Any]) -> None:
    """Tell what the setup loads, and keep it with the model, for it to be looked at and compared."""
    seen: dict[str, dict[str, Any]] = {}

    def note(given: dict[str, Any]) -> dict[str, Any]:
        seen.update((fact["name"], fact) for fact in describe_given(given))
        _put(channel, facts, loaded_constants=list(seen.values()))
        loaded = treat.fit_weights(payload, given, channel)
        model.given.update(loaded)
        return loaded

    model.on_constants = note


def _constants(payload: Run, model: LoadedModel, channel: Channel) -> None:
    if "constants" not in payload.observe:
        return
    channel.enter("constants")
    channel.put(**describe_constants(model, payload))


def _reference(payload: Run, model: LoadedModel, call: Call | None, outputs: Any, channel: Channel) -> None:
    from aotidoctor.worker.reference import check_reference

    channel.enter("reference")
    channel.put(**check_reference(payload, model, call, outputs, channel))
