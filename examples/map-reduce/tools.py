"""The functions of the digest: which documents there are, and what stands in one. Both only read.

Deliberately absent: a way to any file beside those of the folder `documents` here.
"""

from __future__ import annotations

from pathlib import Path

from folkmoot.tools.functions import function_tool

_DOCUMENTS = Path(__file__).parent / "documents"


@function_tool(is_read_only=True, limit_seconds=5)
def list_documents() -> list[str]:
    """The names of the documents that there are."""
    return sorted(path.name for path in _DOCUMENTS.glob("*.txt"))


@function_tool(is_read_only=True, limit_seconds=5)
def read_document(name: str) -> str:
    """The text of one document, by its name."""
    if name not in list_documents():
        raise ValueError(f"There is no document '{name}'. There are: {', '.join(list_documents())}.")
    return (_DOCUMENTS / name).read_text(encoding="utf-8")
