import gc
import os
import resource
import sys
import warnings

warnings.warn("look here", stacklevel=1)
core = resource.getrlimit(resource.RLIMIT_CORE)[0]
RESULT = {
    "a": os.environ.get("A"),
    "b": os.environ.get("B"),
    "wait_policy": os.environ.get("OMP_WAIT_POLICY"),
    "core": core,
    # Of this process, or of the one that stands between it and the command.
    "session": os.getsid(0) in (os.getpid(), os.getppid()),
    "path": sys.path,
    "collects": gc.isenabled(),
}
