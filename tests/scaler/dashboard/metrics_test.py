#!/usr/bin/env python3
"""Metrics of the trainer by epoch: their charts, the best, what is said of a model that is overfitting, very many epochs."""

from dashboard_case import DashboardCase, main
from looks_test import LOW_CONTRAST, TOO_WIDE

# What the chart of a metric draws, as Chart.js has it.
LINES = """
const canvas = document.querySelector(`#metrics-charts li[data-key=${arguments[0]}] canvas`);
const chart = canvas && window.Chart.getChart(canvas);
if (!chart || chart.data.datasets.length === 0) return null;
return chart.data.datasets.map((one) => ({
  label: one.label, color: one.borderColor, points: one.data.length, first: one.data[0], last: one.data.at(-1),
  marked: one.data.filter((_, place) => one.pointStyle[place] === 'rectRot').map((point) => point.x),
}));
"""


class MetricsCase(DashboardCase):
    def show(self):
        super().show()
        self.browser.until("document.getElementById('metrics').checkVisibility()")

    def lines(self, metric):
        self.browser.until(f"((() => {{{LINES.replace('arguments[0]', repr(metric))}}})()) !== null")
        return self.browser.script(LINES, metric)


class LongJobTest(MetricsCase):
    EPOCHS = 250

    def test_every_metric_has_a_chart_with_train_and_test(self):
        self.show()
        self.assertEqual(self.browser.script("return [...document.querySelectorAll('#metrics-charts h3')].map((e) => e.textContent)"), ["auc", "loss"])
        train, test = self.lines("auc")
        self.assertEqual([train["label"], test["label"]], ["train", "test"])
        self.assertNotEqual(train["color"], test["color"])
        self.assertEqual([train["points"], test["points"]], [250, 249])
        self.assertEqual(test["first"]["x"], 1)
        self.assertEqual(test["last"], {"x": 249, "y": 0.711})
        # The last epoch of training is not over.
        self.assertEqual([train["marked"], test["marked"]], [[249], [3]])
        self.assertEqual([line["marked"] for line in self.lines("loss")], [[249], [3]])
        texts = self.browser.text("#metrics-charts li[data-key=auc] ul").split("\n")
        self.assertEqual(texts, ["train 0.8992 in epoch 250 so far, before 0.8992, best 0.8992 in epoch 249",
                                 "test 0.711 in epoch 249, before 0.711, best 0.816 in epoch 3"])
        label = self.browser.script("return document.querySelector('#metrics-charts li[data-key=auc] canvas').getAttribute('aria-label')")
        self.assertIn("auc by epoch: train 0.8992", label)
        self.assert_quiet()

    def test_a_model_that_is_overfitting_is_remarked_on(self):
        self.show()
        remarks = self.browser.text("#metrics-remarks").split("\n")
        self.assertEqual(remarks[0], "test auc is 0.711; its best was 0.816 after epoch 3. The last 246 epochs were clearly worse: the model may be overfitting")
        self.assertEqual(len(remarks), 2)

    def test_of_very_many_epochs_the_newest_can_be_chosen_and_all_when_asked_for(self):
        self.show()
        options = "return [...document.getElementById('shards-epoch').options].map((one) => one.text)"
        few = ["train, epoch 248 of 250", "train, epoch 249 of 250", "train, epoch 250 of 250",
               "test, epoch 247 of 250", "test, epoch 248 of 250", "test, epoch 249 of 250", "List 494 more epochs"]
        self.assertEqual(self.browser.script(options), few)
        chosen = "document.getElementById('shards-epoch').value"
        self.assertEqual(self.browser.script(f"return {chosen}"), "0/249")
        choose = "const select = document.getElementById('shards-epoch'); select.value = arguments[0]; select.dispatchEvent(new Event('change'));"
        self.browser.script(choose, "all")
        self.assertEqual(len(self.browser.script(options)), 500)
        self.assertEqual(self.browser.script(f"return {chosen}"), "0/249")
        self.browser.script(choose, "1/7")
        self.browser.until("document.getElementById('shards-metrics').textContent.includes('auc 0.766')")
        self.assert_quiet()

    def test_looks_like_the_rest(self):
        self.show()
        self.lines("auc")
        colors = set()
        for dark in (False, True):
            for width in (360, 768, 1280):
                self.browser.look(dark=dark, width=width, height=740)
                with self.subTest(dark=dark, width=width):
                    self.browser.until("innerWidth === arguments[0]", width)
                    self.browser.until(f"((() => {{{TOO_WIDE}}})()).length === 0")
                    self.assertLessEqual(self.browser.script("return document.documentElement.scrollWidth"), width)
                    self.assertEqual(self.browser.script(LOW_CONTRAST), [])
            colors.add(self.lines("auc")[0]["color"])
        self.assertEqual(len(colors), 2)


class ShortJobTest(MetricsCase):
    def test_one_dataset_and_no_remark(self):
        self.show()
        [train] = self.lines("loss")
        self.assertEqual([train["points"], train["marked"]], [2, []])
        # Neither epoch is over: there is no previous one, and no best.
        self.assertEqual(self.browser.text("#metrics-charts li[data-key=loss] ul"), "train 0.25 in epoch 2 so far")
        self.assertEqual(self.browser.text("#metrics-remarks"), "")
        self.assertTrue(self.browser.script("return document.getElementById('metrics-more').hidden"))
        self.assert_quiet()


class OneEpochTest(MetricsCase):
    EPOCHS = 1

    def test_a_single_point_has_its_epoch_below_it(self):
        self.show()
        [train] = self.lines("loss")
        self.assertEqual((train["points"], train["first"]["x"]), (1, 1))
        axes = ("const chart = window.Chart.getChart(document.querySelector('#metrics-charts li[data-key=loss] canvas'));"
                "return [chart.scales.x.ticks.map((tick) => tick.label).filter((label) => label !== null), chart.scales.y.min, chart.scales.y.max];")
        labels, low, high = self.browser.script(axes)
        self.assertEqual([str(label) for label in labels], ["1"])
        self.assertTrue(0 < low < train["first"]["y"] < high < 1, (low, high))
        self.assert_quiet()


if __name__ == "__main__":
    main()
