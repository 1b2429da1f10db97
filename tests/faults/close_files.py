# ruff: noqa: F821 - CHANNEL is given by the worker
import os

os.closerange(0, 4096)
stranger = os.open("mine", os.O_CREAT | os.O_RDWR)
CHANNEL.put(number=stranger)
RESULT = {"found_in_mine": os.pread(stranger, 100, 0).decode()}
