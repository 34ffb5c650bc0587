"""Jobs whose workers use TensorFlow or JAX, with the installed wheel: run it with the Python that has them (wheel_test.py --tensorflow does)."""

import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import job  # noqa: E402

TRAINER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tensorflow_trainer.py")
DEEP = "x" * 60

MISUSE_IN_PARSE = [
    "TypeError: keys: a list came, an array or a tensor of uint64 or int64 is needed: call numpy.asarray(keys)",
    "TypeError: keys: an array of float32 came, uint64 or int64 is needed: call keys.astype(numpy.uint64)",
    "ValueError: keys: -3 came at position 2, 0 to 18446744073709551615 is allowed: if they are hashes, call keys.view(numpy.uint64), or "
    "tf.bitcast(keys, tf.uint64) for a tensor",
    "TypeError: keys: a RaggedTensor came, which only an EmbeddingBag can use: give its values, or use one",
    "ValueError: features['item']: -1 came at position 1, 0 to 18446744073709551615 is allowed: if they are hashes, call "
    "features['item'].view(numpy.uint64), or tf.bitcast(features['item'], tf.uint64) for a tensor",
    "TypeError: features: an empty dict came, a mapping from at least one name to keys is needed",
    "ValueError: offsets: keys of one dimension need them: give offsets, or keys of shape [bags, n]",
    "ValueError: keys: shape () came, at least one dimension is needed",
    "ValueError: offsets: the first one is 1, and must be 0",
    "ValueError: keys: shape (2, 3) came, with offsets one dimension is needed",
    "ValueError: keys: a RaggedTensor has its own bags: leave the offsets out",
    "ValueError: keys: a Lookup has its own offsets and weights: leave them out",
    "ValueError: keys: a RaggedTensor of shape (2, None, None) came, two dimensions are needed, of which the second is ragged",
    "TypeError: weights: a list came, an array or a tensor of float32 is needed: call numpy.asarray(weights)",
    "TypeError: weights: float64 came, float32 is needed: call weights.astype(numpy.float32), or tf.cast for a tensor",
    "ValueError: weights: shape (5,) came, (6,) is needed, the shape of the keys",
    "ValueError: keys: the rows of the SparseTensor are not in order: call tf.sparse.reorder(keys)",
    "ValueError: keys: a SparseTensor of shape (2,) came, two dimensions are needed, with a bag in each row",
    'ValueError: mode: \'max\' came, "sum", "mean" or "sqrtn" is allowed',
    "TypeError: table: a str came, what session.table() returns is needed",
    "TypeError: model: a str came, a model or a layer of Keras, or a tf.Module is needed",
    "ValueError: model: Sequential has no variables to train: build it, for example by calling it once, or use it without dense()",
    "TypeError: kernel: float64 came, float32, float16, bfloat16 is allowed",
    "ValueError: kernel: servers make the first values of a parameter, and do not know how to make those of Dense.kernel here: give "
    "initializers={'kernel': muster.Uniform(low=..., high=...)}, or muster.Normal or muster.Constant",
    "ValueError: weight: shape (None,) came, one that is known, with at least one element, is needed",
    'TypeError: model: Keras runs on "jax" here, "tensorflow" is needed: set the environment variable KERAS_BACKEND=tensorflow',
    f"ValueError: {DEEP}/kernel: its tensor would be called 'deep-{DEEP}-kernel', and 64 letters are allowed: shorten `name`, or the model's names",
    "ValueError: A/kernel: its tensor would be called 'twins-a-kernel', and so would that of a/kernel: rename one of the two",
    "ValueError: name: 'Big' came, small letters, digits, - and _ are allowed, and the first is a letter",
    "ValueError: initializers: no parameter or buffer is called 'kernle', only bias, kernel",
]
MISUSE_IN_LOOP = [
    'TypeError: lookup: a ndarray came, and table "rows" takes what need() returned: call need(batch, keys) in `parse`, and give its '
    "result here",
    'ValueError: lookup: it is of table "rows", and this is table "other": call need() of this one in `parse` as well',
    "FailedPrecondition: the minibatch has no leaves: call need(batch) of its tables and dense parts in `parse`, and use the lookups before "
    "this call",
    'ValueError: leaf: \'stray:0\' is none of this minibatch, which has rows of table "rows": take them from leaves(batch)',
    'ValueError: gradient of rows of table "rows": shape (1, 1) came, (KEYS, 4) is needed',
    "ValueError: gradients: all are None: compute the whole loss inside of `with tf.GradientTape()`, from the rows and the model",
    'FailedPrecondition: dense part "dense": frozen has changed, but it is not on the servers, because it was frozen, or because its first '
    "values differ: give initializers={'frozen': muster.Zero()}, or keep it constant",
    'FailedPrecondition: dense part "dense": another thread trains this model: make a model, and a dense part, for each thread',
    'FailedPrecondition: dense part "norm": a/moving_variance has fallen below 0, because minibatches change it that do not see each other\'s '
    "changes: give BatchNormalization a larger momentum, such as 0.99",
]
MISUSE_LATER = [
    'FailedPrecondition: the minibatch of this lookup in table "rows" is over: use it before `with batch:` ends, and call need() again for '
    "another minibatch",
    "FailedPrecondition: the minibatch is over: call this before `with batch:` ends",
]


