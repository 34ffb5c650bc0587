#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/service_type.h>

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/clock.h"
#include "job/job_spec.h"
#include "master/service/callers.h"
#include "master/service/owner_loop.h"
#include "master/service/snapshot_deletions.h"
#include "master/service/task_threads.h"
#include "master/sources/source_catalog.h"
#include "proto/messages/control.h"
#include "proto/messages/job_identity.h"
#include "proto/messages/node_role.h"

/// Internal to master/service: the gRPC services over the owner loop.
namespace muster {

/// What the services share. Everything outlives the gRPC server.
struct RpcContext {
  const JobSpec* job = nullptr;
  JobIdentity identity;
  OwnerLoop* loop = nullptr;
  /// Make the answers.
  TaskThreads* answers = nullptr;
  std::string token_file;
  const SourceCatalog* sources = nullptr;
  SnapshotDeletions* deletions = nullptr;
  /// Callers have certificates, whose roles are checked.
  bool tls = false;
};

std::unique_ptr<grpc::Service> MakeWorkerRpc(const RpcContext& context);
std::unique_ptr<grpc::Service> MakeServerRpc(const RpcContext& context);
std::unique_ptr<grpc::Service> MakeAdminRpc(const RpcContext& context);

/// Answers `call` with the status of `step`. `step` runs on the owner thread. When it was OK,
/// `fill` fills in the reply: after the sync, on a thread for answers, before the answer leaves.
/// Request and reply live until then.
grpc::ServerUnaryReactor* RunOnOwner(grpc::CallbackServerContext* call, const RpcContext& context,
                                     std::function<absl::Status(MasterCore&, StepTime)> step,
                                     std::function<void()> fill = {});
/// As above: `step` returns an absl::StatusOr<Value>, and `fill` gets the value.
template <typename Step, typename Fill>
  requires std::invocable<Fill&,
                          typename std::invoke_result_t<Step&, MasterCore&, StepTime>::value_type&>
grpc::ServerUnaryReactor* RunOnOwner(grpc::CallbackServerContext* call, const RpcContext& context,
                                     Step step, Fill fill) {
  using Result = std::invoke_result_t<Step&, MasterCore&, StepTime>;
  auto value = std::make_shared<std::optional<typename Result::value_type>>();
  return RunOnOwner(
      call, context,
      [value, step = std::move(step)](MasterCore& core, StepTime at) mutable -> absl::Status {
        Result result = step(core, at);
        if (result.ok()) value->emplace(*std::move(result));
        return result.status();
      },
      [value, fill = std::move(fill)]() mutable { fill(**value); });
}
/// As the first: after an OK step, the call is kept until `ready` returns true (GroupCommit::Item).
grpc::ServerUnaryReactor* KeepOnOwner(grpc::CallbackServerContext* call, const RpcContext& context,
                                      std::function<absl::Status(MasterCore&, StepTime)> step,
                                      std::function<bool(MasterCore&, StepTime)> ready,
                                      std::function<void()> fill);
/// Answers `call` at once.
grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* call, const absl::Status& status);

/// Whether the caller may use `service` and is of this master's job: under TLS, by the role of its
/// certificate (CheckRole), and in any case by the job that it names (CheckJobIdentity). `who`: the
/// caller, for messages.
absl::Status CheckCaller(const grpc::CallbackServerContext& call, const RpcContext& context,
                         MasterService service, std::string_view who, UnnamedJob unnamed);
/// What a caller of AdminService may do.
struct AdminPowers {
  /// Only what `muster join` needs for nodes of this role; none: everything.
  std::optional<NodeRole> joins;
};
/// CheckCaller for AdminService, and kUnauthenticated unless the call carries the token in
/// `context.token_file`, which is made when there is none, or a JoinToken of it. Whoever shows such
/// a token may have the certificate of the nodes that it joins.
absl::StatusOr<AdminPowers> CheckAdmin(const grpc::CallbackServerContext& call,
                                       const RpcContext& context);
/// kInvalidArgument unless the name has 1 to 64 of the characters a-z A-Z 0-9 . _ -.
absl::Status CheckNodeName(const std::string& field, const std::string& name);
/// kFailedPrecondition naming both versions unless major and minor agree with ours.
absl::Status CheckVersion(const std::string& who, const std::string& version);

}  // namespace muster
