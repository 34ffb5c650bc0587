#pragma once

#include <bit>
#include <string>
#include <string_view>
#include <variant>

#include "base/text.h"
#include "proto/fields/fields.h"
#include "proto/fields/protozero.h"

namespace muster::fields {

/// Writes the fields of a list as Protobuf does: the same bytes as the generated class.
class WireWriter {
 public:
  WireWriter(std::string* bytes, protozero::pbf_writer* out, Side side)
      : bytes_(bytes), out_(out), side_(side) {}

  template <typename T>
  void operator()(uint32_t number, const char* /*name*/, const T& member, const About& about = {}) {
    if (number != 0) Put(number, member, about, Zero::kLeftOut);
  }
  void Choice(uint32_t number, const char* name, const std::string& member, Choices,
              const About& about = {}) {
    (*this)(number, name, member, about);
  }

 private:
  /// Zeros are written in lists, and where presence has a meaning.
  enum class Zero : uint8_t { kLeftOut, kWritten };

  template <typename T>
  void Put(uint32_t number, const T& value, const About& about, Zero zero) {
    if constexpr (IsNumber<T>) {
      PutNumber(number, ToNumber(value), about, zero);
    } else if constexpr (IsWord<T>) {
      PutText(number, std::string(ToString(value)), about);
    } else if constexpr (std::is_same_v<T, float>) {
      if (zero == Zero::kWritten || std::bit_cast<uint32_t>(value) != 0) {
        out_->add_float(number, value);
      }
    } else if constexpr (std::is_same_v<T, double>) {
      if (zero == Zero::kWritten || std::bit_cast<uint64_t>(value) != 0) {
        out_->add_double(number, value);
      }
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (zero == Zero::kWritten || !value.empty()) PutText(number, value, about);
    } else if constexpr (kIsOptional<T>) {
      if (value.has_value()) Put(number, *value, about, Zero::kWritten);
    } else if constexpr (kIsVector<T>) {
      PutList(number, value, about);
    } else if constexpr (kIsPair<T>) {
      PutMessage(number, [&](WireWriter& f) { f(1, "", value.first), f(2, "", value.second); });
    } else if constexpr (kIsMap<T>) {
      for (const auto& [key, entry] : value) PutEntry(number, key, entry, about);
    } else if constexpr (IsIntervals<T>) {
      for (const auto& [begin, end] : value.intervals()) {
        PutMessage(number, [&](WireWriter& f) { f(1, "begin", begin), f(2, "end", end); });
      }
    } else if constexpr (kIsVariant<T>) {
      PutMessage(number, [&](WireWriter& f) {
        f(1, "kind", static_cast<uint32_t>(value.index()));
        std::visit([&f](const auto& one) { one.Fields(f, one); }, value);
      });
    } else {
      PutMessage(number, [&](WireWriter& f) { T::Fields(f, value); });
    }
  }

  void PutNumber(uint32_t number, uint64_t value, const About& about, Zero zero) {
    if (zero == Zero::kLeftOut && value == 0) return;
    if (about.fixed) {
      out_->add_fixed64(number, value);
    } else {
      out_->add_uint64(number, value);
    }
  }

  /// One byte that is not UTF-8 would make a peer refuse the whole message.
  void PutText(uint32_t number, const std::string& text, const About& about) {
    if (side_ == Side::kOwnDisk || about.raw || IsValidUtf8(text)) {
      out_->add_string(number, text);
    } else {
      out_->add_string(number, ValidUtf8(text));
    }
  }

  template <typename T>
  void PutList(uint32_t number, const std::vector<T>& list, const About& about) {
    if constexpr (IsNumber<T>) {
      if (list.empty()) return;
      protozero::pbf_writer packed(*out_, number);
      for (const T& entry : list) protozero::add_varint_to_buffer(bytes_, ToNumber(entry));
    } else if constexpr (kIsVector<T>) {
      for (const T& entry : list) {
        PutMessage(number, [&](WireWriter& f) { f(1, "", entry, about); });
      }
    } else {
      for (const T& entry : list) Put(number, entry, about, Zero::kWritten);
    }
  }

  template <typename K, typename V>
  void PutEntry(uint32_t number, const K& key, const V& value, const About& about) {
    PutMessage(number, [&](WireWriter& f) {
      if constexpr (kIsPair<K>) {
        f(1, "", key.first), f(2, "", key.second), f(3, "", value, about);
      } else if constexpr (Listed<V>) {
        f(1, "name", key);
        V::Fields(f, value);
      } else {
        f.Put(1, key, about, Zero::kWritten);
        f.Put(2, value, about, Zero::kWritten);
      }
    });
  }

  template <typename Fill>
  void PutMessage(uint32_t number, const Fill& fill) {
    bool empty = false;
    {
      protozero::pbf_writer message(*out_, number);
      const size_t begin = bytes_->size();
      WireWriter writer(bytes_, &message, side_);
      fill(writer);
      empty = bytes_->size() == begin;
    }
    if (empty) out_->add_bytes(number, "", 0);  // a pbf_writer removes a field that stayed empty
  }

  std::string* const bytes_;
  protozero::pbf_writer* const out_;
  const Side side_;
};

template <Listed S>
std::string Encode(const S& value, Side side = Side::kPeer) {
  std::string bytes;
  protozero::pbf_writer out(bytes);
  WireWriter writer(&bytes, &out, side);
  S::Fields(writer, value);
  return bytes;
}

}  // namespace muster::fields
