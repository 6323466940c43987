"""`warmup` says where the kernels are, or that they cannot be saved."""

import pytest

from detmap import DetmapError, warmup
from detmap.kernels import jit


def test_where_the_kernels_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warmup, "PLAIN_PYTHON", False)
    monkeypatch.setattr(jit, "folders", {})
    assert "contains them, nothing is compiled" in warmup.saved()
    monkeypatch.setattr(jit, "folders", {"a": "/x", "b": "/x"})
    assert warmup.saved() == "the kernels are ready: numba saved 2 in /x"
    monkeypatch.setattr(jit, "folders", {"a": "/x", "b": ""})
    with pytest.raises(DetmapError, match=r"1 kernel .* cannot be saved: .*NUMBA_CACHE_DIR"):
        warmup.saved()
    monkeypatch.setattr(warmup, "PLAIN_PYTHON", True)
    assert "plain Python" in warmup.saved()


@pytest.mark.slow
@pytest.mark.parametrize("writable", [True, False])
def test_numba_reports_its_folder(monkeypatch: pytest.MonkeyPatch, writable: bool) -> None:
    caching = pytest.importorskip("numba.core.caching")
    from detmap.kernels.overlap import count_outside

    if not writable:
        implementation = caching.FunctionCache._impl_class
        monkeypatch.setattr(implementation, "_locator_classes", [])
    monkeypatch.setattr(jit, "folders", {})
    jit.cached.__wrapped__(count_outside)
    assert bool(jit.folders["count_outside"]) is writable
