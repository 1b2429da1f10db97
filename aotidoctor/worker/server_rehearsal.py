"""Imitate Triton's server: rehearse its batching (job ``rehearse``), load an init library (``hook``).

Job ``rehearse`` compares the served calls with the plain call. ``payload.rehearsal`` is the plan of
``serving.rehearsal``. A request's tensors get the types of the config, requests are merged along dim 0, and the
compiled code gets them by slot, unchecked, as from the server. Parts of the result: ``sent`` (per name, dtype and
shape for the backend), ``padded`` (names whose memory was made longer, so that compiled code that reads beyond it reads
zeros), ``refused`` (requests that the server's core rejects), ``cut`` (rows per request), ``merged`` (requests, if
fewer than planned), ``plain`` (outputs of the plain call), ``repeatable`` (whether a second one gives the same),
``answers`` (per request and output). The stages are ``load``, ``plain1``..., ``request``, ``served``, ``compare``.

Job ``hook`` loads an init library as the server does, calls its two functions, and unloads it. The stages are
``dlopen``, ``symbols``, ``init``, ``release``, ``dlclose``. Parts of the result: ``loaded``, ``found`` (names of the
functions that it has), ``handle`` (of init; 0 is no failure), ``released``.
"""

from __future__ import annotations

import ctypes
import os
from functools import partial
from typing import Any

import torch

from aotidoctor.model.jobs import Hook, Run
from aotidoctor.model.record import record
from aotidoctor.model.serving_config import INIT_FUNCTION, RELEASE
from aotidoctor.worker.call import ModelCall, read_call
from aotidoctor.worker.channel import Channel
from aotidoctor.worker.load_package import LoadedModel, load_model
from aotidoctor.worker.sandbox import confine_run
from aotidoctor.worker.tensors import compare_leaf, compare_results, describe, dtype_name
from aotidoctor.worker.user_code import load_setup


@record
class ClientRequest:
    """One client's call, and the flat outputs of the plain call of it."""

    call: ModelCall
    expected: list[Any]

    def tensor(self, path: str | None) -> Any:
        """The tensor at the user's path; None where the call has none."""
        return next((leaf for name, leaf in self.call.tensors() if name == path), None)


def rehearse(payload: Run, channel: Channel) -> dict[str, Any]:
    """Compare served calls with the plain call, as the module describes."""
    plan: Any = payload.rehearsal
    confine_run(payload, channel)
    load_setup(payload, channel)
    channel.enter("inputs")
    call = read_call(payload.inputs, channel)
    channel.enter("load")
    model = load_model(payload, channel.user_cwd / payload.package)
    call, plan = _fit_batch(call, plan, channel)
    requests = _make_requests(model, call, plan, channel)
    channel.enter("request")
    refused = [text for wire in plan["inputs"] for text in _refusals(wire, requests[0], plan)]
    if refused:
        channel.put(refused=refused)
        return {}
    slots: dict[int, Any] = {}
    sent, padded = [], []
    for wire in plan["inputs"]:
        parts = [_convert_tensor(request.tensor(wire["path"]), wire) for request in requests]
        whole = parts[0] if len(parts) == 1 else torch.cat(parts)
        longer, more = _pad_tensor(whole.contiguous(), wire["compiled"])
        if more:
            padded.append({"name": wire["name"], "bytes": more})
        slots[wire["slot"]] = longer
        sent.append({"name": wire["name"], "dtype": dtype_name(whole), "shape": list(whole.shape)})
    channel.put(sent=sent, padded=padded)
    given = _place_tensors([slots[slot] for slot in sorted(slots)], plan)
    channel.enter("served")
    outputs = model.loader.run(given)
    channel.enter("compare")
    # Rows of the batch that belong to each request; none where the server does not batch.
    path = plan["inputs"][0]["path"] if plan["inputs"] else None
    firsts = [request.tensor(path) if plan["max_batch"] else None for request in requests]
    rows = [int(first.shape[0]) if first is not None and first.dim() else 0 for first in firsts]
    answer = partial(_answer, outputs=outputs, requests=requests, rows=rows, splits=plan["splits"])
    channel.put(answers=[answer(wire, at) for at in range(len(requests)) for wire in plan["outputs"]])
    return {}


