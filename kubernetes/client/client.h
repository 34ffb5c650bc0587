#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "http/http_client.h"
#include "kubernetes/config/credentials.h"
#include "kubernetes/model/resource.h"

namespace muster::kubernetes {

struct ClientOptions {
  std::chrono::milliseconds connect_deadline{10'000};
  /// The deadline of one request, from connecting to its last byte. For a watch or a followed log,
  /// it ends with the head of the answer.
  std::chrono::milliseconds request_deadline{30'000};
  /// After this time the server ends a watch, and the client watches again.
  std::chrono::seconds watch_length{30};
  /// A watch that is silent for this long hangs, because the server should have ended it.
  std::chrono::milliseconds watch_silence_max{40'000};
  uint64_t answer_bytes_max = 64 << 20;
  uint64_t event_bytes_max = 8 << 20;
  /// The most objects in one page of a list.
  uint32_t page_objects = 500;
  /// The most objects in a whole list.
  size_t objects_max = 100'000;
};

struct ObjectList {
  std::vector<nlohmann::json> items;
  /// Where a watch continues.
  std::string version;
};

/// A client of the API server. Every call blocks, and has a deadline. `stop` ends a call at once,
/// with kCancelled. Connections are kept and used again. A watch or a followed log has a connection
/// of its own.
///
/// Errors: those of api_error.h, with their kind (KindOf) and the server's wait (RetryAfterOf), and
/// those of HttpClient. After kUnavailable and kDeadlineExceeded, a change may have happened. If
/// names were decided before, a repeated call finds out (kAlreadyExists, kNotFound).
///
/// Thread-safe.
class Client {
 public:
  /// `credentials` and `clock` must outlive this.
  Client(CredentialSource* credentials, const Clock* clock, ClientOptions options = {});

  /// The namespace of the access.
  const std::string& ns() const { return credentials_->access().ns; }
  const ClientOptions& options() const { return options_; }
  /// How many requests were sent so far. Failed ones count, too, and a watch counts as one.
  uint64_t requests() const { return requests_.load(std::memory_order_relaxed); }

  /// Makes an object, which contains its name. Returns the object as the server has it.
  absl::StatusOr<nlohmann::json> Create(Resource resource, const std::string& ns,
                                        const nlohmann::json& object, std::stop_token stop = {});
  absl::StatusOr<nlohmann::json> Get(const ObjectPlace& place, std::stop_token stop = {});
  /// Reads the whole list, page by page. If the first pages are too old for the next one, it begins
  /// again, once, with a single page.
  absl::StatusOr<ObjectList> List(Resource resource, const std::string& ns,
                                  const Selection& selection, std::stop_token stop = {});
  /// Passes each event after `version` to `on_event`. It ends when the server ends the watch (OK),
  /// or with the first error of `on_event`. kUnavailable if the stream broke.
  absl::Status Watch(Resource resource, const std::string& ns, const Selection& selection,
                     const std::string& version,
                     const std::function<absl::Status(const nlohmann::json&)>& on_event,
                     std::stop_token stop = {});
  /// Returns a Status, or the object, which may live on until its grace period is over.
  absl::StatusOr<nlohmann::json> Delete(const ObjectPlace& place, const DeleteOptions& options,
                                        std::stop_token stop = {});
  absl::StatusOr<nlohmann::json> Patch(const ObjectPlace& place, PatchKind kind,
                                       const nlohmann::json& patch, std::stop_token stop = {});
  /// Returns what a container has written. `query.follow` must be false.
  absl::StatusOr<std::string> Logs(const std::string& ns, const std::string& pod,
                                   const LogQuery& query);
  /// Passes what a container writes to `on_bytes`, until it ends or `length` is over. Both are OK.
  absl::Status FollowLogs(const std::string& ns, const std::string& pod, LogQuery query,
                          std::chrono::milliseconds length,
                          const std::function<absl::Status(std::string_view)>& on_bytes,
                          std::stop_token stop = {});
  /// Asks the server whether RBAC allows this to the caller.
  absl::StatusOr<bool> MayI(std::string_view verb, Resource resource, std::string_view subresource,
                            const std::string& ns);

 private:
  absl::StatusOr<nlohmann::json> Call(std::string_view method, const ObjectPlace& place,
                                      std::string_view query, const nlohmann::json& body,
                                      std::string_view content_type = "application/json",
                                      const std::stop_token& stop = {});
  /// Sends a request whose `url` is a path. An answer other than success becomes an error.
  absl::StatusOr<std::string> Ask(HttpRequest request);
  absl::StatusOr<HttpAnswer> Send(HttpRequest request);
  absl::StatusOr<ObjectList> ListPages(Resource resource, const std::string& ns,
                                       const Selection& selection, uint32_t page_objects,
                                       const std::stop_token& stop);

  CredentialSource* const credentials_;
  const Clock* const clock_;
  const ClientOptions options_;
  HttpClient http_{HttpProxies::kNone};
  std::atomic<uint64_t> requests_{0};
};

}  // namespace muster::kubernetes