class TensorFlowTest(unittest.TestCase):
    maxDiff = None

    def train(self, mode, **options):
        run = job.Job(self, mode, trainer=TRAINER, **options)
        self.assertEqual(run.wait(timeout=300), 0, run.log())  # TensorFlow takes long to begin
        for dataset in run.summary()["datasets"]:
            records = run.records if dataset["name"] == "train" else 64
            for epoch in dataset["epochs"]:
                self.assertEqual(epoch["records_committed"], records, dataset["name"])
        return run

    def test_learns_with_two_workers(self):
        run = self.train("learn", epochs=5, records=1600)
        self.assertLess(run.summary()["metrics"]["test"]["loss"], 0.5, "untrained: about 7")
        self.assertEqual(run.read("traced"), "1")

    def test_rows_bags_gradients_and_wrong_uses(self):
        run = self.train("check", workers=1)
        self.assertEqual(run.read("checked"), "20 20")
        self.assertEqual(run.read("misuse").split("\n"), MISUSE_IN_PARSE)
        self.assertEqual(run.read("misuse-in-loop").split("\n"), MISUSE_IN_LOOP)
        self.assertEqual(run.read("misuse-later").split("\n"), MISUSE_LATER)
        self.assertEqual(run.read("misuse-evaluate"), "FailedPrecondition: the minibatch is one of an evaluation, which has no gradients: check "
                         "batch.evaluate before")
        self.assertIn('dense part "dense": weight was changed in the minibatch, and the servers change it: leave the optimizer of Keras out',
                      run.ask("events", "job.yaml"))

    def test_import_of_muster_does_not_bring_tensorflow(self):
        code = "import muster, sys; print([name for name in ('keras', 'numpy', 'tensorflow') if name in sys.modules])"
        self.assertEqual(subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True).stdout, "[]\n")


class ExamplesTest(unittest.TestCase):
    def test_document_shows_the_keras_example(self):
        with open(job.example("keras", "returns.py"), encoding="utf-8") as file:
            trainer = file.read()
        with open(os.path.join(job.ROOT, "docs", "python.md"), encoding="utf-8") as file:
            section = file.read().split("\n## TensorFlow", 1)[1].split("\n## ", 1)[0]
        blocks = re.findall(r"^```py\n(.*?)^```$", section, re.M | re.S)
        self.assertEqual([block in trainer for block in blocks], [True] * 2)

    def test_keras(self):
        run = job.Example(self, "keras", ["returns.py", "job.yaml"])
        subprocess.run([os.path.join(job.ROOT, "examples", "tutorial", "make_data"), "--records", "20000"], cwd=run.folder, check=True)
        run.start([job.MUSTER, "run", "job.yaml"])
        self.assertGreater(run.summary()["metrics"]["test"]["auc"], 0.7, "untrained: 0.5")

    def test_jax(self):
        run = job.Example(self, "jax", ["likes.py"])
        said = run.start([sys.executable, "likes.py"])
        auc = float(re.search(r"test AUC of each epoch: \[.*?([0-9.]+)\]", said)[1])
        self.assertGreater(auc, 0.75, "untrained: 0.5, and 0.9 is the best")


if __name__ == "__main__":
    unittest.main()
