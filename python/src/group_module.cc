// The names, signatures and docstrings of group.h.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>

#include "python/src/group.h"

namespace muster::python {
namespace {

template <typename T>
T ChoiceOf(const std::string& given, std::string_view name,
           std::initializer_list<std::pair<std::string_view, T>> choices) {
  std::string allowed;
  for (const auto& [word, value] : choices) {
    if (given == word) return value;
    allowed += (allowed.empty() ? "\"" : ", \"") + std::string(word) + "\"";
  }
  const std::string what =
      std::string(name) + ": \"" + given + "\" came, one of " + allowed + " is needed";
  throw nb::value_error(what.c_str());
}

SumOptions SumOf(const std::string& type, int64_t fraction_bits, bool after_loop) {
  if (fraction_bits < 0 || fraction_bits > 40) {
    const std::string what =
        "fraction_bits: 0 to 40 is allowed, " + std::to_string(fraction_bits) + " came";
    throw nb::value_error(what.c_str());
  }
  return {.type = ChoiceOf<SumType>(type, "type",
                                    {{"fixed_point", SumType::kFixedPoint},
                                     {"float32", SumType::kFloat32},
                                     {"bfloat16", SumType::kBfloat16}}),
          .fraction_bits = static_cast<uint32_t>(fraction_bits),
          .after_loop = after_loop};
}

std::shared_ptr<PyGroup> MakeGroup(PySession& session, const std::string& backend, int device,
                                   const std::string& library, const std::string& driver) {
  using Backend = CollectiveOptions::Backend;
  CollectiveOptions options;
  options.backend = ChoiceOf<Backend>(
      backend, "backend",
      {{"ring", Backend::kRing}, {"nccl", Backend::kNccl}, {"plugin", Backend::kPlugin}});
  options.device = device;
  options.library = library;
  options.driver = driver;
  return PyGroup::Make(session.shared_from_this(), options);
}

float F(double value) {
  return static_cast<float>(value);
}

void BindOuter(nb::module_& module) {
  nb::class_<OuterSgd>(module, "OuterSgd",
                       "w -= learning_rate * change. With 1, the weights become the mean of the "
                       "members' weights.")
      .def(
          "__init__", [](OuterSgd* self, double rate) { new (self) OuterSgd{F(rate)}; },
          nb::arg("learning_rate") = 1.0)
      .def_ro("learning_rate", &OuterSgd::learning_rate,
              "The part of the mean change that is applied.");
  nb::class_<OuterNesterov>(module, "OuterNesterov",
                            "m = momentum * m + change; w -= learning_rate * (change + momentum * "
                            "m).")
      .def(
          "__init__",
          [](OuterNesterov* self, double rate, double momentum) {
            new (self) OuterNesterov{F(rate), F(momentum)};
          },
          nb::arg("learning_rate") = 0.7, nb::kw_only(), nb::arg("momentum") = 0.9)
      .def_ro("learning_rate", &OuterNesterov::learning_rate, "The factor of each step.")
      .def_ro("momentum", &OuterNesterov::momentum,
              "How much of the last step the next one keeps.");
  nb::class_<OuterAdam>(module, "OuterAdam", "Adam; with a small epsilon, it is unstable.")
      .def(
          "__init__",
          [](OuterAdam* self, double rate, double beta1, double beta2, double epsilon) {
            new (self) OuterAdam{F(rate), F(beta1), F(beta2), F(epsilon)};
          },
          nb::arg("learning_rate") = 0.3, nb::kw_only(), nb::arg("beta1") = 0.9,
          nb::arg("beta2") = 0.95, nb::arg("epsilon") = 0.1)
      .def_ro("learning_rate", &OuterAdam::learning_rate, "The factor of each step.")
      .def_ro("beta1", &OuterAdam::beta1, "How much of the mean change each step keeps.")
      .def_ro("beta2", &OuterAdam::beta2, "How much of the mean square each step keeps.")
      .def_ro("epsilon", &OuterAdam::epsilon, "What is added to the divisor.");
}

void BindSteps(nb::module_& module) {
  nb::class_<PyBucket>(module, "SumBucket", "A handle of a group's bucket.")
      .def_ro("name", &PyBucket::name, "The name in the group.")
      .def_prop_ro(
          "elements", [](const PyBucket& bucket) { return bucket.bucket.elements(); },
          "How many numbers it has.");
  nb::class_<PyStep>(module, "GroupStep")
      .def_prop_ro("step", &PyStep::number)
      .def_prop_ro("epoch", &PyStep::epoch)
      .def_prop_ro("evaluate", &PyStep::evaluate)
      .def_prop_ro("replay", &PyStep::replay)
      .def_prop_ro("state_copied", &PyStep::state_copied)
      .def_prop_ro("records", &PyStep::Records)
      .def("loop", &PyStep::Minibatches, nb::arg("parse").none(),
           nb::sig("def loop(self, parse: collections.abc.Callable[[Batch], object] | None) -> "
                   "Loop"))
      .def("add", &PyStep::Add, nb::arg("bucket"), nb::arg("gradient"),
           nb::sig("def add(self, bucket: SumBucket, gradient: object) -> None"))
      .def("put", &PyStep::Put, nb::arg("bucket"), nb::arg("sum"),
           nb::sig("def put(self, bucket: SumBucket, sum: object) -> None"))
      .def("commit", &PyStep::Commit, nb::arg("apply").none(),
           nb::sig("def commit(self, apply: collections.abc.Callable[[], object] | None) -> bool"))
      .def("sum", &PyStep::Sum, nb::arg("bucket"), nb::arg("out").none(),
           nb::sig("def sum(self, bucket: SumBucket, out: typing.Any) -> typing.Any"))
      .def("fail", &PyStep::Fail, nb::arg("reason"))
      .def("close", [](PyStep& self) {
        if (!self.busy()) self.End();
      });
}

}  // namespace

void BindGroup(nb::module_& module, nb::class_<PySession>& session) {
  BindOuter(module);
  BindSteps(module);
  nb::class_<PyGroup>(module, "Group")
      .def(
          "add_bucket",
          [](PyGroup& self, const std::string& name, int64_t elements, const std::string& type,
             int64_t fraction_bits, bool after_loop) {
            return self.AddBucket(name, elements, SumOf(type, fraction_bits, after_loop));
          },
          nb::arg("name"), nb::arg("elements"), nb::arg("type"), nb::arg("fraction_bits"),
          nb::arg("after_loop"))
      .def("add_state", &PyGroup::AddState, nb::arg("name"), nb::arg("values"),
           nb::sig("def add_state(self, name: str, values: object) -> None"))
      .def(
          "train_locally",
          [](PyGroup& self, OuterOptimizer outer, const std::string& type, int64_t fraction_bits,
             uint32_t fragments, double mixing, uint32_t members) {
            self.TrainLocally({.outer = outer,
                               .sum = SumOf(type, fraction_bits, false),
                               .fragments = fragments,
                               .mixing = F(mixing),
                               .members = members});
          },
          nb::arg("outer"), nb::arg("type"), nb::arg("fraction_bits"), nb::arg("fragments"),
          nb::arg("mixing"), nb::arg("members"))
      .def("add_weights", &PyGroup::AddWeights, nb::arg("name"), nb::arg("values"),
           nb::sig("def add_weights(self, name: str, values: object) -> None"))
      .def("add_mean", &PyGroup::AddMean, nb::arg("name"), nb::arg("values"),
           nb::sig("def add_mean(self, name: str, values: object) -> None"))
      .def("next_step", &PyGroup::NextStep, nb::sig("def next_step(self) -> GroupStep | None"))
      .def("has_final_state", &PyGroup::HasFinalState)
      .def("close", &PyGroup::Close);
  session.def("group", &MakeGroup, nb::arg("backend"), nb::arg("device"), nb::arg("library"),
              nb::arg("driver"));
}

}  // namespace muster::python
