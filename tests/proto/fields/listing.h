#pragma once

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "proto/fields/fields.h"

/// A list as data, and its comparison with the message in the .proto file.
namespace muster::testing {

/// A line of a list, as it is on the wire.
struct ListedField {
  using Type = google::protobuf::FieldDescriptor::Type;
  uint32_t number = 0;
  std::string name;  // empty: that of the message is as good as any
  Type type = google::protobuf::FieldDescriptor::TYPE_UINT64;
  bool repeated = false;
  uint64_t entries_most = 0;
  uint64_t most = 0;     // of a text or a number
  bool checked = false;  // its struct has Wrong()
  bool keyed = false;    // entries of a map: their field 1 is not the same twice
  bool variant = false;
  std::vector<ListedField> fields;
};

class Listing {
 public:
  template <typename T>
  void operator()(uint32_t number, const char* name, T& /*member*/,
                  const fields::About& about = {}) {
    if (number == 0) return;
    ListedField field = Of<T>(about);
    field.number = number;
    field.name = name;
    listed_.push_back(std::move(field));
  }
  void Choice(uint32_t number, const char* name, std::string& member, fields::Choices,
              const fields::About& about = {}) {
    (*this)(number, name, member, about);
  }

  template <typename S>
  static std::vector<ListedField> All() {
    Listing listing;
    S value{};
    S::Fields(listing, value);
    return std::move(listing.listed_);
  }

 private:
  using Field = google::protobuf::FieldDescriptor;

  template <typename T>
  static constexpr ListedField::Type NumberType() {
    if constexpr (fields::IsStrongId<T>) {
      return NumberType<typename T::rep>();
    } else if constexpr (std::is_same_v<T, bool>) {
      return Field::TYPE_BOOL;
    } else {
      return std::is_enum_v<T> || sizeof(T) < 8 ? Field::TYPE_UINT32 : Field::TYPE_UINT64;
    }
  }

  template <typename T>
  static ListedField Of(const fields::About& about) {
    ListedField field;
    if constexpr (fields::IsNumber<T>) {
      field.type = about.fixed ? Field::TYPE_FIXED64 : NumberType<T>();
      field.most = about.most;
      EXPECT_TRUE(!std::is_enum_v<T> || about.most > 0) << "an enum takes any number";
    } else if constexpr (fields::IsWord<T>) {
      field.type = Field::TYPE_STRING;
      field.most = about.most == 0 ? fields::kTextMost : about.most;
    } else if constexpr (std::is_same_v<T, float>) {
      field.type = Field::TYPE_FLOAT;
    } else if constexpr (std::is_same_v<T, double>) {
      field.type = Field::TYPE_DOUBLE;
    } else if constexpr (std::is_same_v<T, std::string>) {
      field.type = about.raw ? Field::TYPE_BYTES : Field::TYPE_STRING;
      field.most = about.most == 0 ? fields::kTextMost : about.most;
    } else if constexpr (fields::kIsOptional<T>) {
      return Of<typename T::value_type>(about);
    } else {
      field.type = Field::TYPE_MESSAGE;
      FillMessage<T>(about, &field);
    }
    return field;
  }

