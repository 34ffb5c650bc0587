#include "worker_sdk/control/control_client.h"

#include <string_view>
#include <utility>

#include "base/failpoint.h"
#include "base/status.h"
#include "base/version.h"
#include "proto/fields/encode.h"
#include "worker_sdk/control/grpc_call.h"

namespace muster::sdk {
namespace {

/// Keeps the version as a string in the library, where tools find it. If it were inlined, it would
/// become numbers in the code.
[[gnu::noinline]] std::string_view SdkVersion() {
  return kCompatibleVersion;
}

}  // namespace

bool IsPermanent(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsFailedPrecondition(status) ||
         absl::IsPermissionDenied(status) || absl::IsUnimplemented(status) ||
         absl::IsUnauthenticated(status);
}

std::vector<std::pair<std::string, std::string>> MetadataOf(const JobIdentity& job) {
  std::vector<std::pair<std::string, std::string>> metadata;
  if (!job.id.empty()) metadata.emplace_back(kJobIdMetadata, job.id);
  if (!job.name.empty()) metadata.emplace_back(kJobNameMetadata, job.name);
  return metadata;
}

ControlClient::ControlClient(std::string address, std::string worker, const JobIdentity& job,
                             net::TlsContextSource tls)
    : channel_(std::move(address), std::move(tls)), worker_(std::move(worker)) {
  channel_.SetMetadata(MetadataOf(job));
}

absl::StatusOr<HelloResponse> ControlClient::Hello(uint64_t incarnation, uint64_t start,
                                                   std::chrono::milliseconds timeout) {
  MUSTER_FAILPOINT_OR_RETURN("hello.before-send");
  const HelloRequest request{worker_, incarnation, std::string(SdkVersion()), StartNumber(start)};
  MUSTER_ASSIGN_OR_RETURN(std::string bytes, channel_.Call("/muster.v1.WorkerService/Hello",
                                                           fields::Encode(request), timeout));
  MUSTER_FAILPOINT_OR_RETURN("hello.after-reply");
  MUSTER_ASSIGN_OR_RETURN(HelloResponse answer,
                          DecodeAnswer<HelloResponse>(bytes, "HelloResponse"));
  channel_.SetMetadata(MetadataOf(JobOf(answer)));
  return answer;
}

absl::StatusOr<TableId> ControlClient::RegisterTable(const TableSpec& table,
                                                     std::chrono::milliseconds timeout) {
  MUSTER_FAILPOINT_OR_RETURN("table.before-send");
  MUSTER_ASSIGN_OR_RETURN(
      std::string bytes,
      channel_.Call("/muster.v1.WorkerService/RegisterTable",
                    fields::Encode(RegisterTableRequest{worker_, table}), timeout));
  MUSTER_FAILPOINT_OR_RETURN("table.after-reply");
  MUSTER_ASSIGN_OR_RETURN(const RegisterTableResponse answer,
                          DecodeAnswer<RegisterTableResponse>(bytes, "RegisterTableResponse"));
  return answer.id;
}

absl::StatusOr<WorkerExchangeReply> ControlClient::Exchange(const WorkerExchangeRequest& request,
                                                            std::chrono::milliseconds timeout) {
  MUSTER_FAILPOINT_OR_RETURN("exchange.before-send");
  if (!request.done.empty()) MUSTER_FAILPOINT_OR_RETURN("done.before-send");
  MUSTER_ASSIGN_OR_RETURN(std::string bytes, channel_.Call("/muster.v1.WorkerService/Exchange",
                                                           fields::Encode(request), timeout));
  if (!request.done.empty()) MUSTER_FAILPOINT_OR_RETURN("done.after-reply");
  MUSTER_FAILPOINT_OR_RETURN("exchange.after-reply");
  return DecodeAnswer<WorkerExchangeReply>(bytes, "WorkerExchangeReply");
}

}  // namespace muster::sdk
