r"""Find private words in text: by their form, by the key before them, or because this machine's names are known.

Each ``Kind`` names texts of which one must be there for its expression to match, so that most texts are done after a
few substring searches. The first kind that matches at a place wins; secrets come first.

A user's or host's name is searched at word boundaries, in any case, after escapes (``%2F``, ``\n``), inside
identifiers (``torchinductor_NAME``, ``NAMENet``) and inside mangled C++ names (``_ZN4NAME3fooEv``); a short or ordinary
one only in an address, such as ``root@``. Words are also recognized in escapes of JSON, URLs and Python, in UTF-16 and
in base64; the leak test of bundles shares these encodings.
"""

from __future__ import annotations

import binascii
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from aotidoctor.model.record import record
from aotidoctor.reports.redact.ordinary_words import SUBSTRING, is_ordinary, is_structural

# What looks private by itself: secrets, addresses, people's folders, tensors.
PLACEHOLDER = (
    r"(?P<placeholder><(?:home|host|user|values)>"
    r"|<(?:home|host|user|secret|email|ip|mac|account|project|word|values)-\d+>)"
)


@record(kw_only=False)
class Kind:
    """``needles`` are casefolded. ``escaped``: it needs a text with an escape or a letter beyond ASCII."""

    pattern: str
    needles: tuple[str, ...]
    escaped: bool = False


def has_escapes(text: str) -> bool:
    """Whether ``text`` has characters of which an escaped spelling of a name consists."""
    return "%" in text or "\\" in text or "\0" in text or not text.isascii()


# A word may begin after a letter that belongs to an escape: of a URL, of a string, of a color.
AFTER_ESCAPE = (
    r"(?<=%[0-9A-Fa-f]{2})|(?<=\\[nrtbfv0])|(?<=\\u[0-9A-Fa-f]{4})|(?<=\\x[0-9A-Fa-f]{2})"
    r"|(?<=\x1b\[m)|(?<=\x1b\[[0-9]m)|(?<=\x1b\[[0-9]{2}m)|(?<=;[0-9]m)|(?<=;[0-9]{2}m)"
)
_FORMS = (
    rf"(?:(?<![A-Za-z0-9])|{AFTER_ESCAPE})"
    r"(?:gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|hf_[A-Za-z0-9]{30,}|sk-[\w-]{16,}"
    r"|[sr]k_(?:live|test)_\w{16,}|xox[abeprs]-[\w-]{10,}|A[KS]IA[0-9A-Z]{16}|AIza[\w-]{30,}|ya29\.[\w-]{20,}"
    r"|nvapi-[\w-]{20,}|npm_[A-Za-z0-9]{30,}|pypi-[\w-]{30,}|dop_v1_[0-9a-f]{40,}|SG\.[\w-]{16,}\.[\w-]{16,}"
    r"|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*|(?<=hooks\.slack\.com/services/)[\w/]{20,})"
)
_FORM_NEEDLES = (
    "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "hf_", "sk-", "k_live_", "k_test_", "xox", "akia",
    "asia", "aiza", "ya29.", "nvapi-", "npm_", "pypi-", "dop_v1_", "sg.", "eyj", "hooks.slack.com",
)  # fmt: skip
_PRIVATE_KEY = r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
_LOGIN = r"(?<=://)[^/\s:@<>]+:[^/\s@<>]+(?=@)"
_NAMED = (
    r"(?P<password>(?P<before>(?i:(?:passw(?:or)?d|secret)[\"']?\s*[=:]\s*|--(?:password|secret|token|api-key)\s+)"
    r"[\"']?)(?P<word>[^\s\"'<>,;&()]{3,}))"
)
_VARIABLE = (
    r"(?P<variable>(?P<name>(?<![A-Za-z0-9_])[A-Z][A-Z0-9_]*_?(?:TOKEN|SECRET|PASSWD?|PASSWORD|API_?KEY|ACCESS_?KEY"
    r"|PRIVATE_?KEY|CREDENTIALS?)[\"']?\s*[=:]\s*[\"']?)(?P<given>(?!/|\d+\b)[^\s\"'<>,;]{6,}))"
)
_KEYED = (
    r"(?P<keyed>(?P<label>(?i:(?:token|api[_-]?key|access[_-]?key|account[_-]?key|[?&](?:sig|signature|x-amz-\w+))"
    r"[\"']?\s*[=:]\s*|(?:bearer|authorization[\"']?\s*[=:]\s*[\"']?basic)\s+)[\"']?)"
    r"(?P<value>(?=[\w./+=~%-]{0,256}\d)(?=[\w./+=~%-]{0,256}[A-Za-z])[\w./+=~%-]{12,}))"
)
_TENSOR = r"(?P<tensor>(?P<call>\b(?:tensor|array|Parameter)\(\s*)(?:\[[^()<>]*\]|[-+]?[\d.][\w.+-]*))"
_SOMEONE = (
    r"(?P<other>(?:(?<=/home/)|(?<=/Users/)|(?<=\\home\\)|(?<=\\Users\\)|(?<=\\/home\\/)|(?<=\\/Users\\/)"
    r"|(?<=/torchinductor_)(?!root\b)|(?<=/data/users/)|(?<=(?i:%2Fhome%2F))|(?<=(?i:%2FUsers%2F))"
    r"|(?<=(?i:%2Ftmp%2Ftorchinductor_))(?!root\b))\w[\w.-]*)"
)
_FOLDERS = r"(?P<folders>(?<=/var/folders/)\w\w/\w{6,})"
_EMAIL = (
    r"(?P<email>(?<![\w.+-])[A-Za-z0-9][\w.+-]*@(?:[A-Za-z0-9-]+\.)+"
    r"(?!(?:so|py|cpp|cc|pt|pt2|json|txt|log|sh|a|o|h)\b)[A-Za-z]{2,}(?![\w-]))"
)
_OCTET = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
_IPV4 = rf"(?P<ip>(?:(?<![\w.+-])|{AFTER_ESCAPE})(?:{_OCTET}\.){{3}}{_OCTET}(?![\w+-])(?!\.\w))"
_GROUP = r"[0-9a-fA-F]{1,4}"
_IPV6 = (
    rf"(?P<ip6>(?<![\w:.])(?:(?:{_GROUP}:){{7}}{_GROUP}"
    rf"|(?i:fe80|f[cd][0-9a-f]{{2}}|[23][0-9a-f]{{3}})(?::{_GROUP}){{0,6}}::(?:{_GROUP}(?::{_GROUP}){{0,6}})?)(?![\w:]))"
)
_MAC = rf"(?P<mac>(?:(?<![\w:])|{AFTER_ESCAPE})(?:[0-9a-fA-F]{{2}}:){{5}}[0-9a-fA-F]{{2}}(?![\w:]))"
_ACCOUNT = r"(?P<account>(?<=:)\d{12}(?=:)|\b\d{12}(?=\.dkr\.ecr\.))"

