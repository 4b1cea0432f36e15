"""`GET /ws`: every thread, command and the inbox of one page on one WebSocket (docs/use/protocol.md)."""
