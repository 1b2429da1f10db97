"""What is known to be private on this machine, and which words are too ordinary to be hidden wherever they stand."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path, PurePosixPath

from aotidoctor.model import playbook_files
from aotidoctor.model.record import record

SHORTEST = 4
"""A name shorter than this is hidden only where a path or an address shows that a person or a machine is meant."""
SUBSTRING = 6
"""In a bundle, a name of at least this length is hidden inside longer words, too."""

_SECRET_NAME = re.compile(r"TOKEN|SECRET|PASSW|API_?KEY|ACCESS_?KEY|CREDENTIAL", re.IGNORECASE)
_USERS = ("USER", "LOGNAME", "USERNAME", "SUDO_USER")
_HOSTS = ("HOSTNAME", "HOST")
# Ordinary words of reports: as a name, hidden only where a path or an address shows that a person is meant.
ORDINARY = frozenset({
    "root", "user", "users", "admin", "guest", "nobody", "default", "main", "local", "host", "localhost", "home",
    "test", "tests", "build", "builder", "runner", "docker", "conda", "miniconda", "anaconda", "miniforge",
    "circleci", "vscode", "codespace", "coder", "jovyan", "nvidia", "ec2-user", "azureuser", "appuser", "jenkins",
    "node", "server", "work", "worker", "linux", "ubuntu", "debian", "unknown", "none", "true", "false", "null",
    "name", "data", "device", "memory", "error", "model", "models", "package", "python", "torch", "cuda", "aoti",
    "inductor", "triton", "kernel", "tensor", "stride", "strides", "shape", "shapes", "input", "inputs", "output",
    "outputs", "float", "double", "bool", "cpu", "gpu", "layout", "linear", "embedding", "report", "bundle",
    "check", "debug", "crash", "signal", "thread", "threads", "batch", "index", "value", "values", "weight",
    "weights", "buffer", "buffers", "constant", "constants", "wrapper", "library", "symbol", "version",
    "aotidoctor", "aotinductor", "export", "exported", "compile", "compiled", "load", "loaded", "serve", "serving",
    "program", "process", "system", "machine",
})  # fmt: skip


@record
class Identity:
    """Whose report it is. ``secrets`` are values of variables; ``words`` are private words that the user named."""

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
        secrets = [value for name, value in environ.items() if _SECRET_NAME.search(name) and len(value) >= 8]
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


def is_ordinary(name: str) -> bool:
    """Whether hiding ``name`` wherever it stands would destroy reports."""
    return len(name) < SHORTEST or name.casefold() in ORDINARY


def is_common(name: str) -> bool:
    """Whether ``name`` is a word that reports use: a folder called ``/home/shared`` names nobody."""
    return is_ordinary(name) or is_structural(name) or name.casefold() in _vocabulary()


def is_structural(name: str) -> bool:
    """Whether ``name`` is, or is in, the name of a field of the documents: hiding it would break them."""
    folded = name.casefold()
    return folded in _fields() or (len(folded) >= SUBSTRING and any(folded in one for one in _fields()))


@lru_cache(maxsize=1)
def _vocabulary() -> frozenset[str]:
    """The words of the playbooks. Read only when a name was met that may be a word."""
    texts = (path.read_text(encoding="utf-8").casefold() for path in playbook_files.files())
    return frozenset(word for text in texts for word in re.findall(r"[a-z]{4,}", text))


@lru_cache(maxsize=1)
def _fields() -> frozenset[str]:
    """Names of fields and keys, and their words, off the sources that define them. Read for bundles only."""
    package = Path(__file__).resolve().parents[2]
    sources = [
        *(package / "model").glob("*.py"),
        *(package / "reports" / "json").glob("*.py"),
        *(package / "commands" / "bundle").glob("*.py"),
    ]
    texts = "".join(path.read_text(encoding="utf-8") for path in sources)
    names = [one or two for one, two in re.findall(r'(?m)^ {4,}([a-z]\w*): |"([a-z][\w/]*)(?:\.json|\.md)?"', texts)]
    return frozenset(names) | frozenset(word for name in names for word in re.split(r"[_/]", name) if word)


def is_telling(secret: str) -> bool:
    """Whether a secret that was met after its key (``password=``) may be looked for elsewhere, too."""
    mixed = any(char.isdigit() for char in secret) and any(char.isalpha() for char in secret)
    return not is_ordinary(secret) and len(secret) >= (SUBSTRING if mixed else 2 * SUBSTRING)
