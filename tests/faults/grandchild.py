import subprocess
import sys

child = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"])
RESULT = {"pid": child.pid}
