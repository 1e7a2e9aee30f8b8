"""Wiring only: settings, servers, processes. No rule and no query lives here."""

import sys
from pathlib import Path

# Every process of the app begins here. In a checkout and in the image the SDK, whose checks of a
# target's contract the app makes, is not installed and lies beside the apps; an installed one wins.
sys.path.append(str(Path(__file__).resolve().parents[1] / "sdk" / "src"))
