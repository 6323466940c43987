"""Pages of the site that have no file in docs/: the README and the Python API."""

import html
import importlib
import inspect
import os
import re
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any

from mkdocs.structure.files import File, Files

import detmap

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\(\.\./([^)#]+)\)")
BOOSTS = {"how-to.md": 2, "getting-started.md": 2, "CHANGELOG.md": 0.2, "CONTRIBUTING.md": 0.2}
BOOSTS |= {
    "extend.md": 0.2,
    "add-a-format.md": 0.2,
    "add-an-overlap.md": 0.2,
    "performance.md": 0.5,
}
"""Page -> factor of its rank in the search."""

TOPICS = {
    "Evaluate": "evaluate match summarize Evaluator Result Matches plot",
    "Compare and analyze": "compare diagnose Diagnosis doctor Finding report",
    "Check a number": "tools explain reproduce verify",
    "Read and write": "read_truth read_detections truth_from_arrays detections_from_arrays"
    " read_slices convert inspect Truth Detections Images Categories Note",
    "Protocols": "load_protocol show Protocol",
    "Clusters": "distributed",
    "Errors": "DetmapError DataError ProtocolError MergeError",
    "Image classifiers": "detmap.ranking",
    "Drop-in for pycocotools": "detmap.compat",
}
"""Topic of the API -> names of `detmap`, or a module whose names it has."""


def on_config(config: Any) -> Any:
    """Links to the repository that the site is built from."""
    config.repo_url = repository()
    config.repo_name = "repository" if config.repo_url else None
    return config


def repository() -> str | None:
    """Returns the address in DETMAP_REPOSITORY, else that of the remote `origin`, if known."""
    command = ["git", "-C", str(ROOT), "remote", "get-url", "origin"]
    asked = subprocess.run(command, capture_output=True, text=True, check=False)
    address = os.environ.get("DETMAP_REPOSITORY") or asked.stdout.strip()
    address = re.sub(r"^(?:ssh://)?git@([^:/]+)[:/]", r"https://\1/", address).removesuffix(".git")
    return address if address.startswith("https://") else None


def on_files(files: Files, config: Any) -> Files:
    """Adds the front page, the API pages, and repository files outside docs/ that pages link to."""
    for path, content in write_api().items():
        files.append(File.generated(config, path, content=content))
    files.append(File.generated(config, "index.md", content=read_readme()))
    pages = [page for page in files.documentation_pages() if "/" not in page.src_uri]
    linked = {link for page in pages for link in LINK.findall(page.content_string)}
    for link in sorted(linked - {"README.md"}):
        files.append(File.generated(config, f"files/{link}", abs_src_path=str(ROOT / link)))
    style = str(ROOT / "docs" / "site" / "site.css")
    files.append(File.generated(config, "files/site.css", abs_src_path=style))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Points links to repository files outside docs/ to their copies on the site.

    The search ranks pages for users before pages for contributors.
    """
    if page.file.src_uri in BOOSTS:
        page.meta["search"] = {"boost": BOOSTS[page.file.src_uri]}
    if "/" in page.file.src_uri:
        return markdown  # ../ is docs/ there
    return LINK.sub(r"](files/\1)", markdown.replace("](../README.md)", "](index.md)"))


def on_page_content(content: str, **_: Any) -> str:
    """Labels the cells of tables by their column: narrow screens show a cell per line."""
    return re.sub(r"<table>.*?</table>", labeled, content, flags=re.DOTALL)


def labeled(found: re.Match[str]) -> str:
    """Returns a table whose cells have the attribute data-label."""
    heads = re.findall(r"<th(?: [^>]*)?>(.*?)</th>", found[0], re.DOTALL)
    labels = [html.unescape(re.sub(r"<[^>]+>", "", head)).strip() for head in heads]

    def row(cells: re.Match[str]) -> str:
        at = iter(labels)
        return re.sub(r"<td", lambda _: label(next(at, "")), cells[0])

    def label(text: str) -> str:
        return f'<td data-label="{html.escape(text, quote=True)}"' if text else "<td"

    return re.sub(r"<tr>.*?</tr>", row, found[0], flags=re.DOTALL)


def read_readme() -> str:
    """Returns the README with links relative to docs/."""
    text = re.sub(r"\]\((?!\w+:|#)", "](../", (ROOT / "README.md").read_text())
    return text.replace("](../docs/", "](")


def write_api() -> dict[str, str]:
    """Returns the pages of the API: one per topic, and one with all signatures."""
    pages, tables = {}, ["# Python API", "", "Everything is in `detmap`, by topic.", ""]
    listed = {"__version__", "ranking"}
    for topic, names in TOPICS.items():
        module = detmap
        if "." in names:
            module = importlib.import_module(names)
            names = " ".join(module.__all__)
        else:
            listed |= set(names.split())
        path = re.sub(r"\W+", "-", topic.lower())
        pages[f"api/{path}.md"] = write_topic(topic, module, names.split())
        tables += [f"## {topic}", "", "| name | meaning |", "|---|---|"]
        tables += [row(module, name, path) for name in names.split()]
        tables.append("")
    if missing := set(detmap.__all__) - listed:
        raise ValueError(f"docs/site/pages.py: no topic for {sorted(missing)}")
    return pages | {"api/index.md": "\n".join(tables)}


def row(module: ModuleType, name: str, path: str) -> str:
    """Returns the row of a public name: its signature and the first line of its docstring."""
    value = getattr(module, name)
    if not hasattr(value, "__qualname__") and not isinstance(value, ModuleType):
        return f"| [`{name}`]({path}.md) | `{value!r}` |"
    text = (inspect.getdoc(value) or "").partition("\n\n")[0].replace("\n", " ")
    shown = name
    if inspect.isfunction(value):
        known = inspect.signature(value).parameters.values()
        first = [
            p.name for p in known if p.default is p.empty and p.kind <= p.POSITIONAL_OR_KEYWORD
        ]
        shown = f"{name}({', '.join([*first, *(['...'] if len(first) < len(known) else [])])})"
    return f"| [`{shown}`]({path}.md#{anchor(value)}) | {text.replace('|', ' ')} |"


def anchor(value: Any) -> str:
    """Returns the full name of a value, which is its anchor."""
    if isinstance(value, ModuleType):
        return value.__name__
    return f"{value.__module__}.{value.__qualname__}"


def write_topic(topic: str, module: ModuleType, names: list[str]) -> str:
    """Returns a page with one entry per name."""
    lines = ["---", "search: {boost: 0.3}", "---", f"# {topic}", ""]
    if module is not detmap:
        lines += [f"::: {module.__name__}", "    options:", "      members: false"]
        lines += ["      show_root_heading: false", "      show_root_toc_entry: false", ""]
    for name in names:
        value = getattr(module, name)
        if isinstance(value, ModuleType) or hasattr(value, "__qualname__"):
            lines += [f"::: {anchor(value)}", ""]
        else:
            lines += [f"## {name}", "", f"`{name} = {value!r}`", ""]
    return "\n".join(lines)
