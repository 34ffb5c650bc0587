#include "python/src/tables.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdio>
#include <cstdlib>

namespace muster::python {
namespace {

/// The float as the shortest decimal number that names it: 0.01, and not 0.009999999776482582.
double Short(float value) {
  char text[32];
  for (int digits = 1; digits < 10; ++digits) {
    std::snprintf(text, sizeof(text), "%.*g", digits, static_cast<double>(value));
    if (std::strtof(text, nullptr) == value) break;
  }
  return std::strtod(text, nullptr);
}

float F(double value) {
  return static_cast<float>(value);
}

void BindSgds(nb::module_& module) {
  nb::class_<Sum>(module, "Sum", "w += g. It has no learning rate, and ignores the schedule.")
      .def(nb::init<>());
  nb::class_<Sgd>(module, "Sgd", "w -= learning_rate * g")
      .def(
          "__init__",
          [](Sgd* self, double learning_rate, double weight_decay) {
            new (self) Sgd{F(learning_rate), F(weight_decay)};
          },
          nb::arg("learning_rate") = Short(Sgd{}.learning_rate), nb::kw_only(),
          nb::arg("weight_decay") = Short(Sgd{}.weight_decay))
      .def_ro("learning_rate", &Sgd::learning_rate,
              "The factor of each step, which the schedule multiplies.")
      .def_ro("weight_decay", &Sgd::weight_decay,
              "The factor of the weight that each gradient gets.");
  nb::class_<Momentum>(module, "Momentum", "SGD with momentum, of Nesterov if asked for.")
      .def(
          "__init__",
          [](Momentum* self, double learning_rate, double momentum, bool nesterov,
             double weight_decay) {
            new (self) Momentum{F(learning_rate), F(momentum), nesterov, F(weight_decay)};
          },
          nb::arg("learning_rate") = Short(Momentum{}.learning_rate), nb::kw_only(),
          nb::arg("momentum") = Short(Momentum{}.momentum),
          nb::arg("nesterov") = Momentum{}.nesterov,
          nb::arg("weight_decay") = Short(Momentum{}.weight_decay))
      .def_ro("learning_rate", &Momentum::learning_rate,
              "The factor of each step, which the schedule multiplies.")
      .def_ro("momentum", &Momentum::momentum, "How much of the last step the next one keeps.")
      .def_ro("nesterov", &Momentum::nesterov, "True for the momentum of Nesterov.")
      .def_ro("weight_decay", &Momentum::weight_decay,
              "The factor of the weight that each gradient gets.");
}

template <typename T>
void BindAdagrad(nb::module_& module, const char* name, const char* doc) {
  nb::class_<T>(module, name, doc)
      .def(
          "__init__",
          [](T* self, double learning_rate, double initial_accumulator, double epsilon) {
            new (self) T{F(learning_rate), F(initial_accumulator), F(epsilon)};
          },
          nb::arg("learning_rate") = Short(T{}.learning_rate), nb::kw_only(),
          nb::arg("initial_accumulator") = Short(T{}.initial_accumulator),
          nb::arg("epsilon") = Short(T{}.epsilon))
      .def_ro("learning_rate", &T::learning_rate,
              "The factor of each step, which the schedule multiplies.")
      .def_ro("initial_accumulator", &T::initial_accumulator, "Where the sum of squares begins.")
      .def_ro("epsilon", &T::epsilon, "What is added to the divisor.");
}

void BindAdams(nb::module_& module) {
  nb::class_<Adam>(module, "Adam", "Each row has its own count of steps.")
      .def(
          "__init__",
          [](Adam* self, double learning_rate, double beta1, double beta2, double epsilon) {
            new (self) Adam{F(learning_rate), F(beta1), F(beta2), F(epsilon)};
          },
          nb::arg("learning_rate") = Short(Adam{}.learning_rate), nb::kw_only(),
          nb::arg("beta1") = Short(Adam{}.beta1), nb::arg("beta2") = Short(Adam{}.beta2),
          nb::arg("epsilon") = Short(Adam{}.epsilon))
      .def_ro("learning_rate", &Adam::learning_rate,
              "The factor of each step, which the schedule multiplies.")
      .def_ro("beta1", &Adam::beta1, "How much of the mean gradient each step keeps.")
      .def_ro("beta2", &Adam::beta2, "How much of the mean square each step keeps.")
      .def_ro("epsilon", &Adam::epsilon, "What is added to the divisor.");
  nb::class_<AdamW>(module, "AdamW", "Adam with decoupled weight decay.")
      .def(
          "__init__",
          [](AdamW* self, double learning_rate, double beta1, double beta2, double epsilon,
             double weight_decay) {
            new (self) AdamW{F(learning_rate), F(beta1), F(beta2), F(epsilon), F(weight_decay)};
          },
          nb::arg("learning_rate") = Short(AdamW{}.learning_rate), nb::kw_only(),
          nb::arg("beta1") = Short(AdamW{}.beta1), nb::arg("beta2") = Short(AdamW{}.beta2),
          nb::arg("epsilon") = Short(AdamW{}.epsilon),
          nb::arg("weight_decay") = Short(AdamW{}.weight_decay))
      .def_ro("learning_rate", &AdamW::learning_rate,
              "The factor of each step, which the schedule multiplies.")
      .def_ro("beta1", &AdamW::beta1, "How much of the mean gradient each step keeps.")
      .def_ro("beta2", &AdamW::beta2, "How much of the mean square each step keeps.")
      .def_ro("epsilon", &AdamW::epsilon, "What is added to the divisor.")
      .def_ro("weight_decay", &AdamW::weight_decay,
              "The part of a weight that a step takes away, times the rate.");
  nb::class_<Ftrl>(module, "Ftrl", "FTRL-Proximal.")
      .def(
          "__init__",
          [](Ftrl* self, double learning_rate, double beta, double lambda1, double lambda2) {
            new (self) Ftrl{F(learning_rate), F(beta), F(lambda1), F(lambda2)};
          },
          nb::arg("learning_rate") = Short(Ftrl{}.learning_rate), nb::kw_only(),
          nb::arg("beta") = Short(Ftrl{}.beta), nb::arg("lambda1") = Short(Ftrl{}.lambda1),
          nb::arg("lambda2") = Short(Ftrl{}.lambda2))
      .def_ro("learning_rate", &Ftrl::learning_rate,
              "The factor of each step, which the schedule multiplies.")
      .def_ro("beta", &Ftrl::beta, "What is added to the root of the sum of squares.")
      .def_ro("lambda1", &Ftrl::lambda1, "The strength of the L1 regularisation.")
      .def_ro("lambda2", &Ftrl::lambda2, "The strength of the L2 regularisation.");
}

void BindInitializers(nb::module_& module) {
  nb::class_<Zero>(module, "Zero", "Every value begins as 0.").def(nb::init<>());
  nb::class_<Constant>(module, "Constant", "Every value begins as `value`.")
      .def(
          "__init__", [](Constant* self, double value) { new (self) Constant{F(value)}; },
          nb::arg("value") = Short(Constant{}.value))
      .def_ro("value", &Constant::value, "The value.");
  nb::class_<Uniform>(module, "Uniform", "Values begin uniform in [low, high].")
      .def(
          "__init__",
          [](Uniform* self, double low, double high) { new (self) Uniform{F(low), F(high)}; },
          nb::kw_only(), nb::arg("low") = Short(Uniform{}.low),
          nb::arg("high") = Short(Uniform{}.high))
      .def_ro("low", &Uniform::low, "The least value.")
      .def_ro("high", &Uniform::high, "The largest value.");
  nb::class_<Normal>(module, "Normal", "Values begin normally distributed.")
      .def(
          "__init__",
          [](Normal* self, double mean, double stddev) { new (self) Normal{F(mean), F(stddev)}; },
          nb::kw_only(), nb::arg("mean") = Short(Normal{}.mean),
          nb::arg("stddev") = Short(Normal{}.stddev))
      .def_ro("mean", &Normal::mean, "The mean of the values.")
      .def_ro("stddev", &Normal::stddev, "The standard deviation of the values.");
}

void BindSchedules(nb::module_& module) {
  nb::class_<ConstantRate>(module, "ConstantRate", "The factor is 1 after a linear warm-up.")
      .def(
          "__init__",
          [](ConstantRate* self, uint64_t warmup_steps) { new (self) ConstantRate{warmup_steps}; },
          nb::kw_only(), nb::arg("warmup_steps") = 0)
      .def_ro("warmup_steps", &ConstantRate::warmup_steps,
              "Minibatches in which the factor grows to 1.");
  nb::class_<StepDecay>(module, "StepDecay",
                        "The factor is multiplied by `decay` every `period_steps`.")
      .def(
          "__init__",
          [](StepDecay* self, uint64_t period_steps, double decay, uint64_t warmup_steps) {
            new (self) StepDecay{period_steps, F(decay), warmup_steps};
          },
          nb::kw_only(), nb::arg("period_steps"), nb::arg("decay"), nb::arg("warmup_steps") = 0)
      .def_ro("period_steps", &StepDecay::period_steps, "Minibatches from one decay to the next.")
      .def_ro("decay", &StepDecay::decay, "What the factor is multiplied by.")
      .def_ro("warmup_steps", &StepDecay::warmup_steps,
              "Minibatches in which the factor grows to 1.");
  nb::class_<CosineDecay>(module, "CosineDecay",
                          "The factor falls from 1 to `final_factor` over `period_steps`, along "
                          "half a cosine, and then stays.")
      .def(
          "__init__",
          [](CosineDecay* self, uint64_t period_steps, double final_factor, uint64_t warmup_steps) {
            new (self) CosineDecay{period_steps, F(final_factor), warmup_steps};
          },
          nb::kw_only(), nb::arg("period_steps"), nb::arg("final_factor") = 0.0,
          nb::arg("warmup_steps") = 0)
      .def_ro("period_steps", &CosineDecay::period_steps, "Minibatches in which the factor falls.")
      .def_ro("final_factor", &CosineDecay::final_factor, "The factor at the end.")
      .def_ro("warmup_steps", &CosineDecay::warmup_steps,
              "Minibatches in which the factor grows to 1.");
}

}  // namespace

void BindTables(nb::module_& module) {
  BindSgds(module);
  BindAdagrad<Adagrad>(module, "Adagrad",
                       "w -= learning_rate * g / (sqrt(s) + epsilon), where s is the sum of the "
                       "squares of all gradients of this row and column.");
  BindAdagrad<RowwiseAdagrad>(module, "RowwiseAdagrad",
                              "Adagrad with one s per row: each step adds the mean of g * g over "
                              "the columns.");
  BindAdams(module);
  BindInitializers(module);
  BindSchedules(module);
  nb::class_<PyTable>(module, "Table", "A handle of a registered table of rows by 64-bit keys.")
      .def_ro("name", &PyTable::name, "The name in the job.")
      .def_prop_ro(
          "dim", [](const PyTable& table) { return table.table.width(); }, "Floats per row.");
  nb::class_<PyDense>(module, "DenseTensor", "A handle of a registered tensor of fixed shape.")
      .def_ro("name", &PyDense::name, "The name in the job.")
      .def_prop_ro(
          "shape", [](const PyDense& tensor) { return nb::tuple(nb::cast(tensor.shape)); },
          nb::sig("def shape(self) -> tuple[int, ...]"), "The length of each dimension.");
}

}  // namespace muster::python
