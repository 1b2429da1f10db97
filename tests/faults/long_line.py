import sys

sys.stderr.write("y" * 5_000_000)
