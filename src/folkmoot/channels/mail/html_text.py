"""The text of a mail that is HTML alone, as far down as its sender wrote it: from the first quotation on, one line that says so.

Markup is first made plain, in one pass: the library's parser takes time in the square of what is made to be slow.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser

# of a mail's HTML; what a person writes stands at the top
MOST_CHARACTERS = 100_000

_QUOTE_LINE = "\n>\n"
_QUOTES = (
    "gmail_quote",
    "gmail_attr",
    "moz-cite-prefix",
    "yahoo_quoted",
    "protonmail_quote",
    "quoted_content",
    "zmail_extra",
)
_QUOTE_IDS = ("divrplyfwdmsg", "appendonsend", "mail-editor-reference-message-container", "reply-intro")
_UNSHOWN = frozenset({"script", "style", "title", "template", "noscript"})
_BLOCKS = frozenset(
    {"p", "div", "li", "ul", "ol", "table", "tr", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "section", "article", "hr"}
)
# a tag with what little it may hold; any other '<' is a character
_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9]*)((?:[\s/][^<>]{0,2000})?)>")
_DECLARATION = re.compile(r"<[!?][^<>]{0,2000}>")
_NAMING = re.compile(r"(?<![\w-])(class|id)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))", re.IGNORECASE)
_STRAY = re.compile(r"<(?!/?[A-Za-z][A-Za-z0-9]*[^<>]*>)")


def text_of_html(source: str) -> str:
    """Lines as they are shown, with no blank ones doubled. A quotation and all that follows is a line of '>'."""
    reader = _Reader()
    reader.feed(_plain(source[:MOST_CHARACTERS]))
    reader.close()
    lines = [" ".join(line.split()) for line in "".join(reader.parts).split("\n")]
    return "\n".join(line for at, line in enumerate(lines) if line or (at and lines[at - 1])).strip("\n")


def _plain(source: str) -> str:
    """Without comments and declarations, each tag with its class and id alone."""
    bare = _DECLARATION.sub("", _without_comments(source))
    return _STRAY.sub("&lt;", _TAG.sub(_plain_tag, bare))


def _without_comments(source: str) -> str:
    parts: list[str] = []
    at = 0
    while (start := source.find("<!--", at)) >= 0:
        parts.append(source[at:start])
        end = source.find("-->", start)
        if end < 0:  # a comment without end is one to the end
            return "".join(parts)
        at = end + 3
    return "".join([*parts, source[at:]])


def _plain_tag(tag: re.Match[str]) -> str:
    kept = [
        f'{name[1].lower()}="{" ".join(re.findall(r"[A-Za-z0-9_-]+", name[2] or name[3] or name[4] or ""))}"'
        for name in _NAMING.finditer(tag[3])
    ]
    return f"<{tag[1]}{' '.join([tag[2], *kept])}>"


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._unshown = 0
        self._is_over = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._is_over:
            return
        if tag in _UNSHOWN:
            self._unshown += 1
        elif _is_quote(tag, dict(attrs)):
            self._is_over = True
            self.parts.append(_QUOTE_LINE)
        elif tag == "br" or tag in _BLOCKS:
            self.parts.append("\n")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _UNSHOWN:
            self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if tag in _UNSHOWN:
            self._unshown = max(0, self._unshown - 1)
        elif tag in _BLOCKS and not self._is_over:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._unshown and not self._is_over:
            self.parts.append(data.replace("\n", " ").replace("\r", " "))


def _is_quote(tag: str, attributes: dict[str, str | None]) -> bool:
    if tag == "blockquote":
        return True
    classes = (attributes.get("class") or "").lower().split()
    return any(name in _QUOTES for name in classes) or (attributes.get("id") or "").lower() in _QUOTE_IDS
