"""A script of a few lines that fails as the user's call does, with torch alone; run and certified before it is offered.

``reproduce`` is the whole of it. The script is tried in child processes with ever more of what the user gave: made-up
inputs of the same metadata first, then the elements that matter, then whole tensors; the package with zeroed weights
first. The least that still ends the same way is taken, and certified: once more in a fresh interpreter, and by
diagnosing its package and its inputs, which must give the same exact signature.
"""
