"""The issue forms, and what holds for every Markdown: it fits, and what others wrote is neither markup nor a link."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from aotidoctor.model.case import Gpu, Host, TorchBuild
from aotidoctor.model.evidence import Evidence, NotChecked, Severity
from aotidoctor.model.inputs import Container, Leaf, PlainValue, ValueStats
from aotidoctor.model.report import LogReading
from aotidoctor.model.run import ChildError, Exited
from aotidoctor.reports import issue, markdown
from aotidoctor.reports.issue import host_versions, torch_script
from aotidoctor.reports.markdown import LIMIT, length
from tests.unit.reports import builders

FORMS = {
    "generic": markdown.render_markdown,
    "pytorch": lambda report: issue.render_issue(report, "pytorch"),
    "triton": lambda report: issue.render_issue(report, "triton"),
}
READER = MarkdownIt("commonmark", {"html": True}).enable("table")
LINKS = re.compile(r"@[\w-]|(?<!&)#\d|\bgh-\d|://|\bwww\.", re.IGNORECASE)
NASTY = (
    "```\n````python\n~~~\n</details></summary><script>alert(1)</script>\n| a | b |\n[l](javascript:x) <!-- @everyone"
    " #123 fixes #1 closes GH-7 pytorch/pytorch#5 https://e.org/x www.e.org a@e.org cf30153c4c131c8164ee7798e5022d81"
    " \x1b[31m\x00\u202e\ud800 \U0001f600"
)


def running_text(text):
    """What GitHub looks for mentions and references in: all text outside of code."""
    told = []
    for token in READER.parse(text):
        if token.type == "html_block":
            told.append(token.content)
        told += [child.content for child in token.children or () if child.type in ("text", "html_inline")]
    return "\n".join(told)


def html_of(text):
    """What a browser would read as HTML."""
    for token in READER.parse(text):
        if token.type == "html_block":
            yield token.content
        yield from (child.content for child in token.children or () if child.type == "html_inline")


def assert_sound(text):
    assert length(text) <= LIMIT < 65_536
    assert len(text.encode("utf-16-le")) // 2 <= LIMIT
    shown = running_text(text)
    assert not LINKS.search(shown), LINKS.search(shown)
    kinds = [token.type for token in READER.parse(text)]
    assert kinds.count("heading_open") >= 1 or "**Description**" in text
    html = "\n".join(html_of(text))
    assert set(re.findall(r"</?\w+", html)) <= {"<details", "</details", "<summary", "</summary"}
    assert html.count("<details>") == html.count("</details>")


def nasty_report(text=NASTY, times=1):
    base = builders.misleading()
    long = text * min(times, 100)
    finding = replace(base.findings[0], subject=text, observed=text, expected=text, message=text, kind=text)
    run = replace(
        base.runs[0],
        stdout_tail=long,
        stderr_tail=long,
        error=ChildError(type=text, message=text, traceback=long),
        stage=text,
    )
    first = replace(base.diagnoses[0], title=text, subject=text, looked_like=text, confirmation=text)
    host = replace(base.case.host, cpu_model=text, distribution=text, tools={text: text}, packages={text: text})
    plain = PlainValue(type="str", text=text)
    given_ = replace(base.case.inputs, args=Container(type=text, children=(Leaf(value=plain),)))
    artifact = replace(base.case.artifact, path=text)
    return replace(
        base,
        findings=(finding,) * min(times, 4000),
        runs=(run,) * min(times, 60),
        diagnoses=(first, *base.diagnoses[1:]),
        not_checked=(NotChecked(code="AD-IN-016", name=text, reason=text),) * min(times, 2000),
        argv=("aotidoctor", "run", *(text,) * min(times, 50)),
        case=replace(base.case, host=host, inputs=given_, artifact=artifact),
        extra={"release": text, "origin": text},
        plan=(text,) * min(times, 1000),
        internal_error=None,
        signature=text,
    )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", builders.GOLDEN)
def test_every_report_fits_every_form(form, name):
    assert_sound(FORMS[form](builders.GOLDEN[name]()))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("times", [1, 40, 4000])
def test_nothing_of_others_pings_links_or_breaks_out(form, times):
    text = FORMS[form](nasty_report(times=times))
    assert_sound(text)
    assert "aotidoctor" in text


@pytest.mark.parametrize("form", FORMS)
def test_a_traceback_of_its_own_is_no_markup_either(form):
    report = replace(builders.unknown(), internal_error=NASTY * 3000, runs=(), findings=())
    assert_sound(FORMS[form](report))
    assert_sound(FORMS[form](replace(builders.healthy(), cannot_examine=NASTY * 100)))


@settings(max_examples=40)
@given(
    text=st.text(alphabet="`~\n<>/dets|&\\[]()!@#1G-H:w. \U0001f600\u202e\x00", min_size=1, max_size=80),
    times=st.sampled_from([1, 7, 50]),
    form=st.sampled_from(sorted(FORMS)),
)
def test_property_any_text_any_amount(text, times, form):
    assert_sound(FORMS[form](nasty_report(text, times)))


@pytest.mark.parametrize("form", FORMS)
def test_what_is_cut_is_counted(form):
    one = Evidence(code="AD-IN-010", kind="k", severity=Severity.ERROR, subject="s" * 300, observed="o", expected="e")
    base = builders.misleading()
    run = replace(base.runs[0], stderr_tail="line\n" * 30_000, error=None, ending=Exited(code=1, done=False))
    text = FORMS[form](replace(base, findings=tuple(replace(one, id=f"E{n}") for n in range(5000)), runs=(run,)))
    assert_sound(text)
    assert re.search(r"and \d+ more\.", text)
    assert re.search(r"… \(\d+ characters before this\)", text)


def test_parts_that_fit_in_no_room_are_left_out_and_counted():
    place = "\U0001f600" * 40_000
    base = builders.misleading()
    text = markdown.render_markdown(
        replace(base, plan=(), argv=("aotidoctor", *("x" * 3000,) * 30), extra={"origin": place})
    )
    assert_sound(text)


def test_the_headings_are_those_of_pytorchs_form():
    text = issue.render_issue(builders.misleading(), "pytorch")
    assert [line for line in text.splitlines() if line.startswith("### ")] == [
        "### 🐛 Describe the bug",
        "### Error logs",
        "### Versions",
    ]
    assert "RuntimeError: index out of bounds" in text.partition("### Error logs")[2].partition("### Versions")[0]
    assert "confirmed (98%)" in text
    assert "aotidoctor run model.pt2 --inputs sample.pt" in text
    assert "AD-IN-010" in text


def test_the_headings_are_those_of_tritons_form():
    text = issue.render_issue(replace(builders.misleading(), extra={"release": "26.05"}), "triton")
    titles = [line for line in text.splitlines() if line.startswith("**") and line.endswith("**")]
    assert titles == ["**Description**", "**Triton Information**", "**To Reproduce**", "**Expected behavior**"]
    assert "What version of Triton are you using?" in text
    assert "Triton 26.05" in text
    assert text.partition("**Expected behavior**")[2].strip().startswith("int64")
    assert "Not recorded in this report" in issue.render_issue(builders.misleading(), "triton")


@pytest.mark.parametrize("form", ["pytorch", "triton"])
def test_versions_of_a_log_are_its_own(form):
    log = LogReading(name="crash.log", size=10, lines=1, versions={"torch": "2.7.0", "cuda": "12.4"})
    report = replace(builders.wrong_kind(), log=log)
    text = issue.render_issue(report, form)
    assert "The log names torch 2.7.0, cuda 12.4." in text
    assert "may differ from the one that failed" in text
    bare = replace(report, case=replace(report.case, host=Host(system="Linux", machine="x86_64", python="3.11.7")))
    assert "does not describe the machine that failed" in issue.render_issue(bare, form)
    assert "PyTorch version" not in issue.render_issue(bare, form)
    assert "may differ" not in issue.render_issue(builders.misleading(), form)


def test_a_folder_with_a_certified_reproduction_is_named():
    assert "`out/repro`" in issue.render_issue(builders.misleading(), "pytorch", "out/repro")
    assert "aotidoctor repro" in issue.render_issue(builders.misleading(), "pytorch")


def test_versions_have_the_fields_of_collect_env_in_its_order():
    collect_env = pytest.importorskip("torch.utils.collect_env")
    wanted = re.findall(r"^([^\n:{}]+):", collect_env.env_info_fmt, re.MULTILINE)
    told = re.findall(r"^(\S[^\n:]*):", host_versions(builders.HOST), re.MULTILINE)
    assert [label for label in told if label in wanted] == wanted


def test_versions_invent_nothing():
    host = replace(builders.HOST, torch=TorchBuild(version="2.9.0+cu128", path="/t", cuda="12.8"))
    text = host_versions(host)
    assert "PyTorch version: 2.9.0+cu128\nIs debug build: Could not collect\nCUDA used to build PyTorch: 12.8" in text
    assert "Is CUDA available: Could not collect" in text
    assert "GPU models and configuration: Could not collect" in text
    gpus = (Gpu(index=0, name="NVIDIA A100"), Gpu(index=1, name="NVIDIA A100"))
    more = host_versions(replace(host, gpus=gpus, cuda_driver="550.54.15", packages={"numpy": "2.1.0"}))
    assert (
        "GPU models and configuration: \nGPU 0: NVIDIA A100\nGPU 1: NVIDIA A100\n\nNvidia driver version: 550.54.15"
        in more
    )
    assert "[pip3] numpy==2.1.0" in more
    assert "PyTorch version: N/A" in host_versions(replace(host, torch=None, torch_problem="not installed"))
    unasked = host_versions(Host(system="Linux", machine="x86_64", python="3.11.7"))
    assert "PyTorch version: Could not collect" in unasked
    assert "N/A" not in unasked


@pytest.mark.parametrize("name", [*builders.GOLDEN, "hostile"])
def test_the_script_is_python(name):
    report = builders.hostile() if name == "hostile" else builders.GOLDEN[name]()
    made = torch_script(report)
    assert (made is None) == (name in ("wrong_kind", "environment"))
    if made is not None:
        compile(made.text, name, "exec")
        assert "import os" not in made.text


@settings(max_examples=60)
@given(st.text(max_size=30), st.text(max_size=30))
def test_no_name_becomes_code(text, key):
    report = nasty_report(text)
    args = Container(type="dict", children=(Leaf(value=PlainValue(type="str", text=text)),), keys=(key,))
    given_ = replace(report.case.inputs, args=args, kwargs=replace(args, keys=(text,)))
    made = torch_script(replace(report, case=replace(report.case, inputs=given_)))
    tree = compile(made.text, "script", "exec", flags=0x400)  # ast.PyCF_ONLY_AST
    assert [type(node).__name__ for node in tree.body] == ["Import", "Import", "Assign", "Assign", "Assign", "Expr"]


def test_the_script_makes_the_same_metadata():
    torch = pytest.importorskip("torch")
    base = builders.misleading()
    x = builders.tensor(shape=(4, 16), stride=(1, 4))
    stats = ValueStats(low=-3, high=100, nan=0, inf=0, zeros=0)
    ids = builders.tensor("int32", (4,), (1,), stats=stats)
    given_ = builders.inputs(x=x, ids=ids)
    made = torch_script(replace(base, case=replace(base.case, inputs=given_)))
    lines = [line for line in made.text.splitlines() if line.startswith(("args", "kwargs"))]
    scope = {"torch": torch}
    exec("\n".join(lines), scope)
    first, second = scope["args"]
    assert (first.shape, first.stride(), first.dtype) == ((4, 16), (1, 4), torch.float32)
    assert (scope["kwargs"]["ids"].dtype, scope["kwargs"]["ids"].shape) == (torch.int32, (4,))
    assert (scope["kwargs"]["ids"].min().item(), scope["kwargs"]["ids"].max().item()) == (-3, 100)
    assert list(second) == ["scale"]
