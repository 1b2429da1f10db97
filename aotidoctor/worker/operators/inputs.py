"""Job ``op_inputs``: run a package up to its custom operators and keep the arguments of their calls in files.

The operators' calls are hooked; each call's arguments are saved before the operator begins, so that they are there
whatever the operator does. Once the last of them is saved, nothing more is to be learnt, and the process leaves before
the operator runs. Where calls cannot be hooked, an exported program that came along is interpreted instead.

Parts of the result: ``captured`` (per call ``index`` of the node, ``target``, ``file``), ``skipped``
(``index``, ``target``, ``reason``), ``by`` (``hooks`` or ``reference``) or ``unavailable`` (why there is neither).
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aotidoctor.model.answers.operators import SavedCall
from aotidoctor.model.jobs import Run
from aotidoctor.model.user_function import user_function
from aotidoctor.worker.call import Call, read_call
from aotidoctor.worker.calls import set_threads
from aotidoctor.worker.channel import Channel
from aotidoctor.worker.hooks import Call as HookedCall
from aotidoctor.worker.hooks import HooksUnavailableError, watch
from aotidoctor.worker.load import LoadedModel, load_model
from aotidoctor.worker.operators.arguments import ArgumentError, Described
from aotidoctor.worker.operators.arguments import read_call as read_arguments
from aotidoctor.worker.setup_module import after_load, load_setup
from aotidoctor.worker.values.handles import handles_at, tensor_of

MOST_BYTES = 512 * 1024 * 1024
"""Larger arguments are not kept: an operator that is called with them can be called by hand."""

_PROXY = re.compile(r"aoti_torch_proxy_executor_call_function")


def op_inputs(payload: Run, channel: Channel) -> dict[str, Any]:
    """Do it. ``payload.targets`` are the operators as the package names them; the rest is as for the job ``run``."""
    module = load_setup(payload, channel)
    set_threads(payload.threads, channel)
    channel.enter("inputs")
    call = read_call(payload.inputs, channel)
    channel.enter("load")
    model = load_model(payload, channel.user_cwd / payload.package)
    channel.enter("after_load")
    after_load(module, model, channel)
    channel.enter("capture")
    keeper = Keeper(channel)
    try:
        _hook(model, payload, keeper)
    except (HooksUnavailableError, LookupError, OSError) as error:
        return _from_reference(payload, call, keeper, why=str(error))
    channel.put(by="hooks")
    channel.enter("run1")
    model(*call.args, **call.kwargs)
    return {}


class Keeper:
    """Saves calls to files of the scratch directory and tells of each at once."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self._captured: list[SavedCall] = []
        self._skipped: list[SavedCall] = []
        self.seen: set[int] = set()

    def keep(self, index: int, target: str, read: Callable[[], tuple[Described, list[Any]]]) -> None:
        """Save the arguments that ``read`` gives, the first time that node ``index`` is called."""
        if index in self.seen:
            return
        self.seen.add(index)
        try:
            self._captured.append(SavedCall(index=index, target=target, file=self._save(index, target, *read())))
        except Exception as error:
            self._skipped.append(SavedCall(index=index, target=target, reason=str(error) or type(error).__name__))
        self.channel.put(captured=self._captured, skipped=self._skipped)

    def _save(self, index: int, target: str, arguments: Described, tensors: list[Any]) -> str:
        import torch

        # Views of one storage are saved with one copy of it, and share it again when they are read.
        size = sum(
            {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in tensors}.values()
        )
        if size > MOST_BYTES:
            raise ArgumentError(f"its arguments take {size >> 20} MiB, the limit is {MOST_BYTES >> 20} MiB")
        folder = self.channel.scratch
        folder.mkdir(mode=0o700, exist_ok=True)
        if size > shutil.disk_usage(folder).free // 2:
            raise ArgumentError(f"its arguments take {size >> 20} MiB, too much for {folder}")
        path = folder / f"{self.channel.run_dir.name}-{index}.pt"
        torch.save({"target": target, "arguments": arguments, "tensors": tensors}, path)
        return str(path)


def _hook(model: LoadedModel, payload: Run, keeper: Keeper) -> None:
    """Keep the first call of each node from now on.

    Raises:
        HooksUnavailableError: calls cannot be hooked on this machine or in this package.
        LookupError: the package's JSON was not found.
        OSError: it cannot be read.
    """
    nodes = _nodes(model.directory, payload)
    wanted = {index for index, node in enumerate(nodes) if node["target"] in payload.targets}
    device, channel = payload.device, keeper.channel

    def before(call: HookedCall) -> None:
        index = call.integer(1)
        if index not in wanted:
            return
        node = nodes[index]
        keeper.keep(index, node["target"], lambda: read_arguments(node, _integers(call), _tensors(call), device))
        if wanted <= keeper.seen:
            channel.enter("done")
            channel.done({})
            os._exit(0)

    watch(model.directory, _PROXY, before)


def _nodes(directory: Path, payload: Run) -> list[dict[str, Any]]:
    """Nodes of the JSON that the proxy executor was made from."""
    package = Path(payload.package)
    own = [directory / f"{package.stem}.json"] if payload.kind == "bare-so" else []
    for path in [*own, *sorted(directory.rglob("*.json"))]:
        try:
            document = json.loads(path.read_bytes())
        except (OSError, ValueError):
            continue
        if isinstance(document, dict) and isinstance(document.get("nodes"), list):
            found = [entry["node"] for entry in document["nodes"]]
            if {node["target"] for node in found} >= set(payload.targets):
                return found
    raise LookupError("the list of the package's operator calls was not found where it was unpacked")


def _integers(call: HookedCall) -> list[int]:
    return list((ctypes.c_int64 * call.integer(2)).from_address(call.word(3))) if call.integer(2) else []


def _tensors(call: HookedCall) -> list[Any]:
    """The tensors behind the handles; None for the results, which are not there yet."""
    return [tensor_of(handle) for handle in handles_at(call.word(5), call.integer(4))]


def _from_reference(payload: Run, call: Call, keeper: Keeper, *, why: str) -> dict[str, Any]:
    """Take the arguments from a run of the exported program, node by node, where there is one."""
    spec = payload.reference
    if spec is None or user_function(spec) is not None:
        return {"unavailable": why}
    from aotidoctor.worker.operators.reference import capture_from_program

    keeper.channel.enter("reference")
    capture_from_program(keeper.channel.user_cwd / spec, payload.targets, call, keeper)
    return {"by": "reference", "hooks": why}
