"""Many items at once: what they are, who judges them, and the folder that their results lie in.

``aotidoctor.model.fleet`` is the record of one result and says what a results folder holds.
"""
