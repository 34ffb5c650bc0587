#include "kubernetes/client/client.h"

#include <fmt/format.h>

#include <utility>

#include "base/address.h"
#include "base/status.h"
#include "base/version.h"
#include "kubernetes/model/api_error.h"
#include "kubernetes/model/json_access.h"
#include "kubernetes/model/json_lines.h"

namespace muster::kubernetes {

Client::Client(CredentialSource* credentials, const Clock* clock, ClientOptions options)
    : credentials_(credentials), clock_(clock), options_(options) {}

absl::StatusOr<nlohmann::json> Client::Create(Resource resource, const std::string& ns,
                                              const nlohmann::json& object, std::stop_token stop) {
  return Call("POST", {.resource = resource, .ns = ns}, "", object, "application/json", stop);
}

absl::StatusOr<nlohmann::json> Client::Get(const ObjectPlace& place, std::stop_token stop) {
  return Call("GET", place, "", nullptr, "application/json", stop);
}

absl::StatusOr<nlohmann::json> Client::Delete(const ObjectPlace& place,
                                              const DeleteOptions& options, std::stop_token stop) {
  // A request without a name would delete all objects of this kind.
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
  MUSTER_RETURN_IF_ERROR(
      Ask({.url = path + WatchQuery(selection, version, options_.watch_length),
           .times = {.silence = options_.watch_silence_max},
           .on_bytes = [&](std::string_view bytes) { return lines.Append(bytes, on_event); },
           .stop = std::move(stop)})
          .status());
  if (lines.IsInsideLine()) return ConnectionError("the API server ended a watch inside an event");
  return absl::OkStatus();
}

absl::StatusOr<std::string> Client::Logs(const std::string& ns, const std::string& pod,
                                         const LogQuery& query) {
  MUSTER_ASSIGN_OR_RETURN(
      const std::string path,
      PathOf({.resource = Resource::kPods, .ns = ns, .name = pod, .subresource = "log"}));
  return Ask({.url = path + LogQueryText(query)});
}

absl::Status Client::FollowLogs(const std::string& ns, const std::string& pod, LogQuery query,
                                std::chrono::milliseconds length,
                                const std::function<absl::Status(std::string_view)>& on_bytes,
                                std::stop_token stop) {
  query.follow = true;
  MUSTER_ASSIGN_OR_RETURN(
      const std::string path,
      PathOf({.resource = Resource::kPods, .ns = ns, .name = pod, .subresource = "log"}));
  // A container may be silent for long, so only `length` limits this.
  return Ask({.url = path + LogQueryText(query),
              .times = {.length = length},
              .on_bytes = on_bytes,
              .stop = std::move(stop)})
      .status();
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
  const std::string sent = body.is_null() ? "" : ToText(body);
  MUSTER_ASSIGN_OR_RETURN(const std::string text,
                          Ask({.method = std::string(method),
                               .url = fmt::format("{}{}", path, query),
                               .headers = {fmt::format("Content-Type: {}", content_type)},
                               .body = sent,
                               .stop = stop}));
  absl::StatusOr<nlohmann::json> document = ParseJson(text);
  if (document.ok()) return document;
  return absl::InternalError(fmt::format("the API server's answer to {} {}: {}", method, path,
                                         Message(document.status())));
}

absl::StatusOr<std::string> Client::Ask(HttpRequest request) {
  MUSTER_ASSIGN_OR_RETURN(HttpAnswer answer, Send(request));
  // A refused request was not carried out. So it may be sent again, with new credentials of the
  // plugin.
  if (answer.status == 401 && credentials_->access().exec.has_value()) {
    MUSTER_ASSIGN_OR_RETURN(answer, Send(std::move(request)));
  }
  if (answer.IsSuccess()) return std::move(answer.body);
  return ToStatus(ReadApiError(answer.status, answer.body, answer.Header("Retry-After")));
}

absl::StatusOr<HttpAnswer> Client::Send(HttpRequest request) {
  const ClusterAccess& access = credentials_->access();
  MUSTER_ASSIGN_OR_RETURN(const Credentials credentials, credentials_->Get());
  MUSTER_ASSIGN_OR_RETURN(request.tls.authority, ReadPem(access.authority));
  request.tls.client_certificate = credentials.client_certificate;
  request.tls.client_key = credentials.client_key;
  const std::string& name = access.tls_server_name.empty() ? access.host : access.tls_server_name;
  request.url = fmt::format("https://{}{}{}", JoinHostPort(name, access.port), access.path_prefix,
                            request.url);
  request.peer = access.Url();
  request.connect_to = JoinHostPort(access.host, access.port);
  for (const std::string& header :
       {"Host: " + request.connect_to, fmt::format("User-Agent: muster/{}", kVersion),
        std::string("Accept: application/json"), std::string("Expect:")}) {
    request.headers.push_back(header);
  }
  if (!credentials.token.empty()) {
    request.headers.push_back("Authorization: Bearer " + credentials.token);
  }
  request.times.connect = options_.connect_deadline;
  request.times.whole = options_.request_deadline;
  request.body_bytes_max = options_.answer_bytes_max;
  // A change must not be repeated, because nobody would know whether it happened twice.
  request.may_repeat = request.method == "GET";
  requests_.fetch_add(1, std::memory_order_relaxed);
  absl::StatusOr<HttpAnswer> answer = http_.Do(request);
  if (absl::IsUnavailable(answer.status())) return ConnectionError(Message(answer.status()));
  if (answer.ok() && answer->status == 401) credentials_->Refused(credentials);
  return answer;
}

}  // namespace muster::kubernetes
