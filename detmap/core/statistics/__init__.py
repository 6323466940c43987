"""Uncertainty of metrics: confidence intervals, comparison of detectors, bounds for ties."""
