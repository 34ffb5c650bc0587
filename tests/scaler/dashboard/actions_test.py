#!/usr/bin/env python3
"""Every button does what it says, and says before what it will do: seen on the page, and at the interface itself."""

from dashboard_case import DashboardCase, main


class ActionsTest(DashboardCase):
    def setUp(self):
        super().setUp()
        self.show()

    def node(self, name):
        return self.server.ask(f"/api/v1/nodes/{name}")

    def button(self, label):
        return f"button[aria-label='{label}']"

    def open_order(self, label):
        """Presses a button; the title and the facts of the dialog that comes."""
        self.browser.until("!document.querySelector(arguments[0]).disabled", self.button(label))
        self.browser.click(self.button(label))
        self.browser.until("document.getElementById('order').open")
        return self.browser.text("#order-title"), self.browser.text("#order .facts")

    def confirm(self):
        """Gives the order; the event that it caused, as the page shows it."""
        self.browser.until("!document.getElementById('order-confirm').disabled")
        self.browser.click("#order-confirm")
        self.browser.until("document.querySelector('#order .result .event')")
        return self.browser.text("#order .result .event")

    def await_outcome(self, text):
        self.browser.until("document.querySelector('#order .result').innerText.includes(arguments[0])", text)
        self.browser.click("#order-close")
        self.browser.until("!document.getElementById('order').open")
        self.assert_quiet()

    def test_restart_a_worker(self):
        title, facts = self.open_order("Restart worker-1")
        self.assertEqual(title, "Restart worker-1?")
        self.assertIn("start 1", facts)
        self.assertIn("unfinished minibatches run again", facts)
        self.assertIn("Nothing is lost", facts)
        self.browser.type("#order input[name=reason]", "looks stuck")
        event = self.confirm()
        self.assertIn("restart worker-1", event)
        self.assertIn("looks stuck", event)
        self.await_outcome("it trains again")
        self.assertEqual(self.node("worker-1")["start"], 2)
        # In the timeline, too: the order and its outcome, linked.
        self.assertIn("led to #7, outcome", self.browser.text("#event-6"))
        self.assertIn("because of #6", self.browser.text("#event-7"))
        self.assertEqual(self.browser.script("return document.activeElement.getAttribute('aria-label')"), "Restart worker-1")

    def test_restart_a_server_says_what_is_restored(self):
        _, facts = self.open_order("Restart ps-0")
        self.assertIn("newest snapshots", facts)
        self.confirm()
        self.await_outcome("it trains again")
        self.assertEqual(self.node("ps-0")["restarts"], 1)

    def test_doing_nothing_does_nothing(self):
        self.open_order("Restart worker-0")
        self.browser.click("#order-close")
        self.browser.until("!document.getElementById('order').open")
        self.open_order("Cancel the job")
        self.browser.press("Escape")
        self.browser.until("!document.getElementById('order').open")
        self.assertEqual(self.server.ask("/api/v1/job")["last_event_id"], 5)

    def test_a_restart_of_another_start_is_refused_with_the_reason(self):
        self.open_order("Restart worker-1")
        self.server.act("nodes/worker-1/restart")
        self.browser.click("#order-confirm")
        self.browser.until("!document.querySelector('#order .problem').hidden")
        self.assertIn("worker-1 has start 2, not 1", self.browser.text("#order .problem"))
        self.assertEqual(self.node("worker-1")["start"], 2)
        self.assert_quiet(but=["409"])

    def test_drain_a_node(self):
        _, facts = self.open_order("Drain worker-0")
        self.assertIn("hands back the shards that wait", facts)
        self.confirm()
        self.await_outcome("its shards run elsewhere")
        self.assertEqual(self.node("worker-0")["state"], "exited")
        self.browser.until("document.querySelector(arguments[0]).disabled", self.button("Drain worker-0"))

    def test_drain_a_server(self):
        _, facts = self.open_order("Drain ps-1")
        self.assertIn("continues to serve", facts)
        self.confirm()
        self.await_outcome("all its partitions are snapshotted")
        self.assertEqual((self.node("ps-1")["state"], self.node("ps-1")["drain"]), ("running", "drained"))

    def test_resize(self):
        self.open_order("Resize ps-1")
        self.browser.click("#order-confirm")
        self.browser.until("document.querySelector('#order .problem').innerText.includes('You have not changed a limit')")
        self.browser.type("#order input[name=memory]", "512")
        self.browser.type("#order input[name=cpus]", "1.5")
        event = self.confirm()
        self.assertIn("256 MiB → 512 MiB", event)
        self.assertIn("1 core → 1.50 cores", event)
        self.await_outcome("the limits hold")
        self.assertEqual(self.node("ps-1")["limits"], {"cpus": 1.5, "memory_bytes": 512 << 20})
        self.browser.until("document.getElementById('nodes-rows').innerText.includes('of 512 MiB')")

    def test_a_resize_beyond_the_budget_stays_open_with_the_reason(self):
        self.open_order("Resize ps-1")
        self.browser.type("#order input[name=memory]", "4096")
        self.browser.click("#order-confirm")
        self.browser.until("document.querySelector('#order .problem').innerText.includes('budget')")
        self.browser.type("#order input[name=memory]", "300")
        self.confirm()
        self.assertEqual(self.node("ps-1")["limits"]["memory_bytes"], 300 << 20)
        self.assert_quiet(but=["409"])

    def test_scale(self):
        _, facts = self.open_order("Change the number of workers")
        self.assertIn("to have 2 workers now", facts)
        self.browser.type("#order input[name=workers]", "0")
        self.browser.click("#order-confirm")
        self.browser.until("document.querySelector('#order .problem').innerText.includes('Workers')")
        self.browser.type("#order input[name=workers]", "4")
        self.confirm()
        self.await_outcome("4 workers train")
        self.browser.until("document.getElementById('nodes-rows').innerText.includes('worker-3')")

    def test_drain_the_job(self):
        _, facts = self.open_order("Drain the job")
        self.assertIn("it continues from there", facts)
        self.confirm()
        self.await_outcome("all shards are handed back")
        self.browser.until("document.getElementById('job-state').innerText === 'drained'")
        self.assertIn("The job has ended: drained", self.browser.text("#banner"))
        self.assertTrue(self.browser.script("return document.querySelector(arguments[0]).disabled", self.button("Cancel the job")))

    def test_cancel_the_job(self):
        _, facts = self.open_order("Cancel the job")
        self.assertIn("it continues from there", facts)
        self.assertNotIn("undone", facts)
        self.confirm()
        self.browser.click("#order-close")
        self.browser.until("document.getElementById('job-state').innerText === 'cancelled'")
        self.assertEqual(self.server.ask("/api/v1/job")["state"], "cancelled")
        enabled = "return [...document.querySelectorAll('[aria-haspopup=dialog]')].filter((b) => !b.disabled).length"
        self.browser.until("document.querySelector('#policies-list button').disabled")
        self.assertEqual(self.browser.script(enabled), 0)

    def test_retry_one_shard_and_then_all(self):
        self.browser.until("document.getElementById('failed-shards').childElementCount === 2")
        title, _ = self.open_order("Retry shard 0/0/1")
        self.assertEqual(title, "Retry shard 0/0/1?")
        self.assertIn("retry shards", self.confirm())
        self.browser.click("#order-close")
        self.browser.until("document.getElementById('failed-shards').childElementCount === 1")
        self.assertEqual([shard["id"] for shard in self.server.ask("/api/v1/shards?state=failed")["shards"]], ["0/0/0"])
        title, _ = self.open_order("Retry all failed shards")
        self.assertEqual(title, "Retry 1 failed shard?")
        self.confirm()
        self.browser.click("#order-close")
        self.browser.until("!document.getElementById('failed-empty').hidden")
        self.assertEqual(self.server.ask("/api/v1/shards?state=failed")["total"], 0)
        self.assert_quiet()

    def test_pause_and_resume_a_policy(self):
        self.open_order("Pause out-of-memory")
        self.confirm()
        self.browser.click("#order-close")
        self.browser.until("document.getElementById('policies-list').innerText.includes('paused')")
        self.assertTrue(self.server.ask("/api/v1/policies")["policies"][0]["paused"])
        self.open_order("Resume out-of-memory")
        self.confirm()
        self.browser.click("#order-close")
        self.browser.until("!document.getElementById('policies-list').innerText.includes('paused')")
        self.assertFalse(self.server.ask("/api/v1/policies")["policies"][0]["paused"])

    def test_logs_of_a_node(self):
        self.browser.click("a[aria-label='Logs of ps-1']")
        self.browser.until("document.getElementById('logs-node').value === 'ps-1'")
        self.browser.until("document.getElementById('logs-lines').textContent.includes('line 199')")
        # Followed: lines come by themselves, in order, none twice.
        self.browser.until("document.getElementById('logs-lines').textContent.includes('line 215')")
        lines = self.browser.script("return document.getElementById('logs-lines').textContent").split("\n")
        self.assertEqual(lines[:216], [f"line {i:03}" for i in range(216)])
        # Until told not to.
        self.browser.click("#logs-follow")
        asked = self.browser.script("return document.getElementById('logs-lines').childNodes.length")
        self.browser.until("!document.getElementById('logs-follow').checked")
        self.assertLess(asked, 400)

    def test_older_events(self):
        for _ in range(65):
            self.server.act("policies/straggler/pause")
            self.server.act("policies/straggler/resume")
        self.browser.reload()
        shown = "document.getElementById('events-list').childElementCount"
        self.browser.until(f"{shown} === 100")
        self.assertEqual(self.browser.script("return document.getElementById('events-list').firstElementChild.id"), "event-135")
        self.browser.click("#events-more")
        self.browser.until(f"{shown} === 135")
        self.browser.until("document.getElementById('events-more').hidden")
        self.browser.click("#event-4 button.link")
        self.browser.until("document.activeElement.id === 'event-3'")
        self.assert_quiet()

    def test_an_event_that_comes_before_the_older_ones_does_not_keep_them_away(self):
        asked = self.browser.module(
            "events_view.js",
            "const { Store } = await import('/dashboard/store.js'); const store = new Store(); const asked = [];"
            "store.takeStatus({ job: { id: 'a', last_event_id: 5 }, nodes: [] });"
            "store.takeEvent({ id: 6, wall_us: 1, kind: 'note', action: '', target: 'job', before: {}, after: {}, evidence: [] });"
            "m.addEventsView(store, { get: async (path) => { asked.push(path); return { events: [] }; } });"
            "await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))); return asked;",
        )
        self.assertEqual(asked, ["/api/v1/events?after=0&limit=5"])

    def test_filter_and_links_of_events(self):
        self.browser.click("#events-filter button[data-kind=decision]")
        self.browser.until("!document.getElementById('event-3')")
        self.assertEqual(self.browser.script("return document.getElementById('events-list').childElementCount"), 3)
        # A link to what is filtered out shows it again.
        self.browser.click("#event-4 button.link")
        self.browser.until("document.activeElement.id === 'event-3'")
        self.assertIn("memory: 256 MiB → 384 MiB", self.browser.text("#event-3"))
        self.browser.click("#event-3 summary")
        self.browser.until("document.getElementById('event-3').innerText.includes('over 30 s')")


if __name__ == "__main__":
    main()
