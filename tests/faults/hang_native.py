import ctypes
import signal

signal.signal(signal.SIGTERM, signal.SIG_IGN)
while True:
    ctypes.PyDLL(None).sleep(600)
