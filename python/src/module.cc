// muster._muster: what the package `muster` is made of. Thin: every decision is the library's.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>

#include <string>
#include <utility>
#include <vector>

#include "base/version.h"
#include "python/src/batch.h"
#include "python/src/group.h"
#include "python/src/loop.h"
#include "python/src/session.h"
#include "python/src/tables.h"

namespace muster::python {
namespace {

/// What both kinds of table have.
struct Common {
  Optimizer optimizer;
  Initializer initializer;
  Schedule schedule;
  std::string warm_start;
};

PyTable RegisterTable(PySession& session, const std::string& name, int64_t dim, Common common) {
  if (dim < 1 || dim > 65'536) {
    const std::string what = "dim: 1 to 65536 is allowed, " + std::to_string(dim) + " came";
    throw nb::value_error(what.c_str());
  }
  SparseTableOptions options{.name = name,
                             .dim = static_cast<uint32_t>(dim),
                             .optimizer = common.optimizer,
                             .initializer = common.initializer,
                             .schedule = common.schedule,
                             .warm_start = std::move(common.warm_start)};
  Session& own = session.session();
  std::optional<Table> table;
  session.Wait([&] { table = own.SparseTable(std::move(options)); });
  return {session.shared_from_this(), name, *table};
}

std::vector<size_t> ShapeOf(nb::handle given) {
  std::vector<size_t> shape;
  const auto add = [&](nb::handle extent) {
    int64_t value = 0;
    if (!nb::try_cast(extent, value) || value < 1) {
      throw nb::value_error("shape: a number, or several, each at least 1, are needed");
    }
    shape.push_back(static_cast<size_t>(value));
  };
  if (nb::isinstance<nb::int_>(given)) {
    add(given);
  } else {
    for (nb::handle extent : given) add(extent);
  }
  return shape;
}

PyDense RegisterDense(PySession& session, const std::string& name, nb::handle given,
                      Common common) {
  std::vector<size_t> shape = ShapeOf(given);
  DenseTableOptions options{.name = name,
                            .shape = {shape.begin(), shape.end()},
                            .optimizer = common.optimizer,
                            .initializer = common.initializer,
                            .schedule = common.schedule,
                            .warm_start = std::move(common.warm_start)};
  Session& own = session.session();
  std::optional<DenseTensor> tensor;
  session.Wait([&] { tensor = own.DenseTable(std::move(options)); });
  return {session.shared_from_this(), name, std::move(shape), *tensor};
}

void BindSession(nb::module_& module) {
  nb::class_<PySession> session(module, "Session");
  session
      .def_static(
          "connect",
          [](std::optional<std::string> master_address, std::optional<std::string> worker_name,
             std::optional<std::string> job_id, std::optional<double> connect_timeout) {
            return PySession::Connect({std::move(master_address), std::move(worker_name),
                                       std::move(job_id), connect_timeout});
          },
          nb::arg("master_address").none(), nb::arg("worker_name").none(), nb::arg("job_id").none(),
          nb::arg("connect_timeout").none())
      .def(
          "table",
          [](PySession& self, const std::string& name, int64_t dim, Optimizer optimizer,
             Initializer initializer, Schedule schedule, std::string warm_start) {
            return RegisterTable(self, name, dim,
                                 {optimizer, initializer, schedule, std::move(warm_start)});
          },
          nb::arg("name"), nb::arg("dim"), nb::arg("optimizer"), nb::arg("initializer"),
          nb::arg("schedule"), nb::arg("warm_start"))
      .def(
          "dense",
          [](PySession& self, const std::string& name, nb::handle shape, Optimizer optimizer,
             Initializer initializer, Schedule schedule, std::string warm_start) {
            return RegisterDense(self, name, shape,
                                 {optimizer, initializer, schedule, std::move(warm_start)});
          },
          nb::arg("name"), nb::arg("shape"), nb::arg("optimizer"), nb::arg("initializer"),
          nb::arg("schedule"), nb::arg("warm_start"),
          nb::sig("def dense(self, name: str, shape: int | collections.abc.Sequence[int], "
                  "optimizer: Sum | Sgd | Momentum | Adagrad | RowwiseAdagrad | Adam | AdamW | "
                  "Ftrl, initializer: Zero | Constant | Uniform | Normal, schedule: ConstantRate | "
                  "StepDecay | CosineDecay, warm_start: str) -> DenseTensor"))
      .def(
          "next_loop",
          [](PySession& self, nb::object parse) { return self.NextLoop(std::move(parse)); },
          nb::arg("parse").none(),
          nb::sig("def next_loop(self, parse: collections.abc.Callable[[Batch], object] | None) "
                  "-> Loop | None"))
      .def("numbered_datasets", [](PySession& self) { return self.session().numbered_datasets(); })
      .def("check", &PySession::Check)
      .def("leave", &PySession::Leave)
      .def("finish", &PySession::Finish)
      .def("close", &PySession::Close);
  nb::class_<Loop>(module, "Loop")
      .def("next", &Loop::Next, nb::sig("def next(self) -> Batch | None"))
      .def("close", &Loop::Close);
  BindGroup(module, session);
}

constexpr char kPullDoc[] =
    "The rows of the keys, float32, of the shape of `keys` and one more dimension of the table's "
    "dim; or the whole tensor, in its shape. Waits until they have arrived, so a need() of the "
    "same "
    "keys in `parse` saves the wait. The array cannot be written, shares the library's memory, and "
    "stays valid and constant as long as it exists, also after the minibatch. If the lease is lost "
    "meanwhile, all values are 0: compute with them as usual, their gradients are not sent.";
constexpr char kPushDoc[] =
    "Adds gradients, float32, in the shape that pull() returns. The commit sends them. They are "
    "summed, never averaged.";

void BindCalls(nb::class_<Batch>& batch) {
  batch
      .def(
          "need", &Batch::Need, nb::arg("table"), nb::arg("keys"),
          nb::sig("def need(self, table: Table, keys: numpy.typing.NDArray[numpy.uint64]) -> None"),
          "Requests rows ahead of time; call it in `parse`. Never waits.")
      .def("need", &Batch::NeedDense, nb::arg("tensor"),
           nb::sig("def need(self, tensor: DenseTensor) -> None"))
      .def("pull", &Batch::Pull, nb::arg("table"), nb::arg("keys"),
           nb::sig("def pull(self, table: Table, keys: numpy.typing.NDArray[numpy.uint64]) -> "
                   "numpy.typing.NDArray[numpy.float32]"),
           kPullDoc)
      .def("pull", &Batch::PullDense, nb::arg("tensor"),
           nb::sig("def pull(self, tensor: DenseTensor) -> numpy.typing.NDArray[numpy.float32]"))
      .def("push", &Batch::Push, nb::arg("table"), nb::arg("keys"), nb::arg("gradients"),
           nb::sig("def push(self, table: Table, keys: numpy.typing.NDArray[numpy.uint64], "
                   "gradients: numpy.typing.NDArray[numpy.float32]) -> None"),
           kPushDoc)
      .def("push", &Batch::PushDense, nb::arg("tensor"), nb::arg("gradient"),
           nb::sig("def push(self, tensor: DenseTensor, gradient: "
                   "numpy.typing.NDArray[numpy.float32]) -> None"))
      .def("commit", &Batch::Commit,
           "Ends the minibatch and sends its gradients. Leaving a `with` block calls it, and so "
           "does the step to the next minibatch.")
      .def("on_begin", &Batch::OnBegin, nb::arg("call"),
           nb::sig("def on_begin(self, call: collections.abc.Callable[[], object]) -> None"),
           "Calls `call()` when the loop comes to the minibatch, or at once if it is there. For "
           "`parse`. If it raises, the shard fails.")
      .def("on_commit", &Batch::OnCommit, nb::arg("call"),
           nb::sig("def on_commit(self, call: collections.abc.Callable[[], object]) -> None"),
           "Calls `call()` once, before the minibatch is committed, and not if it fails. It may "
           "push. If it raises, the shard fails, and nothing is sent.")
      .def("metric", &Batch::Metric, nb::arg("name"), nb::arg("value"), nb::arg("weight"),
           "Adds `value` with `weight` to the epoch's weighted mean. Counts exactly once.")
      .def("auc", &Batch::Auc, nb::arg("name"), nb::arg("scores"), nb::arg("labels"),
           nb::sig("def auc(self, name: str, scores: numpy.typing.NDArray[numpy.float32], labels: "
                   "numpy.typing.NDArray[numpy.bool_ | numpy.uint8]) -> None"),
           "Adds scores in [0, 1], each with its label, to the area under the epoch's ROC curve.")
      .def("auc_of_logits", &Batch::AucOfLogits, nb::arg("name"), nb::arg("logits"),
           nb::arg("labels"),
           nb::sig("def auc_of_logits(self, name: str, logits: "
                   "numpy.typing.NDArray[numpy.float32], labels: numpy.typing.NDArray[numpy.bool_ "
                   "| numpy.uint8]) -> None"),
           "The same for logits, ln(p / (1 - p)).")
      .def("output", &Batch::Output, nb::arg("value"),
           nb::sig("def output(self, value: bytes | numpy.typing.NDArray[numpy.float32] | "
                   "dict[str, typing.Any] | muster._outputs.Columns) -> None"),
           "Gives out what the model says about the records of a predict dataset: bytes, to which "
           "you add line ends yourself, or float32 of shape (n,) or (n, columns), or columns by "
           "their names: a dict of arrays or lists, a table or a record batch of pyarrow, or a "
           "frame that gives itself out as Arrow. The outputs of a shard become one object at "
           "`output` of the dataset, as they are (.out), as one NumPy array (.npy), or as a "
           "Parquet file (.parquet) with a row group for each call. It appears once and as a "
           "whole, whatever is killed. Columns need pyarrow, and have the same types in all calls "
           "for a shard, or it fails. In other datasets, the session fails.")
      .def("reject", &Batch::Reject, nb::arg("record"), nb::arg("reason"),
           "Reports that records[record] cannot be used. Leave it out of the gradients yourself.")
      .def("fail", &Batch::Fail, nb::arg("reason"),
           "Reports that the trainer failed on this shard. The shard is tried again.");
}

void BindBatch(nb::module_& module) {
  nb::class_<Batch> batch(
      module, "Batch", nb::dynamic_attr(), nb::is_weak_referenceable(),
      "Records that are trained on together; the unit of pushing. Only the thread that runs the "
      "loop may use it. `with batch:` commits it when the block is left. If an exception leaves "
      "the block, the shard fails with the exception's type, message and place instead; after a "
      "KeyboardInterrupt or a SystemExit, the shard goes back.");
  batch
      .def_prop_ro("records", &Batch::Records, nb::sig("def records(self) -> list[bytes]"),
                   "Lines without their line ends, or the values of a topic's records. The list is "
                   "made when it is first asked for.")
      .def_prop_ro("record_numbers", &Batch::RecordNumbers,
                   nb::sig("def record_numbers(self) -> numpy.typing.NDArray[numpy.int64]"),
                   "The record numbers, int64, of a dataset with `records: N`: 0 to N - 1 in each "
                   "epoch. Such a dataset has no bytes: each of `records` is empty. Of other "
                   "datasets, the array has no elements. It cannot be written, and stays valid as "
                   "long as it exists.")
      .def("__len__", &Batch::size)
      .def_prop_ro("nominal_size", &Batch::nominal_size,
                   "Records of a whole minibatch. Divide a sum of gradients by it.")
      .def_prop_ro("evaluate", &Batch::evaluate,
                   "True in a dataset of mode `evaluate` or `predict`, where push() is an error.")
      .def_prop_ro("predict", &Batch::predict,
                   "True in a dataset of mode `predict`, where output() gives out what the model "
                   "says.")
      .def_prop_ro("dataset", &Batch::dataset, "The name of the dataset.")
      .def_prop_ro("epoch", &Batch::epoch, "Counted from 0.")
      .def_prop_ro("seed", &Batch::seed,
                   "For random numbers: the same in every run of this minibatch.")
      .def_prop_ro("step", &Batch::step, "The position of the minibatch in the job, from 0.")
      .def_prop_ro("shard", &Batch::shard, "\"dataset/epoch/index\", for logs.")
      .def_prop_ro("header", &Batch::header,
                   "The first line of the source file, if the dataset has a header.")
      .def_prop_rw(
          "data",
          [](nb::handle self) -> nb::object { return self.attr("__dict__").attr("get")("data"); },
          [](nb::handle self, nb::object value) { self.attr("__dict__")["data"] = value; },
          nb::for_getter(nb::sig("def data(self) -> typing.Any")),
          nb::for_setter(nb::arg("value").none()),
          nb::for_setter(nb::sig("def data(self, value: typing.Any, /) -> None")),
          "What `parse` returned, or what was set here. None at first.")
      .def(
          "__enter__", [](nb::handle self) { return nb::borrow(self); },
          nb::sig("def __enter__(self) -> Batch"))
      .def(
          "__exit__",
          [](Batch& self, nb::handle type, nb::handle error, nb::handle) {
            self.Exit(type, error);
            return false;
          },
          nb::arg("type").none(), nb::arg("error").none(), nb::arg("traceback").none(),
          nb::sig("def __exit__(self, type: type[BaseException] | None, error: BaseException | "
                  "None, traceback: types.TracebackType | None) -> typing.Literal[False]"));
  BindCalls(batch);
}

}  // namespace
}  // namespace muster::python

NB_MODULE(_muster, module) {
  using namespace muster::python;
  nb::set_leak_warnings(false);  // a traceback may keep objects until the process ends
  module.doc() = "The C++ part of the package `muster`.";
  module.def("version", [] { return muster::kVersion; });
  BindTables(module);
  BindSession(module);
  BindBatch(module);
}
