#!/usr/bin/env python3
"""What is seen when the scaler is away, silent, gone for good, or wants another token; and that it heals by itself."""

from dashboard_case import DashboardCase, main

LIVE = "document.getElementById('connection').dataset.state === 'live'"
LOST = "document.getElementById('connection').dataset.state === 'lost'"
# The browser itself writes a line for each request without an answer.
NO_ANSWER = ("Failed to load resource", "net::ERR_")


class ConnectionTest(DashboardCase):
    def test_a_killed_scaler_is_seen_and_comes_back(self):
        self.show()
        self.server.kill()
        self.browser.until(LOST)
        text = self.browser.text("#connection")
        self.assertIn("Connection lost", text)
        # How old what is shown is, and that it is marked.
        self.browser.until("/shows the state of [2-9] s ago/.test(document.getElementById('age').innerText)")
        self.assertTrue(self.browser.script("return document.body.classList.contains('stale')"))
        self.assertIn("worker-1", self.browser.text("#nodes-rows"))
        enabled = "[...document.querySelectorAll('[aria-haspopup=dialog]')].filter((b) => !b.disabled).length"
        self.browser.until(f"{enabled} === 0")
        self.server.start()
        self.browser.until(LIVE)
        self.browser.until("!document.body.classList.contains('stale')")
        self.browser.until(f"{enabled} > 10")
        # Its log began again: so does ours.
        self.browser.until("document.getElementById('events-list').childElementCount === 5")
        self.assert_quiet(but=NO_ANSWER)

    def test_a_frozen_scaler_is_seen_though_the_connection_stands_and_no_event_is_missed(self):
        self.show()
        self.server.freeze()
        try:
            self.browser.until(LOST)
            self.assertIn("silent", self.browser.text("#connection"))
        finally:
            self.server.thaw()
        self.browser.until(LIVE)
        ids = self.browser.script("return [...document.getElementById('events-list').children].map((e) => e.id)")
        self.assertEqual(ids, [f"event-{i}" for i in range(5, 0, -1)])

    def test_an_order_that_is_open_when_the_scaler_goes_waits_for_it(self):
        self.show()
        self.browser.click("button[aria-label='Restart worker-1']")
        self.server.kill()
        self.browser.until("document.getElementById('order-confirm').disabled")
        self.assertIn("no connection", self.browser.text("#order .problem"))
        self.server.start()
        self.browser.until("!document.getElementById('order-confirm').disabled")
        self.browser.click("#order-confirm")
        self.browser.until("document.querySelector('#order .result .event')")

    def test_an_ended_job_is_shown_as_ended_not_as_lost(self):
        self.show()
        self.browser.click("button[aria-label='Cancel the job']")
        self.browser.click("#order-confirm")
        self.browser.until("document.getElementById('job-state').innerText === 'cancelled'")
        self.browser.click("#order-close")
        self.server.kill()
        self.browser.until("document.getElementById('connection').innerText === 'Ended; the scaler has ended, too'")
        self.assertEqual(self.browser.script("return document.getElementById('connection').dataset.state"), "ended")
        self.assertFalse(self.browser.script("return document.body.classList.contains('stale')"))
        self.browser.until("document.getElementById('shares-empty').textContent === 'All workers have ended.'")
        self.assertIn("The job has ended: cancelled", self.browser.text("#banner"))
        badges = self.browser.script("return [...document.querySelectorAll('#nodes-rows .badge')].map((badge) => badge.textContent)")
        self.assertIn("ended", badges)
        self.assertEqual([word for word in badges if word in ("running", "ending", "starting")], [])

    def test_the_token_leaves_the_address_and_stays_in_the_tab(self):
        self.show()
        self.assertEqual(self.browser.script("return location.href"), self.server.url + "/")
        self.assertNotIn("token", self.browser.script("return document.documentElement.outerHTML").split("<body")[0])
        self.browser.reload()
        self.browser.until(LIVE)
        # Another address in the same tab: what is behind # alone is different.
        self.browser.script("location.hash = '#token=wrong'")
        self.browser.until("document.getElementById('token-dialog').open")

    def test_without_a_token_it_asks_and_says_where_it_is(self):
        self.browser.open("about:blank")
        self.browser.open(self.server.url)
        self.browser.script("sessionStorage.clear()")
        self.browser.reload()
        self.browser.until("document.getElementById('token-dialog').open")
        self.assertIn("scaler/token", self.browser.text("#token-dialog"))
        self.assertFalse(self.browser.script("return localStorage.length"))
        self.browser.type("#token-input", "wrong")
        self.browser.press("Enter")
        self.browser.until("!document.querySelector('#token-dialog .problem').hidden")
        self.assertIn("refused the token", self.browser.text("#token-dialog .problem"))
        self.browser.type("#token-input", self.server.token)
        self.browser.click("#token-use")
        self.browser.until(LIVE)

    def test_a_hidden_tab_asks_nothing_and_catches_up(self):
        self.show()
        self.browser.script(
            "window.asked = []; window.last = performance.now(); const real = window.fetch;"
            "window.fetch = (...all) => { window.asked.push(all[0]); window.last = performance.now(); return real(...all); };"
            "let hidden = false; Object.defineProperty(document, 'hidden', { get: () => hidden, configurable: true });"
            "window.see = (seen) => { hidden = !seen; document.dispatchEvent(new Event('visibilitychange')); };"
            "window.see(false);"
        )
        self.browser.until("document.getElementById('connection').dataset.state === 'paused'")
        # What was under way comes to its end; then nothing for longer than the longest period between two questions.
        self.browser.until("performance.now() - window.last > 1000")
        before = self.browser.script("window.asked = []; return performance.now()")
        self.browser.until("performance.now() - arguments[0] > 3500", before)
        self.assertEqual(self.browser.script("return window.asked"), [])
        self.server.act("policies/straggler/pause")
        self.browser.script("window.see(true)")
        self.browser.until(LIVE)
        self.browser.until("document.getElementById('event-6')")
        for part in ("datasets", "partitions", "policies", "samples", "logs"):
            self.browser.until("window.asked.some((path) => path.includes(arguments[0]))", part)


if __name__ == "__main__":
    main()
