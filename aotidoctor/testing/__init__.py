"""Support users' tests: ``assert_aoti_healthy`` and the parts of the pytest plugin. pytest itself is not needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aotidoctor.model import names_of

if TYPE_CHECKING:
    from aotidoctor.testing.healthy import AotiUnhealthyError, assert_aoti_healthy

__all__ = ["AotiUnhealthyError", "assert_aoti_healthy"]

__getattr__ = names_of(__name__, {"AotiUnhealthyError": "healthy", "assert_aoti_healthy": "healthy"})
