#pragma once

#include <google/protobuf/message_lite.h>

#include "absl/status/statusor.h"
#include "base/check.h"
#include "proto/fields/decode.h"
#include "proto/fields/encode.h"

/// Converts structs with a list to and from the generated class of the same message, through its
/// bytes. For code that uses gRPC with the Protobuf runtime.
namespace muster {

template <fields::Listed S>
void ToProto(const S& from, google::protobuf::MessageLite* to) {
  MUSTER_CHECK_MSG(to->ParseFromString(fields::Encode(from)),
                   "the list of " + to->GetTypeName() + " is not its message");
}

/// See fields::Decode.
template <fields::Listed S>
absl::StatusOr<S> FromProto(const google::protobuf::MessageLite& from) {
  return fields::Decode<S>(from.SerializeAsString());
}

}  // namespace muster
