"""Bodies of responses: decoded piece by piece, and never more of them than a limit of bytes after decoding.

Only gzip and deflate are asked for and read. Deliberately absent: time; whoever reads sets a limit of seconds around it.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterable, AsyncIterator, Iterator
from dataclasses import dataclass

import httpx2

ACCEPTED_ENCODINGS = "gzip, deflate"
_PIECE = 65_536


class BodyTooLarge(httpx2.ReadError):
    """The body has more bytes after decoding than the client reads."""


class DecodedStream(httpx2.AsyncByteStream):
    """The body of a response, decoded, up to `limit_bytes`; then BodyTooLarge. `encoding`: the header Content-Encoding."""

    def __init__(self, source: AsyncIterable[bytes], *, encoding: str, limit_bytes: int) -> None:
        self._source = source
        self._decoder = _decoder(encoding)
        self._limit_bytes = limit_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        count = 0
        async for chunk in self._source:
            for piece in self._decoder.pieces(chunk):
                count += len(piece)
                if count > self._limit_bytes:
                    raise BodyTooLarge(f"The response has more than {self._limit_bytes:,} bytes.")
                yield piece
        self._decoder.finish()

    async def aclose(self) -> None:
        close = getattr(self._source, "aclose", None)
        if close is not None:
            await close()


@dataclass(frozen=True, slots=True)
class Body:
    """What was read. `is_cut`: there was more than the limit."""

    data: bytes
    is_cut: bool


async def read_body(response: httpx2.Response, *, limit_bytes: int) -> Body:
    """Read a response that a guarded client streams, up to `limit_bytes` after decoding. Closes it. Raises httpx2's errors."""
    data = bytearray()
    try:
        async for piece in response.aiter_raw():
            data += piece[: limit_bytes - len(data) + 1]
            if len(data) > limit_bytes:
                return Body(bytes(data[:limit_bytes]), is_cut=True)
    except BodyTooLarge:
        return Body(bytes(data), is_cut=True)
    finally:
        await response.aclose()
    return Body(bytes(data), is_cut=False)


class _Plain:
    def pieces(self, chunk: bytes) -> Iterator[bytes]:
        yield chunk

    def finish(self) -> None:
        return


class _Inflating:
    """gzip and deflate. A second member after the first is not read: nobody sends one in a response but to confuse."""

    def __init__(self, bits: int) -> None:
        self._inflate = zlib.decompressobj(bits)
        self._has_begun = False

    def pieces(self, chunk: bytes) -> Iterator[bytes]:
        while chunk and not self._inflate.eof:
            piece = self._step(chunk)
            chunk = self._inflate.unconsumed_tail
            if piece:
                yield piece

    def finish(self) -> None:
        if self._has_begun and not self._inflate.eof:
            raise httpx2.DecodingError("The compressed response ends in the middle.")

    def _step(self, chunk: bytes) -> bytes:
        try:
            piece = self._inflate.decompress(chunk, _PIECE)
        except zlib.error:
            raise httpx2.DecodingError("The compressed response is damaged.") from None
        self._has_begun = True
        return piece


class _Deflate(_Inflating):
    """deflate as the standard has it (with zlib's header), and as some servers send it (without)."""

    def __init__(self) -> None:
        super().__init__(zlib.MAX_WBITS)

    def _step(self, chunk: bytes) -> bytes:
        if self._has_begun:
            return super()._step(chunk)
        try:
            return super()._step(chunk)
        except httpx2.DecodingError:
            self._inflate = zlib.decompressobj(-zlib.MAX_WBITS)
            return super()._step(chunk)


def _decoder(encoding: str) -> _Plain | _Inflating:
    match encoding.strip().lower():
        case "" | "identity":
            return _Plain()
        case "gzip" | "x-gzip":
            return _Inflating(zlib.MAX_WBITS | 16)
        case "deflate":
            return _Deflate()
        case other:
            raise httpx2.DecodingError(f"The server answers in the encoding '{other[:40]}', which was not asked for.")
