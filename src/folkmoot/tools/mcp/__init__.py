"""Tools of MCP servers: what a server offers is listed, and a tool of it is called, within limits of time and size.

`McpTools` in `service` is the door; `pipes` and `local` keep servers that are commands, `remote` those at a URL, `talk` is what
is said to either, `listing` and `answers` read what comes back. Deliberately absent: sampling, elicitation and roots, which are
refused (a server asks the model and the person nothing); prompts and resources; the database; approval.
"""
