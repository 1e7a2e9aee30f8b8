"""`make demo-reset`: stop the demo if it runs, and forget everything it wrote."""

import os
import shutil
import signal
import subprocess
import sys
import time

from demo.run import HOME, ROOT, DemoError, only_one

STOP_SECONDS = 30.0


def stop_running_demo() -> None:
    """Ask the supervisor to stop and wait until it let go of the home."""
    deadline = time.monotonic() + STOP_SECONDS
    asked = False
    while True:
        try:
            with only_one():
                return
        except DemoError:
            if not asked:
                os.kill(int((HOME / "supervisor.lock").read_text()), signal.SIGTERM)
                asked = True
            if time.monotonic() > deadline:
                raise
        time.sleep(0.1)


def main() -> int:
    """0 when nothing is left; 1 when the demo does not stop."""
    if not HOME.exists():
        return 0
    try:
        stop_running_demo()
    except DemoError as error:
        print(error, file=sys.stderr)
        return 1
    # The servers' data may lie outside: see config/servers.py.
    for home in (HOME, *HOME.glob("test/*")):
        if (home / "embedded.json").exists():
            environment = os.environ | {"COUNTERSIGN_HOME": str(home)}
            wipe = [sys.executable, "-m", "config.embedded", "wipe"]
            subprocess.run(wipe, cwd=ROOT, env=environment, check=True)
    shutil.rmtree(HOME)
    return 0


if __name__ == "__main__":
    sys.exit(main())
