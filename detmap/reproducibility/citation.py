"""Citations for a paper: a methods sentence, a table caption and BibTeX entries."""

from detmap.core.protocol import tools
from detmap.errors import counted
from detmap.reproducibility.receipt import Receipt
from detmap.version import __version__

BENCHMARKS = {
    "coco": """@inproceedings{lin2014coco,
  author    = {Lin, Tsung-Yi and Maire, Michael and Belongie, Serge and Hays, James and
               Perona, Pietro and Ramanan, Deva and Doll{\\'a}r, Piotr and Zitnick, C. Lawrence},
  title     = {Microsoft {COCO}: Common Objects in Context},
  booktitle = {European Conference on Computer Vision (ECCV)},
  year      = {2014}
}""",
    "voc": """@article{everingham2010voc,
  author  = {Everingham, Mark and Van Gool, Luc and Williams, Christopher K. I. and Winn, John and
             Zisserman, Andrew},
  title   = {The {PASCAL} Visual Object Classes ({VOC}) Challenge},
  journal = {International Journal of Computer Vision},
  volume  = {88},
  number  = {2},
  pages   = {303--338},
  year    = {2010}
}""",
    "lvis": """@inproceedings{gupta2019lvis,
  author    = {Gupta, Agrim and Doll{\\'a}r, Piotr and Girshick, Ross},
  title     = {{LVIS}: A Dataset for Large Vocabulary Instance Segmentation},
  booktitle = {IEEE Conference on Computer Vision and Pattern Recognition (CVPR)},
  year      = {2019}
}""",
}
"""BibTeX of benchmarks, keyed by a word in the protocol's name."""

TOOL = """@misc{{{name},
  title        = {{{{{name}}}: {summary}}},
  howpublished = {{{source}}}
}}"""
"""BibTeX template of a tool's source code."""

YEAR, URL = 2026, "https://pypi.org/project/detmap-eval/"
"""Of detmap's release."""

DETMAP = """@software{{detmap,
  author  = {{{{The detmap contributors}}}},
  title   = {{detmap: benchmark evaluation for object detectors, exact and fast}},
  version = {{{version}}},
  year    = {{{year}}},
  url     = {{{url}}}
}}"""


def sentence(receipt: Receipt, *, verified: bool = True) -> str:
    """Returns one sentence with metric, data, protocol and version; marks unverified numbers."""
    name, value = _headline(receipt)
    counts, rules = receipt.content["counts"], receipt.protocol
    under = rules.title if rules.changes else rules.name
    shown = "undefined" if value is None else f"{100 * value:.2f}"
    images, objects, classes = (
        counted(counts[key], noun)
        for key, noun in (("images", "image"), ("objects", "object"), ("classes", "class"))
    )
    return (
        f"{name} is {shown} on {images} with {objects} of {classes}, under the protocol {under}, "
        f"as computed by detmap {_version(receipt)}{'' if verified else ' (not verified)'}."
    )


def caption(receipt: Receipt) -> str:
    """Returns a table caption with the short signature."""
    rules = receipt.protocol
    title = rules.title if rules.changes else rules.summary
    return f"{title}. detmap, {receipt.content['short']}."


def bibtex(receipt: Receipt) -> list[str]:
    """Returns the BibTeX entries of the benchmark or tool, where known, and of detmap."""
    texts = [text for word, text in BENCHMARKS.items() if word in receipt.protocol.name]
    rules = receipt.protocol
    if rules.name in tools():
        fields = rules.to_dict()
        texts.append(TOOL.format(**{key: fields[key] for key in ("name", "summary", "source")}))
    return [*texts, DETMAP.format(version=_version(receipt), year=YEAR, url=URL)]


def _version(receipt: Receipt) -> str:
    return str(receipt.content["environment"].get("detmap", __version__))


def _headline(receipt: Receipt) -> tuple[str, float | None]:
    """The first metric of the protocol and its value."""
    metrics = receipt.content["metrics"]
    first = receipt.protocol.metrics[0]
    name = first if first in metrics else next(iter(metrics), "")
    return name, metrics.get(name)
