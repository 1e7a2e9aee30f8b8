"""Wiring only: settings, servers, processes. No rule and no query lives here."""
