"""Run commands one after the other in this process and write what each printed: natively, without POSIX, in WebAssembly.

Usage: ``commands_in_process.py COMMANDS.json ANSWERS.json [without-posix]``. COMMANDS.json is a list of lists of words.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import traceback
from pathlib import Path


def answer(words: list[str]) -> dict[str, object]:
    """Exit status, stdout and stderr of one command."""
    from aotidoctor.cli import build_app

    out, err = _Stream(), _Stream()
    before, sys.argv = sys.argv, ["aotidoctor", *words]
    status: object = None
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            build_app()(args=words, prog_name="aotidoctor")
        except SystemExit as ended:
            status = ended.code or 0
        except BaseException:
            status = traceback.format_exc()
    sys.argv = before
    return {"status": status, "stdout": out.text(), "stderr": err.text()}


class _Stream(io.TextIOWrapper):
    """A stream in memory that has bytes beneath, as the standard ones have."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), "utf-8", write_through=True)

    def text(self) -> str:
        """What was written."""
        return self.buffer.getvalue().decode("utf-8", "replace")


def main(commands: str, answers: str, *how: str) -> None:
    """Answer them all."""
    if how:
        from without_posix import take_away

        take_away()
    with Path(commands).open(encoding="utf-8") as stream:
        asked = json.load(stream)
    given = [answer(words) for words in asked]
    with Path(answers).open("w", encoding="utf-8") as stream:
        json.dump(given, stream)


if __name__ == "__main__":
    main(*sys.argv[1:])
