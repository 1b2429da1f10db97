from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import types
from dataclasses import replace

import jsonschema
import pytest
from typer.testing import CliRunner

import aotidoctor.commands
from aotidoctor.cli import COMMANDS, build_app
from aotidoctor.cli.document_output import Format
from aotidoctor.cli.lazy import load
from aotidoctor.cli.options import duration, size
from aotidoctor.model.errors import CannotExamineError, UsageError
from aotidoctor.model.evidence import Evidence, Severity
from aotidoctor.model.report import Event, EventKind
from aotidoctor.reports.json.schema import schema
from tests.unit.reports import builders


@pytest.fixture
def pipeline(monkeypatch):
    """A pipeline that gives a report made by hand and remembers how it was called."""
    fake = types.SimpleNamespace(calls=[], report=builders.healthy(), error=None)

    def answer(*args, on_event=None, **kwargs):
        fake.calls.append((args, kwargs))
        if on_event is not None:
            on_event(Event(kind=EventKind.PROBE_START, name="plain_run"))
        if fake.error is not None:
            raise fake.error
        return fake.report

    fake.diagnose = fake.inspect = fake.env = fake.plan = answer
    monkeypatch.setitem(sys.modules, "aotidoctor.commands.diagnose_package", fake)
    monkeypatch.setattr(aotidoctor.commands, "diagnose_package", fake, raising=False)
    return fake


def call(*words):
    return CliRunner().invoke(build_app(), [*words])


def one_document(result):
    document = json.loads(result.stdout)
    jsonschema.Draft202012Validator(schema()).validate(document)
    return document


@pytest.mark.parametrize("command", ["run", "check"])
def test_json_on_stdout(pipeline, command):
    pipeline.report = builders.misleading()
    result = call(command, "model.pt2", "--inputs", "sample.pt", "--json", "-q")
    assert result.exit_code == 1
    assert one_document(result)["diagnoses"][0]["cause"] == "input-dtype"
    assert result.stderr == ""


@pytest.mark.parametrize("form", [kind.value for kind in Format])
@pytest.mark.parametrize(("name", "status"), [("healthy", 0), ("misleading", 1), ("unknown", 3), ("wrong_kind", 1)])
def test_the_status_is_the_same_for_every_format(pipeline, form, name, status):
    pipeline.report = builders.GOLDEN[name]()
    result = call("run", "model.pt2", "--format", form)
    assert result.exit_code == status
    assert result.stdout


@pytest.mark.parametrize("form", ["pytorch", "triton"])
def test_markdown_fills_a_form(pipeline, form):
    pipeline.report = builders.misleading()
    result = call("run", "model.pt2", "--format", "md", "--for", form)
    assert result.exit_code == 1
    assert {"pytorch": "### Versions", "triton": "**Triton Information**"}[form] in result.stdout
    assert "## PROBLEM" not in result.stdout


def test_a_file_in_every_format_beside_the_document(pipeline, tmp_path):
    pipeline.report = builders.misleading()
    kinds = [kind.value for kind in Format if kind is not Format.RICH]
    words = [word for kind in kinds for word in ("--report", f"{kind}:{tmp_path / kind}")]
    result = call("run", "model.pt2", "--json", *words)
    assert result.exit_code == 1
    assert one_document(result)["verdict"] == "problem"
    assert {path.name for path in tmp_path.iterdir()} == set(kinds)
    assert json.loads((tmp_path / "sarif").read_text())["runs"][0]["invocations"][0]["exitCode"] == 1
    assert "<testsuite " in (tmp_path / "junit").read_text()
    assert (tmp_path / "github").read_text().startswith("::error ")


def test_an_output_folder_gets_a_report_to_read_and_one_to_keep(pipeline, tmp_path):
    call("run", "model.pt2", "--json", "-o", str(tmp_path))
    assert {path.name for path in tmp_path.iterdir()} == {"report.json", "report.md"}


def test_every_command_with_formats_fills_forms():
    for name, entry in COMMANDS.items():
        for command in (load(name, entry), *(load(word, more) for word, more in entry.words.items())):
            options = {option for parameter in command.params for option in parameter.opts}
            # Neither is about a single call: there is nothing to fill a bug report with.
            many = name in ("sweep", "fleet", "map")
            assert ("--report" in options) == ("--for" in options) or many, command.name


