"""What the user wants to have happened before the model is loaded: operator libraries and a setup module."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aotidoctor.model.jobs import Job
from aotidoctor.worker.channel import Channel


@contextlib.contextmanager
def users_directory(channel: Channel) -> Iterator[None]:
    """Be in the user's directory: a setup file may open ``weights.pt`` there. The model itself runs elsewhere."""
    private = Path.cwd()
    os.chdir(channel.user_cwd)
    try:
        yield
    finally:
        os.chdir(private)


def load_setup(payload: Job, channel: Channel) -> Any:
    """Load the operator libraries, then the setup module: a ``.py`` file or a module's name; None if there is none."""
    code = payload.code
    with users_directory(channel):
        for name in code.imports:
            sys.path.append(str(channel.user_cwd))
            module, _, function = name.partition(":")
            found = importlib.import_module(module)
            if function:
                getattr(found, function)()
        for library in code.custom_op_libraries:
            import torch

            torch.ops.load_library(str(channel.user_cwd / library))
        setup = code.setup
        if not setup:
            return None
        if not setup.endswith(".py"):
            sys.path.insert(0, str(channel.user_cwd))
            return importlib.import_module(setup)
        return _import_file(channel.user_cwd / setup)


def after_load(module: Any, model: Any, channel: Channel) -> bool:
    """Call the setup module's ``after_load(model)``; whether there was one."""
    function = getattr(module, "after_load", None)
    if function is None:
        return False
    with users_directory(channel):
        function(model)
    return True


def _import_file(path: Path) -> Any:
    """Import a file as the script it would be: its folder first in ``sys.path``, its name importable."""
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"not a Python file: {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module
