"""Save the arguments of each call of a package until it returns, in a program of the user.

Python imports ``sitecustomize`` at start. Nothing else of this project is imported: the program may belong to another
environment. The folder that ``AOTIDOCTOR_RECORDER`` names gets, for each thread that called a package,

``PID-THREAD.entered.pt``, ``.raised.pt`` or ``.returned.pt``
    args and kwargs of its last call, as ``torch.save`` writes them, named by the progress of the call;
``PID-THREAD.package``
    the path that the package was loaded from;
``PID-THREAD.problem``
    the reason why there are no arguments.

No error of this module reaches the program.
"""

from __future__ import annotations

import functools
import importlib.machinery
import importlib.util
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

ROOM = "AOTIDOCTOR_RECORDER"
# Between them they define what aoti_load_package calls and returns, in one or the other by release.
MODULES = ("torch.export.pt2_archive._package", "torch._inductor.package.package")
_PACKAGE = "_aotidoctor_package"
# A server makes thousands of calls before the one that fails: writing each down ends after this time in all. A call
# that raises is written all the same.
_WRITING_S = 20.0
_MOST_BYTES = 1 << 30
_spent = 0.0


class _Finder:
    """Finds the module as Python would, and changes it once it has been executed."""

    @staticmethod
    def find_spec(name: str, path: Any = None, _target: Any = None) -> Any:
        if name not in MODULES:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module: Any) -> None:
            execute(module)
            with suppress(Exception):
                # The class of a loaded package and the function that makes one, each in the module that defines it.
                model, load = getattr(module, "AOTICompiledModel", None), getattr(module, "load_package", None)
                if model is not None and model.__module__ == module.__name__:
                    model.__call__ = _recorded(model.__call__)
                if load is not None and load.__module__ == module.__name__:
                    module.load_package = _remembered(load)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _remembered(load: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(load)
    def load_package(path: Any, *args: Any, **kwargs: Any) -> Any:
        model = load(path, *args, **kwargs)
        with suppress(Exception):
            setattr(model, _PACKAGE, os.path.abspath(path))  # noqa: PTH100 - the program may change its folder
        return model

    return load_package


def _recorded(call: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(call)
    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807 - the name of what it stands for
        stem = f"{os.environ.get(ROOM)}/{os.getpid()}-{threading.get_ident()}"
        written = _spent < _WRITING_S and _write(stem, "entered", self, args, kwargs)
        try:
            result = call(self, *args, **kwargs)
        except BaseException:
            if written:
                _rename(stem, "raised")
            else:
                _write(stem, "raised", self, args, kwargs)
            raise
        if written:
            _rename(stem, "returned")
        return result

    return __call__


def _write(stem: str, state: str, model: Any, args: Any, kwargs: Any) -> bool:
    """Save the arguments; whether they are on disk now."""
    global _spent  # noqa: PLW0603 - of all threads together
    began = time.monotonic()
    try:
        torch = sys.modules["torch"]
        package = getattr(model, _PACKAGE, None)
        if package is not None:
            _put(f"{stem}.package", package)
        size = sum(one.untyped_storage().nbytes() for one in _tensors((args, kwargs), torch.Tensor))
        if size > _MOST_BYTES:
            _put(f"{stem}.problem", f"its arguments contain {size:,} bytes; at most {_MOST_BYTES:,} are kept")
            return False
        torch.save({"args": args, "kwargs": kwargs}, f"{stem}.part")
        for name in ("entered.pt", "raised.pt", "returned.pt", "problem"):
            with suppress(OSError):
                os.unlink(f"{stem}.{name}")  # noqa: PTH108 - see _put
        os.replace(f"{stem}.part", f"{stem}.{state}.pt")  # noqa: PTH105 - see _put
    except Exception as error:
        with suppress(OSError):
            _put(f"{stem}.problem", f"its arguments could not be saved: {type(error).__name__}: {error}"[:500])
        return False
    finally:
        _spent += time.monotonic() - began
    return True


def _tensors(tree: Any, kind: type, depth: int = 0) -> list[Any]:
    """Tensors in containers of Python; those inside a class of the program are not counted."""
    if isinstance(tree, kind):
        return [tree]
    if depth > 8 or not isinstance(tree, (tuple, list, dict)):
        return []
    items = tree.values() if isinstance(tree, dict) else tree
    return [found for item in items for found in _tensors(item, kind, depth + 1)]


def _put(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8", errors="replace") as stream:  # noqa: PTH123 - the start of every process
        stream.write(text)


def _rename(stem: str, state: str) -> None:
    with suppress(OSError):
        os.replace(f"{stem}.entered.pt", f"{stem}.{state}.pt")  # noqa: PTH105 - see _put


def _next_sitecustomize() -> None:
    """Import the module that Python would have imported without this one; its exceptions are not caught."""
    here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - see _put
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != here]  # noqa: PTH100 - see _put
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize")
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


if __name__ == "sitecustomize" and os.environ.get(ROOM):
    sys.meta_path.insert(0, _Finder)
    _next_sitecustomize()
