"""Checks of the built site: nothing is loaded from a network, and the target of each relative link exists."""

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

LOADS = {"audio", "embed", "iframe", "img", "input", "link", "object", "script", "source", "track", "video"}
"""Elements whose addresses a browser loads by itself. Addresses of other elements are loaded when a person clicks on
them.
"""
REMOTE = re.compile(r"(https?:)?//", re.IGNORECASE)
REMOTE_STYLE = re.compile(r"""(?:@import\s*|url\(\s*)["']?(?:https?:)?//[^"')\s]+""", re.IGNORECASE)


@dataclass
class _References(HTMLParser):
    """Addresses and anchors of a page. The class parses the HTML of the page."""

    addresses: list[tuple[str, str]] = field(default_factory=list)
    """Pairs (name of the element, address)."""
    anchors: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.anchors.add(value)
            elif name in ("data", "href", "poster", "src", "srcset") and value:
                self.addresses.append((tag, value))


def problems(site: Path) -> list[str]:
    """Sentences, one for each load from a network, and one for each relative address without a target in the site."""
    pages = {path: _read(path) for path in sorted(site.rglob("*.html"))}
    anchors = {path: page.anchors for path, page in pages.items()}
    found = []
    for path, page in pages.items():
        name = path.relative_to(site)
        found += [
            f"{name}: loads from a network: <{tag}> {text}" for tag, text in page.addresses if _is_load(tag, text)
        ]
        # The page for addresses that do not exist is served at all of them, and refers to the root.
        if name.name != "404.html":
            found += [f"{name}: {reason}" for reason in _missing(path, page, anchors)]
        found += [f"{name}: a style loads from a network: {text}" for text in _remote_styles(path)]
    for path in sorted(site.rglob("*.css")):
        found += [f"{path.relative_to(site)}: loads from a network: {text}" for text in _remote_styles(path)]
    return found


def _read(path: Path) -> _References:
    references = _References()
    references.feed(path.read_text("utf-8"))
    return references


def _is_load(tag: str, address: str) -> bool:
    return tag in LOADS and bool(REMOTE.match(address))


def _remote_styles(path: Path) -> list[str]:
    text = path.read_text("utf-8")
    if path.suffix == ".html":
        text = "".join(re.findall(r"<style[^>]*>(.*?)</style>", text, re.DOTALL))
    return REMOTE_STYLE.findall(text)


def _missing(path: Path, page: _References, anchors: dict[Path, set[str]]) -> list[str]:
    found = []
    for _, address in page.addresses:
        if re.match(r"[a-z][a-z0-9+.-]*:|//", address):
            continue
        place, _, anchor = unquote(address).partition("#")
        target = (path.parent / place.partition("?")[0]).resolve() if place else path
        if not target.is_file():
            found.append(f"not in the site: {address}")
        elif anchor and target in anchors and anchor not in anchors[target]:
            found.append(f"no such anchor: {address}")
    return found
