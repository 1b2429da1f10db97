"""The runtime of ExecuTorch in a log: its lines, those that pass a failure on, and its error codes in words."""

from __future__ import annotations

import re
from collections.abc import Iterable

from aotidoctor.logs.lines import any_of
from aotidoctor.model.report import LogEvent

# Its logger, its lines as Python shows them, the library that it unpacks, and the keys of its data.
RUNTIME = re.compile(
    rb"executorch:\w{1,80}\.(?:cpp|h|mm):\d|/executorch_\w{1,20}_\d{1,12}_\d|_(?:so|weights)_blob"
    rb"|\[(?:method|module|program|tensor_impl|platform|cuda_\w{1,20}|flat_tensor_data_map|mmap_data_loader|XNN\w{1,20}"
    rb"|device_memory_buffer|op__device_copy)\.cpp:\d{1,6}\] |Failed to execute method \S{1,80}, error: 0x"
    rb"|for method \w{1,80} should be contiguous or channels-last"
)
# The callers of what failed, and the copy of the results, which waits for the kernels and reports their faults.
PASSED_ON = any_of("passed_on_by_executorch")
_CODE = re.compile(
    r"(?:Failed to (?:(?:execute|load) method \S{1,200}, error|get method names, error|parse model file\S{0,200})"
    r"|failed to retrieve method_meta for method \S{1,200}, error|Init failed for backend \w{1,80}"
    r"|compileModel failed|in operator \S{1,120}|(?:of method \S{1,200}|Program loading) failed(?: with status)?"
    r"|Error setting input \d{1,6}|Failed to get data for key \w{1,200}):? 0x(?P<code>[0-9a-f]{1,2})\b"
)
# runtime/core/error.h
_NAMES = {
    0x01: "Internal, an error inside the runtime or a backend",
    0x02: "InvalidState, a step before this one is missing",
    0x03: "EndOfMethod, there is nothing left to execute",
    0x10: "NotSupported, the runtime cannot do that with this value",
    0x11: "NotImplemented, this build does not have it",
    0x12: "InvalidArgument, an input, a name or a file is not what the program takes",
    0x13: "InvalidType, a value has another type",
    0x14: "OperatorMissing, an operator is not registered",
    0x20: "NotFound, a backend, a key or a file is not there",
    0x21: "MemoryAllocationFailed, no memory, or no device to have it on",
    0x22: "AccessFailed, a file or library could not be read or loaded",
    0x23: "InvalidProgram, the .pte is damaged or of another kind",
    0x24: "InvalidExternalData, the .ptd is damaged or of another kind",
    0x30: "DelegateInvalidCompatibility, the backend is of another version",
    0x31: "DelegateMemoryAllocationFailed, the backend found no memory",
    0x32: "DelegateInvalidHandle, the backend was not initialised",
}


def error_code(event: LogEvent, events: Iterable[LogEvent]) -> str:
    """The code of ``event``, or of the first of ``events`` that pass it on, in words; empty without one."""
    texts = (event.text, *(one.text for one in events if one.echo_of == event.first))
    codes = (int(found["code"], 16) for text in texts for found in _CODE.finditer(text))
    return next((f"0x{code:x} {_NAMES[code]}" for code in codes if code in _NAMES), "")
