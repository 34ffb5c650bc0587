#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <vector>

#include "muster/muster.h"

namespace muster::python {

namespace nb = nanobind;

class PySession;

/// A muster::Table with what messages need.
struct PyTable {
  std::shared_ptr<PySession> session;
  std::string name;
  Table table;
};

/// A muster::DenseTensor with its shape.
struct PyDense {
  std::shared_ptr<PySession> session;
  std::string name;
  std::vector<size_t> shape;
  DenseTensor tensor;
};

/// Optimizers, initializers, schedules, and the handles of tables.
void BindTables(nb::module_& module);

}  // namespace muster::python
