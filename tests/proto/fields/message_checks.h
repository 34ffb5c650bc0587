#pragma once

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "proto/fields/decode.h"
#include "proto/fields/encode.h"
#include "tests/proto/fields/fill.h"
#include "tests/proto/fields/listing.h"
#include "tests/support/status_matchers.h"

/// Checks that hold for every struct with a list and its message in a .proto file. A new field
/// needs no line in a test.
namespace muster::testing {

/// For a message and its nested messages: the values of the fields, and the paths of the set
/// fields.
class Leaves {
 public:
  void Add(const google::protobuf::Message& message, const std::string& path) {
    const auto* reflection = message.GetReflection();
    std::vector<const google::protobuf::FieldDescriptor*> set;
    reflection->ListFields(message, &set);
    for (const auto* field : set) {
      const std::string name = Joined(path, field->name());
      paths_.insert(name);
      const int count = field->is_repeated() ? reflection->FieldSize(message, field) : 1;
      for (int i = 0; i < count; ++i) AddOne(message, field, i, name);
    }
  }
  const std::set<std::string>& paths() const { return paths_; }

 private:
  using Field = google::protobuf::FieldDescriptor;

  void AddOne(const google::protobuf::Message& message, const Field* field, int i,
              const std::string& name) {
    const auto* r = message.GetReflection();
    const bool many = field->is_repeated();
    switch (field->cpp_type()) {
      case Field::CPPTYPE_MESSAGE:
        return Add(many ? r->GetRepeatedMessage(message, field, i) : r->GetMessage(message, field),
                   name);
      case Field::CPPTYPE_STRING:
        return Note(
            name, (many ? r->GetRepeatedString(message, field, i) : r->GetString(message, field)));
      case Field::CPPTYPE_UINT32:
        return NoteNumber(
            name, many ? r->GetRepeatedUInt32(message, field, i) : r->GetUInt32(message, field));
      case Field::CPPTYPE_UINT64:
        return NoteNumber(
            name, many ? r->GetRepeatedUInt64(message, field, i) : r->GetUInt64(message, field));
      case Field::CPPTYPE_FLOAT:
        return NoteNumber(name, static_cast<uint64_t>(r->GetFloat(message, field)));
      case Field::CPPTYPE_DOUBLE:
        return NoteNumber(name, static_cast<uint64_t>(r->GetDouble(message, field)));
      default:
        return;
    }
  }
  void NoteNumber(const std::string& name, uint64_t value) {
    if (value > Fill::kFirst) Note(name, std::to_string(value));
  }
  void Note(const std::string& name, const std::string& value) {
    EXPECT_TRUE(values_.insert(value).second) << name << " has the value of another field";
  }

  std::set<std::string> values_, paths_;
};

inline std::unique_ptr<google::protobuf::Message> Parsed(
    const google::protobuf::Descriptor& message, const std::string& bytes) {
  std::unique_ptr<google::protobuf::Message> parsed(
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(&message)->New());
  EXPECT_TRUE(parsed->ParseFromString(bytes));
  return parsed;
}

inline void ExpectAllSet(const google::protobuf::Descriptor& message, const std::string& path,
                         const std::set<std::string>& set, const std::set<std::string>& absent) {
  for (int i = 0; i < message.field_count(); ++i) {
    const auto* field = message.field(i);
    if (absent.contains(field->name())) continue;
    const std::string name = Joined(path, field->name());
    EXPECT_TRUE(set.contains(name)) << name << " was never written";
    if (field->message_type() != nullptr) {
      ExpectAllSet(*field->message_type(), name, set, {});
    }
  }
}

/// Every member goes over the wire as its own field and comes back; the bytes are those that the
/// generated class writes.
template <fields::Listed S>
void ExpectRoundTrip(const google::protobuf::Descriptor& message, fields::Side side,
                     const std::set<std::string>& absent) {
  std::set<std::string> paths;
  for (size_t alternative = 0; alternative < kAlternatives; ++alternative) {
    const std::string bytes = fields::Encode(Filled<S>(alternative), side);
    const auto parsed = Parsed(message, bytes);
    EXPECT_EQ(parsed->SerializeAsString(), bytes);
    Leaves leaves;
    leaves.Add(*parsed, "");
    paths.insert(leaves.paths().begin(), leaves.paths().end());
    const absl::StatusOr<S> back = fields::Decode<S>(bytes, side);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(fields::Encode(*back, side), bytes);
  }
  ExpectAllSet(message, "", paths, absent);
  // Messages without anything in them are there all the same.
  const std::string empty = fields::Encode(S{}, side);
  EXPECT_EQ(Parsed(message, empty)->SerializeAsString(), empty);
}

template <fields::Listed S>
void ExpectDamageIsSurvived(fields::Side side) {
  Rng rng(5);
  const std::string good = fields::Encode(Filled<S>(), side);
  int refused = 0;
  for (int i = 0; i < 3'000; ++i) {
    std::string bad = good;
    for (uint64_t n = 1 + rng.Below(4); n > 0; --n) {
      bad[rng.Below(bad.size())] = static_cast<char>(rng.Next());
    }
    if (rng.Below(4) == 0) bad.resize(rng.Below(bad.size()));
    const absl::StatusOr<S> read = fields::Decode<S>(bad, side);
    refused += read.ok() ? 0 : 1;
    if (!read.ok()) continue;
    const std::string again = fields::Encode(*read, side);
    MUSTER_ASSERT_OK_AND_ASSIGN(const S same, fields::Decode<S>(again, side));
    ASSERT_EQ(fields::Encode(same, side), again);
  }
  EXPECT_GT(refused, 100);
}

}  // namespace muster::testing