def _fit_batch(call: ModelCall, plan: dict[str, Any], channel: Channel) -> tuple[ModelCall, dict[str, Any]]:
    """The call and the plan, with as many rows or requests as fit into one batch, unless the call is too large."""
    rows = {leaf.shape[0] for _, leaf in call.tensors() if leaf.dim()}
    most = plan["max_batch"] // plan["requests"]
    if plan["requests"] == 1 or len(rows) != 1 or max(rows) <= most or max(rows) > plan["max_batch"]:
        return call, plan
    # The dim 0 for which the code was compiled, and the least size of a dynamic one.
    compiled = [((wire["compiled"]["dims"] or [None])[0], wire["compiled"]["least"] or 1) for wire in plan["inputs"]]
    if not all(static is None and most >= least for static, least in compiled):
        fewer = max(1, plan["max_batch"] // max(rows))
        channel.put(merged=fewer)
        return call, {**plan, "requests": fewer}
    channel.put(cut=most)

    def head(_: str, leaf: Any) -> Any:
        return leaf[:most].clone() if hasattr(leaf, "dim") and leaf.dim() else leaf

    return call.rebuilt(head), plan


def _make_requests(model: LoadedModel, call: ModelCall, plan: dict[str, Any], channel: Channel) -> list[ClientRequest]:
    """The requests, each with the outputs of its own call. Those after the first have the values at other places."""
    requests = []
    for number in range(plan["requests"]):
        shifted = _shift_values(call, number, plan["requests"])
        channel.enter(f"plain{number + 1}")
        requests.append(ClientRequest(call=shifted, expected=_call_plainly(model, shifted, plan)))
    again = compare_results(_call_plainly(model, requests[0].call, plan), requests[0].expected)
    channel.put(repeatable=again["agrees"])
    channel.put(plain=[describe(f"result {at}", leaf, values=True) for at, leaf in enumerate(requests[0].expected)])
    return requests


def _call_plainly(model: LoadedModel, call: ModelCall, plan: dict[str, Any]) -> list[Any]:
    """Outputs of a plain call. It may write to its inputs, or return their memory: both sides are copies."""
    used = call.copy() or call
    return [
        leaf.detach().clone() for leaf in model.loader.run(_place_tensors(model.flat(used.args, used.kwargs), plan))
    ]


def _shift_values(call: ModelCall, number: int, count: int) -> ModelCall:
    def shift(_: str, leaf: Any) -> Any:
        if not hasattr(leaf, "dim") or not leaf.numel():
            return leaf
        return leaf.flatten().roll(leaf.numel() * number // count).view(leaf.shape)

    return call.rebuilt(shift) if number else call


def _place_tensors(tensors: list[Any], plan: dict[str, Any]) -> list[Any]:
    return tensors if plan["gpu"] is None else [tensor.to(f"cuda:{plan['gpu']}") for tensor in tensors]


def _refusals(wire: dict[str, Any], request: ClientRequest, plan: dict[str, Any]) -> list[dict[str, Any]]:
    """Refusal by the server's core of a tensor whose shape is not that of the config."""
    tensor = request.tensor(wire["path"])
    if tensor is None:
        return []
    # A client cannot send a tensor without dims; it sends one element.
    shape, wanted = list(tensor.shape) or [1], list(wire["shape"])
    wanted = [-1, *wanted] if plan["max_batch"] else wanted
    fits = len(shape) == len(wanted) and all(size in (-1, is_) for size, is_ in zip(wanted, shape, strict=True))
    if not fits:
        return [{"name": wire["name"], "what": "shape", "shape": shape, "wanted": wanted}]
    if plan["max_batch"] and shape[0] > plan["max_batch"]:
        return [{"name": wire["name"], "what": "batch", "shape": shape, "wanted": [plan["max_batch"]]}]
    return []


def _convert_tensor(tensor: Any, wire: dict[str, Any]) -> Any:
    """The client's tensor in the type of the config; zeros where the values are unknown."""
    dtype = getattr(torch, wire["dtype"])
    if tensor is None:
        return torch.zeros([max(size, 1) for size in wire["shape"]], dtype=dtype)
    return tensor.detach().to("cpu", dtype).reshape(tensor.shape or (1,))


def _pad_tensor(tensor: Any, compiled: dict[str, Any]) -> tuple[Any, int]:
    """The tensor over memory as long as the compiled code assumes it to be, and the number of bytes added."""
    if compiled["dtype"] is None or compiled["dims"] is None:
        return tensor, 0
    sizes = [
        static if static is not None else (tensor.shape[at] if at < tensor.dim() else 1)
        for at, static in enumerate(compiled["dims"])
    ]
    needed = torch.empty((), dtype=getattr(torch, compiled["dtype"])).element_size()
    for size in sizes:
        needed *= size
    has = tensor.numel() * tensor.element_size()
    if needed <= has:
        return tensor, 0
    storage = torch.zeros(needed, dtype=torch.uint8)
    storage[:has] = tensor.reshape(-1).view(torch.uint8)
    length = has // tensor.element_size()
    return storage[: length * tensor.element_size()].view(tensor.dtype).view(tensor.shape), needed - has


def _answer(
    wire: dict[str, Any], at: int, *, outputs: list[Any], requests: list[ClientRequest], rows: list[int], splits: bool
) -> dict[str, Any]:
    """The output ``wire`` as request ``at`` gets it, compared with that of its own plain call."""
    facts: dict[str, Any] = {"request": at + 1, "name": wire["name"], "slot": wire["slot"]}
    if wire["slot"] >= len(outputs):
        return facts | {"what": "absent"}
    whole = outputs[wire["slot"]].detach().cpu()
    facts |= {"dtype": dtype_name(whole), "shape": list(whole.shape)}
    if whole.dim() == 0:
        return facts | {"what": "scalar"}
    if dtype_name(whole) != wire["dtype"]:
        return facts | {"what": "dtype"}
    if at and not splits:
        # The response begins where the one before it ended: behind the end of the buffer.
        return facts | {"what": "beyond", "bytes": whole.numel() * whole.element_size()}
    expected = requests[at].expected
    if wire["sent_slot"] is None or wire["sent_slot"] >= len(expected):
        return facts | {"what": "unknown"}
    got = whole
    if len(requests) > 1 and splits:
        # The release splits the output: the rows of this request.
        start = sum(rows[:at])
        got = whole[start : start + rows[at]]
    compared = compare_leaf(wire["name"], got, expected[wire["sent_slot"]].cpu())
    del compared["path"]
    # Another output of the plain call that has these values.
    others = ((slot, other.cpu()) for slot, other in enumerate(expected) if slot != wire["sent_slot"])
    same_as = next((slot for slot, other in others if compare_leaf("", got, other)["agrees"]), None)
    return facts | compared | {"same_as": same_as, "foreign": _foreign_rows(got, at, wire, requests)}


def _foreign_rows(got: Any, at: int, wire: dict[str, Any], requests: list[ClientRequest]) -> int:
    """Number of rows beyond its own that belong to other requests."""
    own = requests[at].expected[wire["sent_slot"]]
    if not own.dim() or not got.dim() or got.shape[1:] != own.shape[1:] or got.shape[0] <= own.shape[0]:
        return 0
    rest = got[own.shape[0] :]
    others = [request.expected[wire["sent_slot"]].cpu() for number, request in enumerate(requests) if number != at]
    theirs = torch.cat(others) if others else rest[:0]
    same = theirs.shape == rest.shape and compare_leaf("", rest, theirs)["agrees"]
    return int(rest.shape[0]) if same else 0


def hook(payload: Hook, channel: Channel) -> dict[str, Any]:
    """Load an init library, call its functions and unload it; ``folder`` is that of the model's version."""
    channel.enter("dlopen")
    # torch is loaded by now, as the backend has it loaded.
    library = ctypes.CDLL(payload.library, mode=os.RTLD_NOW | os.RTLD_LOCAL)
    channel.put(loaded=True)
    channel.enter("symbols")
    found = [name for name in (INIT_FUNCTION, RELEASE) if hasattr(library, name)]
    channel.put(found=found)
    if INIT_FUNCTION not in found:
        return {}
    init = library[INIT_FUNCTION]
    init.argtypes, init.restype = [ctypes.c_char_p, ctypes.c_int], ctypes.c_void_p
    channel.enter("init")
    folder = os.fsencode(channel.user_cwd / payload.folder)
    handle = init(folder, payload.device_index)
    channel.put(handle=handle or 0)
    if RELEASE not in found:
        return {}
    release = library[RELEASE]
    release.argtypes, release.restype = [ctypes.c_void_p], None
    channel.enter("release")
    release(handle)
    channel.put(released=True)
    channel.enter("dlclose")
    # The server will also run the library's destructors.
    dlclose = ctypes.CDLL(None).dlclose
    dlclose.argtypes = [ctypes.c_void_p]
    dlclose(library._handle)
    return {}
