"""The official programs that are MATLAB code, run in GNU Octave (`octave-cli`)."""

import re
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from stand_ins import Numbers

MISSING = {
    "mean2": "function m = mean2(x) m = mean(x(:)); end",
    "roundn": "function x = roundn(x, n) end",
    **{name: f"function {name}(varargin) end" for name in ("figure", "plot", "axis", "title")},
    **{name: f"function {name}(varargin) end" for name in ("xlabel", "ylabel")},
}
"""Functions of MATLAB's toolboxes, and of the display. `roundn` leaves all digits."""
JAVA = {
    "make_hash": "function h = make_hash(s) h = containers.Map({s.WNID}, 1:numel(s)); end",
    "get_class2node": "function k = get_class2node(h, wnid) k = h(wnid); end",
}
"""ImageNet's two functions that use a table of Java, which Octave need not have."""


def octave(code: str, work: Path, *sources: Path, functions: dict[str, str]) -> Numbers:
    """Runs code in a folder, with functions from it and from sources.

    Returns the numbers of the lines ``@NAME VALUE``.
    """
    work.mkdir(parents=True, exist_ok=True)
    for name, text in functions.items():
        (work / f"{name}.m").write_text(text)
    paths = "".join(f"addpath('{folder.resolve()}'); " for folder in (*sources, work))
    words = ["octave-cli", "--quiet", "--no-history", "--eval", paths + code]
    run = subprocess.run(words, cwd=work, check=True, stdout=subprocess.PIPE, text=True)
    return {name: float(x) for name, x in re.findall(r"^@(\S+) (\S+)$", run.stdout, re.MULTILINE)}


def visdrone(folder: Path, checkout: Path) -> Numbers:
    """VisDrone2018-DET-toolkit."""
    files = ", ".join(f"'{folder.resolve() / x}'" for x in ("annotations", "results", "images"))
    code = f"""
    names = findImageList('{folder.resolve() / "annotations"}');
    [objects, found] = saveAnnoRes({files}, numel(names), names);
    names = {{'AP', 'AP50', 'AP75', 'AR1', 'AR10', 'AR100', 'AR500'}};
    [numbers{{1:7}}] = calcAccuracy(numel(objects), objects, found);
    for i = 1:7, printf('@%s %.17g\\n', names{{i}}, numbers{{i}} / 100); end
    """
    with TemporaryDirectory() as work:
        return octave(code, Path(work), checkout / "utils", functions=MISSING)


def uavdt(folder: Path, checkout: Path) -> Numbers:
    r"""UAV-benchmark-MOTD; its paths of Windows, `.\GT\...`, are names of links here."""
    code = r"""
    CalculateDetectionPR_overall('det');
    load('.\det_EVA\det_overall.mat');
    printf('@mAP %.17g\n', VOCap(attribute.rec{1}, attribute.prec{1}));
    """
    with TemporaryDirectory() as work:
        for prefix, part in ((".\\GT\\", "gt"), (".\\RES_DET\\\\det\\", "det")):
            for file in (folder.resolve() / part).iterdir():
                (Path(work) / f"{prefix}{file.name}").symlink_to(file)
        return octave(code, Path(work), checkout, checkout / "utils", functions=MISSING)


def caltech(folder: Path, checkout: Path) -> Numbers:
    """CSP's dbEval, with the folder of annotations, a comment in it, and with nine experiments."""
    source = checkout / "eval_caltech"
    text = (source / "dbEval.m").read_text()
    places = "[1 2 6 8 9 13 15 16 18]"
    shown = "rows = [{exps.name}; num2cell(scores')]; printf('@%s %.17g\\n', rows{:});"
    for old, new in (
        ("exps = exps(1);", f"exps = exps({places}); pth.annDir = '{folder / 'annotations'}';"),
        ("scores1=scores*100;", shown + " scores1=scores;"),
        ("load('AS.mat');", "AS = repmat({struct('nFrame', 330)}, 5, 1000);"),
    ):
        if old not in text:
            raise ValueError(f"{source / 'dbEval.m'} has no {old!r}")
        text = text.replace(old, new)
    names = {
        "Reasonable": "MR50", "All": "MR50-All", "Scale=far": "MR50-Scale-far",
        "Occ=partial": "MR50-Occ-partial", "Occ=heavy": "MR50-Occ-heavy", "Overlap=25": "MR25",
        "Overlap=75": "MR75", "Expand=100": "MR50-Expand-100", "Expand=150": "MR50-Expand-150",
    }  # fmt: skip
    with TemporaryDirectory() as top:
        results = Path(top) / "output" / "valresults" / "caltech" / "h" / "off"
        results.mkdir(parents=True)
        (results / "detector").symlink_to((folder / "videos").resolve())
        found = octave("dbEval", Path(top) / "run", source, functions=MISSING | {"dbEval": text})
    return {names[name]: value for name, value in found.items()}


def imagenet_det(folder: Path, checkout: Path) -> Numbers:
    """ILSVRC2014's development kit, as in zhoubolei/CAM."""
    at = folder.resolve()
    code = f"""
    synsets = struct('WNID', textread('{at}/synsets.txt', '%s'));
    save('-v7', 'meta.mat', 'synsets');
    ap = eval_detection('{at}/predictions.txt', '{at}/xml', 'meta.mat', '{at}/val.txt',
                        '{at}/blacklist.txt');
    printf('@mAP %.17g\\n', mean(ap));
    """
    with TemporaryDirectory() as work:
        return octave(code, Path(work), checkout / "evaluation", functions=JAVA)


def widerface_matlab(folder: Path, checkout: Path) -> Numbers:
    """The `eval_tools` of WIDER FACE, as in peiyunh/tiny."""
    source = checkout / "eval_tools"
    text = (source / "evaluation.m").read_text().replace("'-v7.3'", "'-v7'")
    truth = (folder / "ground_truth").resolve()
    code = f"""
    found = norm_score(read_pred('{folder.resolve()}/widerface_txt', '{truth}/wider_face_val.mat'));
    for level = {{'easy', 'medium', 'hard'}}
      faces = load('{truth}/wider_face_val.mat');
      faces.gt_list = load(['{truth}/wider_' level{{1}} '_val.mat']).gt_list;
      save('-v7', 'faces.mat', '-struct', 'faces');
      evaluation(found, 'faces.mat', level{{1}}, 'setting_int', 'all');
      curve = load(['plot/baselines/Val/setting_int/all/wider_pr_info_all_' level{{1}} '.mat']);
      name = [upper(level{{1}}(1)) level{{1}}(2:end)];
      printf('@%s %.17g\\n', name, VOCap(curve.pr_cruve(:, 2), curve.pr_cruve(:, 1)));
    end
    """
    with TemporaryDirectory() as work:
        functions = {"evaluation": text}
        return octave(code, Path(work), source, source / "plot", functions=functions)
