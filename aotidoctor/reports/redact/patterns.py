"""What looks private by itself: secrets by their form or the key before them, addresses, people's folders, tensors.

Each ``Kind`` names texts of which one must be there for its expression to have a chance, so that most texts are done
after a few substring searches. The first kind that matches at a place wins; secrets come first.
"""

from __future__ import annotations

import re

from aotidoctor.model.record import record

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
    """Whether there is anything in ``text`` that another spelling of a name could be made of."""
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
    Kind(
        _REGISTRY,
        ("registry", "docker", "harbor", "nexus", "artifact", "gitlab", "pypi", ".azurecr.io", "gcr.io/"),
    ),
    Kind(_BUCKET, ("s3://", "gs://", "s3a://", "hdfs://", "abfss://", "storage.googleapis", "amazonaws")),
    Kind(
        _PROJECT,
        ("/project", "/scratch/", "/workspaces/", "/gpfs/", "/lustre/", "/nfs/", "/teams/"),
    ),
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
    """Whether four numbers are an address rather than a version such as 2.13.0.1; loopback is nobody's secret."""
    octets = [int(part) for part in found[0].split(".")]
    if octets[0] in (0, 127, 255):
        return False
    text, start, end = found.string, found.start(), found.end()
    before = text[max(0, start - 48) : start]
    if _ADDRESS_BEFORE.search(before) or _ADDRESS_AFTER.match(text, end):
        return True
    if _VERSION_BEFORE.search(before):
        return False
    return _is_private(octets) or max(octets) >= 100


def _is_private(octets: list[int]) -> bool:
    first, second = octets[:2]
    return first == 10 or (first, second) in ((192, 168), (169, 254)) or (first == 172 and 16 <= second < 32)
