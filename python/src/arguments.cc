#include "python/src/arguments.h"

#include <nanobind/stl/string.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/words/number_bits.h"

namespace muster::python {
namespace {

using Dtype = nb::dlpack::dtype;

std::string NameOf(Dtype dtype) {
  using Code = nb::dlpack::dtype_code;
  const std::string bits = std::to_string(dtype.bits);
  switch (static_cast<Code>(dtype.code)) {
    case Code::Int:
      return "int" + bits;
    case Code::UInt:
      return "uint" + bits;
    case Code::Float:
      return "float" + bits;
    case Code::Bfloat:
      return "bfloat" + bits;
    case Code::Complex:
      return "complex" + bits;
    case Code::Bool:
      return "bool";
    default:
      return "an unknown dtype";
  }
}

std::string TextOf(const Shape& shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return text + (shape.size() == 1 ? ",)" : ")");
}

bool RowMajor(const nb::ndarray<nb::ro>& array) {
  int64_t next = 1;
  for (size_t i = array.ndim(); i-- > 0;) {
    if (array.shape(i) > 1 && array.stride(i) != next) return false;
    next *= static_cast<int64_t>(array.shape(i));
  }
  return true;
}

/// An array of one of the dtypes, or of any if there are none; `dtype` is the name of the first.
nb::ndarray<nb::ro> ArrayFrom(nb::handle value, const std::string& name, std::string_view dtype,
                              std::initializer_list<Dtype> dtypes) {
  const std::string wanted(dtype);
  nb::ndarray<nb::ro> array;
  if (!nb::try_cast(value, array, /*convert=*/false)) {
    const auto type = nb::cast<std::string>(value.type().attr("__name__"));
    const std::string what = name + ": a " + type + " came, an array of " + wanted +
                             " is needed: call numpy.asarray(" + name + ", dtype=numpy." + wanted +
                             "), or " + name + ".detach() for a tensor with a gradient";
    throw nb::type_error(what.c_str());
  }
  if (array.device_type() != nb::device::cpu::value) {
    const std::string what = name + ": the array is on a device: call " + name + ".cpu()";
    throw nb::type_error(what.c_str());
  }
  bool known = dtypes.size() == 0;
  for (const Dtype& one : dtypes) known = known || array.dtype() == one;
  if (!known) {
    const std::string what = name + ": an array of " + NameOf(array.dtype()) + " came, " + wanted +
                             " is needed: call " + name + ".astype(numpy." + wanted + ")";
    throw nb::type_error(what.c_str());
  }
  if (!RowMajor(array)) {
    const std::string what = name + ": the array is not contiguous in C order: call " +
                             "numpy.ascontiguousarray(" + name + ")";
    throw nb::value_error(what.c_str());
  }
  return array;
}

template <typename T>
Given<T> GivenBy(nb::ndarray<nb::ro> array) {
  Given<T> given;
  given.values = {static_cast<const T*>(array.data()), array.size()};
  for (size_t i = 0; i < array.ndim(); ++i) given.shape.push_back(array.shape(i));
  given.array = std::move(array);
  return given;
}

constexpr Dtype kFloat16{static_cast<uint8_t>(nb::dlpack::dtype_code::Float), 16, 1};
constexpr Dtype kBfloat16{static_cast<uint8_t>(nb::dlpack::dtype_code::Bfloat), 16, 1};

float FromFloat16(uint16_t bits) {
  const uint32_t sign = (bits & 0x8000U) << 16, exponent = (bits >> 10) & 0x1fU;
  const uint32_t fraction = bits & 0x3ffU;
  if (exponent == 0) {  // below 2^-14: units of 2^-24, which float32 has exactly
    const float value = static_cast<float>(fraction) * 0x1p-24f;
    return sign != 0 ? -value : value;
  }
  const uint32_t wide = exponent == 31 ? 255 : exponent + (127 - 15);
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

/// The same with values of float32, if they have 16 bits.
Given<float> Widened(nb::ndarray<nb::ro> array) {
  Given<float> given = GivenBy<float>(std::move(array));
  const Dtype dtype = given.array.dtype();
  if (dtype.bits == 32) return given;
  const auto* const from = static_cast<const uint16_t*>(given.array.data());
  given.converted.resize(given.values.size());
  for (size_t i = 0; i < given.converted.size(); ++i) {
    given.converted[i] = dtype == kFloat16 ? FromFloat16(from[i]) : FromBfloat16(from[i]);
  }
  given.values = given.converted;
  return given;
}

void RequireShape(const Shape& shape, const Shape& wanted, const std::string& name,
                  std::string_view why) {
  if (shape == wanted) return;
  const std::string what = name + ": shape " + TextOf(shape) + " came, " + TextOf(wanted) +
                           " is needed, " + std::string(why);
  throw nb::value_error(what.c_str());
}

void RequireOneDimension(const Shape& shape, const std::string& name) {
  if (shape.size() == 1) return;
  const std::string what = name + ": shape " + TextOf(shape) +
                           " came, one dimension is needed: call " + name + ".ravel()";
  throw nb::value_error(what.c_str());
}

void RequireElements(size_t came, uint64_t elements, const std::string& name,
                     std::string_view why) {
  if (came == elements) return;
  const std::string what = name + ": " + std::to_string(came) + " elements came, " +
                           std::to_string(elements) + " are needed, " + std::string(why);
  throw nb::value_error(what.c_str());
}

Writable WritableFrom(nb::handle value, const std::string& name,
                      std::initializer_list<Dtype> dtypes) {
  ArrayFrom(value, name, "float32", dtypes);
  Writable writable;
  if (!nb::try_cast(value, writable.array, /*convert=*/false)) {
    const std::string what = name + ": the array is read-only: call " + name + ".copy()";
    throw nb::value_error(what.c_str());
  }
  writable.bytes = {static_cast<std::byte*>(writable.array.data()), writable.array.nbytes()};
  return writable;
}

/// What keeps the memory of an array. A child of a fork may have got it, and must not give it back:
/// a lock may be held there for ever.
struct Held {
  std::shared_ptr<const void> owner;
  pid_t process = ::getpid();
};

nb::capsule CapsuleOf(std::shared_ptr<const void> owner) {
  return nb::capsule(new Held{std::move(owner)}, [](void* held) noexcept {
    Held* const own = static_cast<Held*>(held);
    if (own->process == ::getpid()) delete own;
  });
}

}  // namespace

Given<uint64_t> KeysOf(nb::handle value) {
  return GivenBy<uint64_t>(ArrayFrom(value, "keys", "uint64", {nb::dtype<uint64_t>()}));
}

Given<float> FloatsOf(nb::handle value, std::string_view name, const Shape& shape,
                      std::string_view why) {
  Given<float> given = Widened(
      ArrayFrom(value, std::string(name), "float32", {nb::dtype<float>(), kFloat16, kBfloat16}));
  RequireShape(given.shape, shape, std::string(name), why);
  return given;
}

Given<float> RowsOf(nb::handle value, std::string_view name) {
  Given<float> given = Widened(
      ArrayFrom(value, std::string(name), "float32", {nb::dtype<float>(), kFloat16, kBfloat16}));
  if (given.shape.size() == 1 || (given.shape.size() == 2 && given.shape[1] > 0)) return given;
  const std::string what = std::string(name) + ": shape " + TextOf(given.shape) +
                           " came, (n,) or (n, columns) is needed: call " + std::string(name) +
                           ".reshape(len(" + std::string(name) + "), -1)";
  throw nb::value_error(what.c_str());
}

Given<float> ScoresOf(nb::handle value, std::string_view name) {
  Given<float> given =
      GivenBy<float>(ArrayFrom(value, std::string(name), "float32", {nb::dtype<float>()}));
  RequireOneDimension(given.shape, std::string(name));
  return given;
}

Given<uint8_t> LabelsOf(nb::handle value, size_t count, std::string_view scores) {
  Given<uint8_t> given = GivenBy<uint8_t>(
      ArrayFrom(value, "labels", "bool", {nb::dtype<bool>(), nb::dtype<uint8_t>()}));
  RequireShape(given.shape, {count}, "labels", "one for each of " + std::string(scores));
  return given;
}

Given<float> ElementsOf(nb::handle value, std::string_view name, uint64_t elements,
                        std::string_view why) {
  Given<float> given =
      GivenBy<float>(ArrayFrom(value, std::string(name), "float32", {nb::dtype<float>()}));
  RequireElements(given.values.size(), elements, std::string(name), why);
  return given;
}

Writable WritableOf(nb::handle value, std::string_view name) {
  return WritableFrom(value, std::string(name), {});
}

Writable WritableFloatsOf(nb::handle value, std::string_view name, uint64_t elements,
                          std::string_view why) {
  Writable writable = WritableFrom(value, std::string(name), {nb::dtype<float>()});
  RequireElements(writable.array.size(), elements, std::string(name), why);
  return writable;
}

nb::object CopyOf(std::span<const float> values) {
  auto copy = std::make_unique<float[]>(values.size());
  std::ranges::copy(values, copy.get());
  const nb::capsule owner(copy.get(),
                          [](void* own) noexcept { delete[] static_cast<float*>(own); });
  const size_t shape = values.size();
  return nb::cast(nb::ndarray<nb::numpy, float>(copy.release(), 1, &shape, owner));
}

nb::object ArrayOf(const Rows& rows, const Shape& shape) {
  return nb::cast(nb::ndarray<nb::numpy, const float>(rows.data(), shape.size(), shape.data(),
                                                      CapsuleOf(rows.owner())));
}

nb::object ArrayOf(std::span<const int64_t> numbers, std::shared_ptr<const void> owner) {
  const size_t size = numbers.size();
  return nb::cast(
      nb::ndarray<nb::numpy, const int64_t>(numbers.data(), 1, &size, CapsuleOf(std::move(owner))));
}

}  // namespace muster::python
