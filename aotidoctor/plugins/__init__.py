"""Plugins: checks, probes, playbooks, formats, host facts, log patterns and setups of installed packages.

A package states them as entry points of the groups ``aotidoctor.checks`` and so on, and the module of each says
``AOTIDOCTOR_API = 1``. What a plugin executes is executed in a process of its own, which imports it: one that raises,
hangs, floods or crashes costs only itself, and the report names it. Without plugins nothing is imported or started.
"""

from __future__ import annotations

API = 1
"""The version of the interface. A plugin that states another one is not used."""

GROUPS = ("checks", "probes", "playbooks", "reports", "host_facts", "log_patterns", "setup")
PREFIX = "aotidoctor."
