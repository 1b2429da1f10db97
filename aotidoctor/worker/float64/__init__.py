"""Whether two results differ by more than rounding: the float64 run, and how both are judged."""
