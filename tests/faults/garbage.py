# ruff: noqa: F821 - CHANNEL is given by the worker
from pathlib import Path

channel = Path(CHANNEL.run_dir, "channel.jsonl")
with channel.open("ab") as stream:
    stream.write(b'\xff\xfe{"stage": 7}\n[1, 2\n"text"\n{"done": "maybe"}\nunfinished')
RESULT = {"after": "garbage"}
