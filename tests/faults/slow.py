import time

time.sleep(0.3)
RESULT = {"value": float("inf"), "list": (1, 2)}
