"""SQL with parameters as a target: dry run by doing and undoing, one transaction to commit."""
