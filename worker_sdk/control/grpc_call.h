#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/status.h"
#include "proto/fields/decode.h"
#include "worker_sdk/control/http2_connection.h"

/// One unary call as gRPC frames and answers it. Pure.
namespace muster::sdk {

/// A message as gRPC sends it: "not compressed", its length, big-endian, and its bytes.
std::string FramedMessage(std::string_view message);

/// The message of a call's answer. Errors: the status that the server gave; kUnavailable: it gave
/// none, or the connection broke before; kResourceExhausted: too many bytes; kInternal: not one
/// plain message.
absl::StatusOr<std::string> GrpcResult(std::string_view address, std::string_view method,
                                       const Http2Answer& answer);

/// Decodes the message of an answer; `name` is that of its type, for errors.
template <fields::Listed Answer>
absl::StatusOr<Answer> DecodeAnswer(std::string_view bytes, std::string_view name) {
  absl::StatusOr<Answer> answer = fields::Decode<Answer>(bytes);
  if (answer.ok()) return answer;
  return Annotate(answer.status(), fmt::format("the master sent a malformed {}", name));
}

/// The master cannot be reached.
absl::Status Unreachable(std::string_view address, std::string_view why);

}  // namespace muster::sdk
