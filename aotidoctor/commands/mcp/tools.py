"""The tools: what an agent may ask, each as a command. Docstrings are what the agent is told of them.

The types of the parameters are those that a JSON schema is made of.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from aotidoctor.commands.mcp.answer import answer, page
from aotidoctor.commands.mcp.inside import Root
from aotidoctor.model.errors import AotidoctorError, ArgumentError, CannotExamineError, UsageError
from aotidoctor.model.json_types import JsonObject
from aotidoctor.reports.redact import Redactor
from aotidoctor.runner.command import Finished

# A command that reads ends within 3 s of processor time; a busy machine takes longer for it.
_READING_S, _MARGIN_S = 120.0, 60.0
_BUDGETS = (5, 600)
_MOST_TEXT = 1 << 20
_USAGE = 2

Ask = Callable[[Sequence[str], float, bytes], Finished]
NEEDS_RUN = "this executes native code of the package: the server must be started with --allow-run"


class Tools:
    """``ask`` runs a command: its words, seconds, and standard input. Errors are AotidoctorError with a reason."""

    def __init__(self, root: Root, redactor: Redactor, ask: Ask, *, may_run: bool) -> None:
        self._root = root
        self._redactor = redactor
        self._ask = ask
        self._may_run = may_run

    def check(
        self,
        package: str,
        inputs: str | None = None,
        reference: str | None = None,
        host: str | None = None,
        model_name: str | None = None,
    ) -> dict[str, object]:
        """Compare an AOTInductor .pt2 package with inputs and host by reading alone: nothing is executed.

        Start here. inputs: a .pt, .npz, .safetensors or .json file with the arguments of the call. reference: the
        exported program. host: a profile of another machine. Paths are below the root folder.
        """
        words = ["check", self._root.path("package", package), *self._options(inputs, reference, model_name)]
        words += ["--host", self._root.profile("host", host)] if host is not None else []
        return self._report(words, _READING_S)

    def run(
        self,
        package: str,
        inputs: str | None = None,
        *,
        generate: bool = False,
        reference: str | None = None,
        model_name: str | None = None,
        budget_s: int = 120,
    ) -> dict[str, object]:
        """Find the cause of a failure and prove it: executes native code of the package in child processes.

        Without inputs, generate=true makes some from the contract. budget_s: seconds for everything, 5 to 600.
        """
        self._allowed()
        words = ["run", self._root.path("package", package), *self._options(inputs, reference, model_name)]
        words += ["--generate"] if generate else []
        return self._report([*words, *_budget(budget_s)], budget_s + _MARGIN_S)

    def inspect(self, package: str, model_name: str | None = None) -> dict[str, object]:
        """What is in a package: models, inputs and outputs with dtypes, sizes and strides, what it needs of a host."""
        words = ["inspect", self._root.path("package", package), *self._options(None, None, model_name)]
        return self._report(words, _READING_S)

    def classify(
        self, log: str | None = None, text: str | None = None, package: str | None = None
    ) -> dict[str, object]:
        """Name the cause of a failure from its log: export, compile, link, load, run or serve.

        log: a file; or text: the log itself, at most 1 MiB. package: the .pt2 that it is about.
        """
        if (log is None) == (text is None):
            raise UsageError("either log (a path) or text (the log itself)")
        if text is not None and len(text) > _MOST_TEXT:
            raise ArgumentError("text", f"{len(text)} characters", f"at most {_MOST_TEXT}; write it to a file")
        words = ["classify", "-" if log is None else self._root.path("log", log)]
        words += ["--package", self._root.path("package", package)] if package is not None else []
        return self._report(words, _READING_S, (text or "").encode("utf-8", "replace"))

    def explain(self, topic: str) -> dict[str, object]:
        """The manual: the playbook of a cause (input-stride), or the page of a check or probe (AD-IN-014)."""
        if not topic or topic.startswith("-") or len(topic) > 100:
            raise ArgumentError("topic", repr(topic)[:80], "a cause, a code or the name of a check or probe")
        document, _ = self._document(["explain", topic, "--json"], _READING_S)
        return {**page(document)}

    def compat(
        self,
        packages: list[str],
        hosts: list[str] | None = None,
        torch: list[str] | None = None,
        model_name: str | None = None,
    ) -> dict[str, object]:
        """On which hosts packages will run, and why not. hosts: debian-13, or a file; torch: releases (2.14)."""
        if not packages:
            raise ArgumentError("packages", "no path", "one .pt2 file or more")
        words = ["compat", *(self._root.path(f"packages[{at}]", path) for at, path in enumerate(packages))]
        words += [
            part for at, host in enumerate(hosts or ()) for part in ("--host", self._root.profile(f"hosts[{at}]", host))
        ]
        words += [part for at, one in enumerate(torch or ()) for part in ("--torch", _word(f"torch[{at}]", one))]
        return self._report([*words, *self._options(None, None, model_name)], _READING_S)

    def triton(self, path: str, release: str | None = None) -> dict[str, object]:
        """What Triton Inference Server would make of a model folder or repository. release: of the server (26.05)."""
        words = ["triton", self._root.path("path", path)]
        words += ["--triton", _word("release", release)] if release is not None else []
        return self._report(words, _READING_S)

    def repro(
        self, package: str, inputs: str, output_dir: str, reference: str | None = None, budget_s: int = 120
    ) -> dict[str, object]:
        """Write a short script that fails in the same way with torch alone, and prove that it does.

        Executes native code of the package. output_dir: an empty or new folder below the root folder.
        """
        self._allowed()
        words = ["repro", self._root.path("package", package), *self._options(inputs, reference, None)]
        words += ["--output-dir", self._root.path("output_dir", output_dir)]
        return self._report([*words, *_budget(budget_s)], 2 * budget_s + _MARGIN_S)

    def _allowed(self) -> None:
        if not self._may_run:
            raise UsageError(NEEDS_RUN)

    def _options(self, inputs: str | None, reference: str | None, model_name: str | None) -> list[str]:
        words = ["--inputs", self._root.path("inputs", inputs)] if inputs is not None else []
        words += ["--reference", self._root.reference("reference", reference)] if reference is not None else []
        return words + (["--model-name", _word("model_name", model_name)] if model_name is not None else [])

    def _report(self, words: Sequence[str], seconds: float, stdin: bytes = b"") -> dict[str, object]:
        document, status = self._document([*words, "--json", "--quiet"], seconds, stdin)
        return {**answer(document, status)}

    def _document(self, words: Sequence[str], seconds: float, stdin: bytes = b"") -> tuple[JsonObject, int]:
        done = self._ask(words, seconds, stdin)
        if done.stdout is None:
            raise CannotExamineError("the report is too long for an answer: narrow the request")
        try:
            document = json.loads(done.stdout)
        except ValueError:
            document = None
        if isinstance(document, dict):
            return document, done.status
        # What the command says of a wrong option, or nothing where it was ended.
        said = self._redactor.text(done.stderr.strip()[-2000:])
        if done.status == _USAGE:
            raise UsageError(said)
        reason = f"it took more than {seconds:.0f} s" if done.late else f"exit status {done.status}"
        raise AotidoctorError(f"no report: {reason}. {said}".strip())


def _budget(seconds: int) -> list[str]:
    least, most = _BUDGETS
    if isinstance(seconds, bool) or not least <= seconds <= most:
        raise ArgumentError("budget_s", str(seconds), f"{least} to {most}")
    return ["--budget", f"{seconds}s"]


def _word(where: str, given: str) -> str:
    if not given or given.startswith("-"):
        raise ArgumentError(where, repr(given)[:80], "a name")
    return given
