#include "worker_sdk/control/control_client.h"

#include "base/status.h"
#include "base/version.h"

namespace muster::sdk {

absl::StatusOr<HelloAnswer> ControlClient::Hello(uint64_t incarnation, uint64_t start,
                                                 std::chrono::milliseconds timeout) {
  MUSTER_ASSIGN_OR_RETURN(
      std::string bytes,
      channel_.Call("/muster.v1.WorkerService/Hello",
                    EncodeHelloRequest(worker_, incarnation, start, kCompatibleVersion), timeout));
  return DecodeHelloResponse(bytes);
}

absl::StatusOr<TableId> ControlClient::RegisterTable(const TableSpec& table,
                                                     std::chrono::milliseconds timeout) {
  MUSTER_ASSIGN_OR_RETURN(std::string bytes,
                          channel_.Call("/muster.v1.WorkerService/RegisterTable",
                                        EncodeRegisterTableRequest(worker_, table), timeout));
  return DecodeRegisterTableResponse(bytes);
}

absl::StatusOr<WorkerExchangeReply> ControlClient::Exchange(const WorkerExchangeRequest& request,
                                                            std::chrono::milliseconds timeout) {
  MUSTER_ASSIGN_OR_RETURN(
      std::string bytes,
      channel_.Call("/muster.v1.WorkerService/Exchange", EncodeExchangeRequest(request), timeout));
  return DecodeExchangeReply(bytes);
}

}  // namespace muster::sdk
