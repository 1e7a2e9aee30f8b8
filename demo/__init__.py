"""A real target and a real agent to try Countersign with. Nothing here imports the product."""