def test_options_reach_the_pipeline(pipeline):
    words = (
        "run m.pt2 -i s.pt --model-name a --device cpu --setup s.py --custom-op-library x.so --custom-op-library y.so"
    )
    words += " --reference e.pt2 --trust-pickle --seed 7 --timeout 90s --budget 5m --repeat 3 --jobs 2 --threads 4"
    words += " --memory-limit 4G --probes a,b --skip-probes c --json"
    assert call(*words.split()).exit_code == 0
    ((path, inputs, options), kwargs) = pipeline.calls[0]
    assert (path, inputs, kwargs.get("static_only", False)) == ("m.pt2", "s.pt", False)
    assert (options.model_name, options.device, options.setup) == ("a", "cpu", "s.py")
    assert options.custom_op_libraries == ("x.so", "y.so")
    assert (options.reference, options.trust_pickle, options.seed) == ("e.pt2", True, 7)
    assert (options.timeout, options.budget, options.repeat, options.jobs) == (90.0, 300.0, 3, 2)
    assert (options.threads, options.memory_limit, options.generate) == (4, 4 * 1024**3, False)
    assert (options.rungs, options.skip_rungs) == (("a", "b"), ("c",))


def test_check_is_static(pipeline):
    call("check", "m.pt2")
    assert pipeline.calls[0][1]["static_only"] is True


def test_defaults(pipeline):
    call("run", "m.pt2")
    options = pipeline.calls[0][0][2]
    assert (options.timeout, options.budget, options.repeat, options.rungs) == (60.0, None, 2, None)


def test_the_former_names_of_options_are_accepted_and_not_shown(pipeline):
    call("run", "m.pt2", "--rungs", "a,b", "--skip-rungs", "c", "--json")
    (_, _, options), _ = pipeline.calls[0]
    assert (options.rungs, options.skip_rungs) == (("a", "b"), ("c",))
    shown = call("run", "--help").stdout
    assert "--probes" in shown
    assert "rungs" not in shown


def test_plan_runs_nothing(pipeline):
    pipeline.diagnose = None
    pipeline.report = builders.report(plan=("plain_run: does it load and answer?",))
    result = call("run", "m.pt2", "--plan")
    assert "plain_run" in result.stdout


def test_generated_inputs_are_asked_for_without_a_file(pipeline):
    assert call("run", "m.pt2", "--generate", "--seed", "7", "--json").exit_code == 0
    ((_, inputs, options), _) = pipeline.calls[0]
    assert (inputs, options.generate, options.seed) == (None, True, 7)


@pytest.mark.parametrize(
    "words",
    [
        "run",
        "run m.pt2 --no-such-option",
        "run m.pt2 --report pdf:x.pdf",
        "run m.pt2 --report md",
        "run m.pt2 --format junk",
        "run m.pt2 --json --format md",
        "run m.pt2 --json --for pytorch",
        "run m.pt2 --format md --for jira",
        "run m.pt2 --timeout never",
        "run m.pt2 --timeout 0",
        "run m.pt2 --memory-limit much",
        "run m.pt2 --repeat 0",
        "run m.pt2 --fail-on sometimes",
        "run m.pt2 -i s.pt --report json:s.pt",
        "check m.pt2 --report md:m.pt2",
        "run m.pt2 -i s.pt --generate",
        "explain no-such-cause-anywhere",
        "nonsense",
    ],
)
def test_usage_errors(pipeline, words):
    result = call(*words.split())
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr
    assert pipeline.calls == []


