"""The verifier that needs no server and no Django: Python, `cryptography` and this folder (L-3).

The server imports the formats and the walk from here, so that both cannot disagree.
"""
