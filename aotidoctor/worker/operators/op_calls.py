"""Save arguments of custom operators (job ``op_inputs``), call one alone (``op_alone``), or stand in for it.

Job ``op_inputs`` runs a package up to its custom operators. The operators' calls are hooked; each call's arguments
are saved before the operator begins, so that they exist whatever the operator does. Once the last of them is saved, the
process exits before the operator runs. Where calls cannot be hooked, the exported program is interpreted instead, if
there is one: the compiled code may lay out its tensors differently, the values are the same, and calls are numbered in
the program's order. Parts of the result: ``captured`` (per call ``index`` of the node, ``target``, ``file``),
``skipped`` (``index``, ``target``, ``reason``), ``by`` (``hooks`` or ``reference``) or ``unavailable`` (the reason why
there is neither).

Job ``op_alone`` calls one operator on arguments that were saved. Each step is a stage of its own, so that the parent
knows where it died: ``run1`` (the call), ``look``, ``again`` (the same call on fresh copies), ``loop`` (many calls,
on request), ``fake`` (the fake kernel's promise), ``opcheck``. The findings of a step are sent at once. Parts of the
result: ``calls``, one object per saved call, with ``file``, ``bad``, ``arguments``, ``outputs``, ``digests``,
``again`` (those of the second call), ``writes``, ``aliases``, ``clean``, ``generator``, ``fake``, ``fake_missing``;
``returned``; ``tags``; ``rss`` after each call of the loop; ``opcheck`` (test to ``SUCCESS`` or its text).

A stand-in gives zeros of the form that the fake kernel promises, and nothing else. If the package then returns, the
operator alone was the cause of its end.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map_only

from aotidoctor.model.answers import SavedCall
from aotidoctor.model.case import user_function
from aotidoctor.model.jobs import OneOperator, Run
from aotidoctor.worker.call import ModelCall, read_call, resident_bytes, set_threads, synchronize
from aotidoctor.worker.call_hooks.package_calls import ShimCall as HookedCall
from aotidoctor.worker.call_hooks.package_calls import watch_calls
from aotidoctor.worker.call_hooks.slots import HooksUnavailableError
from aotidoctor.worker.channel import Channel
from aotidoctor.worker.float64.float64_run import program_leaves
from aotidoctor.worker.load_package import LoadedModel, load_model
from aotidoctor.worker.operators.op_schema import (
    Described,
    UnsuitableArgumentError,
    all_finite,
    bad_return,
    build_arguments,
    describe_values,
    dispatch_key,
    fake_promise,
    flatten_result,
    on_meta,
    split_target,
    storage_digests,
    tensors_in,
    undeclared_aliases,
    undeclared_writes,
)
from aotidoctor.worker.operators.op_schema import read_operator_call as read_arguments
from aotidoctor.worker.sandbox import confine_run
from aotidoctor.worker.tensors import describe, digest
from aotidoctor.worker.treatments.input_steps import TreatmentError
from aotidoctor.worker.user_code import after_load, load_setup
from aotidoctor.worker.values.follow_values import handles_at, tensor_of

# Job op_inputs.
MOST_BYTES = 512 * 1024 * 1024
"""Limit of the arguments of one call: larger ones are not saved; that operator can be called by hand."""

_PROXY = re.compile(r"aoti_torch_proxy_executor_call_function")


def op_inputs(payload: Run, channel: Channel) -> dict[str, Any]:
    """Save arguments of ``payload.targets``, the operators as the package names them; the rest is as in job ``run``."""
    confine_run(payload, channel)
    module = load_setup(payload, channel)
    set_threads(payload.threads, channel)
    channel.enter("inputs")
    call = read_call(payload.inputs, channel)
    channel.enter("load")
    model = load_model(payload, channel.user_cwd / payload.package)
    channel.enter("after_load")
    after_load(module, model, channel)
    channel.enter("capture")
    saver = CallSaver(channel)
    try:
        _hook(model, payload, saver)
    except (HooksUnavailableError, LookupError, OSError) as error:
        # Take the arguments from a run of the exported program, node by node, where there is one.
        reason, spec = str(error), payload.reference
        if spec is None or user_function(spec) is not None:
            return {"unavailable": reason}
        channel.enter("reference")
        capture_from_program(channel.user_cwd / spec, payload.targets, call, saver)
        return {"by": "reference", "hooks": reason}
    channel.put(by="hooks")
    channel.enter("run1")
    model(*call.args, **call.kwargs)
    return {}


class CallSaver:
    """Saves calls to files of the scratch directory and reports each at once."""

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
        # Views of one storage are saved with one copy of it, and share it again when they are read.
        size = sum(
            {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in tensors}.values()
        )
        if size > MOST_BYTES:
            raise UnsuitableArgumentError(f"its arguments take {size >> 20} MiB, the limit is {MOST_BYTES >> 20} MiB")
        folder = self.channel.scratch
        folder.mkdir(mode=0o700, exist_ok=True)
        if size > shutil.disk_usage(folder).free // 2:
            raise UnsuitableArgumentError(f"its arguments take {size >> 20} MiB, too much for {folder}")
        path = folder / f"{self.channel.run_dir.name}-{index}.pt"
        torch.save({"target": target, "arguments": arguments, "tensors": tensors}, path)
        return str(path)


def _hook(model: LoadedModel, payload: Run, saver: CallSaver) -> None:
    """Save the first call of each node from now on.

    Raises:
        HooksUnavailableError: calls cannot be hooked on this machine or in this package.
        LookupError: the package's JSON was not found.
        OSError: it cannot be read.
    """
    nodes = _nodes(model.directory, payload)
    wanted = {index for index, node in enumerate(nodes) if node["target"] in payload.targets}
    device, channel = payload.device, saver.channel

    def before(call: HookedCall) -> None:
        index = call.integer(1)
        if index not in wanted:
            return
        node = nodes[index]

        def read() -> tuple[Described, list[Any]]:
            count = call.integer(2)
            integers = list((ctypes.c_int64 * count).from_address(call.word(3))) if count else []
            # None for the results, which do not exist yet.
            tensors = [tensor_of(handle) for handle in handles_at(call.word(5), call.integer(4))]
            return read_arguments(node, integers, tensors, device)

        saver.keep(index, node["target"], read)
        if wanted <= saver.seen:
            channel.enter("done")
            channel.done({})
            os._exit(0)

    watch_calls(model.directory, _PROXY, before)


def _nodes(directory: Path, payload: Run) -> list[dict[str, Any]]:
    """Nodes of the JSON from which the proxy executor was made."""
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


# Calls in a run of the exported program.
def capture_from_program(path: Path, targets: Sequence[str], call: ModelCall, saver: CallSaver) -> None:
    """Interpret the program on the inputs; ``saver`` gets each call of one of ``targets``."""
    if not path.is_file():
        raise FileNotFoundError(f"no such file: {path}")
    program = torch.export.load(str(path))
    names = {split_target(target): target for target in targets}
    seen = 0

    class Capture(torch.fx.Interpreter):  # type: ignore[misc]
        """Saves the arguments of wanted calls before they are made."""

        def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            nonlocal seen
            schema = getattr(target, "_schema", None)
            name = names.get((schema.name, schema.overload_name or "default")) if schema is not None else None
            if schema is not None and name is not None:
                given = dict(zip((argument.name for argument in schema.arguments), args, strict=False))
                saver.keep(seen, name, partial(describe_values, {**given, **kwargs}))
                seen += 1
            return super().call_function(target, args, kwargs)

    with torch.no_grad():
        Capture(program.module()).run(*program_leaves(program.call_spec.in_spec, call))


# Job op_alone.
_TESTS = ("test_schema", "test_faketensor")


def op_alone(payload: OneOperator, channel: Channel) -> dict[str, Any]:
    """Call one operator on saved calls (``files``), ``loop`` times more, with the steps ``fake`` and ``opcheck``."""
    load_setup(payload, channel)
    set_threads(payload.threads, channel)
    op = find_overload(payload.target)
    channel.put(tags=sorted(str(tag).removeprefix("Tag.") for tag in op.tags))
    calls: list[dict[str, Any]] = []
    for path in payload.files:
        channel.enter("inputs")
        calls.append({"file": path})
        calls[-1] |= _first(op, path, payload, channel)
        channel.put(calls=calls)
        # The same call on fresh copies: equal arguments should give equal results.
        arguments = _load(path)
        channel.enter("again")
        result = _call(op, arguments, payload)
        calls[-1] |= {"again": [] if bad_return(op, result) else _digests(op, result)}
        channel.put(calls=calls)
    if payload.loop:
        # Resident memory after each of many calls, and time for a damaged heap to show.
        arguments = _load(payload.files[0])
        channel.enter("loop")
        sizes = []
        for _ in range(payload.loop):
            _call(op, arguments, payload)
            sizes.append(resident_bytes())
        channel.put(rss=sizes)
    for call in calls if payload.fake else ():
        channel.enter("fake")
        call.update(fake_promise(op, _load(call["file"])))
        channel.put(calls=calls)
    if payload.opcheck:
        channel.put(opcheck=_opcheck(op, payload.files[0], channel))
    return {}


def find_overload(target: str) -> Any:
    """The registered overload with the name that the package uses."""
    name, overload = split_target(target)
    namespace, _, packet = name.partition("::")
    return getattr(getattr(getattr(torch.ops, namespace), packet), overload)


def _load(path: str) -> dict[str, Any]:
    """Load fresh arguments by name from the file."""
    saved = torch.load(path, weights_only=True)
    return build_arguments(saved["arguments"], saved["tensors"])


def _call(op: Any, arguments: dict[str, Any], payload: OneOperator) -> Any:
    with torch.no_grad():
        result = op(**arguments)
    synchronize(payload.device)
    return result


def _first(op: Any, path: str, payload: OneOperator, channel: Channel) -> dict[str, Any]:
    """Make the first call, and describe all its effects."""
    arguments = _load(path)
    given = [describe(name, tensor, values=False) for name, tensor in tensors_in(arguments)]
    before, finite = storage_digests(arguments), all_finite(arguments)
    state = _generators(payload)
    channel.enter("run1")
    result = _call(op, arguments, payload)
    channel.enter("look")
    channel.put(returned=True)
    bad = bad_return(op, result)
    outputs = [] if bad else [describe(name, tensor, values=True) for name, tensor in flatten_result(op, result)]
    return {
        "bad": bad,
        "arguments": given,
        "outputs": outputs,
        "digests": [] if bad else _digests(op, result),
        "writes": undeclared_writes(op, arguments, before),
        "aliases": [] if bad else undeclared_aliases(op, arguments, result),
        "clean": finite,
        "generator": state != _generators(payload),
    }


def _generators(payload: OneOperator) -> list[bytes]:
    """State of PyTorch's random generators that the operator may use."""
    states = [torch.random.get_rng_state()]
    if payload.device.startswith("cuda"):
        states.append(torch.cuda.get_rng_state())
    return [bytes(state.tolist()) for state in states]


