"""Services that an OpenAPI document (3.0 or 3.1) describes: reading the document, finding its operations, calling one.

What a document says is either sent exactly so, or the operation is left out with the reason. Deliberately absent: fetching
(`discover` gets what was read), other documents that a `$ref` names, Swagger 2.0, credentials but as headers, files in bodies.
"""

from folkmoot.tools.openapi.calling import call
from folkmoot.tools.openapi.discovery import Discovery, discover
from folkmoot.tools.openapi.documents import read_document

__all__ = ["Discovery", "call", "discover", "read_document"]
