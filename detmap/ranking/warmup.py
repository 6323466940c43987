"""Runs the kernels of the classification metrics on tiny inputs."""

from detmap import ranking


def rank_next_to_nothing() -> None:
    """Computes classification and retrieval metrics."""
    labels, scores = [0, 1, 1], [0.1, 0.4, 0.35]
    for ties in ranking.TIES:
        ranking.average_precision(labels, scores, ties=ties, sample_weight=[1.0, 1.0, 2.0])
        ranking.precision_recall_curve(labels, scores)
    for integrator in ranking.INTEGRATORS:
        ranking.average_precision(labels, scores, integrator=integrator)
    ranking.auc(labels, scores)
    ranking.roc_curve(labels, scores)
    ranking.best_f_beta(labels, scores)
    ranking.precision_at_k(labels, scores, 1)
    ranking.average_precision_at_k(labels, scores, 1)
