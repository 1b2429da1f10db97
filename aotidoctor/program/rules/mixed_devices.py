"""Tensors of the program are on several devices.

What it does
    Collects the devices of everything that the graphs compute. Single numbers on the CPU go with any device and are
    left out.

Why it matters
    The package loads its constants to one device. Before torch 2.11 a kernel then gets a pointer of the other
    device: SIGSEGV, or an illegal memory access. Later versions keep them apart, and copy at each call.

Example:
    buf: observed 12 tensors on cuda:0, 1 tensors on cpu; buf is on cpu, expected one device

When it is wrong
    A program that copies its inputs to the device on purpose, compiled with torch 2.11 or later.
"""

from __future__ import annotations

from aotidoctor.model.evidence import Severity
from aotidoctor.model.exported import ExportRule

RULE = ExportRule(
    code="VERIFY-A01",
    name="mixed_devices",
    title="tensors of the program are on several devices",
    severities={"mixed-device": Severity.WARN},
)
