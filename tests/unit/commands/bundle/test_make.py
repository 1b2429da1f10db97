from __future__ import annotations

import hashlib
import io
import json
import zipfile
from dataclasses import replace

import pytest

from aotidoctor.commands.bundle import collect, make_bundle
from aotidoctor.commands.bundle.bundle_members import BundleContents, Material, distinct_names, safe_name
from aotidoctor.model.errors import CannotExamineError
from aotidoctor.model.localization import BufferValues, KernelValues, Localization
from aotidoctor.reports.redact.private_words import Identity
from tests.unit.commands.bundle.conftest import made, members, with_path
from tests.unit.reports import builders

CANARIES = ("marianne", "bluebird", "hunter2-hunter2", "someone")


def everywhere(report):
    """A report with private words in all kinds of places."""
    home = "/home/marianne"
    case = report.case
    model = case.artifact.models[0]
    model = replace(
        model,
        wrapper_member="data/marianne/x.wrapper.cpp",
        wrapper_cpp=f"// compiled in {home}/src on BLUEBIRD\nint marianne_kernel_0(); // -I{home}/include",
        kernel_sources={"data/marianne/k.cpp": "// /tmp/torchinductor_someone/a.cpp\nvoid _ZN8marianne3fooEv();"},
    )
    models = (model, *case.artifact.models[1:])
    artifact = replace(case.artifact, path=f"{home}/marianne_net.pt2", models=models)
    host = replace(case.host, environment={"LD_LIBRARY_PATH": f"{home}/lib", "TRITON_X": "hunter2-hunter2"})
    runs = tuple(replace(run, stdout_tail="someone@bluebird said hunter2-hunter2") for run in report.runs)
    return replace(report, case=replace(case, artifact=artifact, model=model, host=host), runs=runs, argv=(home,))


def with_model():
    return next(
        report for report in (builders.GOLDEN[name]() for name in builders.GOLDEN) if report.case.artifact.models
    )


def test_what_is_in_it():
    bundle = made(with_model(), journal=("stage: read",))
    found = members(bundle.data)
    assert {"bundle.json", "report.json", "report.md", "case.json", "host.json", "logs/aotidoctor.log"} <= found.keys()
    manifest = json.loads(found.pop("bundle.json"))
    assert manifest["schema"] == "aotidoctor.bundle/1"
    listed = {line["name"]: line for line in manifest["members"]}
    assert listed.keys() == found.keys()
    for name, data in found.items():
        assert listed[name]["sha256"] == hashlib.sha256(data).hexdigest()
        assert listed[name]["size"] == len(data)
    assert manifest["redaction"]["leak_test"]["found"] == 0


def test_private_words_are_in_no_member_name_or_byte_and_keep_their_relations(tmp_path):
    log = tmp_path / "marianne-server.log"
    log.write_bytes("BLUEBIRD: hunter2-hunter2 by someone".encode("utf-16"))
    bundle = made(
        everywhere(with_model()),
        BundleContents(logs=(str(log),)),
        outputs={"R1.stdout": "home=%2Fhome%2Fmarianne password=Xk29fj2k", "R1.stderr": "bare Xk29fj2k"},
        journal=("wrote /home/marianne/x",),
    )
    found = members(bundle.data)
    text = "\n".join([*found, *(data.decode() for data in found.values())])
    assert not [word for word in (*CANARIES, "xk29fj2k") if word in text.casefold()]
    assert "<user>_kernel_0" in text
    assert "_ZN8<user>3fooEv" in text
    assert "torchinductor_<user-1>" in text
    assert "package/data/(user)/x.wrapper.cpp" in found
    assert "logs/given/1-(user)-server.log" in found
    out, err = (
        next(data.decode() for name, data in found.items() if name.endswith(f"{one}.txt"))
        for one in ("stdout", "stderr")
    )
    hidden = out.partition("password=")[2]
    assert err == f"bare {hidden}"
    assert bundle.table[hidden] == "Xk29fj2k"
    given = found["logs/given/1-(user)-server.log"].decode()
    assert (
        given == f"<host>: {next(key for key, text in bundle.table.items() if text == 'hunter2-hunter2')} by <user-1>"
    )


def test_words_that_are_private_at_one_place_only_do_not_refuse_the_bundle(tmp_path):
    log = tmp_path / "a.log"
    log.write_text("password: None, secret=report, /home/shared/x /home/findings/y")
    bundle = made(wanted=BundleContents(logs=(str(log),)))
    found = members(bundle.data)
    assert "report.json" in found
    assert "None" not in found["logs/given/1-a.log"].decode()
    assert "/home/<user-1>/x" in found["logs/given/1-a.log"].decode()
    assert json.loads(found["report.json"])["findings"]


