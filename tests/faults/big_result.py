# ruff: noqa: F821 - CHANNEL is given by the worker
CHANNEL.put(small=1)
RESULT = {"big": "z" * 40_000_000, "nan": float("nan")}
