#include "worker_sdk/control/control_client.h"

#include <utility>

#include "base/failpoint.h"
#include "base/status.h"
#include "base/version.h"

namespace muster::sdk {

ControlClient::ControlClient(std::string address, std::string worker, const JobIdentity& job)
    : channel_(std::move(address)), worker_(std::move(worker)) {
  SetJob(job);
}

void ControlClient::SetJob(const JobIdentity& job) {
  std::vector<std::pair<std::string, std::string>> metadata;
  if (!job.id.empty()) metadata.emplace_back(kJobIdMetadata, job.id);
  if (!job.name.empty()) metadata.emplace_back(kJobNameMetadata, job.name);
  channel_.SetMetadata(std::move(metadata));
}

absl::StatusOr<HelloAnswer> ControlClient::Hello(uint64_t incarnation, uint64_t start,
                                                 std::chrono::milliseconds timeout) {
  MUSTER_FAILPOINT_OR_RETURN("hello.before-send");
  MUSTER_ASSIGN_OR_RETURN(
      std::string bytes,
      channel_.Call("/muster.v1.WorkerService/Hello",
                    EncodeHelloRequest(worker_, incarnation, start, kCompatibleVersion), timeout));
  MUSTER_FAILPOINT_OR_RETURN("hello.after-reply");
  MUSTER_ASSIGN_OR_RETURN(HelloAnswer answer, DecodeHelloResponse(bytes));
  SetJob(JobOf(answer));
  return answer;
}

absl::StatusOr<TableId> ControlClient::RegisterTable(const TableSpec& table,
                                                     std::chrono::milliseconds timeout) {
  MUSTER_FAILPOINT_OR_RETURN("table.before-send");
  MUSTER_ASSIGN_OR_RETURN(std::string bytes,
                          channel_.Call("/muster.v1.WorkerService/RegisterTable",
                                        EncodeRegisterTableRequest(worker_, table), timeout));
  MUSTER_FAILPOINT_OR_RETURN("table.after-reply");
  return DecodeRegisterTableResponse(bytes);
}

absl::StatusOr<WorkerExchangeReply> ControlClient::Exchange(const WorkerExchangeRequest& request,
                                                            std::chrono::milliseconds timeout) {
  MUSTER_FAILPOINT_OR_RETURN("exchange.before-send");
  if (!request.done.empty()) MUSTER_FAILPOINT_OR_RETURN("done.before-send");
  MUSTER_ASSIGN_OR_RETURN(
      std::string bytes,
      channel_.Call("/muster.v1.WorkerService/Exchange", EncodeExchangeRequest(request), timeout));
  if (!request.done.empty()) MUSTER_FAILPOINT_OR_RETURN("done.after-reply");
  MUSTER_FAILPOINT_OR_RETURN("exchange.after-reply");
  return DecodeExchangeReply(bytes);
}

}  // namespace muster::sdk
