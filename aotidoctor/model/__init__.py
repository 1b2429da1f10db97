"""The vocabulary: frozen records that every stage shares. Standard library only, no I/O.

Stages (artifact, contract, inputs, host, checks, probes, runner, diagnosis, reports) import these modules and
never each other; only ``aotidoctor.commands.diagnose`` knows their order.
"""
