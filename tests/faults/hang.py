# ruff: noqa: F821 - CHANNEL is given by the worker
import time

CHANNEL.put(before="hang")
time.sleep(600)
