"""MCP servers: definitions out of every source, a supervisor for each, their states and tools, the use cases."""