def test_an_unknown_report_format_names_the_known(pipeline):
    result = call("run", "m.pt2", "--report", "pdf:x")
    assert "md, json" in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("error", "status", "field"),
    [
        (RuntimeError("boom at /x"), 5, "internal_error"),
        (CannotExamineError("no such thing"), 4, "cannot_examine"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_one_document_whatever_fails(pipeline, error, status, field):
    pipeline.error = error
    result = call("run", "m.pt2", "--json")
    assert result.exit_code == status
    assert one_document(result)[field]


def test_a_usage_error_of_the_pipeline_is_one(pipeline):
    pipeline.error = UsageError("no probe is called x")
    result = call("run", "m.pt2", "--json", "--rungs", "x")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "no probe is called x" in result.stderr


def test_a_failing_format_still_ends_in_one_document(pipeline, monkeypatch):
    from aotidoctor.reports.json import json_report as json_

    render, bad = json_.render_json, builders.misleading()
    pipeline.report = bad

    def broken(report):
        if report.internal_error is None:
            raise ValueError("/home/marianne")
        return render(report)

    monkeypatch.setattr(json_, "render_json", broken)
    result = call("run", "m.pt2", "--json")
    assert result.exit_code == 5
    assert "ValueError" in one_document(result)["internal_error"]
    assert "marianne" not in result.stdout


def test_reports_are_written_beside_stdout(pipeline, tmp_path):
    pipeline.report = builders.misleading()
    folder = tmp_path / "deep" / "er"
    result = call("run", "m.pt2", "-q", "-o", str(folder), "--report", f"md:{tmp_path / 'a:b.md'}")
    assert result.exit_code == 1
    assert json.loads((folder / "report.json").read_text())["verdict"] == "problem"
    assert (tmp_path / "a:b.md").read_text() == (folder / "report.md").read_text()
    assert sorted(path.name for path in folder.iterdir()) == ["report.json", "report.md"]


def test_an_unwritable_report_keeps_the_result_and_is_status_4(pipeline, tmp_path):
    pipeline.report = builders.misleading()
    (tmp_path / "file").write_text("")
    result = call("run", "m.pt2", "--json", "--report", f"json:{tmp_path}/file/x.json", "-o", "/dev/full/x")
    assert result.exit_code == 4
    assert one_document(result)["verdict"] == "problem"
    assert result.stderr.count("could not write") == 3


def test_a_report_to_a_full_device_is_status_4(pipeline):
    result = call("run", "m.pt2", "--json", "--report", "json:/dev/full")
    assert result.exit_code == 4
    assert one_document(result)
    assert "/dev/full" in result.stderr


def test_redaction_is_on_unless_refused(pipeline, monkeypatch):
    monkeypatch.setenv("HOME", "/home/marianne")
    pipeline.report = builders.report(argv=("aotidoctor", "run", "/home/marianne/m.pt2"))
    assert "marianne" not in call("run", "m.pt2", "--json").stdout
    assert "marianne" in call("run", "m.pt2", "--json", "--no-redact").stdout


def test_quiet_and_verbose(pipeline):
    pipeline.report = builders.misleading()
    quiet, normal, verbose = (call("run", "m.pt2", *flag).stdout for flag in (["-q"], [], ["-v"]))
    assert len(quiet) < len(normal) < len(verbose)


@pytest.mark.parametrize("command", ["run", "check"])
def test_quiet_names_its_warnings(pipeline, command):
    warning = Evidence(
        code="AD-IN-020", kind="alias", severity=Severity.WARN, subject="args[1]", observed="shares memory", expected=""
    )
    pipeline.report = replace(builders.healthy(), findings=(warning,), command=command)
    shown = call(command, "m.pt2", "-q").stdout
    assert "1 warning" in shown.splitlines()[0]
    assert "Warning" in shown.partition("\n")[2]
    assert "args[1]: shares memory" in shown


def test_inspect_and_env(pipeline):
    pipeline.report = builders.inspected()
    assert "l.weight" in call("inspect", "m.pt2", "--model-name", "a").stdout
    assert pipeline.calls[0][0][1].model_name == "a"
    pipeline.report = builders.environment()
    assert one_document(call("env", "--json"))["artifact"] is None
    assert "AOTI_RUNTIME_CHECK_INPUTS" in call("env").stdout


def test_schema_prints_the_schema():
    result = call("schema")
    assert result.exit_code == 0
    assert json.loads(result.stdout) == schema()


def test_every_command_has_help_with_an_example():
    names = ["run", "check", "inspect", "env", "explain", "schema", "demo"]
    listed = call("--help").stdout
    for name in names:
        assert name in listed
        assert f"aotidoctor {name}" in call(name, "--help").stdout


def test_help_groups_commands_and_options():
    listed = call("--help").stdout
    headings = re.findall(r"^(\w+):$", listed, re.M)
    assert headings == ["Options", "Diagnose", "Send", "Prevent", "Many", "Tools"]
    assert "completion" not in listed.partition("Tools:")[0]
    assert "Also: plugins, schema, completion, man." in listed
    for name, entry in COMMANDS.items():
        assert entry.minor or re.search(rf"^  {name} ", listed, re.M), name
    shown = call("run", "--help").stdout
    parts = dict(zip(*[iter(re.split(r"^(\w+):$", shown, flags=re.M)[1:])] * 2, strict=True))
    for heading, option in {
        "Case": "--inputs", "Reference": "--rtol", "Limits": "--budget", "Probes": "--skip-probes",
        "Output": "--report", "Options": "--help",
    }.items():  # fmt: skip
        assert option in parts[heading], (heading, option)


def test_a_file_in_the_place_of_a_command_is_one_to_check(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my model.pt2").touch()
    done = call("my model.pt2", "-i", "x.pt")
    assert done.exit_code == 2
    assert "Did you mean: aotidoctor check 'my model.pt2' -i x.pt" in " ".join(done.stderr.split())
    assert "No such command" in call("absent.pt2").stderr


def test_former_spellings_work_and_are_not_shown():
    for words in (("verify", "--against"), ("stamp", "--exported"), ("run", "--output-dir"), ("batch", "--output-dir")):
        assert words[1] not in call(words[0], "--help").stdout
        # Accepted: what is missing is something else.
        assert "No such option" not in call(*words, "x").stderr


def test_typers_own_completion_is_not_shown_but_there():
    assert "--show-completion" not in call("--help").stdout
    assert "No such option" not in call("--show-completion").output


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("90s", 90), ("1.5m", 90), ("2h", 7200), ("250ms", 0.25)])
def test_durations(text, seconds):
    assert duration(text) == seconds


@pytest.mark.parametrize(("text", "count"), [("1024", 1024), ("4G", 4 << 30), ("512MiB", 512 << 20), ("1kb", 1024)])
def test_sizes(text, count):
    assert size(text) == count


def test_a_closed_stdout_is_status_4(pipeline, monkeypatch, capsys):
    pipeline.report = builders.misleading()
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(SystemExit) as ended:
        build_app()(["run", "model.pt2"])
    assert ended.value.code == 4
    assert "could not write to stdout" in capsys.readouterr().err


@pytest.mark.parametrize("words", [("run", "m.pt2"), ("explain", "input-dtype"), ("run", "m.pt2", "--json")])
def test_a_full_stdout_is_status_4(pipeline, monkeypatch, capsys, words):
    pipeline.report = builders.misleading()
    with open("/dev/full", "w", encoding="utf-8") as full:
        monkeypatch.setattr(sys, "stdout", full)
        with pytest.raises(SystemExit) as ended:
            build_app()([*words])
    assert ended.value.code == 4
    assert "could not write to stdout: No space left on device" in capsys.readouterr().err


def test_a_pipe_that_nobody_reads_is_not_waited_for(pipeline, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    result = call("run", "m.pt2", "--json", "--report", f"json:{tmp_path}/pipe")
    assert result.exit_code == 4
    assert one_document(result)
    assert "could not write" in result.stderr


def test_a_pipe_with_a_reader_gets_the_whole_report(pipeline, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE) as reader:
        for _ in range(200):
            result = call("run", "m.pt2", "--json", "--report", f"json:{tmp_path}/pipe")
            if not result.stderr:
                break
            time.sleep(0.02)
        assert json.loads(reader.communicate(timeout=20)[0]) == one_document(result)


@pytest.mark.parametrize("option", [("--seed", "-1"), ("--seed", "9" * 30), ("--threads", "100000000000000")])
def test_numbers_that_no_child_could_take_are_usage_errors(pipeline, option):
    assert call("run", "m.pt2", *option).exit_code == 2
    assert pipeline.calls == []
