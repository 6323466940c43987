"""Suites: several data sets in one file, and the figures that their authors take over them."""

from detmap.benchmarks.suites.suite_file import Figure, Row, Suite, read_suite
from detmap.benchmarks.suites.suite_result import SuiteResult, evaluate_suite

__all__ = ["Figure", "Row", "Suite", "SuiteResult", "evaluate_suite", "read_suite"]
