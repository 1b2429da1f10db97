"""``Request`` -> ``Outcome``. The only package that starts a process; it never raises for what a child did."""
