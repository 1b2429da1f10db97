"""Tensors and arrays that exist in this process: described as they are, and written to a file only for a child.

torch is not imported here: where there is a tensor, the caller has imported it.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Protocol, cast

from aotidoctor.api.arguments import path, shown
from aotidoctor.api.arrays import Tensor, is_array
from aotidoctor.api.torch_file import CannotWriteError, write_tensors
from aotidoctor.commands.watch.live import arguments
from aotidoctor.model.errors import ArgumentError, InputsError
from aotidoctor.model.inputs import InputSet
from aotidoctor.model.record import record
from aotidoctor.readers.inputs import describe_live, read_inputs

_CALL = "a tuple or list of arguments, such as args=(x,)"
_NAMED = "a dict of keyword arguments, such as kwargs={'ids': ids}"
_INPUTS = "a path, a tensor, a tuple or list of args, or a dict of kwargs"
# Modules that only this process has: the script or the notebook itself.
_SCRIPT = ("__main__.", "__mp_main__.")
# As deep as the readers of files go.
_MAX_DEPTH = 64


Change = Callable[[object], object]


class _Torch(Protocol):
    """What of the caller's torch is used here."""

    def save(self, obj: object, f: str) -> None: ...
    def from_numpy(self, ndarray: object) -> object: ...


@record
class Source:
    """Where the inputs come from: a file at ``path``, objects (``args`` and ``kwargs``), or nowhere (all None)."""

    path: str | None = None
    args: Sequence[object] | None = None
    kwargs: Mapping[str, object] | None = None

    @property
    def is_live(self) -> bool:
        """Whether they are objects of this process."""
        return self.args is not None


def source_of(inputs: object, args: object, kwargs: object) -> Source:
    """What the caller means. Raises ArgumentError."""
    if args is None and kwargs is None:
        if inputs is None:
            return Source()
        if isinstance(inputs, (str, os.PathLike)):
            return Source(path=path("inputs", inputs))
        if isinstance(inputs, (bool, int, float, bytes)):
            raise ArgumentError("inputs", shown(inputs), _INPUTS)
        positional, named = arguments(inputs)
        return Source(args=positional, kwargs=_named(named))
    if inputs is not None:
        raise ArgumentError(
            "inputs", f"{shown(inputs)} in addition to args or kwargs", "either inputs, or args and kwargs"
        )
    if args is not None and not isinstance(args, (tuple, list)):
        raise ArgumentError("args", shown(args), _CALL)
    if kwargs is not None and not isinstance(kwargs, Mapping):
        raise ArgumentError("kwargs", shown(kwargs), _NAMED)
    return Source(args=args if args is not None else (), kwargs=_named(kwargs if kwargs is not None else {}))


def _named(kwargs: Mapping[object, object] | Mapping[str, object]) -> Mapping[str, object]:
    for name in kwargs:
        if not isinstance(name, str):
            raise ArgumentError("kwargs", f"the key {shown(name)}", _NAMED)
    return cast("Mapping[str, object]", kwargs)


@contextmanager
def given(source: Source, *, to_run: bool) -> Iterator[InputSet | None]:
    """The description of objects, None for a file or nothing; with ``to_run`` of a file that lives as long as this.

    Raises:
        InputsError: endless nesting, or an object that cannot be handed to another process.
    """
    if source.args is None or source.kwargs is None:
        yield None
        return
    if not to_run:
        yield _noted(describe_live(*_mapped(source, Tensor)), source)
        return
    with tempfile.TemporaryDirectory(prefix="aotidoctor-inputs-") as room:
        place = str(Path(room) / "inputs.pt")
        _write(source, place)
        # These are the caller's own objects: to unpickle them runs no code but the caller's.
        found = read_inputs(place, trust_pickle=True)
        private = [name for name in found.globals if name.startswith(_SCRIPT)]
        if private:
            raise _unfit(private[0], "a class of a module that a child process can import; check() needs none")
        yield _noted(replace(found, form="live"), source)


def forget(found: InputSet) -> InputSet:
    """The description without the file, which is gone by now."""
    return replace(found, path=None, format="live", sha256=None, plan=None)


def _write(source: Source, place: str) -> None:
    torch = cast("_Torch | None", sys.modules.get("torch"))
    try:
        if torch is None:
            args, kwargs = _mapped(source, Tensor)
            write_tensors({"args": args, "kwargs": kwargs}, place)
        else:
            given_torch = torch
            args, kwargs = _mapped(source, lambda array: _tensor(given_torch, array))
            torch.save({"args": args, "kwargs": kwargs}, place)
    except CannotWriteError as error:
        raise _unfit(str(error), "tensors, arrays, numbers, texts and None in tuples, lists and dicts") from error
    except Exception as error:
        # Whatever an object of a stranger's class does when it is pickled.
        raise _unfit(f"{type(error).__name__}: {error}", "objects that pickle can pass to a child process") from error


def _unfit(observed: str, expected: str) -> InputsError:
    return InputsError(
        f"the arguments cannot be passed to a child process: {observed[:200]}",
        cause="inputs-file-format",
        subject="inputs",
        observed=observed[:200],
        expected=expected,
    )


def _tensor(torch: _Torch, array: object) -> object:
    """As ``torch.from_numpy`` makes it; the array itself where no tensor is like it."""
    flags = getattr(array, "flags", None)
    try:
        if not getattr(flags, "writeable", True):
            # A tensor of what nobody may write to comes with a warning.
            array = array.copy(order="K")  # type: ignore[attr-defined]  # a numpy.ndarray
        return torch.from_numpy(array)
    except (TypeError, ValueError):
        return array


def _mapped(source: Source, change: Change) -> tuple[list[object], dict[str, object]]:
    """Arguments and keyword arguments with ``change`` of every array in plain containers."""
    args = [_changed(value, change, 1) for value in source.args or ()]
    return args, {name: _changed(value, change, 1) for name, value in (source.kwargs or {}).items()}


def _changed(value: object, change: Change, depth: int) -> object:
    if depth > _MAX_DEPTH:
        observed = f"containers of more than {_MAX_DEPTH} levels"
        raise InputsError(observed, cause="inputs-file-format", subject="inputs", observed=observed)
    if is_array(value):
        return change(value)
    if type(value) is dict:
        return {key: _changed(item, change, depth + 1) for key, item in value.items()}
    if type(value) is list:
        return [_changed(item, change, depth + 1) for item in value]
    if type(value) is tuple:
        return tuple(_changed(item, change, depth + 1) for item in value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        make: Callable[..., object] = type(value)  # type: ignore[explicit-any]  # a namedtuple takes its fields
        return make(*(_changed(item, change, depth + 1) for item in value))
    return value


def _noted(found: InputSet, source: Source) -> InputSet:
    arrays: list[object] = []
    _mapped(source, arrays.append)
    if not arrays:
        return found
    note = "NumPy arrays were examined as the tensors that torch.from_numpy makes of them"
    return replace(found, notes=(*found.notes, note))
