# ruff: noqa: F821 - CHANNEL is given by the worker
import os
import time

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        CHANNEL.put(pid=os.getpid())
        time.sleep(600)
    os._exit(0)
os.wait()
time.sleep(0.1)
