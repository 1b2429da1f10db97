"""Judge how Triton Inference Server would serve a package with a config.pbtxt, and rehearse its answers.

Pure reading: nothing is executed, and torch is not needed.
"""
