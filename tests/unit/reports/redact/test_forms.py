"""Private words in the forms in which they travel: escapes, identifiers, caches, other encodings."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aotidoctor.reports.redact.private_words import Identity, base64_cores
from aotidoctor.reports.redact.redactor import Placeholders, Redactor
from tests.unit.reports import builders

ENVIRON = {"HOME": "/home/marianne", "USER": "marianne", "HF_TOKEN": "not-a-known-form-1"}


def redactor(*, strict=False, words=(), environ=ENVIRON):
    return Redactor(Identity.of(environ, "bluebird.example.org", words), strict=strict)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Escapes, one round and two.
        ("file=%2Fhome%2Fmarianne%2Fm.pt2", "file=<home>%2Fm.pt2"),
        ("%252Fhome%252Fmarianne%252Fx", "<home>%252Fx"),
        (r'{"path": "\/home\/marianne\/m.pt2"}', r'{"path": "<home>\/m.pt2"}'),
        (r"line one\nmarianne wrote", r"line one\n<user> wrote"),
        (r"\u002fhome\u002fmarianne", "<home>"),
        (r"\u006d\u0061\u0072\u0069\u0061\u006e\u006e\u0065", "<user>"),
        ("m\0a\0r\0i\0a\0n\0n\0e\0", "<user>\0"),
        ("\x1b[1mmarianne\x1b[0m \x1b[32mbluebird", "\x1b[1m<user>\x1b[0m \x1b[32m<host>"),
        (r"token\nghp_" + "a1" * 18, r"token\n<secret-1>"),
        ("\x1b[0;31mghp_" + "a1" * 18, "\x1b[0;31m<secret-1>"),
        (r"peer\n10.9.8.7", r"peer\n<ip-1>"),
        # Identifiers.
        ("zoo_marianne::misbehave, marianne-lib", "zoo_<user>::misbehave, <user>-lib"),
        ("_ZN8marianne3fooEv", "_ZN8<user>3fooEv"),
        ("marianneNet MyMarianneModel MARIANNE_HOME", "<user>Net My<user>Model <user>_HOME"),
        ("BLUEBIRD.Example.ORG and Bluebird:80", "<host> and <host>:80"),
        # Folders and caches of others.
        ("/tmp/torchinductor_someone/ab/cd.cpp", "/tmp/torchinductor_<user-1>/ab/cd.cpp"),
        ("/tmp/torchinductor_root/ab", "/tmp/torchinductor_root/ab"),
        ("/var/folders/zz/zyx123abc/T/x", "/var/folders/<user-1>/T/x"),
        (r"C:\Users\Someone\x", r"C:\Users\<user-1>\x"),
        ("/nfs/home/someone/x", "/nfs/home/<user-1>/x"),
        # Addresses.
        ("mail bob.smith@corp.example.com now", "mail <email-1> now"),
        ("memcpy@GLIBC_2.14 f@libc.so", "memcpy@GLIBC_2.14 f@libc.so"),
        ("connect to 10.20.30.40:8001", "connect to <ip-1>:8001"),
        ("peer 52.14.7.33", "peer <ip-1>"),
        ("inet 192.168.7.9/24", "inet <ip-1>/24"),
        ("fe80::1ff:fe23:4567:890a", "<ip-1>"),
        ("aa:bb:cc:dd:ee:ff", "<mac-1>"),
        ("arn:aws:iam::123456789012:role/x", "arn:aws:iam::<account-1>:role/x"),
        ("123456789012.dkr.ecr.us-east-1.amazonaws.com/i", "<account-1>.dkr.ecr.us-east-1.amazonaws.com/i"),
        # Secrets.
        ("AWS_SECRET_ACCESS_KEY=abcdefghij", "AWS_SECRET_ACCESS_KEY=<secret-1>"),
        ("'WANDB_API_KEY': 'abcdefgh'", "'WANDB_API_KEY': '<secret-1>'"),
        ("login --password hunter2x now", "login --password <secret-1> now"),
        ("nvapi-" + "a1" * 12, "<secret-1>"),
        ("Authorization: Basic dXNlcjpwYXNzd29yZA1=", "Authorization: Basic <secret-1>"),
        ("https://h/x?X-Amz-Signature=0a1b2c3d4e5f6a7b", "https://h/x?X-Amz-Signature=<secret-1>"),
    ],
)
def test_hides(text, expected):
    assert redactor().text(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "torch 2.13.0.1, cudnn 9.1.0.70, 2.13.0.1",
        "nvidia-curand-cu12==10.3.5.147",
        "nvidia-curand-cu12       10.3.5.147",
        "driver version: 10.20.30.40",
        "127.0.0.1:8000 0.0.0.0 255.255.255.0",
        "at::Tensor dead::beef 12:34:56 std::vector",
        "MAX_TOKENS=4096 PAD_TOKEN=50256",
        "libfoo.so.1.2.3.4",
        "0x7f12 1234567890123",
    ],
)
def test_leaves(text):
    assert redactor().text(text) == text


def test_a_name_met_once_is_looked_for_everywhere():
    base = builders.misleading()
    runs = tuple(replace(run, stdout_tail="built by someone: Xk29fj2k", stderr_tail="") for run in base.runs)
    argv = ("/home/someone/m.pt2", "password=Xk29fj2k")
    shown = redactor().value(replace(base, runs=runs, argv=argv))
    assert shown.argv == ("/home/<user-1>/m.pt2", "password=<secret-1>")
    assert {run.stdout_tail for run in shown.runs} == {"built by <user-1>: <secret-1>"}


def test_an_ordinary_word_is_not_spread():
    hide = redactor()
    assert hide.text("/home/model/x /home/shared/y password: None").count("<user") == 2
    hide.learn()
    assert hide.text("the shared model is None") == "the shared model is None"


def test_one_machine_has_one_placeholder_and_another_another():
    hide = redactor()
    assert hide.text("bluebird bluebird.example.org") == "<host> <host>"
    strict = redactor(strict=True)
    assert strict.text("https://a:b@git.corp.example.net/x") == "https://<secret-1>@<host-1>/x"
    assert strict.learn()
    assert strict.text("git git.corp.example.net git.other.example.net") == "git <host-1> git.other.example.net"
    assert redactor(environ={}).text("/home/someone") == "/home/<user-1>"


def test_names_of_several_parts_however_they_are_joined():
    hide = redactor(environ={"HOME": "/home/marie.anne", "USER": "marie.anne"})
    text = "/home/marie.anne/x /tmp/torchinductor_marie_anne marie-anne@x marieanne"
    assert hide.text(text) == "<home>/x /tmp/torchinductor_<user> <user>@x <user>"


def test_letters_beyond_ascii():
    hide = redactor(environ={"HOME": "/home/josé", "USER": "josé"}, strict=True)
    forms = ["josé", "JOSÉ", r"jos\u00e9", "jos%C3%A9", "jose\u0301", "josÃ©", r"jos\xc3\xa9"]
    assert hide.text(" ".join(forms)) == " ".join(["<user>"] * len(forms))


def test_the_domain_of_a_machine_deep_in_a_company():
    hide = Redactor(Identity.of(ENVIRON, "q7.lab.corp.example.net"))
    assert (
        hide.text("q7.lab.corp.example.net git.lab.corp.example.net example.net") == "<host> git.<host-1> example.net"
    )


def test_words_of_the_user_are_hidden_in_any_case():
    hide = redactor(words=("Falcon",))
    assert hide.text("falcon_7b FALCON superfalcons") == "<word-1>_7b <word-1> super<word-1>s"


def test_one_of_several_names_of_hosts_is_one_machine():
    hide = redactor(environ={**ENVIRON, "HOSTNAME": "redbird.example.org"})
    assert hide.text("bluebird redbird redbird.example.org") == "<host> <host-1> <host-1>"


def test_strict_hides_names_inside_words_and_in_base64():
    hide = redactor(strict=True)
    assert hide.text(b"marianne".hex() + " ennairam") == "<user> <user>"
    assert hide.text("mariannette") == "<user>tte"
    for shift in range(3):
        text = base64.b64encode(b"x" * shift + b"/home/marianne/x").decode()
        shown = hide.text(text)
        assert shown != text
        assert all(core not in shown for core in base64_cores(b"marianne"))


def test_placeholders_keep_their_meaning_in_the_next_redactor():
    first = redactor()
    first.text("password=hunter2x /home/someone 10.1.2.3:80")
    again = Redactor(
        Identity.of(ENVIRON, "bluebird.example.org"), placeholders=Placeholders(first.placeholders.table())
    )
    assert (
        again.text("password=other99x someone password=hunter2x") == "password=<secret-2> <user-1> password=<secret-1>"
    )
    assert again.text("marianne@bluebird") == "<user>@<host>"


def test_the_count_is_of_what_was_hidden():
    hide = redactor()
    hide.text("marianne <user> nothing marianne")
    assert hide.count == 2


WORDS = ["marianne", "bluebird", "/home/marianne/x", "not-a-known-form-1"]


@pytest.mark.parametrize("strict", [False, True])
@given(
    st.sampled_from(WORDS),
    st.sampled_from([str, lambda t: quote(t, safe=""), lambda t: json.dumps(t).replace("/", "\\/"), repr]),
    st.sampled_from(["", " ", "\n", "=", "_", "/", '"', "x\\n", "<user>"]),
)
def test_no_form_survives_and_twice_is_once(strict, word, form, glue):
    text = glue + form(word) + glue.lstrip("x")
    once = redactor(strict=strict).text(text)
    assert redactor(strict=strict).text(once) == once
    assert not any(name in once for name in ("marianne", "bluebird", "known-form"))


@pytest.mark.parametrize(
    "piece", ["token=", "A_TOKEN", "://a:", "a@a.", "1.", "tensor([", "password=", "fe80::", "10.1.2.3 ", "1.0 "]
)
def test_long_texts_take_no_longer_per_letter(piece):
    """Steps, not seconds: an expression that looks over the whole text at every place would not come to an end."""
    redactor(strict=True).redact_printed(piece * (2_000_000 // len(piece) // 4))