def test_a_name_that_is_a_word_of_the_documents_is_hidden_in_addresses_and_said_to_be():
    environ = {"HOME": "/home/storage", "USER": "storage"}
    material = Material(report=replace(builders.bad_inputs(), argv=("storage@x", "/home/storage/m")))
    bundle = make_bundle.make_bundle(material, BundleContents(), Identity.of(environ, "findings"))
    report = json.loads(members(bundle.data)["report.json"])
    assert report["tool"]["argv"] == ["<user>@x", "<home>/m"]
    assert bundle.manifest["redaction"]["only_in_addresses"] == ["<host>", "<user>"]


def test_the_table_is_not_in_it():
    bundle = made(everywhere(with_model()))
    assert set(bundle.table.values()) >= {"/home/marianne", "marianne"}
    assert not any("marianne" in data.decode().casefold() for data in members(bundle.data).values())


def test_it_is_the_same_file_again():
    report = everywhere(with_model())
    assert made(report).data == made(report).data
    with zipfile.ZipFile(io.BytesIO(made(report).data)) as archive:
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert {entry.extra for entry in archive.infolist()} == {b""}
        assert archive.namelist()[0] == "bundle.json"


def test_a_collector_that_fails_costs_itself_only(monkeypatch):
    def broken(job):
        yield from ()
        raise RuntimeError("marianne's disk is gone")

    monkeypatch.setitem(collect._COLLECTORS, "host", broken)
    bundle = made()
    assert "host.json" not in members(bundle.data)
    assert "case.json" in members(bundle.data)
    [absent] = [item for item in bundle.manifest["left_out"] if item["name"] == "host"]
    assert absent["reason"] == "RuntimeError: <user>'s disk is gone"


def test_a_log_that_is_not_there_is_left_out_with_the_reason(tmp_path):
    bundle = made(wanted=BundleContents(logs=(str(tmp_path / "no.log"),)))
    assert any("No such file" in item.reason for item in bundle.absent)


def test_a_long_log_keeps_its_ends(tmp_path):
    log = tmp_path / "long.log"
    log.write_text("BEGIN\n" + "x" * 90 + "\n" + "y" * 400_000 + "\nEND")
    found = members(made(wanted=BundleContents(logs=(str(log),), largest=1 << 20)).data)[
        "logs/given/1-long.log"
    ].decode()
    assert found.startswith("BEGIN")
    assert found.endswith("END")
    assert "bytes left out" in found
    assert len(found) < 140_000


def test_values_of_small_tensors_are_not_sent():
    small = BufferValues(name="buf0", role="out", dtype="float32", shape=(2,), low=-123.4375, high=987.65625, mean=7.0)
    large = replace(small, name="buf1", shape=(64, 64))
    place = Localization(values=(KernelValues(index=0, name="k", kind="cpp", buffers=(small, large)),))
    report = replace(builders.misleading(), localization=place)
    values = json.loads(members(made(report).data)["report.json"])["localization"]["values"][0]["buffers"]
    assert (values[0]["low"], values[0]["high"], values[0]["mean"]) == (None, None, None)
    assert (values[1]["low"], values[1]["high"]) == (-123.4375, 987.65625)


def test_outputs_of_few_elements_and_saved_reports_tell_no_values():
    output = {
        "path": "result",
        "dtype": "float32",
        "shape": [3],
        "min": -55.5,
        "max": 77.25,
        "digest": "ab" * 32,
        "nan": 1,
    }
    report = replace(builders.misleading(), runs=(builders.outcome(result={"outputs": [[output]]}),))
    sent = json.loads(members(made(report).data)["report.json"])
    assert sent["runs"][0]["outputs"] == [{**output, "min": None, "max": None, "digest": None}]
    saved = json.loads(json.dumps(sent)) | {"runs": [{"outputs": [output]}]}
    leaf = {"dtype": "float32", "shape": [64, 64], "stats": {"low": -55.5, "high": 77.25, "nan": 0}}
    saved["inputs"] = {"leaves": [leaf, {**leaf, "dtype": "int64"}]}
    sent = json.loads(members(made(report, saved=saved).data)["report.json"])
    assert sent["runs"][0]["outputs"][0]["max"] is None
    assert [item["stats"]["low"] for item in sent["inputs"]["leaves"]] == [None, -55.5]


def test_printed_tensors_are_not_sent(tmp_path):
    log = tmp_path / "a.log"
    log.write_text("out:\n 0.123456 -7.654321\n[ CPUFloatType{2} ]\ntensor([0.123456, 1.0])")
    bundle = made(wanted=BundleContents(logs=(str(log),)), outputs={"R1.stdout": "tensor(0.123456)\n 0.123456\n"})
    text = "".join(data.decode() for name, data in members(bundle.data).items() if name.startswith("logs/"))
    assert "0.123456" not in text
    assert "CPUFloatType{2}" in text


