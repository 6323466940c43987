"""The public names, for type checkers and editors; `__init__.py` imports each on first use."""

from detmap import ranking as ranking
from detmap.analysis.curve_plots import plot as plot
from detmap.analysis.diagnosis import Diagnosis as Diagnosis
from detmap.analysis.diagnosis import diagnose as diagnose
from detmap.analysis.doctor import Finding as Finding
from detmap.analysis.doctor import doctor as doctor
from detmap.analysis.inspection import inspect as inspect
from detmap.analysis.report import report as report
from detmap.annotation_tools.conversion import convert as convert
from detmap.compare import compare as compare
from detmap.core.adapters import read_detections as read_detections
from detmap.core.adapters import read_truth as read_truth
from detmap.core.adapters.in_memory.arrays import detections_from_arrays as detections_from_arrays
from detmap.core.adapters.in_memory.arrays import truth_from_arrays as truth_from_arrays
from detmap.core.adapters.tabular.slice_lists import read_slices as read_slices
from detmap.core.matching.matches import Matches as Matches
from detmap.core.protocol import Protocol as Protocol
from detmap.core.protocol import load as _load
from detmap.core.results.result import Result as Result
from detmap.core.streaming.evaluator import Evaluator as Evaluator
from detmap.core.tables import Categories as Categories
from detmap.core.tables import Detections as Detections
from detmap.core.tables import Images as Images
from detmap.core.tables import Note as Note
from detmap.core.tables import Truth as Truth
from detmap.errors import DataError as DataError
from detmap.errors import DetmapError as DetmapError
from detmap.errors import MergeError as MergeError
from detmap.errors import ProtocolError as ProtocolError
from detmap.evaluate import evaluate as evaluate
from detmap.evaluate import match as match
from detmap.evaluate import summarize as summarize
from detmap.files import show as show
from detmap.integrations import distributed as distributed
from detmap.reproducibility.explaining import explain as explain
from detmap.reproducibility.reproducing.search import reproduce as reproduce
from detmap.reproducibility.tool_numbers import tools as tools
from detmap.reproducibility.verification import verify as verify
from detmap.version import __version__ as __version__

load_protocol = _load
