#pragma once

#include <stdexcept>

/// The one place that names protozero. Another wire type than expected is malformed input, not a
/// bug of ours: it throws and never aborts.
namespace muster::fields {
[[noreturn]] inline void ThrowMalformed() {
  throw std::runtime_error("a field of another type");
}
}  // namespace muster::fields
#define protozero_assert(x) ((x) ? static_cast<void>(0) : ::muster::fields::ThrowMalformed())
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>
