import ctypes

print("about to die")
ctypes.string_at(0)
