"""No log with a failure is called healthy, whatever stands around it; and words alone are no failure."""

from __future__ import annotations

import pytest

from aotidoctor.commands.classify import classify_text
from aotidoctor.logs.harmless import LINES, WORDS, telling_part
from tests.every import every
from tests.unit.logs.reading import read

FAILURES = (
    "ValueError: strange",
    "mylib.errors.OddException: strange",
    "OMP: Error #15: strange",
    "foo.cpp(3): error C2065: strange",
    "fatal error: strange",
    "Segmentation fault",
    "Aborted",
    "terminate called after throwing an instance of 'strange'",
    "make: *** [all] Error 2",
    "the tool returned non-zero exit status 3",
    "Process completed with exit code 7.",
    "LINK : fatal error LNK1104: strange",
    "报错：C2065 “dims”：未声明的标识符",  # noqa: RUF001
    "HIPBLAS_STATUS_INVALID_VALUE",
)
AROUND = (
    "{}",
    "    {}",
    "E   {}",
    "E       {}",
    "# {}",
    "> {}",
    "3: {}",
    "12:01:02 {}",
    "[rank1]: {}",
    "| {} |",
    "`{}`",
)


@every("around", AROUND)
@every("failure", FAILURES)
def test_a_failure_is_seen_whatever_stands_before_it(failure, around):
    reading = read(f"step 1\n{around.format(failure)}\nstep 2\n")
    assert [event.level for event in reading.events][:1] == ["error"]


@pytest.mark.parametrize("cut", range(1, 5))
def test_a_cut_first_word_still_tells(cut):
    (event,) = read("RuntimeError: strange"[cut:]).unknown
    assert (event.kind, event.text) == ("RuntimeError"[cut:], "RuntimeError: strange"[cut:])


HARMLESS = (
    "0 errors, 3 warnings",
    "mean squared error: 0.013",
    "error rate: 3.2%",
    "log_level=ERROR",
    "error handler installed",
    "cc -Werror -O2 main.c",
    '    raise RuntimeError("never")',
    "except ValueError as error:",
    "tests/test_a.py::test_raises_ValueError PASSED",
    "connection error, retrying",
    "all errors fixed",
)


@every("line", HARMLESS)
def test_words_of_a_failure_alone_are_none(line):
    assert read(f"{line}\n").events == ()


@every("line", HARMLESS)
def test_and_hide_none(line):
    (event,) = read(f"{line}\nValueError: strange\n").unknown
    assert (event.kind, event.text) == ("ValueError", "ValueError: strange")


def test_each_kind_of_harmless_line_has_its_reason():
    assert all(reason and regexes for reason, regexes in (*WORDS, *LINES))
    assert telling_part("error log: a.cpp:3: error: strange") == " : a.cpp:3: error: strange"


def test_a_short_paste_that_complains_is_not_healthy():
    assert read("No such element or plugin 'dtls'\n").unknown
    assert not read("plugin 'dtls': not found, using the default\nall done, success\n").unknown


class TestOrigins:
    FRAMES = (
        "Traceback (most recent call last):\n"
        '  File "/app/run.py", line 3, in <module>\n    main()\n'
        '  File "/venv/lib/python3.12/site-packages/torch/{}", line 77, in inner\n    step()\n'
    )

    @pytest.mark.parametrize(
        ("file", "cause"),
        [
            ("_inductor/lowering.py", "lowering-failure"),
            ("_inductor/codegen/cpp_wrapper_cpu.py", "codegen-bug"),
            ("_dynamo/symbolic_convert.py", "export-unsupported"),
            ("utils/cpp_extension.py", "toolchain-missing"),
            ("utils/_pytree.py", "input-tree"),
        ],
    )
    def test_the_innermost_frame_of_torch_tells(self, file, cause):
        findings, diagnoses, _ = classify_text(f"{self.FRAMES.format(file)}OSError: strange\n".encode(), "log")
        assert [item.cause for item in diagnoses] == [cause]
        assert 0.3 <= diagnoses[0].confidence <= 0.6
        assert findings[0].facts["suspect"] is True

    def test_frames_of_others_tell_nothing(self):
        text = self.FRAMES.format("_inductor/lowering.py").replace("site-packages/torch/", "site-packages/other/")
        assert classify_text(f"{text}OSError: strange\n".encode(), "log")[1] == ()

    def test_what_is_known_comes_alone(self):
        text = f"{self.FRAMES.format('_dynamo/x.py')}RuntimeError: Could not find schema for mylib::custom_op.\n"
        assert [item.cause for item in classify_text(text.encode(), "log")[1]] == ["custom-op-missing"]
