#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/status.h"
#include "proto/fields/decode.h"
#include "worker_sdk/control/http2_connection.h"

/// One unary call and its answer in gRPC's framing. Pure.
namespace muster::sdk {

/// A message in gRPC's framing: the flag "not compressed", the length, big-endian, and the bytes.
std::string FramedMessage(std::string_view message);

/// The message in the answer to a call. Errors: the status that the server gave; kUnavailable if it
/// gave none, or if the connection broke before; kResourceExhausted if there are too many bytes;
/// kInternal if the answer is not exactly one uncompressed message.
absl::StatusOr<std::string> GrpcResult(std::string_view address, std::string_view method,
                                       const Http2Answer& answer);

/// Decodes the message of an answer. `name` is its type, for errors.
template <fields::Listed Answer>
absl::StatusOr<Answer> DecodeAnswer(std::string_view bytes, std::string_view name) {
  absl::StatusOr<Answer> answer = fields::Decode<Answer>(bytes);
  if (answer.ok()) return answer;
  return Annotate(answer.status(), fmt::format("the master sent a malformed {}", name));
}

/// The error if the master cannot be reached.
absl::Status Unreachable(std::string_view address, std::string_view why);

}  // namespace muster::sdk
