#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "muster/muster.h"

namespace muster::python {

namespace nb = nanobind;

/// Raises the class of muster.errors for the code, with this message. Requires the GIL.
[[noreturn]] void Raise(Status::Code code, const std::string& message);
/// The same if the status is an error.
void RaiseIfError(const Status& status);

/// What a shard's failure says about an exception: "ValueError: no label (trainer.py:12)".
std::string Describe(nb::handle error);

}  // namespace muster::python
