#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "muster/muster.h"

namespace muster::python {

namespace nb = nanobind;
using Shape = std::vector<size_t>;

/// An array of the caller's, not copied, and kept as long as this exists.
template <typename T>
struct Given {
  nb::ndarray<nb::ro> array;
  std::span<const T> values;
  Shape shape;
  std::vector<T> converted;  // what `values` are, if the array is of another dtype
};

/// Memory of the caller's that is written, too, and kept as long as this exists.
struct Writable {
  nb::ndarray<> array;
  std::span<std::byte> bytes;
};

// Each raises TypeError or ValueError if the array cannot be read as it is. The message has the
// argument's name, what came, and what to call. Require the GIL.

/// uint64, of any shape.
Given<uint64_t> KeysOf(nb::handle value);
/// float32, or float16 or bfloat16, which are converted; of this shape. `why` says where the shape
/// comes from.
Given<float> FloatsOf(nb::handle value, std::string_view name, const Shape& shape,
                      std::string_view why);
/// float32, or float16 or bfloat16, which are converted; `[n]` or `[n, columns]`.
Given<float> RowsOf(nb::handle value, std::string_view name);
/// float32, of one dimension.
Given<float> ScoresOf(nb::handle value, std::string_view name);
/// bool or uint8, of one dimension, as bytes.
Given<uint8_t> LabelsOf(nb::handle value, size_t count, std::string_view scores);

/// float32, of any shape with so many elements. `why` says where the number comes from.
Given<float> ElementsOf(nb::handle value, std::string_view name, uint64_t elements,
                        std::string_view why);
/// Numbers of any dtype and shape.
Writable WritableOf(nb::handle value, std::string_view name);
/// float32, of any shape with so many elements. `why` says where the number comes from.
Writable WritableFloatsOf(nb::handle value, std::string_view name, uint64_t elements,
                          std::string_view why);

/// A NumPy array of one dimension with these values, which are copied.
nb::object CopyOf(std::span<const float> values);
/// A NumPy array that cannot be written. It shares the memory of the rows, and keeps it.
nb::object ArrayOf(const Rows& rows, const Shape& shape);
/// The same of numbers that `owner` keeps, `[numbers.size()] int64`.
nb::object ArrayOf(std::span<const int64_t> numbers, std::shared_ptr<const void> owner);

}  // namespace muster::python
