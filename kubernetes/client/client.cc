#include "kubernetes/client/client.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "base/status.h"
#include "kubernetes/model/api_error.h"
#include "kubernetes/model/json_access.h"
#include "kubernetes/model/json_lines.h"

namespace muster::kubernetes {
namespace {

bool IsSuccess(const HttpAnswer& answer) {
  return answer.code >= 200 && answer.code < 300;
}

absl::Status ErrorOf(const HttpAnswer& answer) {
  return ToStatus(ReadApiError(answer.code, answer.body, answer.retry_after));
}

}  // namespace

Client::Client(CredentialSource* credentials, const Clock* clock, ClientOptions options)
    : credentials_(credentials), clock_(clock), options_(options), pool_(clock) {}

absl::StatusOr<nlohmann::json> Client::Create(Resource resource, const std::string& ns,
                                              const nlohmann::json& object, std::stop_token stop) {
  return Call("POST", {.resource = resource, .ns = ns}, "", object, "application/json", stop);
}

absl::StatusOr<nlohmann::json> Client::Get(const ObjectPlace& place, std::stop_token stop) {
  return Call("GET", place, "", nullptr, "application/json", stop);
}

absl::StatusOr<nlohmann::json> Client::Delete(const ObjectPlace& place,
                                              const DeleteOptions& options, std::stop_token stop) {
  // Without a name this would be a request to delete them all.
  MUSTER_RETURN_IF_ERROR(CheckObjectName(place.name));
  return Call("DELETE", place, "", DeleteBody(options), "application/json", stop);
}

absl::StatusOr<nlohmann::json> Client::Patch(const ObjectPlace& place, PatchKind kind,
                                             const nlohmann::json& patch, std::stop_token stop) {
  return Call("PATCH", place, PatchQuery(kind), patch, ContentTypeOf(kind), stop);
}

absl::StatusOr<ObjectList> Client::List(Resource resource, const std::string& ns,
                                        const Selection& selection, std::stop_token stop) {
  absl::StatusOr<ObjectList> list = ListPages(resource, ns, selection, options_.page_objects, stop);
  if (KindOf(list.status()) != ApiErrorKind::kGone) return list;
  return ListPages(resource, ns, selection, 0, stop);
}

absl::StatusOr<ObjectList> Client::ListPages(Resource resource, const std::string& ns,
                                             const Selection& selection, uint32_t page_objects,
                                             const std::stop_token& stop) {
  ObjectList list;
  std::string next;
  do {
    MUSTER_ASSIGN_OR_RETURN(nlohmann::json page, Call("GET", {.resource = resource, .ns = ns},
                                                      ListQuery(selection, page_objects, next),
                                                      nullptr, "application/json", stop));
    if (!page.is_object() || !ValueAt(page, {"items"}).is_array()) {
      return absl::InternalError("the API server answered a list with something that is none");
    }
    for (nlohmann::json& item : page["items"]) list.items.push_back(std::move(item));
    if (list.items.size() > options_.objects_max) {
      return absl::ResourceExhaustedError(fmt::format(
          "there are more than {} {} in \"{}\"", options_.objects_max, PluralOf(resource), ns));
    }
    list.version = TextAt(page, {"metadata", "resourceVersion"});
    next = TextAt(page, {"metadata", "continue"});
  } while (!next.empty());
  return list;
}

absl::Status Client::Watch(Resource resource, const std::string& ns, const Selection& selection,
                           const std::string& version,
                           const std::function<absl::Status(const nlohmann::json&)>& on_event,
                           std::stop_token stop) {
  MUSTER_ASSIGN_OR_RETURN(const std::string path, PathOf({.resource = resource, .ns = ns}));
  JsonLines lines(options_.event_bytes_max);
  MUSTER_RETURN_IF_ERROR(Stream(
      {.target = path + WatchQuery(selection, version, options_.watch_length)},
      {.silence = options_.watch_silence_max},
      [&](std::string_view bytes) { return lines.Append(bytes, on_event); }, stop));
  if (lines.IsInsideLine()) return ConnectionError("the API server ended a watch inside an event");
  return absl::OkStatus();
}

absl::StatusOr<std::string> Client::Logs(const std::string& ns, const std::string& pod,
                                         const LogQuery& query) {
  MUSTER_ASSIGN_OR_RETURN(
      const std::string path,
      PathOf({.resource = Resource::kPods, .ns = ns, .name = pod, .subresource = "log"}));
  return Ask({.target = path + LogQueryText(query)}, {});
}

absl::Status Client::FollowLogs(const std::string& ns, const std::string& pod, LogQuery query,
                                std::chrono::milliseconds length,
                                const std::function<absl::Status(std::string_view)>& on_bytes,
                                std::stop_token stop) {
  query.follow = true;
  MUSTER_ASSIGN_OR_RETURN(
      const std::string path,
      PathOf({.resource = Resource::kPods, .ns = ns, .name = pod, .subresource = "log"}));
  // A container may be silent for long; only the end bounds this.
  return Stream({.target = path + LogQueryText(query)},
                {.silence = length, .end = clock_->Now() + length}, on_bytes, stop);
}

absl::StatusOr<bool> Client::MayI(std::string_view verb, Resource resource,
                                  std::string_view subresource, const std::string& ns) {
  MUSTER_ASSIGN_OR_RETURN(const nlohmann::json answer,
                          Create(Resource::kSelfSubjectAccessReviews, "",
                                 AccessReviewBody(verb, resource, subresource, ns)));
  return ValueAt(answer, {"status", "allowed"}) == true;
}

absl::StatusOr<nlohmann::json> Client::Call(std::string_view method, const ObjectPlace& place,
                                            std::string_view query, const nlohmann::json& body,
                                            std::string_view content_type,
                                            const std::stop_token& stop) {
  MUSTER_ASSIGN_OR_RETURN(const std::string path, PathOf(place));
  HttpRequest request{.method = std::string(method),
                      .target = fmt::format("{}{}", path, query),
                      .content_type = std::string(content_type)};
  if (!body.is_null()) request.body = ToText(body);
  MUSTER_ASSIGN_OR_RETURN(const std::string text, Ask(std::move(request), stop));
  absl::StatusOr<nlohmann::json> document = ParseJson(text);
  if (document.ok()) return document;
  return absl::InternalError(fmt::format("the API server's answer to {} {}: {}", method, path,
                                         Message(document.status())));
}

absl::StatusOr<std::string> Client::Ask(HttpRequest request, const std::stop_token& stop) {
  MUSTER_ASSIGN_OR_RETURN(HttpAnswer answer, AskOnce(request, stop));
  // A refused request was not carried out, so it may be sent again with what a plugin says now.
  if (answer.code == 401 && credentials_->access().exec.has_value()) {
    MUSTER_ASSIGN_OR_RETURN(answer, AskOnce(std::move(request), stop));
  }
  if (!IsSuccess(answer)) return ErrorOf(answer);
  return std::move(answer.body);
}

absl::StatusOr<HttpAnswer> Client::AskOnce(HttpRequest request, const std::stop_token& stop) {
  MUSTER_ASSIGN_OR_RETURN(const Credentials credentials, credentials_->Get());
  request.token = credentials.token;
  requests_.fetch_add(1, std::memory_order_relaxed);
  std::unique_ptr<Connection> connection = pool_.Take(credentials.client_certificate);
  absl::StatusOr<HttpAnswer> answer = absl::UnavailableError("");
  if (connection != nullptr) answer = Exchange(connection.get(), request, stop);
  // The server may close a waiting connection just when it is used again. Reading is safe to
  // repeat; of a change, it is not known whether it happened.
  const bool repeat =
      answer.status().code() == absl::StatusCode::kUnavailable && request.method == "GET";
  if (connection == nullptr || repeat) {
    MUSTER_ASSIGN_OR_RETURN(connection,
                            Connection::Open(credentials_->access(), credentials,
                                             clock_->Now() + options_.connect_deadline, stop));
    answer = Exchange(connection.get(), request, stop);
  }
  if (!answer.ok()) return answer.status();
  if (answer->code == 401) {
    credentials_->Refused(credentials);
  } else if (!stop.stop_requested()) {
    pool_.Return(std::move(connection), credentials.client_certificate);
  }
  return answer;
}

absl::StatusOr<HttpAnswer> Client::Exchange(Connection* connection, const HttpRequest& request,
                                            const std::stop_token& stop) {
  return connection->Exchange(request, clock_->Now() + options_.request_deadline,
                              options_.answer_bytes_max, stop);
}

absl::Status Client::Stream(HttpRequest request, const StreamLimits& limits,
                            const std::function<absl::Status(std::string_view)>& on_bytes,
                            const std::stop_token& stop) {
  MUSTER_ASSIGN_OR_RETURN(const Credentials credentials, credentials_->Get());
  request.token = credentials.token;
  requests_.fetch_add(1, std::memory_order_relaxed);
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<Connection> connection,
                          Connection::Open(credentials_->access(), credentials,
                                           clock_->Now() + options_.connect_deadline, stop));
  MUSTER_ASSIGN_OR_RETURN(
      const HttpAnswer answer,
      connection->Stream(request, clock_->Now() + options_.request_deadline, limits, on_bytes));
  if (answer.code == 401) credentials_->Refused(credentials);
  return IsSuccess(answer) ? absl::OkStatus() : ErrorOf(answer);
}

}  // namespace muster::kubernetes
