"""A folder of one file, first in the path of a Python program that ``watch --rerun`` starts again."""
