"""detmap inside other programs: one module per host, which imports the host.

Nothing else of detmap imports these modules.
"""
