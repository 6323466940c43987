"""Ray, Spark and Dask: the recipes of tools/hosting/cluster.py, each with a killed worker."""

import shutil

import pytest

pytest.importorskip("pyarrow", reason="needs detmap-eval[parquet]")
MODULES = {"ray": "ray.data", "spark": "pyspark", "dask": "distributed"}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the engines, about the killed worker
@pytest.mark.parametrize("engine", MODULES)
def test_a_killed_worker_changes_no_number(engine: str) -> None:
    pytest.importorskip(MODULES[engine], reason=f"{engine} is not installed")
    if engine == "spark" and shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    from tools.hosting import cluster

    assert "equal after a killed worker" in cluster.check(engine)
