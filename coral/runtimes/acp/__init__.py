"""Agents that speak the Agent Client Protocol: the runtime, and the client that it starts."""
