#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <google/protobuf/message.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/proto/fields/message_checks.h"

namespace muster::testing {

/// The last that every limit takes is taken, one more is refused by name.
template <fields::Listed S>
class LimitChecks {
 public:
  explicit LimitChecks(const google::protobuf::Descriptor& message)
      : full_(Parsed(message, fields::Encode(Filled<S>()))) {}

  void CheckAll() { Check(Listing::All<S>(), {}, ""); }

 private:
  using Message = google::protobuf::Message;
  using Field = google::protobuf::FieldDescriptor;
  /// More entries than these take the test too long, and are tested where their numbers are spelled
  /// out.
  static constexpr uint64_t kEntriesMax = 10'000;

  void Check(const std::vector<ListedField>& listed, const std::vector<uint32_t>& in,
             const std::string& path) {
    for (const ListedField& field : listed) {
      std::vector<uint32_t> here = in;
      here.push_back(field.number);
      const std::string name = Joined(path, field.name);
      const bool lists_agree = field.checked && field.type != Field::TYPE_MESSAGE;
      if (field.repeated && field.entries_most <= kEntriesMax && !lists_agree) {
        CheckOne(here, name, "entries are more", field.entries_most,
                 [&](Message* to, const Field* f, uint64_t n) { SetEntries(field, n, to, f); });
      }
      if (field.type == Field::TYPE_STRING || field.type == Field::TYPE_BYTES) {
        CheckOne(here, name, "bytes are more", field.most,
                 [&](Message* to, const Field* f, uint64_t n) {
                   const std::string text(n, 'x');
                   const auto* reflection = to->GetReflection();
                   if (!field.repeated) return reflection->SetString(to, f, text);
                   reflection->SetRepeatedString(to, f, 0, text);
                 });
      } else if (field.most > 0 && !field.repeated) {
        CheckOne(here, name, "is not a known value", field.most,
                 [](Message* to, const Field* f, uint64_t n) {
                   const auto* reflection = to->GetReflection();
                   if (f->cpp_type() == Field::CPPTYPE_UINT64) {
                     return reflection->SetUInt64(to, f, n);
                   }
                   reflection->SetUInt32(to, f, static_cast<uint32_t>(n));
                 });
      }
      // Checks every alternative of a variant in the same way.
      if (field.variant) {
        Check({field.fields.front()}, here, name);
      } else {
        Check(field.fields, here, name);
      }
    }
  }

  template <typename Set>
  void CheckOne(const std::vector<uint32_t>& numbers, const std::string& name, const char* words,
                uint64_t most, const Set& set) {
    for (const uint64_t n : {most, most + 1}) {
      std::unique_ptr<Message> message(full_->New());
      message->CopyFrom(*full_);
      Message* in = message.get();
      for (size_t i = 0; i + 1 < numbers.size(); ++i) {
        const Field* field = FieldOf(*in, numbers[i]);
        const auto* reflection = in->GetReflection();
        in = field->is_repeated() ? reflection->MutableRepeatedMessage(in, field, 0)
                                  : reflection->MutableMessage(in, field);
      }
      set(in, FieldOf(*in, numbers.back()), n);
      const absl::Status status = fields::Decode<S>(message->SerializeAsString()).status();
      if (n == most) {
        EXPECT_THAT(status, IsOk()) << name;
      } else {
        EXPECT_THAT(status,
                    StatusIs(absl::StatusCode::kInvalidArgument,
                             ::testing::StartsWith(fmt::format("{}: {} {}", name, n, words))));
      }
    }
  }

  static const Field* FieldOf(const Message& message, uint32_t number) {
    return message.GetDescriptor()->FindFieldByNumber(static_cast<int>(number));
  }

  static void SetEntries(const ListedField& field, uint64_t n, Message* to, const Field* f) {
    const auto* reflection = to->GetReflection();
    std::unique_ptr<Message> first;
    if (field.type == Field::TYPE_MESSAGE) {
      const Message& entry = reflection->GetRepeatedMessage(*to, f, 0);
      first.reset(entry.New());
      if (field.checked) first->CopyFrom(entry);
    }
    reflection->ClearField(to, f);
    for (uint64_t i = 0; i < n; ++i) {
      if (field.type == Field::TYPE_STRING) {
        reflection->AddString(to, f, "x");
      } else if (f->cpp_type() == Field::CPPTYPE_UINT32) {
        reflection->AddUInt32(to, f, static_cast<uint32_t>(i));
      } else if (f->cpp_type() == Field::CPPTYPE_UINT64) {
        reflection->AddUInt64(to, f, i);
      } else {
        Message* added = reflection->AddMessage(to, f);
        added->CopyFrom(*first);
        if (!field.keyed) continue;
        added->GetReflection()->SetString(added, FieldOf(*added, 1), std::to_string(i));
      }
    }
  }

  const std::unique_ptr<Message> full_;
};

}  // namespace muster::testing