# Names that only somebody's own network knows. Modules of Python end alike.
_INTERNAL = (
    r"(?P<internal>(?<![\w.-])(?!(?:threading|google|torch|triton|numpy|python|werkzeug|asyncio|contextvars)\.)"
    r"(?:[A-Za-z0-9][A-Za-z0-9-]{0,62}\.){1,8}(?:internal|corp|local|lan|intranet)(?![\w-])(?!\.\w))"
)
_PUBLIC = r"(?:docker\.io|docker\.com|gitlab\.com|pypi\.org|registry\.npmjs\.org|registry-1\.docker\.io)\b"
_REGISTRY = (
    rf"(?P<registry>(?<![\w.@/-])(?!{_PUBLIC})(?:registry|docker|harbor|nexus|artifactory|artifacts|gitlab|pypi)"
    r"[A-Za-z0-9-]{0,40}(?:\.[A-Za-z0-9-]{1,63}){1,6}(?=[:/])"
    r"|(?<![\w.-])[A-Za-z0-9-]{1,63}(?=\.azurecr\.io\b)|(?<=\bgcr\.io/)[a-z0-9-]{1,63}"
    r"|(?<=-docker\.pkg\.dev/)[a-z0-9-]{1,63})"
)
_BUCKET = (
    r"(?P<bucket>(?:(?<=s3://)|(?<=gs://)|(?<=s3a://)|(?<=hdfs://)|(?<=abfss://)|(?<=storage\.googleapis\.com/))[\w.-]+"
    r"|(?<![\w.-])[a-z0-9][a-z0-9-]{2,62}(?=\.s3[.-][\w.-]{0,40}amazonaws\.com))"
)
_PROJECT = (
    r"(?P<project>(?:(?<=/projects/)|(?<=/project/)|(?<=/scratch/)|(?<=/workspaces/)|(?<=/gpfs/)|(?<=/lustre/)"
    r"|(?<=/nfs/)|(?<=/teams/))(?!(?:pytorch|torch|triton|src|build|tests?|home|users)/)[\w.-]+(?=/))"
)

