"""`countersign-agent mcp`: the tools for models as a server of the Model Context Protocol.

Needs the extra `countersign-agent[mcp]`. People decide in Countersign, never through this server.
"""
