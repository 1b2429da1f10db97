"""Where the stubs' machine code is put."""

from __future__ import annotations

import ctypes
import os
import sys

import pytest

from aotidoctor.worker.call_hooks import slots

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory files are of Linux")


@pytest.mark.parametrize("known", [True, False])
def test_code_is_copied_whatever_python_knows(monkeypatch: pytest.MonkeyPatch, known: bool) -> None:
    """The Python of conda has no ``os.memfd_create``."""
    if not known:
        monkeypatch.delattr(os, "memfd_create", raising=False)
    code = b"\xc3" * 64
    address = slots._executable(code)
    assert ctypes.string_at(address, len(code)) == code


def test_what_the_kernel_refuses_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> int:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "memfd_create", refused, raising=False)
    with pytest.raises(slots.HooksUnavailableError, match="no memory file for the stubs"):
        slots._executable(b"\xc3")