def test_words_of_the_user():
    report = with_path(with_model(), "/data/falcon_v2.pt2")
    bundle = made(report, words=("Falcon",))
    assert json.loads(members(bundle.data)["report.json"])["artifact"]["path"] == "/data/<word-1>_v2.pt2"


class TestLeftovers:
    """What redaction misses, the leak test must stop."""

    @pytest.fixture(autouse=True)
    def _blind(self, monkeypatch):
        """A redactor with a hole: it hides nothing in texts that contain HOLE."""
        settle = make_bundle.Redactor._settle
        monkeypatch.setattr(
            make_bundle.Redactor, "_settle", lambda self, text: text if "HOLE" in text else settle(self, text)
        )

    def test_a_member_with_a_leak_is_dropped_and_named(self):
        bundle = made(outputs={"R1.stdout": "HOLE marianne", "R2.stdout": "fine"})
        [kept] = [name for name in members(bundle.data) if name.startswith("logs/runs/")]
        assert kept.startswith("logs/runs/R2.")
        [absent] = [item for item in bundle.absent if "R1" in item.name]
        assert "<user> as utf-8" in absent.reason
        assert "marianne" not in absent.reason

    @pytest.mark.parametrize("where", ["argv", "name"])
    def test_a_leak_in_the_report_or_in_a_name_refuses_the_bundle(self, where, tmp_path):
        log = tmp_path / "HOLE-marianne.log"
        log.write_text("x")
        report = builders.misleading()
        if where == "argv":
            with pytest.raises(CannotExamineError, match=r"<user> as utf-8 in report.json"):
                made(replace(report, argv=("HOLE marianne",)))
            return
        with pytest.raises(CannotExamineError, match="leak test"):
            made(report, BundleContents(logs=(str(log),)))


class TestBinary:
    """What cannot be redacted is sent only when it is asked for, and only when nothing private is in it."""

    def report(self, tmp_path, inside):
        package = tmp_path / "model.pt2"
        with zipfile.ZipFile(package, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("model/x.so", b"\x7fELF" + b"\0" * 999 + inside + b"\0" * 99)
        return with_path(builders.misleading(), package)

    def test_not_by_default(self, tmp_path):
        report = self.report(tmp_path, b"CANARY-IN-SO")
        assert b"CANARY-IN-SO" not in b"".join(members(made(report).data).values())

    @pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le"])
    def test_a_word_inside_refuses_it(self, tmp_path, encoding):
        report = self.report(tmp_path, "/home/marianne/x.cpp".encode(encoding))
        with pytest.raises(
            CannotExamineError, match=r"<user> as utf-\S+ in included/package/model.pt2/model/x.so"
        ) as raised:
            made(report, BundleContents(include=("package",)))
        assert "--allow-leaks" in str(raised.value)
        assert "marianne" not in str(raised.value)

    def test_it_is_sent_when_it_is_clean_or_allowed(self, tmp_path):
        clean = made(self.report(tmp_path, b"nothing"), BundleContents(include=("package",)))
        assert "included/package/model.pt2" in members(clean.data)
        [line] = [line for line in clean.manifest["members"] if line["name"].startswith("included")]
        assert line["raw"] is True
        allowed = BundleContents(include=("package",), allowed=("marianne", "<home>"))
        assert "included/package/model.pt2" in members(made(self.report(tmp_path, b"/home/marianne/x"), allowed).data)

    def test_inputs_and_the_limit(self, tmp_path):
        path = tmp_path / "sample.pt"
        path.write_bytes(b"VALUES" * 10)
        report = builders.misleading()
        report = replace(report, case=replace(report.case, inputs_path=str(path)))
        assert "included/inputs/sample.pt" not in members(made(report).data)
        assert members(made(report, BundleContents(include=("inputs",))).data)["included/inputs/sample.pt"].startswith(
            b"VALUES"
        )
        small = made(report, BundleContents(include=("inputs",), largest=50))
        assert any("more than --max-size" in item.reason for item in small.absent)


def test_without_redaction_it_says_so():
    bundle = made(everywhere(with_model()), BundleContents(redact=False))
    assert bundle.manifest["redaction"] is None
    assert b"marianne" in members(bundle.data)["report.json"]


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("../../etc/passwd", "etc/passwd"),
        ("/abs/x", "abs/x"),
        ("C:\\x\\y", "C__x_y"),
        ("a/./b//c", "a/b/c"),
        ("a\0b\n", "a_b_"),
        ("<user-1>/x", "(user-1)/x"),
        ("", "unnamed"),
        ("..", "unnamed"),
    ],
)
def test_names_of_members_are_safe(name, safe):
    assert safe_name(name) == safe


def test_names_of_members_are_distinct():
    assert distinct_names(["a.txt", "A.txt", "a.txt", "b", "b"]) == ["a.txt", "A-2.txt", "a-3.txt", "b", "b-2"]
