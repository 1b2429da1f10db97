"""Write what the oracle says to ``tests/data/triton/verdicts.json``: ``python -m tests.oracle.record``."""

from __future__ import annotations

import json
import sys

from tests.oracle.configs import CONFIGS
from tests.oracle.server import VERDICTS, ask, find_server


def main() -> None:
    server = find_server()
    if server is None:
        sys.exit("nvidia-pytriton is not installed here")
    found = ask(server, CONFIGS)
    said = {config.name: found[config.name].reason if not found[config.name].accepted else None for config in CONFIGS}
    VERDICTS.write_text(json.dumps(said, indent=1) + "\n")
    print(f"{len(said)} configs, {sum(reason is None for reason in said.values())} accepted")


if __name__ == "__main__":
    main()
