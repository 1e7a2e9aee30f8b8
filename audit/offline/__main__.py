"""`python audit/offline BUNDLE`, or `python -m audit.offline BUNDLE`."""

import sys
from importlib import import_module
from pathlib import Path

if not __package__:
    # Run by its path: this folder, wherever it was copied to, is all there is.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

package = __package__ or Path(__file__).resolve().parent.name
sys.exit(import_module(f"{package}.command").main())
