"""Folkmoot: durable conversations between AI agents, tools and people."""

__version__ = "0.1.0"
