#!/usr/bin/env python3
"""What is on the page, and how it looks: complete, quiet, readable, within its width, by keyboard alone."""

from dashboard_case import DashboardCase, main

# Every text that is seen with less contrast to what is behind it than WCAG AA asks for, as [text, ratio]. A canvas turns any
# notation of a colour into numbers.
LOW_CONTRAST = """
const context = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
const rgba = (color) => {
  context.clearRect(0, 0, 1, 1);
  context.fillStyle = color;
  context.fillRect(0, 0, 1, 1);
  const [r, g, b, a] = context.getImageData(0, 0, 1, 1).data;
  return [r, g, b, a / 255];
};
const over = (top, below) => top.slice(0, 3).map((value, i) => value * top[3] + below[i] * (1 - top[3]));
const behind = (node) => {
  const layers = [];
  for (let at = node; at; at = at.parentElement) layers.push(rgba(getComputedStyle(at).backgroundColor));
  return layers.reverse().reduce((below, layer) => over(layer, below), rgba('Canvas').slice(0, 3));
};
const light = (color) => {
  const [r, g, b] = color.map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const found = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let text = walker.nextNode(); text; text = walker.nextNode()) {
  const node = text.parentElement;
  if (text.data.trim() === '' || !node.checkVisibility() || ['SCRIPT', 'NOSCRIPT'].includes(node.tagName)) continue;
  if (node.disabled) continue;
  const style = getComputedStyle(node);
  const back = behind(node);
  const [a, b] = [light(over(rgba(style.color), back)), light(back)];
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  const size = parseFloat(style.fontSize);
  const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
  if (ratio < (large ? 3 : 4.5)) found.push([text.data.trim().slice(0, 40), ratio.toFixed(2)]);
}
return found;
"""

# What reaches beyond the width of the page; what scrolls within its own box does not count.
TOO_WIDE = """
const scrolls = (node) => node && (['auto', 'scroll', 'hidden'].includes(getComputedStyle(node).overflowX) || scrolls(node.parentElement));
return [...document.querySelectorAll('body *')]
  .filter((node) => node.checkVisibility() && node.getBoundingClientRect().right > innerWidth + 1 && !scrolls(node.parentElement))
  .filter((node) => !node.classList.contains('skip'))
  .map((node) => node.id || node.className || node.tagName);
"""


