"""Benchmarks, one folder each: the reader of its files, and rules that keys cannot express.

To add a rule: a module in the benchmark's folder, its row in `RULES` or `EXTRA` of
`detmap.core.protocol.benchmark_rules`, and a protocol that uses it. To add a reader: a module
``files``, and its row in `detmap.benchmarks.formats`.
"""
