"""The shapes that cross the wire: what the HTTP API shows and takes, field by field as docs/spec/contract.json says.

Response types bear the contract's names and show every field; request types end in `Request` and refuse what they do
not know. Deliberately absent: behaviour. Nothing here decides, loads, or knows a domain class; `api/mapping.py` alone
speaks both languages.
"""
