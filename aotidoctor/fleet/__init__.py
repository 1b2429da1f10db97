"""Examine many items at once: their list, the engines that judge them, and the folder of their results.

``aotidoctor.model.fleet`` is the record of one result and describes a results folder.
"""