# In a bundle, the host of a URL with a login goes, too.
URL_HOST = Kind(r"(?P<url>(?<=://)(?P<login>[^/\s@]+)@(?P<where>[\w.-]+))", ("://",))

SECRETS = (
    Kind(f"(?P<secret>{_PRIVATE_KEY})", ("private key-----",)),
    Kind(f"(?P<secret_login>{_LOGIN})", ("://",)),
    Kind(f"(?P<secret_form>{_FORMS})", _FORM_NEEDLES),
    Kind(_VARIABLE, ("token", "secret", "passw", "key", "credential")),
    Kind(_NAMED, ("passw", "secret", "--token", "--api-key")),
    Kind(_KEYED, ("token", "key", "bearer", "basic", "sig", "x-amz-")),
    Kind(_TENSOR, ("tensor(", "array(", "parameter(")),
)
PLACES = (
    Kind(_SOMEONE, ("home", "users", "torchinductor_")),
    Kind(_FOLDERS, ("/var/folders/",)),
    Kind(_EMAIL, ("@",)),
    Kind(_MAC, (":",)),
    Kind(_IPV6, (":",)),
    Kind(_IPV4, (".",)),
    Kind(_ACCOUNT, ("arn:aws", ".dkr.ecr.")),
    Kind(_INTERNAL, (".internal", ".corp", ".local", ".lan", ".intranet")),
    Kind(_REGISTRY, ("registry", "docker", "harbor", "nexus", "artifact", "gitlab", "pypi", ".azurecr.io", "gcr.io/")),
    Kind(_BUCKET, ("s3://", "gs://", "s3a://", "hdfs://", "abfss://", "storage.googleapis", "amazonaws")),
    Kind(_PROJECT, ("/project", "/scratch/", "/workspaces/", "/gpfs/", "/lustre/", "/nfs/", "/teams/")),
)
LOOKS_SECRET = re.compile(r"(?=[^0-9]{0,200}[0-9])(?=[^A-Za-z]{0,200}[A-Za-z])[\w+=~-]{16,200}")
"""The value of a variable that nobody knows and that no setting looks like."""
_NUMBER = r"[-+]?(?:\d+\.\d*(?:e[-+]?\d+)?|nan|inf)"
ROW = re.compile(rf"^[ \t]*(?:Columns \d{{1,9}} to \d{{1,9}})?{_NUMBER}(?:[ \t]+{_NUMBER})*[ \t]*$", re.MULTILINE)
"""Lines that are nothing but numbers: what a child prints of a tensor."""

_VERSION_BEFORE = re.compile(
    r"(?:[=<>~!]=\s{0,48}|\.so\.|(?:version|driver|release|build|cud\w{0,20}|cublas\w{0,20}|nccl|torch|triton|python|glibc|gcc|clang"
    r"|tensorrt|toolkit|nvidia-[\w-]{1,40}|-cu\d{1,6})\W{0,4}|\w-[\w-]{1,48}[ \t]{2,48})$",
    re.IGNORECASE,
)
_ADDRESS_BEFORE = re.compile(
    r"(?:://|@|\b(?:ip|addr\w*|host\w*|peer|server|client|connect\w*|listen\w*|bind|bound|node|master\w*|from|to|at"
    r"|inet|tcp|udp|socket|via|dst|src|ping|ssh)\W{0,4})$",
    re.IGNORECASE,
)
_ADDRESS_AFTER = re.compile(r":\d{2,5}\b|/\d{1,2}\b")


def is_address(found: re.Match[str]) -> bool:
    """Whether four numbers are an address rather than a version such as 2.13.0.1; loopback is not secret."""
    octets = [int(part) for part in found[0].split(".")]
    if octets[0] in (0, 127, 255):
        return False
    text, start, end = found.string, found.start(), found.end()
    before = text[max(0, start - 48) : start]
    if _ADDRESS_BEFORE.search(before) or _ADDRESS_AFTER.match(text, end):
        return True
    if _VERSION_BEFORE.search(before):
        return False
    first, second = octets[:2]
    return (first == 10 or (first, second) in ((192, 168), (169, 254)) or (first == 172 and 16 <= second < 32)) or max(
        octets
    ) >= 100


