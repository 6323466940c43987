"""Scoring programs for challenge servers: EvalAI and Codabench.

Messages that participants may read do not contain the path of the ground truth.
"""

import html
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import detmap
from detmap.errors import DataError, DetmapError, few

NOT_SUBMITTED = ("metadata", "__MACOSX")
"""Entries of Codabench and of archives made on macOS."""


class SubmissionError(ValueError):
    """A submission that cannot be evaluated; the message is for the participant."""


def score(truth: str | Path, submission: str | Path, protocol: str | None = None) -> detmap.Result:
    """Evaluates a submission.

    Raises
    ------
    SubmissionError : with place, cause and fix, without paths of the server
    """
    try:
        return detmap.evaluate(truth, submission, protocol)
    except (DetmapError, OSError) as error:
        text = str(error)
        for path, name in ((truth, "the ground truth"), (submission, "the submission")):
            for shown in (str(Path(path).resolve()), str(path)):
                text = text.replace(shown, name)
        raise SubmissionError(text) from None


def leaderboard(result: detmap.Result, labels: Mapping[str, str] | None = None) -> dict[str, float]:
    """Returns defined metrics by leaderboard label, without NaN.

    Parameters
    ----------
    labels : label per metric; by default all metrics under their names

    Raises `DataError` for a metric that the protocol does not have.
    """
    values = result.flat()
    if labels is None:
        return values
    for name in labels:
        if name.partition("/")[0] not in result.metrics:
            raise DataError("labels", f"no metric {name!r}", f"metrics: {few(result.metrics)}")
    return {label: values[name] for name, label in labels.items() if name in values}


def evalai(split: str, protocol: str | None = None, labels: Mapping[str, str] | None = None) -> Any:
    """Returns the function ``evaluate`` of an EvalAI challenge, for one split codename."""

    def evaluate(
        test_annotation_file: str, user_submission_file: str, phase_codename: str, **more: Any
    ) -> dict[str, Any]:
        result = score(test_annotation_file, user_submission_file, protocol)
        row = leaderboard(result, labels)
        return {"result": [{split: row}], "submission_result": row}

    return evaluate


def codabench(
    folder: str | Path, output: str | Path, protocol: str | None = None
) -> dict[str, float]:
    """Scores ``folder/res`` with ``folder/ref``; writes scores.json and detailed_results.html.

    Each of the two folders holds one file, or the files of one data set.
    """
    output = Path(output)
    output.mkdir(parents=True, exist_ok=True)
    detailed = output / "detailed_results.html"
    (output / "scores.json").unlink(missing_ok=True)
    try:
        truth = _input(Path(folder, "ref"), "the ground truth")
        result = score(truth, _input(Path(folder, "res"), "the submission"), protocol)
    except SubmissionError as error:
        detailed.write_text(f"<p>{html.escape(str(error))}</p>")
        raise
    scores = leaderboard(result)
    (output / "scores.json").write_text(json.dumps(scores))
    detailed.write_text(result._repr_html_())
    return scores


def _input(folder: Path, name: str) -> Path:
    """The only file of a folder that is not the server's or an archiver's own, or the folder. If
    a folder was packed as a whole, its content is used.

    Raises `SubmissionError` for a folder without a file.
    """
    files = [
        each
        for each in sorted(folder.glob("*"))
        if each.name not in NOT_SUBMITTED and not each.name.startswith(".")
    ]
    if not files:
        raise SubmissionError(f"{name}: there is no file (upload an archive with one results file)")
    if len(files) > 1:
        return folder
    return _input(files[0], name) if files[0].is_dir() else files[0]
