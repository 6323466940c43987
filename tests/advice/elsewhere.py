"""Advices that other tests follow, and those that no test can follow, with the reason."""

WORDS = "core/base/suggestions: "
GUESSES, FIRST = "tests/cli/test_guesses.py::", "tests/results/test_first_guess.py::"
CHAIN = "tests/analysis/doctor/test_fix_chain.py::"
CLOSER = "tests/analysis/doctor/test_boxes_of_two_mistakes.py::"
UNKNOWN = "core/adapters/joining/unknown_policy: "
TESTED = {
    "analysis/report: write output={}": "tests/test_public_functions.py::"
    + "test_an_output_given_by_position_is_named",
    "__init__: {}: write `detmap.evaluate(...).{}`": FIRST
    + "test_functions_and_methods_name_each_other",
    "__init__: did you mean detmap.evaluate(...).{}?": FIRST
    + "test_functions_and_methods_name_each_other",
    "core/output/named_values: did you mean to_frame()[{}]?": FIRST
    + "test_functions_and_methods_name_each_other",
    "core/output/named_values: {}; did you mean to_frame()[{}]?": FIRST
    + "test_an_attribute_of_others_names_the_right_one",
    "cli/commands/compare: write `detmap compare TRUTH A B`,": GUESSES
    + "test_words_that_mean_another_command_line",
    "cli/dispatch: did you mean `detmap eval TRUTH": GUESSES
    + "test_words_that_mean_another_command_line",
    "cli/dispatch: rules have an option: write --to": GUESSES
    + "test_words_that_mean_another_command_line",
    "analysis/commands/diagnose: {} more classes: --table points -o": "tests/analysis/"
    "test_diagnose_command.py::test_many_classes_fit_a_screen_and_the_rest_is_in_a_file",
    "analysis/doctor/class_hypotheses: class ids are those of COCO's": "tests/analysis/doctor/"
    "test_unknown_names.py::test_a_model_of_80_classes_on_three_of_them",
    "analysis/doctor/examine: {}, as the boxes around the": CLOSER
    + "test_masks_that_no_fix_can_move_are_named",
    "core/matching/matches: match all images at once with": CLOSER
    + "test_parts_with_other_guesses_do_not_merge",
    "analysis/doctor/examine: --fix {}": "tests/analysis/doctor/test_battery.py::"
    "test_a_mistake_is_the_first_finding_and_its_fix_is_right",
    "analysis/doctor/fixes: --fix {}": "tests/analysis/doctor/test_battery.py::"
    "test_a_mistake_is_the_first_finding_and_its_fix_is_right",
    'analysis/doctor/fixes: add --unknown drop (in Python unknown="drop")': CHAIN
    + "test_images_that_no_shift_explains_are_named",
    "analysis/doctor/image_hypotheses: detections: add --unknown drop to leave": CHAIN
    + "test_images_that_no_shift_explains_are_named",
    "core/matching/matches: match all parts with the same": CHAIN
    + "test_parts_with_and_without_a_fix_do_not_merge",
    "analysis/doctor/shaped_rows: counts of masks are the text": "tests/analysis/doctor/"
    "test_shapes.py::test_counts_that_are_the_text_of_bytes",
    "core/overlaps/mask_errors: counts is the text of Python": "tests/analysis/doctor/"
    "test_shapes.py::test_counts_that_are_the_text_of_bytes",
    "annotation_tools/mmdet_predictions: give the names of the model's": "tests/annotation_tools/"
    "test_prediction_folders.py::test_labels_without_names_need_them",
    "benchmarks/visdrone/files: put the images in {}, or": "tests/benchmarks/"
    "test_benchmark_files.py::test_sizes_of_visdrone_may_be_an_option",
    UNKNOWN + '--set scope.unknown=classes (in Python settings={"scope.unkn': ""
    "tests/adapters/test_unknown_policy.py::test_a_class_that_csv_lacks_is_added",
    UNKNOWN + "if classes count from 1 here,": "tests/adapters/test_unknown_policy.py::"
    "test_classes_that_may_count_from_one_get_both_meanings",
    "core/adapters/recognition: name it: --detections-format yolo, cartucho, kitti": ""
    "tests/adapters/test_text_columns.py::test_a_folder_of_empty_files_asks_for_the_format",
    "core/adapters/registry: did you mean {}?": GUESSES + "test_a_wrong_path_names_one_beside_it",
    "cli/dispatch: did you mean {}?": GUESSES + "test_a_wrong_option_names_the_right_one",
    WORDS + "did you mean {}?": GUESSES + "test_wrong_metrics_and_classes_in_options",
    WORDS + "{}; did you mean {}?": FIRST + "test_a_wrong_attribute_names_the_right_one",
    WORDS + "convert(detections, output, truth=...)": FIRST
    + "test_arguments_of_reading_name_its_functions",
    "core/output/tabular: name a file such as table.tex;": FIRST
    + "test_a_text_without_suffix_is_no_file",
    "core/tables/extension: classes without objects that only other": "tests/tables/"
    "test_extension.py::test_a_comparison_is_of_all_classes_in_either_order",
    "compat/cocoeval: see help(detmap.compat) for what they need,": "tests/benchmarks/"
    "test_boundary.py::test_the_drop_in_refuses_what_only_pycocotools_evaluates",
    "core/streaming/evaluator: call reset() before the next round": "tests/streaming/"
    "test_evaluator_state.py::"
    "test_a_second_gathering_of_the_ranks_is_refused_until_the_reset",
    "annotation_tools/conversion/__init__: detections need their ground truth: --truth": GUESSES
    + "test_detections_are_converted_with_their_ground_truth",
    "analysis/html_report/report_tables: save the receipt below as run.json,": "tests/analysis/"
    "html_report/test_page.py::test_the_receipt_in_a_page_is_verified",
    "core/curves/terms: use fewer iou.thresholds, areas or recall": "tests/base/test_memory.py::"
    "test_curves_that_do_not_fit_name_a_way_out_that_helps",
    "integrations/ultralytics: call model.val(save_json=True)": "tests/integrations/"
    "test_ultralytics.py::test_the_numbers_of_val_and_of_the_files",
    "integrations/ultralytics: call model.train(save_json=True), or use coco_metrics()": "tests/"
    "integrations/test_ultralytics.py::test_a_training_run_has_cocos_metrics_in_results_csv",
    "integrations/transformers: set eval_do_concat_batches=False, remove_unused_columns=Fals": ""
    "tests/integrations/test_hugging_face.py::test_metrics_of_the_trainer",
    **{
        WORDS + text: FIRST + "test_a_wrong_keyword_names_the_right_one"
        for text in (
            'settings={"subsets": ...}',
            'settings={"scope.unknown": "drop"}',
            'settings={"iou.thresholds": [0.5]}',
            'settings={"limits.max_dets": [1, 10, 100]}',
        )
    },
    **{
        WORDS + f"read_{kind}(..., {name}=...)": FIRST
        + "test_arguments_of_reading_name_its_functions"
        for kind, name in (
            *(("truth", each) for each in ("image_sizes", "split", "format", "box_format")),
            *(("detections", each) for each in ("format", "box_format")),
        )
    },
    **{
        WORDS + text: GUESSES + "test_a_proposed_option_is_followed"
        for text in (
            *("--set iou.thresholds=[0.5]", "--set limits.max_dets=[1,10,300]"),
            *("--format json", "--table metrics", "--format latex", "--format markdown"),
            *("--output FILE.csv", "--protocol voc2007"),
        )
    },
    **{
        WORDS + text: GUESSES + "test_a_proposed_command_line_is_followed"
        for text in (
            *("eval TRUTH DETECTIONS --plot FILE", "eval TRUTH DETECTIONS --best-f1"),
            *("eval TRUTH DETECTIONS --per-class", "eval TRUTH DETECTIONS --ci", "COMMAND --help"),
            *("compare TRUTH A B --fail-if-drop .005", "compare TRUTH A B --format latex"),
            "diagnose TRUTH DETECTIONS --table confusion",
        )
    },
}
"""By key the test that does what the text says."""
EXEMPT = {
    "says what is, was or will be done, and proposes nothing": (
        "analysis/doctor/__init__: module 'detmap.analysis.doctor' has no attribute {}",
        "annotation_tools/formats: Results.to_json() of Ultralytics",
        "benchmarks/caltech/files: % bbGt version=3",
        "cli/bounded_memory: note: {} (--memory)",
        "cli/commands/match: metrics are not in partial results;",
        "cli/options: detmap: JSON holds fractions: --percent has",
        "cli/uncertainty_tables: needs --ci",
        "compat/quirks: accumulate(p) reads the first results that",
        "compat/quirks: useCats is 0: params.catIds is now",
        "compat/quirks: summarize() of pycocotools prints -1 or",
        "core/results/result: detections fixed by --fix {}",
        "kernels/native: compiling kernels, once on this machine",
        "warmup: the kernels run as plain Python",
        "cli/doctor_notes: did you mean",
    ),
    "installs a package; that the extra exists is tested in test_packaging": (
        "analysis/html_report/__init__: pip install 'detmap-eval[report]'",
        "analysis/html_report/paper_figure: pip install 'detmap-eval[plot]'",
        "core/adapters/tabular/csv_parquet: pip install 'detmap-eval[parquet]'",
        "core/adapters/text_per_image/plain_yaml: pip install 'detmap-eval[yolo]', or give the",
        "errors: pip install '{}[{}]'",
        "integrations/torchmetrics: pip install torch torchmetrics torchvision",
        "reproducibility/parity/run_tool: pip install {}",
        "reproducibility/parity/run_tool: pip install --force-reinstall {}",
    ),
    "runs another program, which is not installed": (
        "core/adapters/coco/tool_results: export JSON from its tool; mmdetection:",
        "core/adapters/recognition: panlabel convert --from {} --to coco",
        "annotation_tools/unread_exports: save labels: --save-txt --save-conf",
        "integrations/fiftyone: call compute_metadata()",
        "integrations/inputs/ultralytics_images: use coco_metrics() instead of callback()",
        'integrations/ultralytics: give callback(truth="instances_val2017.json")',
        "integrations/torchmetrics_result: call compute() on all ranks first",
        "reproducibility/parity/__init__: detmap's number is that of `detmap",
    ),
    "guards pieces of one file that are read in two ways, which no known file is": (
        "core/adapters/pieces: write all rows in one form,",
    ),
    "compiles all kernels, which is done for each release": (
        "kernels/native: in a checkout `python tools/build_native.py --compile`",
    ),
    "needs another system, or a file that changes during the run": (
        "analysis/browse/pictures: leave out --link to copy",
        "core/adapters/truth_by_protocol: do not change it during the",
    ),
}
"""Keys by the reason why no test can follow them."""
