"""What a Python program that ``watch --rerun`` starts again reads first: a folder of one file, put before its path."""