def _digests(op: Any, result: Any) -> list[str | None]:
    return [digest(tensor) for _, tensor in flatten_result(op, result)]


def _opcheck(op: Any, path: str, channel: Channel) -> dict[str, str]:
    """Results of PyTorch's own check, by test."""
    check = getattr(torch.library, "opcheck", None)
    if check is None:
        return {}
    arguments = _load(path)
    channel.enter("opcheck")
    results = check(op, (), arguments, test_utils=_TESTS, raise_exception=False)
    return {test: str(answer)[:2000] for test, answer in results.items()}


# The stand-in. The kernels of a library vanish when it is collected.
_STAND_IN_LIBRARIES: list[Any] = []


def stand_in_operator(target: str, device: str) -> str:
    """Replace the kernel of ``target`` (``zoo::scale``) for ``device`` in this process; return a note of that.

    Raises:
        TreatmentError: there is no such operator here, or its kernel cannot be replaced.
    """
    import warnings

    name, overload = split_target(target)
    namespace, _, packet = name.partition("::")
    try:
        op = find_overload(target)
        library = torch.library.Library(namespace, "IMPL")
        with warnings.catch_warnings():
            # Replacing an existing kernel is the purpose.
            warnings.simplefilter("ignore")
            full = packet if overload == "default" else f"{packet}.{overload}"
            library.impl(full, _zeros_of(op), dispatch_key(device))
    except (AttributeError, RuntimeError) as error:
        raise TreatmentError(f"{target} cannot be replaced: {error}") from error
    _STAND_IN_LIBRARIES.append(library)
    return f"stand-in for {target}"


def _zeros_of(op: Any) -> Any:
    def kernel(*args: Any, **kwargs: Any) -> Any:
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        device = tensors[0].device if tensors else torch.device("cpu")
        on_args, on_kwargs = tree_map_only(torch.Tensor, on_meta, (args, kwargs))
        promised = op(*on_args, **on_kwargs)

        def made(tensor: Any) -> Any:
            return torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device=device).zero_()

        return tree_map_only(torch.Tensor, made, promised)

    return kernel
