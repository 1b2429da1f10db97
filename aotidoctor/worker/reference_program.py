"""Load the program that a package was made from, and call it.

The reference is an exported program (``exported.pt2``) or a function (``module.py:function``): of the arguments of the
package, or of none, if it returns an exported program, a model, or a model with example inputs.

A call that the reference refuses is made again with every operator watched: what an operator raises is about its own
arguments, and each tensor remembers the inputs that it was computed from. The element is looked for where the message
names a range or a value.
"""

from __future__ import annotations

import inspect
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import field
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.weak import WeakIdKeyDictionary

from aotidoctor.model.case import user_function
from aotidoctor.model.jobs import Job, UserCode
from aotidoctor.model.record import record
from aotidoctor.model.torch_names import index_at
from aotidoctor.readers.package.read_package import read_damage
from aotidoctor.readers.package.zip_archive import DEFAULT_CRC_LIMIT
from aotidoctor.worker.call import ModelCall
from aotidoctor.worker.channel import Channel
from aotidoctor.worker.tensors import describe, result_tensors
from aotidoctor.worker.user_code import load_setup, users_directory
from aotidoctor.worker.weights import program_tensors

# In the paths of files that are not the user's.
_NOT_THE_USERS = ("/torch/", "/aotidoctor/")


@record
class LoadedReference:
    """``call`` runs it; ``program`` is the exported program (None for a function), ``tensors`` its tensors by name.

    ``example`` are args and kwargs that the user's function returned beside it.
    """

    call: Callable[..., Any]
    program: Any = None
    tensors: dict[str, Any] = field(default_factory=dict)
    example: tuple[Any, Any] | None = None


# References that a process loaded before it was forked.
_shared: dict[str, LoadedReference] = {}


def share_reference(spec: str, channel: Channel) -> None:
    """Load the reference for all processes that will be forked from this one. A failure will recur in those."""
    with suppress(Exception):
        _shared[spec] = load_reference(spec, channel)


def load_reference(spec: str, channel: Channel, *, crc_limit: int = DEFAULT_CRC_LIMIT) -> LoadedReference:
    """Load an exported program, undamaged as far as ``crc_limit`` goes, or the function in ``module.py:function``."""
    if spec in _shared:
        return _shared[spec]
    if (named := user_function(spec)) is not None:
        path, name = named
        module = load_setup(Job(code=UserCode(setup=path)), channel)
        return _function_reference(getattr(module, name), channel)
    if not (channel.user_cwd / spec).is_file():
        # Opening a named pipe would wait until the time is up.
        raise FileNotFoundError(f"no such file: {spec}")
    if damaged := damage_error(spec, channel, crc_limit=crc_limit):
        raise damaged
    from aotidoctor.worker.verify.cut_program import load_program

    return _program_reference(load_program(channel.user_cwd / spec))


def damage_error(spec: str, channel: Channel, *, crc_limit: int = DEFAULT_CRC_LIMIT) -> ValueError | None:
    """The damage of an exported program: PyTorch compares no checksum, and it would pass for the package's fault."""
    damage = None if user_function(spec) is not None else read_damage(str(channel.user_cwd / spec), crc_limit)
    return ValueError(f"{spec} {damage}") if damage else None


def _program_reference(program: Any) -> LoadedReference:
    return LoadedReference(call=program.module(), program=program, tensors=program_tensors(program))


def _function_reference(function: Callable[..., Any], channel: Channel) -> LoadedReference:
    """The function itself, or, of one without parameters, the exported program or the model that it returns.

    It may return ``(model, args)`` or ``(model, args, kwargs)``: the model with example inputs.
    """
    try:
        takes_nothing = not inspect.signature(function).parameters
    except (TypeError, ValueError):
        takes_nothing = False
    if not takes_nothing:
        return LoadedReference(call=function)
    with users_directory(channel):
        made = function()
    if isinstance(made, torch.export.ExportedProgram):
        return _program_reference(made)
    if isinstance(made, tuple) and len(made) in (2, 3) and callable(made[0]):
        args = made[1] if isinstance(made[1], tuple | list) else (made[1],)
        return LoadedReference(call=made[0], example=(tuple(args), made[2] if len(made) == 3 else {}))
    # A function that computes something from nothing is the model of a package without inputs.
    return LoadedReference(call=made if callable(made) else function)


def call_reference(reference: LoadedReference, call: ModelCall) -> tuple[dict[str, Any], Any]:
    """Call the reference: facts of the outputs or the ``error``, and the outputs (None when it raised).

    A function that does not take these arguments is ``unavailable``; of an error, ``refused`` has the operator and the
    inputs that it refused, and ``where`` is the user's line.
    """
    if reference.program is None and (why := _why_not_callable(reference.call, call)) is not None:
        return {"unavailable": why}, None
    try:
        with torch.no_grad():
            theirs = reference.call(*call.args, **call.kwargs)
    except Exception as error:
        refused = refused_values(reference.call, call, str(error))
        refused["always"] = _refuses_its_examples(reference, str(error))
        return {"error": error_text(error), "where": users_line(error), "refused": refused}, None
    return {"outputs": [describe(path, leaf, values=True) for path, leaf in result_tensors(theirs)]}, theirs


