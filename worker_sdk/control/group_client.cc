#include "worker_sdk/control/group_client.h"

#include <utility>

#include "proto/fields/encode.h"
#include "worker_sdk/control/control_client.h"
#include "worker_sdk/control/grpc_call.h"

namespace muster::sdk {

GroupClient::GroupClient(boost::asio::io_context* loop, std::string address, const JobIdentity& job,
                         net::TlsContextSource tls)
    : client_(loop, std::move(address), std::move(tls)) {
  client_.SetMetadata(MetadataOf(job));
}

void GroupClient::Exchange(const GroupExchangeRequest& request, std::chrono::milliseconds timeout,
                           Done done) {
  client_.Call("/muster.v1.WorkerService/ExchangeGroup", fields::Encode(request), timeout,
               [done = std::move(done)](const absl::StatusOr<std::string>& bytes) {
                 if (!bytes.ok()) return done(bytes.status());
                 done(DecodeAnswer<GroupExchangeReply>(*bytes, "GroupExchangeReply"));
               });
}

}  // namespace muster::sdk
