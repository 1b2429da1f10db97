import os
from pathlib import Path

locked = Path(os.environ["TMPDIR"], "locked")
locked.mkdir()
(locked / "file").write_text("x")
Path("here").write_text("x")
locked.chmod(0o500)
RESULT = {"tmp": os.environ["TMPDIR"], "cwd": str(Path.cwd())}
