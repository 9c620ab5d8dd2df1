"""Builds the documentation as a site and checks it: `python -m docs.website`, or `make site`.

Warnings of Sphinx are errors. Phrases in the pages that must be replaced (`docs/plain_words.py`) are errors, too. The
site is written to results/site. A browser opens its index.html without a server.
"""

import shutil
import sys

from sphinx.cmd.build import build_main

from docs.check_docs import ROOT
from docs.plain_words import pages, worn_phrases
from docs.website.checks import problems

SITE = ROOT / "results" / "site"
FIRST = "docs/index.html"
ENTRY = f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>tilewright</title>
<meta http-equiv="refresh" content="0; url={FIRST}">
</head><body><a href="{FIRST}">tilewright</a></body></html>
"""


def main() -> int:
    """Build and check the site. Returns 1 if the build fails or a check finds a problem, else 0."""
    shutil.rmtree(SITE, ignore_errors=True)
    # All pages are read each time: a warning would otherwise be said once and then no more.
    options = [
        "--fresh-env",
        "--fail-on-warning",
        "--quiet",
        "--builder",
        "html",
        "--conf-dir",
        str(ROOT / "docs/website"),
    ]
    parsed = ROOT / ".cache" / "site"
    if build_main([*options, "--doctree-dir", str(parsed), str(ROOT), str(SITE)]):
        return 1
    (SITE / "index.html").write_text(ENTRY, "utf-8")
    found = [*problems(SITE), *(phrase for page in pages() for phrase in worn_phrases(page))]
    count = sum(1 for _ in SITE.rglob("*.html"))
    print("\n".join(found) or f"documentation: {count} pages; open {(SITE / 'index.html').relative_to(ROOT)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
