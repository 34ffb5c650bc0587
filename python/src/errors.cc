#include "python/src/errors.h"

#include <nanobind/stl/string.h>

namespace muster::python {
namespace {

nb::object Errors() {
  return nb::module_::import_("muster.errors");
}

}  // namespace

void Raise(Status::Code code, const std::string& message) {
  const nb::object type = Errors().attr("class_of")(static_cast<int>(code));
  PyErr_SetString(type.ptr(), message.c_str());
  throw nb::python_error();
}

void RaiseIfError(const Status& status) {
  if (!status.ok()) Raise(status.code(), status.message());
}

std::string Describe(nb::handle error) {
  return nb::cast<std::string>(Errors().attr("describe")(error));
}

}  // namespace muster::python
