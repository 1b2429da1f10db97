"""Job ``op_alone``: call one operator by itself on arguments that ``op_inputs`` saved, and look at what it does.

Each step is a stage of its own, so that the parent knows where it died: ``run1`` (the call), ``look``, ``again`` (the
same call on fresh copies), ``loop`` (many calls, when asked), ``fake`` (the fake kernel's promise), ``opcheck``. What a
step finds is told at once.

Parts of the result: ``calls``, one object per saved call, with ``file``, ``bad``, ``arguments``, ``outputs``,
``digests``, ``again`` (those of the second call), ``writes``, ``aliases``, ``clean``, ``generator``, ``fake``,
``fake_missing``; ``returned``; ``tags``; ``rss`` after each call of the loop; ``opcheck`` (test to ``SUCCESS`` or its
text).
"""

from __future__ import annotations

from typing import Any

from aotidoctor.model.jobs import OneOperator
from aotidoctor.worker.calls import resident_bytes, set_threads, synchronize
from aotidoctor.worker.channel import Channel
from aotidoctor.worker.describe import describe, digest
from aotidoctor.worker.operators.arguments import build_arguments
from aotidoctor.worker.operators.contract import aliases, bad_return, clean, flatten, storages, tensors_in, writes
from aotidoctor.worker.operators.fake import promise
from aotidoctor.worker.operators.ops import split_target
from aotidoctor.worker.setup_module import load_setup

_TESTS = ("test_schema", "test_faketensor")


def op_alone(payload: OneOperator, channel: Channel) -> dict[str, Any]:
    """Do it. ``files`` are the saved calls; ``loop`` is a number of calls, ``fake`` and ``opcheck`` say yes or no."""
    load_setup(payload, channel)
    set_threads(payload.threads, channel)
    op = find(payload.target)
    channel.put(tags=sorted(str(tag).removeprefix("Tag.") for tag in op.tags))
    calls: list[dict[str, Any]] = []
    for path in payload.files:
        channel.enter("inputs")
        calls.append({"file": path})
        for part in (_first, _again):
            calls[-1] |= part(op, path, payload, channel)
            channel.put(calls=calls)
    channel.put(**_loop(op, payload.files[0], payload, channel))
    for call in calls if payload.fake else ():
        channel.enter("fake")
        call.update(promise(op, _load(call["file"])))
        channel.put(calls=calls)
    if payload.opcheck:
        channel.put(opcheck=_opcheck(op, payload.files[0], channel))
    return {}


def find(target: str) -> Any:
    """The registered overload that the package names."""
    import torch

    name, overload = split_target(target)
    namespace, _, packet = name.partition("::")
    return getattr(getattr(getattr(torch.ops, namespace), packet), overload)


def _load(path: str) -> dict[str, Any]:
    """Fresh arguments by name, from the file."""
    import torch

    saved = torch.load(path, weights_only=True)
    return build_arguments(saved["arguments"], saved["tensors"])


def _call(op: Any, arguments: dict[str, Any], payload: OneOperator) -> Any:
    import torch

    with torch.no_grad():
        result = op(**arguments)
    synchronize(payload.device)
    return result


def _first(op: Any, path: str, payload: OneOperator, channel: Channel) -> dict[str, Any]:
    """The first call, and all that can be seen of it."""
    arguments = _load(path)
    given = [describe(name, tensor, values=False) for name, tensor in tensors_in(arguments)]
    before, finite = storages(arguments), clean(arguments)
    state = _generators(payload)
    channel.enter("run1")
    result = _call(op, arguments, payload)
    channel.enter("look")
    channel.put(returned=True)
    bad = bad_return(op, result)
    outputs = [] if bad else [describe(name, tensor, values=True) for name, tensor in flatten(op, result)]
    return {
        "bad": bad,
        "arguments": given,
        "outputs": outputs,
        "digests": [] if bad else _digests(op, result),
        "writes": writes(op, arguments, before),
        "aliases": [] if bad else aliases(op, arguments, result),
        "clean": finite,
        "generator": state != _generators(payload),
    }


def _generators(payload: OneOperator) -> list[bytes]:
    """State of PyTorch's random generators that the operator may draw from."""
    import torch

    states = [torch.random.get_rng_state()]
    if payload.device.startswith("cuda"):
        states.append(torch.cuda.get_rng_state())
    return [bytes(state.tolist()) for state in states]


def _again(op: Any, path: str, payload: OneOperator, channel: Channel) -> dict[str, Any]:
    """The same call on fresh copies: do equal arguments give equal results?"""
    arguments = _load(path)
    channel.enter("again")
    result = _call(op, arguments, payload)
    return {"again": [] if bad_return(op, result) else _digests(op, result)}


def _digests(op: Any, result: Any) -> list[str | None]:
    return [digest(tensor) for _, tensor in flatten(op, result)]


def _loop(op: Any, path: str, payload: OneOperator, channel: Channel) -> dict[str, Any]:
    """Many calls: resident memory after each, and time for a damaged heap to show."""
    if not payload.loop:
        return {}
    arguments = _load(path)
    channel.enter("loop")
    sizes = []
    for _ in range(payload.loop):
        _call(op, arguments, payload)
        sizes.append(resident_bytes())
    return {"rss": sizes}


def _opcheck(op: Any, path: str, channel: Channel) -> dict[str, str]:
    """What PyTorch's own check says, test by test."""
    import torch

    check = getattr(torch.library, "opcheck", None)
    if check is None:
        return {}
    arguments = _load(path)
    channel.enter("opcheck")
    told = check(op, (), arguments, test_utils=_TESTS, raise_exception=False)
    return {test: str(answer)[:2000] for test, answer in told.items()}
