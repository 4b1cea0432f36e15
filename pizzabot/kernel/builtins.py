"""The built-in plugins: a table of strings, so that stale or damaged package metadata cannot disable the product."""

BUILTINS: dict[str, str] = {
    "echo": "pizzabot_builtin_plugins.echo",
    "openai": "pizzabot_builtin_plugins.openai",
    "ollama": "pizzabot_builtin_plugins.ollama",
    "local": "pizzabot_builtin_plugins.local",
    "sqlite-storage": "pizzabot_builtin_plugins.sqlite_storage",
    "memory-storage": "pizzabot_builtin_plugins.memory_storage",
    "deepagents-runtime": "pizzabot_builtin_plugins.deepagents_runtime",
    "http-server": "pizzabot_builtin_plugins.http_server",
    "secret-stores": "pizzabot_builtin_plugins.secret_stores",
    "limits": "pizzabot_builtin_plugins.limits",
    "run-log": "pizzabot_builtin_plugins.run_log",
    "shipped-skills": "pizzabot_builtin_plugins.shipped_skills",
    "user-skills": "pizzabot_builtin_plugins.user_skills",
    "bundles": "pizzabot_builtin_plugins.bundles",
    "subprocess-materializer": "pizzabot_builtin_plugins.subprocess_materializer",
    "mcp-client": "pizzabot_builtin_plugins.mcp_client",
    "user-mcp-servers": "pizzabot_builtin_plugins.user_mcp_servers",
}
"""Plugin name -> module. Found like this, they go the same path as third parties."""
