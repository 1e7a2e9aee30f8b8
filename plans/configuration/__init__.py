"""Configuration as rows: a TOML file, or the admin, makes people, targets, operations, agents."""
