"""Read facts about this machine: torch, processor, GPUs, libraries and symbols, tools, limits. Executes nothing."""

from __future__ import annotations

from aotidoctor.readers.host.host_facts import read_host

__all__ = ["read_host"]
