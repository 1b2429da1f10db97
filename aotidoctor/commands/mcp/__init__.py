"""``aotidoctor mcp``: the commands as tools of a coding agent, over standard input and output.

Every call is a process of its own with the limits of the command line: what an agent asks for can neither hang the
server nor bring it down.
"""
