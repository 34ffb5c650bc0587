#include "proto/rpc/grpc_status.h"

#include <fmt/format.h>

#include <string>

#include "base/status.h"

namespace muster {

namespace {
// HTTP/2 limits metadata; a longer text would make the whole call fail.
constexpr size_t kMessageBytesMax = 4096;
// Travels with every status of ours: what gRPC itself reports does not have it.
constexpr const char* kOwn = "muster";

/// Why a TLS handshake with the callee failed. "" if no handshake did.
std::string_view HandshakeText(std::string_view said) {
  const auto says = [said](std::string_view words) {
    return said.find(words) != std::string_view::npos;
  };
  if (says("Hostname Verification Check failed")) {
    return "shows a certificate of another job or role: another process has its address";
  }
  if (says("certificate verify failed")) {
    return "shows a certificate that has expired, or that another authority than the job's signed: "
           "another process has its address, or one of both uses old files";
  }
  if (says("wrong version number")) {
    return "speaks plain text, but TLS is expected: give both the same spec.security";
  }
  return "";
}

/// What gRPC reports of a call that the callee has not answered; "" of one that it has.
std::string SilenceText(const grpc::Status& status, const Callee& callee) {
  if (status.error_details() == kOwn) return "";
  switch (status.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
      if (const std::string_view why = HandshakeText(status.error_message()); !why.empty()) {
        return std::string(why);
      }
      return "cannot be reached: it has ended, is being started again, or hangs. Try again in a "
             "few seconds; `muster logs` shows its output, `muster stacks` what it does now";
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return fmt::format(
          "has not answered within {:g} s: it is busy, stopped or hangs. Try again in a few "
          "seconds; `muster logs` shows what it does",
          std::chrono::duration<double>(callee.deadline).count());
    case grpc::StatusCode::CANCELLED:
      return "ended before it answered. Try again in a few seconds";
    default:
      return "";
  }
}
}  // namespace

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                      std::string(Message(status).substr(0, kMessageBytesMax)), kOwn);
}

absl::Status FromGrpcStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

absl::Status FromGrpcStatus(const grpc::Status& status, const Callee& callee) {
  const absl::Status said = FromGrpcStatus(status);
  const std::string silence = SilenceText(status, callee);
  if (silence.empty()) return Annotate(said, callee.name);
  return absl::Status(said.code(), fmt::format("{} {}", callee.name, silence));
}

}  // namespace muster
