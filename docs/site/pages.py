"""Pages of the site that have no file in docs/: the README and the Python API."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from types import ModuleType
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
API = ("detmap", "detmap.ranking", "detmap.compat")
LINK = re.compile(r"\]\(\.\./([^)#]+)\)")


def on_files(files: Files, config: Any) -> Files:
    """Adds the front page, the API pages, and repository files outside docs/ that pages link to."""
    for name in API:
        path = f"api/{name.rpartition('.')[2]}.md"
        files.append(File.generated(config, path, content=write_api(name)))
    files.append(File.generated(config, "index.md", content=read_readme()))
    pages = [page for page in files.documentation_pages() if "/" not in page.src_uri]
    linked = {link for page in pages for link in LINK.findall(page.content_string)}
    for link in sorted(linked - {"README.md"}):
        files.append(File.generated(config, f"files/{link}", abs_src_path=str(ROOT / link)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Points links to repository files outside docs/ to their copies on the site."""
    if "/" in page.file.src_uri and page.file.src_uri.startswith("benchmarks/"):
        return markdown  # ../ is docs/ there
    return LINK.sub(r"](files/\1)", markdown.replace("](../README.md)", "](index.md)"))


def read_readme() -> str:
    """Returns the README with links relative to docs/."""
    text = re.sub(r"\]\((?!\w+:|#)", "](../", (ROOT / "README.md").read_text())
    return text.replace("](../docs/", "](")


def write_api(name: str) -> str:
    """Returns a page with one entry per public name of a module."""
    module = importlib.import_module(name)
    lines = [f"# {name}", "", f"::: {name}", "    options:", "      members: false"]
    lines += ["      show_root_heading: false", "      show_root_toc_entry: false", ""]
    for public in module.__all__:
        value = getattr(module, public)
        if isinstance(value, ModuleType):
            lines += [f"::: {value.__name__}", "    options:", "      members: false", ""]
        elif hasattr(value, "__qualname__"):
            lines += [f"::: {value.__module__}.{value.__qualname__}", ""]
        else:
            lines += [f"## {public}", "", f"`{public} = {value!r}`", ""]
    return "\n".join(lines)
