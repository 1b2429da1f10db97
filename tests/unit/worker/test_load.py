"""How the loader is called: each release of PyTorch takes other arguments, and its documentation tells which."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from aotidoctor.worker.load_package import LoadedModel, accepted_arguments

LOADER = "torch._C._aoti.AOTIModelPackageLoader"
# As help() shows them in 2.6, 2.7 and 2.8.
OF_2_6 = f"""__init__(*args, **kwargs)
Overloaded function.

1. __init__(self: {LOADER}, arg0: str, arg1: str) -> None

2. __init__(self: {LOADER}, arg0: str) -> None
"""
OF_2_7 = f"__init__(self: {LOADER}, arg0: str, arg1: str, arg2: bool, arg3: int) -> None\n"
OF_2_8 = f"__init__(self: {LOADER}, arg0: str, arg1: str, arg2: bool, arg3: int, arg4: int) -> None\n"
WEIGHTS_2_6 = f"load_constants(self: {LOADER}, arg0: dict[str, torch.Tensor], arg1: bool, arg2: bool) -> None\n"
WEIGHTS_2_8 = (
    f"load_constants(self: {LOADER}, constants_map: dict[str, torch.Tensor], use_inactive: bool, "
    "check_full_update: bool, user_managed: bool = False) -> None\n"
)


def documented(text):
    def function(*given):
        function.given = given

    function.__doc__ = text
    return function


@pytest.mark.parametrize(
    ("text", "count"), [(OF_2_6, 2), (OF_2_7, 4), (OF_2_8, 5), (WEIGHTS_2_6, 3), (WEIGHTS_2_8, 4), ("", None)]
)
def test_arguments_are_counted(text, count):
    assert accepted_arguments(documented(text)) == count


@pytest.mark.parametrize(("text", "given"), [(WEIGHTS_2_6, ({}, False, True)), (WEIGHTS_2_8, ({}, False, True, True))])
def test_weights_are_loaded_with_as_many_arguments_as_there_are(text, given):
    class Loader:
        load_constants = staticmethod(documented(text))

    LoadedModel(Loader(), directory=Path()).load_constants({}, check_full_update=True, user_managed=True)
    assert Loader.load_constants.given == given
