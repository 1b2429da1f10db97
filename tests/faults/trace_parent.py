"""Traces the process that made it, which then stands still, and hangs."""

import ctypes
import os
import time

PTRACE_ATTACH = 16
libc = ctypes.CDLL(None, use_errno=True)
if libc.ptrace(PTRACE_ATTACH, os.getppid(), 0, 0) != 0:
    raise OSError(ctypes.get_errno(), "ptrace")
time.sleep(600)
