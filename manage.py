#!/usr/bin/env python
"""Countersign's command line."""

import os
import sys

# These look after the servers themselves, or need none.
WITHOUT_SERVERS = frozenset({"embedded", "help", "--help", "-h", "--version", "version"})


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    if len(sys.argv) > 1 and sys.argv[1] not in WITHOUT_SERVERS:
        from config.embedded import start_needed

        start_needed()
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