class LooksTest(DashboardCase):
    def test_every_part_is_filled_and_the_console_is_quiet(self):
        self.show()
        self.browser.until("document.getElementById('rates-empty').hidden")
        self.assertEqual(self.browser.text("#job-name"), "flights")
        self.assertEqual(self.browser.text("#connection"), "Live")
        self.assertRegex(self.browser.text("#job-figures"), r"Training records committed\n[\d,]+ of 20,000")
        self.assertIn("when every partition has a snapshot that holds it", self.browser.text("#commit-hint"))
        # The job's time, not that of a master that was just started again.
        self.assertRegex(self.browser.text("#job-figures"), r"Running for\n1 min \d+ s")
        self.assertIn("failed 2", self.browser.text("#shards-legend"))
        self.assertEqual(self.browser.text("#shards-metrics"), "loss 0.25 · 1 record rejected (train.csv:17: no number)")
        self.assertIn("worker-1", self.browser.text("#nodes-rows"))
        self.assertIn("out-of-memory", self.browser.text("#policies-list"))
        self.assertRegex(self.browser.text("#policies-count"), r"^\d+ in all")
        self.assertEqual(self.browser.text("#trouble"), "")
        self.assertEqual(self.browser.script("return document.getElementById('partitions-heat').childElementCount"), 256)
        self.browser.until("document.getElementById('heat-high').textContent !== '0 %'")
        self.browser.until("document.getElementById('logs-lines').textContent.includes('line 199')")
        self.assertIn("computing", self.browser.script("return document.querySelector('.share-bar').title"))
        self.browser.click("#event-3 summary")
        self.assertIn("memory peak", self.browser.text("#event-3 table"))
        self.assert_quiet()

    def test_light_and_dark_are_readable(self):
        self.show()
        for dark in (False, True):
            self.browser.look(dark=dark)
            back = self.browser.script("return getComputedStyle(document.body).backgroundColor")
            red = int(back.removeprefix("rgb(").split(",")[0])
            self.assertEqual(red < 64, dark, back)
            for state in ("live", "lost"):
                self.browser.script("document.getElementById('connection').dataset.state = arguments[0]", state)
                self.browser.script("document.body.classList.toggle('stale', arguments[0])", state == "lost")
                with self.subTest(dark=dark, state=state):
                    self.assertEqual(self.browser.script(LOW_CONTRAST), [])
            self.browser.click("button[aria-label='Resize ps-0']")
            self.assertEqual(self.browser.script(LOW_CONTRAST), [])
            self.browser.press("Escape")

    def test_no_width_is_too_narrow(self):
        self.show()
        for width, height in ((360, 640), (414, 740), (420, 740), (768, 740), (1024, 740), (1280, 740), (1920, 740)):
            self.browser.look(width=width, height=height)
            with self.subTest(width=width):
                self.browser.until("innerWidth === arguments[0]", width)
                # The page is told of its new width in a later frame.
                self.browser.until(f"((() => {{{TOO_WIDE}}})()).length === 0")
                self.assertLessEqual(self.browser.script("return document.documentElement.scrollWidth"), width)
                # Every link to a section is seen whole, without scrolling sideways.
                bar = "const bar = document.querySelector('.sections'); return bar.scrollWidth - bar.clientWidth"
                self.assertLessEqual(self.browser.script(bar), 0)
        self.browser.look(width=360, height=740)
        self.browser.click("button[aria-label='Restart worker-0']")
        self.assertEqual(self.browser.script(TOO_WIDE), [])

    def test_the_range_of_rates_can_be_chosen(self):
        self.show()
        self.browser.until("document.getElementById('rates-empty').hidden")
        label = "document.getElementById('rates-chart').getAttribute('aria-label')"
        self.assertIn("over the last 10 minutes", self.browser.script(f"return {label}"))
        for seconds, text in (("21600", "6 hours"), ("300", "5 minutes")):
            self.browser.script(
                "const range = document.getElementById('rates-window'); range.value = arguments[0]; range.dispatchEvent(new Event('change'))",
                seconds,
            )
            self.browser.until(f"{label}.includes('over the last {text};')")
        self.assert_quiet()

    def focused(self):
        return self.browser.script(
            "const e = document.activeElement; return e.getAttribute('aria-label') || e.id || e.innerText || e.tagName"
        )

    def tab_to(self, label):
        """Presses Tab until the focus is there; every stop on the way must be seen."""
        for _ in range(120):
            self.browser.press("Tab")
            if self.focused() == label:
                break
            outline = self.browser.script("return getComputedStyle(document.activeElement).outlineStyle")
            self.assertNotEqual(outline, "none", self.focused())
        self.assertEqual(self.focused(), label)

    def test_keyboard_alone(self):
        self.show()
        self.browser.press("Tab")
        self.assertEqual(self.focused(), "Skip to the job")
        self.tab_to("Restart worker-1")
        self.browser.press("Enter")
        self.browser.until("document.getElementById('order').open")
        self.browser.press(*"stuck")
        self.browser.press("Escape")
        self.browser.until("!document.getElementById('order').open")
        self.assertEqual(self.focused(), "Restart worker-1")
        self.browser.press("Space")
        self.browser.until("document.getElementById('order').open")
        self.browser.press(*"stuck")
        self.browser.press("Tab", "Tab")
        self.assertEqual(self.focused(), "order-confirm")
        self.browser.press("Enter")
        self.browser.until("document.querySelector('#order .result .event')")
        self.assertIn("stuck", self.browser.text("#order .result .event"))
        self.assertEqual(self.focused(), "order-close")
        self.browser.press("Enter")
        self.assertEqual(self.focused(), "Restart worker-1")

    def test_everything_that_can_be_pressed_or_chosen_has_a_name(self):
        self.show()
        nameless = self.browser.script(
            "return [...document.querySelectorAll('button, a, select, input, [role=img], [role=progressbar]')]"
            ".filter((e) => !(e.getAttribute('aria-label') || e.innerText.trim() || e.closest('label')))"
            ".map((e) => e.outerHTML.slice(0, 80))"
        )
        self.assertEqual(nameless, [])
        ids = self.browser.script("return [...document.querySelectorAll('[id]')].map((e) => e.id)")
        self.assertEqual(len(ids), len(set(ids)))

    def test_nothing_jumps_when_figures_change(self):
        self.show()
        self.browser.until("document.getElementById('rates-empty').hidden")
        self.browser.until("document.getElementById('heat-high').textContent !== '0 %'")
        self.browser.script(
            "window.shifts = []; new PerformanceObserver((list) => { for (const e of list.getEntries()) window.shifts.push(e.value); })"
            ".observe({ type: 'layout-shift' });"
        )
        seen = self.browser.script("return document.getElementById('job-figures').innerText")
        self.browser.until("document.getElementById('job-figures').innerText !== arguments[0]", seen)
        before = self.browser.script("return performance.now()")
        self.browser.until("performance.now() - arguments[0] > 3000", before)
        self.assertEqual(self.browser.script("return window.shifts.filter((value) => value > 0.01)"), [])


class ManyShardsTest(DashboardCase):
    SHARDS = 10_000

    def test_ten_thousand_shards_cost_a_frame_two_calls_and_a_grid(self):
        self.show()
        self.browser.script(
            "window.calls = {}; for (const [type, names] of ["
            "  [CanvasRenderingContext2D, ['fillRect', 'drawImage', 'putImageData', 'stroke', 'fill', 'lineTo', 'fillText']]]) {"
            "  for (const name of names) { const real = type.prototype[name];"
            "    type.prototype[name] = function (...all) {"
            "      if (this.canvas.id === 'shard-map' || !this.canvas.isConnected) window.calls[name] = (window.calls[name] || 0) + 1;"
            "      return real.apply(this, all); }; } }"
        )
        label = self.browser.script("return document.getElementById('shard-map').getAttribute('aria-label')")
        self.assertIn("10,000 shards", label)
        self.browser.until("window.calls.drawImage >= 2")
        calls = self.browser.script("return window.calls")
        frames = calls["drawImage"]
        self.assertLessEqual(calls["putImageData"], frames)
        self.assertLessEqual(calls.get("stroke", 0), frames)
        self.assertEqual(calls.get("fillRect", 0), 0)
        self.assertLess(calls.get("lineTo", 0), 500 * frames)
        # One canvas, not an element per shard.
        self.assertLess(self.browser.script("return document.querySelectorAll('*').length"), 1500)

    def test_a_shard_under_the_pointer_is_named(self):
        self.show()
        moved = (
            "const map = document.getElementById('shard-map'); const box = map.getBoundingClientRect();"
            "map.dispatchEvent(new PointerEvent('pointermove', { clientX: box.left + arguments[0], clientY: box.top + 1, bubbles: true }));"
            "return document.getElementById('shard-under-pointer').innerText"
        )
        self.assertEqual(self.browser.script(moved, 1), "Shard 0/0/0: failed")
        self.assertRegex(self.browser.script(moved, 60), r"Shard 0/0/\d+: ")


if __name__ == "__main__":
    main()
