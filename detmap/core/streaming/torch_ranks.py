"""The ranks of torch.distributed."""

import sys
from typing import Any

from detmap.errors import DetmapError


def are_there() -> bool:
    """Checks if this process is a rank of a group; does not import torch."""
    if "torch.distributed" not in sys.modules:  # no group exists
        return False
    import torch.distributed as dist

    return bool(dist.is_available() and dist.is_initialized())


def gather(state: Any, group: Any) -> list[Any]:
    """Returns the states of all ranks, on every rank. Raises `DetmapError` if a rank is lost."""
    import torch.distributed as dist

    states: list[Any] = [None] * dist.get_world_size(group)
    try:
        dist.all_gather_object(states, state, group=group)
    except RuntimeError as error:  # torch reports a lost rank and a timeout in this way
        raise DetmapError(
            "sync",
            f"the ranks did not synchronize: {str(error).splitlines()[0]}",
            "check whether a rank has ended or is too slow; this rank keeps its images",
        ) from error
    return states