# What is known to be private on this machine.

_SECRET_NAME = re.compile(r"TOKEN|SECRET|PASSW|API_?KEY|ACCESS_?KEY|CREDENTIAL", re.IGNORECASE)
_USERS = ("USER", "LOGNAME", "USERNAME", "SUDO_USER")
_HOSTS = ("HOSTNAME", "HOST")


@record
class Identity:
    """The names and secrets to hide. ``secrets`` are values of variables; ``words`` are named by the user."""

    home: str | None = None
    users: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    words: tuple[str, ...] = ()

    @classmethod
    def of(cls, environ: Mapping[str, str], host_name: str, words: Sequence[str] = ()) -> Identity:
        """The user and host that ``environ`` describes."""
        home = environ.get("HOME")
        users = [environ.get(name) for name in _USERS]
        users.append(PurePosixPath(home).name if home else None)
        hosts = [host_name, *(environ.get(name) for name in _HOSTS)]
        secrets = [
            value
            for name, value in environ.items()
            if _SECRET_NAME.search(name) and len(value) >= 8 and not is_ordinary(value)
        ]
        return cls(
            home=home,
            users=_distinct(users),
            hosts=_distinct([part for host in hosts if host for part in _parts(host)]),
            secrets=tuple(dict.fromkeys(secrets)),
            words=_distinct(list(words)),
        )


def _parts(host: str) -> tuple[str, ...]:
    """The name, its first label, and the domain where that is more than a company's public one."""
    short, _, domain = host.partition(".")
    return (host, short, domain) if domain.count(".") >= 2 else (host, short)


def _distinct(names: Sequence[str | None]) -> tuple[str, ...]:
    return tuple({name.casefold(): name for name in reversed(names) if name}.values())[::-1]


def is_searchable(secret: str) -> bool:
    """Whether a secret that was met after its key (``password=``) may be looked for elsewhere, too."""
    mixed = any(char.isdigit() for char in secret) and any(char.isalpha() for char in secret)
    return not is_ordinary(secret) and len(secret) >= (SUBSTRING if mixed else 2 * SUBSTRING)


# The encodings in which a word can hide.
# So many letters of base64 that they stand there by chance once in many gigabytes.
_LEAST_BASE64 = 7
_PLAIN = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-~"


def escaped_forms(word: str) -> tuple[str, ...]:
    """Texts that mean ``word`` after one or two rounds of unescaping; never the word itself."""
    percent = quote_url(word)
    forms = {
        percent,
        quote_url(percent),
        quote_url(word, "/"),
        "".join(f"%{byte:02X}" for byte in word.encode()),
        json.dumps(word)[1:-1],
        json.dumps(word)[1:-1].replace("/", "\\/"),
        json.dumps(json.dumps(word)[1:-1])[1:-1],
        "".join(f"\\u{ord(char):04x}" for char in word if ord(char) < 0x10000),
        repr(word)[1:-1],
        repr(word.encode())[2:-1],
        "".join(f"\\x{byte:02x}" for byte in word.encode()),
    }
    if not word.isascii():
        # Accents as letters of their own, and UTF-8 that was read as Latin-1.
        import unicodedata

        forms |= {
            unicodedata.normalize("NFD", word),
            unicodedata.normalize("NFC", word),
            word.encode().decode("latin-1"),
        }
    return tuple(sorted(forms - {word, ""}))


def quote_url(text: str, kept: str = "") -> str:
    """``text`` as a URL holds it. The library's function costs an import that every report would pay for."""
    plain = f"{_PLAIN}{kept}".encode()
    return "".join(chr(byte) if byte in plain else f"%{byte:02X}" for byte in text.encode())


def obscured_forms(word: str) -> tuple[str, ...]:
    """``word`` in hexadecimal and backwards; none for a short one, which would be found by chance."""
    if len(word) < SUBSTRING:
        return ()
    backwards = word[::-1]
    return (word.encode().hex(), *((backwards,) if backwards.casefold() != word.casefold() else ()))


