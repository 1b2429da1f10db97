"""Job ``run``: load a package and call it on the user's inputs, and tell all that was seen on the way.

Everything learnt is handed over at once (``channel.put``), so that a crash in the second call still leaves the outputs
of the first. The stages are ``setup``, ``inputs``, ``load``, ``trace``, ``after_load``, ``constants``, ``run1``,
``scan``, ``run2``..., ``reference``, ``unload``, ``done``; of a captured call ``capture`` and ``replay``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from aotidoctor.worker.call import Call, read_call
from aotidoctor.worker.calls import make_calls
from aotidoctor.worker.channel import Channel
from aotidoctor.worker.cuda_calls import KEYS, limit_files, make_cuda_calls
from aotidoctor.worker.limits import fill_new_memory, heap_checks_loaded
from aotidoctor.worker.load import LoadedModel, load_model, model_names
from aotidoctor.worker.setup_module import after_load, load_setup
from aotidoctor.worker.treatments import treat
from aotidoctor.worker.weights import describe_given


def run(payload: dict[str, Any], channel: Channel) -> dict[str, Any]:
    """Do it. The parts of the result are described where they are made: ``calls``, ``weights``, ``reference``, here."""
    payload, applied = treat.prepare(payload, channel)
    if payload.get("heap_checks"):
        channel.put(heap_checks=heap_checks_loaded())
    module = load_setup(payload, channel)
    _threads(payload, channel)
    call = _inputs(payload, channel, applied)
    model = _load(payload, channel)
    channel.enter("after_load")
    model.on_constants = lambda given: channel.put(loaded_constants=describe_given(given))
    channel.put(after_load=after_load(module, model, channel))
    _say_threads(channel)
    applied += treat.load_weights(payload, model, channel)
    channel.put(applied=applied)
    _constants(payload, model, channel)
    if payload.get("watch") and call is not None:
        return _watched(model, call, payload, channel)
    if call is not None and (payload.get("sub_batch") or payload.get("against_threads")):
        return _side_by_side(model, call, payload, channel)
    if payload.get("file_limit"):
        limit_files(int(payload["file_limit"]))
    if call is not None and any(payload.get(key) for key in KEYS):
        make_cuda_calls(model, call, payload, channel)
        channel.enter("unload")
        model.close()
        return {}
    outputs = make_calls(model, call, payload, channel) if call is not None else None
    if payload.get("reference"):
        _reference(payload, model, call, outputs, channel)
    del outputs
    channel.enter("unload")
    model.close()
    return {}


def _side_by_side(model: LoadedModel, call: Call, payload: dict[str, Any], channel: Channel) -> dict[str, Any]:
    """Calls that differ in one thing, compared here: values never leave the child."""
    if payload.get("sub_batch"):
        from aotidoctor.worker.sub_batch import compare_rows

        compare_rows(model, call, payload["sub_batch"], channel)
    else:
        from aotidoctor.worker.thread_counts import compare_threads

        compare_threads(model, call, int(payload["against_threads"]), channel)
    channel.enter("unload")
    model.close()
    return {}


def _threads(payload: dict[str, Any], channel: Channel) -> None:
    import torch

    if payload.get("threads") is not None:
        torch.set_num_threads(int(payload["threads"]))
    _say_threads(channel)


def _say_threads(channel: Channel) -> None:
    """Setup files may set the number, before or after the load."""
    import torch

    channel.put(threads=torch.get_num_threads(), torch=torch.__version__)


def _inputs(payload: dict[str, Any], channel: Channel, applied: list[str]) -> Call | None:
    channel.enter("inputs")
    if payload.get("inputs") is None:
        return None
    call, notes = read_call(payload["inputs"], channel)
    call = treat.apply(payload.get("treatment") or [], call, applied)
    call = replace(call, described=call.describe(values="values" in payload.get("observe", [])))
    channel.put(applied=applied, input_notes=notes, inputs=call.described)
    return call


def _load(payload: dict[str, Any], channel: Channel) -> LoadedModel:
    channel.enter("load")
    path = channel.user_cwd / payload["package"]
    channel.put(model_names=model_names(path))
    if payload.get("perturb") is not None:
        channel.put(memory_filled=fill_new_memory(int(payload["perturb"])))
    model = load_model(payload, path)
    if payload.get("trace"):
        _trace(model, channel)
    channel.put(call_spec=list(model.loader.get_call_spec()), metadata=model.get_metadata())
    return model


def _trace(model: LoadedModel, channel: Channel) -> None:
    """From here on every call of the compiled code is written down."""
    from aotidoctor.worker.hooks import start_trace

    channel.enter("trace")
    if model.directory is None:
        channel.put(trace={"problem": "it is not known where the package was unpacked"})
        return
    start_trace(model.directory, channel)


def _watched(model: LoadedModel, call: Call, payload: dict[str, Any], channel: Channel) -> dict[str, Any]:
    """One call with the values of every kernel, instead of the usual calls."""
    from aotidoctor.worker.values.observe import watch_call

    watch_call(model, call, payload, channel)
    channel.enter("unload")
    model.close()
    return {}


def _constants(payload: dict[str, Any], model: LoadedModel, channel: Channel) -> None:
    if "constants" not in payload.get("observe", []):
        return
    from aotidoctor.worker.weights import describe_constants

    channel.enter("constants")
    channel.put(**describe_constants(model, payload))


def _reference(payload: dict[str, Any], model: LoadedModel, call: Call | None, outputs: Any, channel: Channel) -> None:
    from aotidoctor.worker.reference import check_reference

    channel.enter("reference")
    channel.put(**check_reference(payload, model, call, outputs, channel))