  template <typename T>
  static void FillMessage(const fields::About& about, ListedField* field) {
    Listing inner;
    const fields::About text{.most = about.text_most};
    if constexpr (fields::kIsVector<T>) {
      using Entry = typename T::value_type;
      if constexpr (fields::kIsVector<Entry>) {
        Entry entry;
        inner(1, about.inner, entry, {.most = about.inner_most, .text_most = about.text_most});
        field->fields = std::move(inner.listed_);
      } else {
        *field = Of<Entry>(text);
        if constexpr (fields::IsNumber<Entry>) field->most = 0;
      }
    } else if constexpr (fields::kIsMap<T>) {
      typename T::key_type key{};
      typename T::mapped_type value{};
      if constexpr (fields::kIsPair<typename T::key_type>) {
        inner(1, "", key.first), inner(2, "", key.second);
        inner(3, "", value, {.most = about.inner_most});
      } else if constexpr (fields::Listed<typename T::mapped_type>) {
        inner(1, "name", key, text);
        T::mapped_type::Fields(inner, value);
        for (ListedField& one : inner.listed_) {
          one.checked = requires { value.Wrong(); };
        }
      } else {
        inner(1, "key", key, text), inner(2, "value", value, text);
      }
      field->keyed = true;
      field->fields = std::move(inner.listed_);
    } else if constexpr (fields::IsIntervals<T>) {
      uint64_t number = 0;
      inner(1, "begin", number), inner(2, "end", number);
      field->fields = std::move(inner.listed_);
    } else if constexpr (fields::kIsPair<T>) {
      T pair;
      inner(1, "", pair.first), inner(2, "", pair.second);
      field->fields = std::move(inner.listed_);
    } else if constexpr (fields::kIsVariant<T>) {
      uint32_t kind = 0;
      inner(1, "kind", kind, {.most = std::variant_size_v<T> - 1});
      Alternatives<T>(&inner, std::make_index_sequence<std::variant_size_v<T>>());
      field->variant = true;
      field->fields = std::move(inner.listed_);
    } else {
      field->fields = All<T>();
      field->checked = requires(const T& one) { one.Wrong(); };
    }
    constexpr bool kRepeated = fields::kIsVector<T> || fields::kIsMap<T> || fields::IsIntervals<T>;
    if (kRepeated) {
      field->repeated = true;
      field->entries_most = about.most == 0 ? fields::kListMost : about.most;
    }
  }

  /// All fields of all of them, by number; a number means the same in each.
  template <typename Variant, size_t... Is>
  static void Alternatives(Listing* inner, std::index_sequence<Is...>) {
    std::map<uint32_t, ListedField> by_number;
    const auto add = [&](std::vector<ListedField> listed) {
      for (ListedField& field : listed) {
        const auto [it, added] = by_number.try_emplace(field.number, field);
        EXPECT_EQ(it->second.name, field.name);
      }
    };
    (add(All<std::variant_alternative_t<Is, Variant>>()), ...);
    for (auto& [number, field] : by_number) inner->listed_.push_back(std::move(field));
  }

  std::vector<ListedField> listed_;
};

inline std::string Joined(const std::string& path, const std::string& name) {
  return path.empty() || name.empty() ? path + name : path + "." + name;
}

/// Numbers, names and types are those of the message; none is missing but `absent`. On our own disk
/// texts may be `bytes`.
inline void ExpectSame(const std::vector<ListedField>& listed,
                       const google::protobuf::Descriptor& message, fields::Side side,
                       const std::set<std::string>& absent) {
  using Field = google::protobuf::FieldDescriptor;
  uint32_t last = 0;
  for (const ListedField& field : listed) {
    SCOPED_TRACE(fmt::format("{} = {} of {}", field.name, field.number, message.full_name()));
    EXPECT_GT(field.number, last) << "not in ascending order";
    last = field.number;
    const Field* found = message.FindFieldByNumber(static_cast<int>(field.number));
    ASSERT_NE(found, nullptr) << "is not in the message";
    if (!field.name.empty()) {
      EXPECT_EQ(field.name, found->name());
    }
    EXPECT_EQ(field.repeated, found->is_repeated());
    const bool kept_as_it_is = side == fields::Side::kOwnDisk && field.type == Field::TYPE_STRING &&
                               found->type() == Field::TYPE_BYTES;
    EXPECT_TRUE(kept_as_it_is || field.type == found->type()) << found->type_name();
    if (field.type == Field::TYPE_MESSAGE && found->type() == Field::TYPE_MESSAGE) {
      ExpectSame(field.fields, *found->message_type(), side, {});
    }
  }
  for (int i = 0; i < message.field_count(); ++i) {
    const Field* field = message.field(i);
    const bool is_listed = std::ranges::any_of(listed, [&](const ListedField& one) {
      return static_cast<int>(one.number) == field->number();
    });
    EXPECT_NE(is_listed, absent.contains(field->name()))
        << field->full_name() << (is_listed ? " is listed" : " is not listed");
  }
}

}  // namespace muster::testing
