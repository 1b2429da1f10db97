raise RuntimeError("index out of bounds: 0 <= tmp2 < 100L\nsecond line \udcff")
