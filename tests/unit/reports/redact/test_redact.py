from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aotidoctor.model.errors import InputsError
from aotidoctor.model.run import ChildError
from aotidoctor.reports.redact.private_words import Identity
from aotidoctor.reports.redact.redactor import Redactor
from tests.unit.reports import builders

ENVIRON = {"HOME": "/home/marianne", "USER": "marianne", "HF_TOKEN": "not-a-known-form-1", "PATH": "/usr/bin"}


def redactor(environ=ENVIRON, host="bluebird.example.org"):
    return Redactor(Identity.of(environ, host))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/home/marianne/m.pt2", "<home>/m.pt2"),
        ("/home/marianne", "<home>"),
        ("in /home/marianne.", "in <home>."),
        ("/mnt/home/marianne2/x", "/mnt/home/<user-1>/x"),
        ("/home/someone/venv and /home/someone/x", "/home/<user-1>/venv and /home/<user-1>/x"),
        ("/Users/someone/x", "/Users/<user-1>/x"),
        ("/tmp/torchinductor_marianne/c", "/tmp/torchinductor_<user>/c"),
        ("marianne@bluebird", "<user>@<host>"),
        ("bluebird.example.org:8000", "<host>:8000"),
        ("mariannette bluebirds", "mariannette bluebirds"),
        ("HF_TOKEN not-a-known-form-1!", "HF_TOKEN <secret-1>!"),
        ("https://bob:hunter2@example.com/x", "https://<secret-1>@example.com/x"),
        ("password=hunter2 PASSWORD: hunter2", "password=<secret-1> PASSWORD: <secret-1>"),
        ("ghp_" + "a1" * 18, "<secret-1>"),
        ("Authorization: Bearer abc123def456ghi789", "Authorization: Bearer <secret-1>"),
        ("tensor([[1., 2.],\n        [3., 4.]], dtype=torch.float64)", "tensor(<values>, dtype=torch.float64)"),
        ("array([1, 2]) tensor(0.5)", "array(<values>) tensor(<values>)"),
    ],
)
def test_hides(text, expected):
    assert redactor().text(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "index out of bounds: 0 <= tmp2 < 100L",
        "cpp_fused_embedding_0: index 100 of 100 ← kwargs['ids'][3] = 100; bound from e.weight.shape[0]",
        "kwargs['token']: observed int32, expected int64",
        "num_tokens=512 max_token: 4096",
        "float32[s77:2..64, 16] (16, 1) cpu",
        "torch 2.13.0+cpu, GLIBC_2.34, _ZN2at6TensorE",
        "tensor(s) of shape [2, 3]",
        "model/data/aotinductor/model/abc.wrapper.so",
    ],
)
def test_leaves_what_diagnoses_need(text):
    assert redactor().text(text) == text
    assert redactor().redact_printed(text) == text


@pytest.mark.parametrize(
    ("user", "home"),
    [("root", "/root"), ("a", "/home/a"), ("model", "/home/model"), ("aten", "/home/aten"), ("fused", "/home/fused")],
)
def test_ordinary_and_short_names_destroy_no_words(user, home):
    hide = redactor({"HOME": home, "USER": user}, host="host")
    text = "a root cause: model.pt2 in /data/model/root/a/x on this host, aten.add in cpp_fused_add_0"
    assert hide.text(text) == text
    assert hide.text(f"{home}/x {home}") == "<home>/x <home>"
    assert hide.text(f"{user}@host") == "<user>@<host>"


def test_a_home_folder_that_is_no_secret_is_left_alone():
    assert redactor({"HOME": "/"}).text("/usr/lib") == "/usr/lib"
    assert redactor({}, host="").text("/usr/lib x") == "/usr/lib x"


def test_printed_rows_of_numbers_are_tensor_elements():
    printed = "ok\n 1.5 -2.5e-3 nan\nColumns 1 to 10-1.1258 -1.1524\nMean value: 0.09\n[ CPUFloatType{4,16} ]"
    assert redactor().redact_printed(printed) == "ok\n<values>\n<values>\nMean value: 0.09\n[ CPUFloatType{4,16} ]"
    assert redactor().text("2.36") == "2.36"


def test_the_same_secret_has_the_same_number_in_all_of_a_report():
    one, two = "password=correcthorse", "password=batterystaple"
    base = builders.misleading()
    runs = tuple(replace(run, stdout_tail=f"{two} {one}", stderr_tail=one) for run in base.runs)
    shown = redactor().value(replace(base, runs=runs, argv=("aotidoctor", one)))
    first = shown.argv[1]
    assert {run.stderr_tail for run in shown.runs} == {first}
    assert len({shown.argv[1], shown.runs[0].stdout_tail.split()[0]}) == 2


def test_every_text_of_a_report_is_redacted():
    home = "/home/marianne"
    base = builders.bad_inputs()
    error = InputsError(f"{home}/x is empty", cause="inputs-file-corrupt", subject=f"{home}/x", observed=home)
    case = replace(base.case, inputs_error=error, artifact=replace(base.case.artifact, path=f"{home}/m.pt2"))
    libraries = {"libx.so": f"{home}/libx.so"}
    case = replace(case, host=replace(case.host, libraries=libraries, environment={"LD_LIBRARY_PATH": home}))
    run = builders.outcome(
        error=ChildError(type="E", message=home, traceback=home), result={"outputs": [[{"path": home}]]}
    )
    report = replace(base, case=case, runs=(run,), argv=("aotidoctor", f"{home}/m.pt2"), internal_error=home)
    from aotidoctor.reports.json import json_report as json_

    text = json_.render_json(redactor().value(report))
    assert "marianne" not in text
    assert "<home>/m.pt2" in text
    assert json_.render_json(report).count("marianne") >= 8


def test_a_report_without_secrets_is_the_same_object_inside():
    report = builders.misleading()
    shown = redactor().value(report)
    assert shown == report
    assert shown.case is report.case


@pytest.mark.parametrize("name", [*builders.GOLDEN, "hostile"])
def test_redacting_a_report_twice_is_once(name):
    report = builders.hostile() if name == "hostile" else builders.GOLDEN[name]()
    once = redactor().value(report)
    assert redactor().value(once) == once


NAMES = ["/home/marianne", "marianne", "/home/", "bob", "/Users/", "bluebird", "bluebird.example.org"]
SECRETS = ["not-a-known-form-1", "password=", "secret: ", "token=", "Bearer ", "ghp_" + "a1" * 18, "abc123def456ghi7"]
VALUES = ["tensor(", "[1., 2.]", "3.5", ")", "1.5", "nan"]
GLUE = ["<home>", "<secret-1>", "<", ">", "://", ":", "@", "_", "-", ".", "/", " ", "\n", "x", "'", "é"]
PIECES = st.sampled_from([*NAMES, *SECRETS, *VALUES, *GLUE])


@given(st.lists(PIECES, max_size=14).map("".join))
def test_redacting_twice_is_once(text):
    once = redactor().text(text)
    assert redactor().text(once) == once
    printed = redactor().redact_printed(text)
    assert redactor().redact_printed(printed) == printed


@given(st.lists(PIECES, max_size=14).map("".join))
def test_the_home_folder_never_survives_as_a_path(text):
    assert "/home/marianne/" not in redactor().text(text + "/home/marianne/x")[-20:]
