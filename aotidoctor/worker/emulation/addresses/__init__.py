"""The quick way: the addresses of a launch for the whole grid at once, without what the kernel computes.

``slices`` go through a kernel's text, ``expressions`` make ``nodes`` of it, which have ``intervals``; ``settled`` is
what these tell by themselves, by their ``forms``; ``quick`` looks at the lanes of the rest.
"""
