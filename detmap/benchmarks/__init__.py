"""Rules of benchmarks that the keys of a protocol cannot express, one module per rule.

To add a rule: a module here, its row in `RULES` or `EXTRA` of
`detmap.core.protocol.benchmark_rules`, and a protocol that uses it.
"""