def _refuses_its_examples(reference: LoadedReference, message: str) -> bool:
    """Whether a program raises the same for the inputs that it was exported with: then no input is at fault."""
    if reference.program is None or reference.program.example_inputs is None:
        return False
    args, kwargs = reference.program.example_inputs
    try:
        with torch.no_grad():
            reference.call(*args, **kwargs)
    except Exception as error:
        return str(error) == message
    return False


def _why_not_callable(function: Callable[..., Any], call: ModelCall) -> str | None:
    try:
        inspect.signature(function.forward if hasattr(function, "forward") else function).bind(
            *call.args, **call.kwargs
        )
    except TypeError as error:
        return f"it is called with the inputs of the package, as function(*args, **kwargs): {error}"
    except ValueError:
        pass
    return None


def error_text(error: Exception) -> str:
    """Type and message of an exception of the reference, which is also printed with its traceback."""
    traceback.print_exception(error)
    return f"{type(error).__name__}: {error}"[:16384]


def users_line(error: Exception) -> str | None:
    """``model.py:12, in forward: y = self.conv(x)`` of the innermost frame of the user's code; None without one."""
    frames = [one for one in traceback.extract_tb(error.__traceback__) if is_users_file(one.filename)]
    if not frames:
        return None
    last = frames[-1]
    return f"{last.filename.rpartition('/')[2]}:{last.lineno}, in {last.name}: {(last.line or '').strip()[:200]}"


def is_users_file(file: str) -> bool:
    """Whether a frame's code is neither PyTorch's, nor ours, nor Python's own."""
    return not (file.startswith(("<", f"{sys.base_prefix}/lib/")) or any(part in file for part in _NOT_THE_USERS))


# The operator that refused a call, with the inputs and the element that it refused.
_NUMBER = r"(-?\d{1,9}(?:\.\d{1,9})?)"
_RANGE = re.compile(rf"(?:between|in (?:the )?(?:range|interval)) \[?{_NUMBER}(?:,| and) {_NUMBER}")
_VALUE = re.compile(r"(?:index|Target|element|value|id=) ?(-?\d{1,18})\b")
_LARGEST = 1 << 24


class _WatchedOperators(TorchDispatchMode):  # type: ignore[misc,unused-ignore]
    """Remembers from which inputs each tensor comes, and the first operator that raised, with its tensors."""

    def __init__(self, inputs: Sequence[tuple[str, Any]]) -> None:
        super().__init__()
        self.origins: Any = WeakIdKeyDictionary()
        for path, tensor in inputs:
            self.origins[tensor] = (path,)
        self.operator: str | None = None
        self.tensors: list[Any] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        tensors = [one for one in tree_leaves((args, kwargs or {})) if isinstance(one, torch.Tensor)]
        try:
            result = func(*args, **(kwargs or {}))
        except Exception:
            if self.operator is None:
                self.operator, self.tensors = str(func), tensors
            raise
        paths = tuple(dict.fromkeys(path for one in tensors for path in self.origins.get(one, ())))
        for one in tree_leaves(result):
            if isinstance(one, torch.Tensor):
                self.origins[one] = tuple(dict.fromkeys((*self.origins.get(one, ()), *paths)))
        return result


def refused_values(reference: Callable[..., Any], call: ModelCall, message: str) -> dict[str, Any]:
    """Facts of a call that raises: ``operator``, ``paths`` of the inputs behind its tensors, ``element``, ``value``."""
    inputs = call.tensors()
    watched = _WatchedOperators(inputs)
    try:
        with torch.no_grad(), watched:
            reference(*call.args, **call.kwargs)
    except Exception:
        if watched.operator is None:
            return {}
    else:
        return {}
    direct = [(path, tensor) for tensor in watched.tensors for path, own in inputs if own is tensor]
    facts: dict[str, Any] = {"operator": watched.operator}
    for path, tensor in direct:
        with suppress(RuntimeError, NotImplementedError):
            found = _element(tensor, message)
            if found is not None:
                at, value = found
                return {**facts, "paths": [path], "element": f"{path}[{', '.join(map(str, at))}]", "value": value}
    behind = [watched.origins.get(tensor, ()) for tensor in watched.tensors]
    return {**facts, "paths": list(dict.fromkeys(path for paths in behind for path in paths))}


def _element(tensor: Any, message: str) -> tuple[list[int], float | int] | None:
    """The first element outside of the range that the message names, or of the value that it complains about."""
    if not 0 < tensor.numel() <= _LARGEST or tensor.is_complex():
        return None
    if (between := _RANGE.search(message)) is not None:
        bad = ~((tensor >= float(between[1])) & (tensor <= float(between[2])))
    elif (named := _VALUE.search(message)) is not None and not tensor.is_floating_point():
        bad = tensor == int(named[1])
    else:
        return None
    places = bad.flatten().nonzero()
    if not len(places):
        return None
    at = int(places[0])
    return index_at(at, tuple(tensor.shape)), tensor.flatten()[at].item()
