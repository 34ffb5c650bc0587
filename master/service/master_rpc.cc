#include "master/service/master_rpc.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/failpoint.h"
#include "base/status.h"
#include "base/token_file.h"
#include "base/version.h"
#include "proto/rpc/grpc_status.h"
#include "proto/rpc/metadata.h"
#include "security/join_token.h"
#include "security/rpc/grpc_credentials.h"

namespace muster {
namespace {

constexpr size_t kNodeNameBytesMax = 64;

bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

}  // namespace

grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* call, const absl::Status& status) {
  grpc::ServerUnaryReactor* reactor = call->DefaultReactor();
  reactor->Finish(ToGrpcStatus(status));
  return reactor;
}

grpc::ServerUnaryReactor* RunOnOwner(grpc::CallbackServerContext* call, const RpcContext& context,
                                     std::function<absl::Status(MasterCore&, StepTime)> step,
                                     std::function<void()> fill) {
  return KeepOnOwner(call, context, std::move(step), {}, std::move(fill));
}

grpc::ServerUnaryReactor* KeepOnOwner(grpc::CallbackServerContext* call, const RpcContext& context,
                                      std::function<absl::Status(MasterCore&, StepTime)> step,
                                      std::function<bool(MasterCore&, StepTime)> ready,
                                      std::function<void()> fill) {
  grpc::ServerUnaryReactor* reactor = call->DefaultReactor();
  context.loop->Post(
      {std::move(step),
       [reactor, answers = context.answers, fill = std::move(fill)](const absl::Status& status) {
         answers->Post([reactor, fill, status] {
           if (status.ok() && fill) fill();
           reactor->Finish(ToGrpcStatus(status));
           MUSTER_FAILPOINT("answer.after-send");
         });
       },
       std::move(ready)});
  return reactor;
}

absl::Status CheckCaller(const grpc::CallbackServerContext& call, const RpcContext& context,
                         MasterService service, std::string_view who, UnnamedJob unnamed) {
  if (context.tls) {
    MUSTER_ASSIGN_OR_RETURN(const Identity peer, PeerIdentity(*call.auth_context()));
    MUSTER_RETURN_IF_ERROR(CheckRole(peer, context.identity.id, service));
  }
  return CheckJobIdentity({"this master", who}, context.identity,
                          {MetadataOf(call, kJobIdMetadata), MetadataOf(call, kJobNameMetadata)},
                          unnamed);
}

absl::StatusOr<AdminPowers> CheckAdmin(const grpc::CallbackServerContext& call,
                                       const RpcContext& context) {
  const absl::StatusOr<std::string> token = LoadOrMakeToken(context.token_file);
  const std::string given = MetadataOf(call, kTokenMetadata);
  const std::optional<Role> joins = token.ok() ? JoinRoleOf(given, *token) : std::nullopt;
  const absl::Status as_admin =
      CheckCaller(call, context, MasterService::kAdmin, "the caller", UnnamedJob::kAccept);
  if (joins) {
    const bool worker = *joins == Role::kWorker;
    const MasterService own = worker ? MasterService::kWorkers : MasterService::kServers;
    if (!as_admin.ok()) {
      MUSTER_RETURN_IF_ERROR(CheckCaller(call, context, own, "the caller", UnnamedJob::kAccept));
    }
    return AdminPowers{worker ? NodeRole::kWorker : NodeRole::kServer};
  }
  MUSTER_RETURN_IF_ERROR(as_admin);
  if (!token.ok()) {
    return absl::UnauthenticatedError(
        fmt::format("this master refuses every call: {}", Message(token.status())));
  }
  if (SameSecret(given, *token)) return AdminPowers{};
  return absl::UnauthenticatedError(fmt::format(
      "{}. The token is in the file scaler/token of the job's state directory. Only the user who "
      "runs the job can read it. Name the job's file, or --state-dir",
      given.empty() ? "this call has no token" : "this call has a wrong token"));
}

absl::Status CheckNodeName(const std::string& field, const std::string& name) {
  if (!name.empty() && name.size() <= kNodeNameBytesMax &&
      std::ranges::all_of(name, IsNameCharacter)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      fmt::format("{}: a node's name has 1 to {} of the characters a-z A-Z 0-9 . _ -, but this "
                  "name has {} bytes",
                  field, kNodeNameBytesMax, name.size()));
}

absl::Status CheckVersion(const std::string& who, const std::string& version) {
  const std::string_view ours = kCompatibleVersion;
  const std::string_view theirs(version);
  if (theirs.starts_with(ours) && (theirs.size() == ours.size() || theirs[ours.size()] == '.')) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      fmt::format("{} has version '{}', but the master has {}: build both from the same release",
                  who, theirs.substr(0, 32), kVersion));
}

}  // namespace muster
