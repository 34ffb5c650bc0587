#!/usr/bin/env python3
"""Parts of the page that are functions of what they are given, called in the browser that will run them."""

from dashboard_case import DashboardCase, main


class ModulesTest(DashboardCase):
    def setUp(self):
        super().setUp()
        self.browser.open(f"{self.server.url}/dashboard/licenses.txt")

    def call(self, module, text, *arguments):
        return self.browser.module(module, text, *arguments)

    def test_numbers_as_people_read_them(self):
        for function, arguments, text in (
            ("bytes", [0], "0 B"),
            ("bytes", [1023], "1023 B"),
            ("bytes", [1024], "1 KiB"),
            ("bytes", [402653184], "384 MiB"),
            ("bytes", [1.5 * 2**40], "1.50 TiB"),
            ("seconds", [None], "unknown"),
            ("seconds", [0], "0 s"),
            ("seconds", [0.25], "250 ms"),
            ("seconds", [1.45], "1.4 s"),
            ("seconds", [59.97], "60 s"),
            ("seconds", [81.2], "1 min 21 s"),
            ("seconds", [3599.7], "1 h 0 min"),
            ("seconds", [86400 * 2.5], "2 d 12 h"),
            ("roughly", [0], "0 s"),
            ("roughly", [41.2], "45 s"),
            ("roughly", [83], "1 min 20 s"),
            ("roughly", [1023], "17 min"),
            ("roughly", [3590], "59 min 50 s"),
            ("roughly", [7300], "2 h 2 min"),
            ("percent", [1, 0], "0 %"),
            ("percent", [9999, 10000], "99.9 %"),
            ("percent", [99999, 100000], "99.9 %"),
            ("percent", [10000, 10000], "100 %"),
            ("short", [1234], "1,234"),
            ("short", [2.5e6], "2.50 M"),
            ("figure", [0.41, "ratio"], "41 %"),
            ("figure", [None, "bytes"], "not known"),
            ("figure", [1500000, "us"], "1.5 s"),
            ("figure", [197, "records/s"], "197 records/s"),
            ("plural", [1, "shard"], "1 shard"),
            ("amount", ["memory_bytes", 0], "not limited"),
            ("amount", ["cpus", 0], "not limited"),
            ("amount", ["memory_bytes", 1024], "1 KiB"),
            ("amount", ["workers", 0], "0"),
        ):
            with self.subTest(function=function, arguments=arguments):
                self.assertEqual(self.call("format.js", "return m[args[0]](...args[1]);", function, arguments), text)
        self.assertEqual(self.call("format.js", "return m.field('memory_bytes', 1024);"), {"name": "memory", "text": "1 KiB"})
        self.assertEqual(self.call("format.js", "return m.field('factor', 1.5);"), {"name": "factor", "text": "1.50"})

    def test_a_topic_without_a_known_end_has_no_percent(self):
        said = "return m.progressOf(args[0], args[1].map((stream) => ({ stream })));"
        progress = {"records_expected": 2000, "records_done": 1500, "records_committed": 1000}
        whole = {"title": "50.0 %", "done": 75, "committed": 50,
                 "figures": [["Training records committed", "1,000 of 2,000 (50.0 %)"], ["Done, not yet committed", "500"]]}
        endless = {"title": "1,000 records", "done": None, "committed": None,
                   "figures": [["Training records committed", "1,000"], ["Done, not yet committed", "500"], ["Behind", "500 records"]]}
        closed, bounded = {"open": False, "partitions": [{"end": None}]}, {"open": True, "partitions": [{"end": 7}]}
        for streams, expected in (
            ([None], whole),
            ([closed], whole),
            ([bounded], whole),
            ([{"open": True, "partitions": [{"end": 7}, {"end": None}]}], endless),
            ([{"open": True, "partitions": []}], endless),
            ([None, {"open": True, "partitions": [{}]}], endless),
        ):
            with self.subTest(streams=streams):
                self.assertEqual(self.call("progress.js", said, progress, streams), expected)
        for left, is_endless, ended, text in (
            (None, False, False, "not known yet"),
            (83, False, False, "about 1 min 20 s"),
            (83, True, False, "no end is known"),
            (83, True, True, "–"),
        ):
            with self.subTest(left=left, is_endless=is_endless, ended=ended):
                self.assertEqual(self.call("job_view.js", "return m.remainingText(...args);", left, is_endless, ended), text)

    def test_a_metric_says_if_its_weights_may_have_seen_later_epochs(self):
        def datasets(later, overlaps):
            epoch = {"epoch": 2, "records_committed": 9, "metrics": {"auc": 0.75}, "records_later": later, "rejected_records": 0}
            return [{"index": 1, "name": "test", "overlaps": overlaps, "epochs": [epoch]}]
        again = "measured again, by weights that may have seen 30 records of later epochs"
        overlapping = "while up to 30 records of later epochs were trained"
        for later, overlaps, note in ((0, False, None), (30, False, again), (30, True, overlapping)):
            with self.subTest(later=later, overlaps=overlaps):
                text = self.call("shards_view.js", "return m.epochText(...args);", datasets(later, overlaps), {"dataset": 1, "epoch": 2})
                self.assertEqual(text, "auc 0.75" if note is None else f"auc 0.75 · {note}")
                lines = self.call("metrics_view.js", "return m.linesOf(args[0], []);", datasets(later, overlaps))
                self.assertEqual(lines[0][1][0]["points"], [{"x": 3, "y": 0.75} | ({} if note is None else {"note": note})])

    def test_why_a_group_waits_is_said_once_for_each_reason(self):
        waits = "return m.waitsOf({ waits: args[0], processes: args[1].map(([worker, waits]) => ({ worker, waits })) });"
        for group, processes, expected in (
            ("", [], []),
            ("", [["a", ""]], []),
            ("all members leave", [["a", ""]], ["The next step waits: all members leave"]),
            ("", [["a", "no place"], ["b", "another model"]], ["a: no place", "b: another model"]),
            ("", [["a", "no place"], ["b", "no place"], ["c", "no place"]], ["a and 2 others: no place"]),
        ):
            with self.subTest(group=group, processes=processes):
                self.assertEqual(self.call("group_view.js", waits, group, processes), expected)

    def test_the_phase_of_a_member_says_if_others_wait_for_it(self):
        phase = "return m.phaseOf(args[0]);"
        for process, text in (
            ({"phase": "voted", "awaited": False}, "voted"),
            ({"phase": "computing", "awaited": True}, "computing, awaited"),
        ):
            with self.subTest(process=process):
                self.assertEqual(self.call("group_view.js", phase, process), text)

    def test_rows_of_a_topic_are_those_that_lag_most(self):
        rows = "return m.rowsOf(args[0].map(([partition, lag]) => ({ partition, lag, lost: 0 })), args[1]).map((row) => row.partition);"
        for partitions, most, expected in (
            ([], 2, []),
            ([[1, 5], [0, 9]], 2, [0, 1]),
            ([[0, 1], [1, 7], [2, 3]], 2, [1, 2]),
            ([[10, 4], [9, 4], [2, 4]], 2, [2, 9]),
            ([[2, 1], [0, 3], [1, 2]], 1000, [0, 1, 2]),
        ):
            with self.subTest(partitions=partitions, most=most):
                self.assertEqual(self.call("topics_view.js", rows, partitions, most), expected)
        left = "return m.leftOut(args[0].map((lost) => ({ lost })), args[1].map((lost) => ({ lost })));"
        for partitions, shown, text in (
            ([0, 1], [0, 1], ""),
            ([0, 0, 1, 0], [1, 0], "The table has the 2 partitions with the largest lag. There are 2 more."),
            ([1, 0, 1], [1, 0], "The table has the 2 partitions with the largest lag. There is 1 more, 1 of them with lost offsets."),
        ):
            with self.subTest(partitions=partitions, shown=shown):
                self.assertEqual(self.call("topics_view.js", left, partitions, shown), text)

    def test_the_epoch_shown_is_the_one_in_which_workers_are(self):
        def dataset(index, mode, *shards):
            epochs = [{"epoch": e, "shards": {"total": 4, "todo": todo, "leased": leased}} for e, (todo, leased) in enumerate(shards)]
            return {"index": index, "name": f"set-{index}", "mode": mode, "epochs": epochs}

        for datasets, shown in (
            ([], None),
            ([dataset(0, "train")], None),
            # The first epoch waits for its snapshots only.
            ([dataset(0, "train", (0, 0), (3, 1))], (0, 1)),
            ([dataset(0, "train", (0, 1), (3, 1))], (0, 0)),
            ([dataset(0, "evaluate", (4, 0)), dataset(1, "train", (0, 0), (0, 0))], (1, 1)),
            ([dataset(0, "evaluate", (4, 0))], (0, 0)),
        ):
            with self.subTest(datasets=datasets):
                found = self.call("polls.js", "return m.presentEpoch(...args);", datasets)
                self.assertEqual(found, shown and {"dataset": shown[0], "epoch": shown[1]})
        both = [dataset(0, "train", (0, 1), (0, 2)), dataset(1, "evaluate", (0, 4))]
        held = self.call("shards_view.js", "return m.heldElsewhere(...args);", both, {"dataset": 0, "epoch": 1})
        self.assertEqual(held, "Workers also hold 1 shard of set-0, epoch 1; 4 shards of set-1, epoch 1.")
        self.assertEqual(self.call("shards_view.js", "return m.heldElsewhere(...args);", both[:1], None).count("shard"), 2)
        self.assertEqual(self.call("shards_view.js", "return m.heldElsewhere(...args);", [dataset(0, "train", (4, 0))], None), "")

    def test_an_epoch_that_ended_while_it_was_asked_for_gives_way_to_the_next(self):
        ask = (
            "const states = args[2]; const api = { get: async (path) => ({ path, runs: [{ state: states[path.split('/')[6]] }] }) };"
            "const [shown, map] = await m.askMap(api, args[0], args[1]); return [shown && shown.epoch, map && map.path.split('/')[6]];"
        )
        epochs = [{"epoch": e, "shards": {"total": 4, "todo": 0, "leased": 1}} for e in range(2)]
        datasets = [{"index": 0, "mode": "train", "epochs": epochs}]
        for chosen, states, shown in (
            (None, ["leased", "todo"], [0, "0"]),
            (None, ["done", "leased"], [1, "1"]),
            ({"dataset": 0, "epoch": 0}, ["done", "leased"], [0, "0"]),
            ({"dataset": 0, "epoch": 1}, ["done", "done"], [1, "1"]),
        ):
            with self.subTest(chosen=chosen, states=states):
                self.assertEqual(self.call("polls.js", ask, datasets, chosen, states), shown)
        self.assertEqual(self.call("polls.js", ask, [], None, []), [None, None])

    def test_why_records_are_not_committed_yet(self):
        def text(done, interval, ages, now=5000):
            progress = {"records_done": done, "records_committed": 10}
            partitions = {"at": 4000, "partitions": [{"snapshot_age_ms": age} for age in ages]}
            return self.call("job_view.js", "return m.commitText(...args);", progress, interval, partitions, now)

        why = "A record is committed when every partition has a snapshot that holds it."
        for arguments, expected in (
            ((10, 10, [0]), ""),
            ((11, 0, [0]), why),
            ((11, 10, []), f"{why} Servers take snapshots every 10 s."),
            ((11, 10, [2000, None]), f"{why} Servers take snapshots every 10 s."),
            ((11, 10, [2000, 3000]), f"{why} The next snapshots begin in about 6 s."),
            ((11, 10, [2000, 9500]), f"{why} The next snapshots are being taken."),
        ):
            with self.subTest(arguments=arguments):
                self.assertEqual(text(*arguments), expected)

    def test_the_time_left_is_said_when_it_is_known_and_does_not_jump(self):
        take = "const left = new m.RemainingTime(); return args[0].map(([s, estimate]) => left.take(estimate, 1000 * s));"

        def taken(*estimates):
            return self.call("remaining_time.js", take, estimates)

        # The first one is of workers that have hardly begun.
        start = taken((0, 1020), *((s, 100 - s) for s in range(1, 12)))
        self.assertEqual(start[:10], [None] * 10)
        for shown, expected in zip(start[10:], (90, 89)):
            self.assertAlmostEqual(shown, expected)
        # One estimate that is far off, of a job whose time was known for long.
        steady = [(s, 1000 - s) for s in range(100)]
        *_, before, after = taken(*steady, (100, 90))
        self.assertAlmostEqual(before, 901)
        self.assertGreater(after, 850)
        self.assertLess(after, 900)
        self.assertAlmostEqual(taken(*steady, *((s, 500 - s) for s in range(100, 400)))[-1], 101, delta=1)
        # The same status again, a job that is nearly over, and an estimate after a pause.
        self.assertEqual(taken((0, 5), (0, 5), (1, 4)), [5, 5, 4])
        self.assertEqual(taken((0, 900), (10, 900), (11, None), (12, 900)), [None, 900, None, None])

    def test_what_needs_attention_is_said_while_the_job_runs(self):
        for job, text in (
            (None, ""),
            ({"state": "running", "reason": ""}, ""),
            ({"state": "running", "reason": "the disk is full"}, "This needs attention: the disk is full."),
            ({"state": "failed", "reason": "the disk is full"}, ""),
        ):
            self.assertEqual(self.call("job_view.js", "return m.troubleText(args[0]);", job), text)

    def test_nobody_runs_when_the_job_has_ended(self):
        for state, drain, ended, live, text in (
            ("running", "none", False, True, "running"),
            ("running", "draining", False, True, "draining"),
            ("running", "none", False, False, "running"),
            ("running", "none", True, True, "ending"),
            ("running", "drained", True, False, "ended"),
            ("exited", "none", True, False, "exited"),
        ):
            node = {"state": state, "drain": drain}
            found = self.call("nodes_view.js", "return m.stateText(...args);", node, {"ended": ended, "live": live})
            self.assertEqual(found, text, (node, ended, live))

    def test_shards_that_are_of_before_the_end_are_said_to_be(self):
        held = [{"name": "a", "index": 0, "epochs": [{"epoch": 0, "shards": {"leased": 1}}]}]
        for ended, live, of_end, begin in ((False, True, False, "Workers also hold"), (False, False, False, "Workers also hold"),
                                           (True, True, False, ""), (True, False, True, ""), (True, False, False, "The job has ended since.")):
            state = {"datasets": held, "shown": None, "map": {}, "ended": ended, "live": live, "mapOfEnd": of_end,
                     "job": {"progress": {"records_committed": 1, "records_expected": 2}}}
            hint = self.call("shards_view.js", "return m.mapHint(args[0]);", state)
            self.assertTrue(hint.startswith(begin) and (hint == "") == (begin == ""), (state, hint))

    def test_when_everything_is_committed_so_are_the_shards(self):
        old = {"dataset": 0, "shards": 5, "runs": [{"begin": 0, "end": 3, "state": "committed"}, {"begin": 3, "end": 5, "state": "done"}]}
        end = [{"begin": 0, "end": 5, "state": "committed"}]
        for ended, of_end, committed, mode, runs in (
            (True, False, 10, "train", end),
            (False, False, 10, "train", old["runs"]),
            (True, True, 10, "train", old["runs"]),
            (True, False, 9, "train", old["runs"]),
            (True, False, 10, "evaluate", old["runs"]),
        ):
            state = {"map": old, "ended": ended, "mapOfEnd": of_end, "datasets": [{"index": 0, "mode": mode}],
                     "job": {"progress": {"records_committed": committed, "records_expected": 10}}}
            self.assertEqual(self.call("shards_view.js", "return m.finalMap(args[0]).runs;", state), runs, state)

    def test_a_worker_that_is_slow_beside_its_peers_for_some_time_is_found(self):
        def worker(name, rate, held=1, state="running"):
            return {"name": name, "state": state, "records_per_second": rate, "worker": {"shards_held": held}}

        pace = "return m.paceOf(args[0][0], args[0]);"
        for nodes, expected in (
            ([worker("a", 3)], None),
            ([worker("a", 3), worker("b", 140)], 3 / 140),
            ([worker("a", 3, held=0), worker("b", 140)], None),
            ([worker("a", None), worker("b", 140)], None),
            ([worker("a", 3), worker("b", 140, held=0), worker("c", 140, state="lost")], None),
            ([worker("a", 3), worker("b", 0)], None),
            ([worker("a", 50), worker("b", 10), worker("c", 100), worker("d", 900)], 0.5),
        ):
            self.assertEqual(self.call("nodes_view.js", pace, nodes), expected)
        take = "const watch = new m.SlowWorkers(); return args[0].map((nodes) => watch.take(nodes));"
        slow, well = [worker("a", 14), worker("b", 140)], [worker("a", 140), worker("b", 140)]
        found = self.call("nodes_view.js", take, [slow] * 4 + [well] + [slow] * 6)
        self.assertEqual(found, [[]] * 9 + [[["a", 0.1]]] * 2)

    def test_axes_of_a_single_epoch_or_value_are_around_it(self):
        def ranges(*lines):
            return self.call("chart.js", "return m.rangesOf(args[0]);", [{"points": [{"x": x, "y": y} for x, y in line]} for line in lines])

        self.assertEqual(ranges(), {"x": {}, "y": {}})
        self.assertEqual(ranges([(1, 0.5)]), {"x": {"min": 0.5, "max": 1.5}, "y": {"min": 0.45, "max": 0.55}})
        self.assertEqual(ranges([(1, 0.5)], [(1, 0.75), (2, None)]), {"x": {"min": 0.5, "max": 1.5}, "y": {}})
        self.assertEqual(ranges([(1, 0), (2, 0)]), {"x": {}, "y": {"min": -1, "max": 1}})
        self.assertEqual(ranges([(1, 0.5), (2, 0.4)]), {"x": {}, "y": {}})

    def test_a_shard_map_of_any_size_fits_its_box(self):
        for shards in (1, 7, 100, 999, 10_000, 123_456, 5_000_000):
            for width, height in ((20, 208), (300, 208), (560, 208)):
                layout = self.call("shard_map.js", "return m.layOut(...args);", shards, width, height)
                with self.subTest(shards=shards, width=width, layout=layout):
                    squares = -(-shards // layout["per"])
                    self.assertGreaterEqual(layout["columns"] * layout["rows"], squares)
                    tall, wide = layout["rows"] * layout["cellHeight"], layout["columns"] * layout["cellWidth"]
                    self.assertLessEqual(tall, height + 1e-6)
                    self.assertLessEqual(wide, width + 1e-6)
                    # It fills the box, unless it has few shards.
                    if shards >= 100:
                        self.assertGreater(wide, 0.99 * width)
                        self.assertGreater(tall, 0.75 * height)
                    self.assertLess(max(layout["cellHeight"], layout["cellWidth"]), 2 * min(layout["cellHeight"], layout["cellWidth"]))

    def test_a_square_of_several_shards_shows_what_needs_looking_at(self):
        runs = [(0, 10, "committed"), (10, 11, "failed"), (11, 20, "committed"), (20, 25, "todo"), (25, 26, "leased"), (26, 32, "todo")]
        shard_map = {"shards": 32, "runs": [{"begin": b, "end": e, "state": s} for b, e, s in runs]}
        squares = "return [...m.squaresOf(args[0], args[1])].map((index) => m.kStates[index]);"
        self.assertEqual(self.call("shard_map.js", squares, shard_map, 8), ["committed", "failed", "todo", "leased"])
        each = self.call("shard_map.js", squares, shard_map, 1)
        self.assertEqual(each, [state for begin, end, state in runs for _ in range(begin, end)])
        found = self.call("shard_map.js", "return [...Array(32).keys()].map((i) => m.stateAt(args[0], i));", shard_map)
        self.assertEqual(found, each)

    def test_a_stream_in_any_pieces_gives_the_same_messages(self):
        text = ": hello\n\nid: 1\nevent: event\ndata: {\"a\":\ndata: 1}\n\n: beat\n\nevent: status\ndata:x: y\n\nid: 2\n\ndata: last"
        parse = (
            "const found = []; const parser = new m.EventStreamParser((message) => found.push(message));"
            "for (let i = 0; i < args[0].length; i += args[1]) parser.push(args[0].slice(i, i + args[1])); return found;"
        )
        expected = [{"name": "event", "id": "1", "data": '{"a":\n1}'}, {"name": "status", "id": "", "data": "x: y"}]
        for size in (1, 2, 3, 7, 1000):
            self.assertEqual(self.call("event_stream.js", parse, text, size), expected)

    def test_samples_come_in_pieces_and_old_ones_go(self):
        take = (
            "const log = new m.SampleLog(args[1]); for (const piece of args[0]) log.take(piece);"
            "return [log.newestUs, log.names(), log.of('rate').map((series) => [series.node, series.points.length])];"
        )

        def piece(begin_s, end_s, node):
            times = [s * 1_000_000 for s in range(begin_s, end_s)]
            series = {"node": node, "name": "rate", "unit": "records/s", "values": [1.0] * len(times)}
            return {"times_us": times, "series": [series]}

        pieces = [piece(0, 100, "gone"), piece(100, 300, "a"), {"times_us": [], "series": []}, piece(300, 750, "a")]
        for window, kept in ((600, [["a", 600]]), (300, [["a", 300]]), (3600, [["gone", 100], ["a", 650]])):
            with self.subTest(window=window):
                self.assertEqual(self.call("sample_log.js", take, pieces, window), [749_000_000, [["rate", "records/s"]], kept])

    def test_lines_break_where_the_scaler_was_away(self):
        take = "const log = new m.SampleLog(args[1]); log.take(args[0]); return log.of('rate')[0].points;"
        series = {"node": "a", "name": "rate", "unit": "records/s", "values": [1, None, 3]}
        samples = {"times_us": [1_000_000, 2_000_000, 20_000_000], "series": [series]}
        points = self.call("sample_log.js", take, samples, 600)
        self.assertEqual(points, [{"x": 1000, "y": 1}, {"x": 2000, "y": None}, {"x": 2001, "y": None}, {"x": 20000, "y": 3}])
        # Over a longer time there is a value every 10 s.
        points = self.call("sample_log.js", take, samples, 1800)
        self.assertEqual(points, [{"x": 1000, "y": 1}, {"x": 2000, "y": None}, {"x": 20000, "y": 3}])

    def test_the_chart_marks_what_happened_to_processes_and_ends_of_epochs(self):
        def event(number, kind, target="worker-0", evidence=(), dry_run=False):
            return {"id": number, "wall_us": number * 1000, "kind": kind, "target": target, "dry_run": dry_run,
                    "evidence": [{"name": name, "value": value} for name, value in evidence]}

        events = [
            event(1, "exit", "master", [("start", 1)]),
            event(2, "decision"),
            event(3, "decision", dry_run=True),
            event(4, "note", "master"),
            event(5, "note", "train", [("epoch", 3)]),
            event(6, "note"),
            event(7, "outcome"),
            event(8, "action"),
        ]
        self.assertEqual(self.call("rates_view.js", "return m.marksOf(args[0]);", events), [
            {"x": 1, "label": "#1", "color": "--bad"},
            {"x": 2, "label": "#2", "color": "--busy"},
            {"x": 4, "label": "#4", "color": "--warn"},
            {"x": 5, "label": "epoch 3 of train", "color": "--muted", "minor": True},
            {"x": 8, "label": "#8", "color": "--text"},
        ])

    def test_events_are_kept_in_order_once_and_linked(self):
        store = (
            "const store = new m.Store(); const job = { id: 'a', scaler_started_wall_us: 1, last_event_id: 3, state: 'running' };"
            "const status = (more) => store.takeStatus({ job: { ...job, ...more }, nodes: [] });"
            "const event = (id, cause_id = 0) => ({ id, cause_id });"
            "const seen = () => [store.events.map((e) => e.id), store.eventsBefore, (store.effects.get(2) || []).map((e) => e.id)];"
        )
        first = (
            "status({}); store.takeEvent(event(4, 2)); store.takeEvent(event(4, 2)); store.takeEvent(event(5));"
            "store.takeOlder([event(1), event(2), event(3)], 0); return seen();"
        )
        self.assertEqual(self.call("store.js", store + first), [[1, 2, 3, 4, 5], 0, [4]])
        # A log that began again, told by a scaler that was started again; the same scaler may tell a number that is not the newest.
        again = "status({}); store.takeEvent(event(4)); status({}); const same = seen(); status({ scaler_started_wall_us: 2, last_event_id: 1 });"
        self.assertEqual(self.call("store.js", store + again + "return [same, seen()];"), [[[4], 3, []], [[], 1, []]])


if __name__ == "__main__":
    main()