def base64_cores(word: bytes) -> tuple[str, ...]:
    """The base64 of ``word`` that does not depend on its neighbours: one text per alignment, none for a short word."""
    found = []
    for shift in range(3):
        text = binascii.b2a_base64(b"\0" * shift + word, newline=False).decode().rstrip("=")
        # Letters that also hold bits of a neighbor are left out.
        first = -(-shift * 8 // 6)
        last = (shift + len(word)) * 8 // 6
        core = text[first:last]
        if len(core) >= _LEAST_BASE64:
            found.append(core)
            found.append(core.translate(str.maketrans("+/", "-_")))
    return tuple(dict.fromkeys(found))


# Expressions for the names that are known.
_JOINT = re.compile(r"[-._ ]")
_SEPARATOR = r"(?:/|\\+/|%2[Ff]|%252[Ff]|\\+u002[Ff])"


@record(kw_only=False)
class Name:
    """``kind`` is ``home``, ``user``, ``host``, ``secret`` or ``word``."""

    kind: str
    text: str

    @property
    def everywhere(self) -> bool:
        """Whether the name is hidden wherever its letters stand."""
        return self.kind in ("secret", "word")

    def only_in_addresses(self, *, strict: bool) -> bool:
        """Whether the name is so short or so ordinary that it is hidden in ``name@`` and ``@name`` only."""
        if self.kind not in ("user", "host"):
            return False
        return is_ordinary(self.text) or (strict and is_structural(self.text))


def expressions(name: Name, *, strict: bool) -> Iterator[Kind]:
    """Expressions that find ``name``, each with the one group name it is to be given by the caller (``{group}``).

    ``strict`` is for bundles: also inside longer words, in base64, in hexadecimal and backwards.
    """
    if name.kind == "home":
        path = name.text.rstrip("/")
        if path.strip("/"):
            end = r"(?![\w-])(?!\.\w)"
            # A compiler's option may stand before it: -I/root/include. A folder as ordinary as /root has namesakes
            # elsewhere.
            start = "" if strict and not is_ordinary(path.rpartition("/")[2]) else r"(?:(?<![\w.-])|(?<=-[A-Z]))"
            yield Kind(f"{start}{re.escape(path)}{end}", (path.casefold(),))
            parts = [re.escape(part) for part in path.strip("/").split("/")]
            escape = r"(?:\\+/|%2[Ff]|%252[Ff]|\\+u002[Ff])"
            needle = path.rsplit("/", 1)[-1].casefold()
            yield Kind(f"{escape}{_SEPARATOR.join(parts)}{end}", (needle,), escaped=True)
        return
    if name.only_in_addresses(strict=strict):
        word = re.escape(name.text)
        form = f"{word}(?=@)" if name.kind == "user" else f"(?<=@){word}"
        yield Kind(rf"(?<![\w.-]){form}(?![\w-])", (name.text.casefold(),))
        return
    inside = strict and len(name.text) >= SUBSTRING
    yield _anywhere(name.text) if name.everywhere else _bounded_kind(name.text, inside=inside)
    for form in (*escaped_forms(name.text), "\0".join(name.text)):
        if len(form) > len(name.text):
            yield replace(_anywhere(form), escaped=True)
    if strict:
        for core in base64_cores(name.text.encode()):
            yield Kind(re.escape(core), (core.casefold(),))
        for form in obscured_forms(name.text):
            yield _anywhere(form)


def _anywhere(form: str) -> Kind:
    return Kind(f"(?i:{re.escape(form)})", (form.casefold(),))


def _bounded_kind(name: str, *, inside: bool) -> Kind:
    # An expression for `marie.anne` that finds `marie_anne` and `marieanne`, too; and its longest part.
    parts = [part for part in _JOINT.split(name) if part]
    word, needle = re.escape(name), name.casefold()
    if len(parts) >= 2 and len(name) >= SUBSTRING:
        word, needle = "[-._ ]?".join(map(re.escape, parts)), max(parts, key=len).casefold()
    if inside:
        return Kind(f"(?i:{word})", (needle,))
    capital = re.escape(name[:1].upper() + name[1:])
    length = f"(?<=(?<![0-9]){len(name)})" if len(name) < 10 else f"(?<={len(name)})"
    start = rf"(?:(?<![A-Za-z0-9])|{AFTER_ESCAPE})"
    end = r"(?:(?![A-Za-z0-9])|(?=[A-Z][a-z]))"
    pattern = f"(?:{start}(?i:{word}){end}|{length}(?i:{word})|(?<=[a-z]){capital}{end})"
    return Kind(pattern, (needle,))
