#include "store/s3_store.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <optional>
#include <thread>
#include <utility>

#include "base/digest/md5.h"
#include "base/digest/sha256.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/status.h"
#include "http/http_client.h"
#include "store/names/part_queue.h"
#include "store/names/parted_read.h"
#include "store/names/s3_answer.h"
#include "store/names/s3_request.h"
#include "store/parted_get.h"
#include "store/s3_access.h"

namespace muster {
namespace {

/// S3 has 1,000 keys per page, so this is 100 million keys.
constexpr int kPagesMax = 100'000;

struct Call {
  std::string method;
  std::string name;  // of the object; empty: the bucket
  S3Query query;
  std::vector<std::string> headers;
  std::string_view body;
  uint64_t body_bytes_max = 8 << 20;
  std::optional<std::chrono::seconds> stall_timeout = std::nullopt;
};

class S3Store final : public ObjectStore {
 public:
  S3Store(std::string shown, S3Place place, const S3Limits& limits, const Clock* clock)
      : ObjectStore(std::move(shown)),
        at_(std::move(place)),
        limits_(limits),
        clock_(clock),
        credentials_(at_.options.credentials_file) {}

  absl::StatusOr<LocalFile> Stage(const std::string&) override { return LocalFile::Nameless(); }

  absl::Status Publish(LocalFile staged, const std::string& name) override {
    return PublishLarge(std::move(staged), name, [](uint64_t) {});
  }

  absl::Status PublishLarge(LocalFile staged, const std::string& name,
                            const Moved& moved) override {
    MUSTER_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(staged.path()));
    if (file.bytes().size() > limits_.part_bytes) return PutInParts(name, file.bytes(), moved);
    return Send({.method = "PUT", .name = name, .body = file.bytes()},
                fmt::format("cannot write {}", Shown(name)))
        .status();
  }

  absl::Status PutNew(const std::string& name, std::string_view bytes) override {
    const std::string what = fmt::format("cannot write {}", Shown(name));
    const absl::StatusOr<std::string> found = Get(name, bytes.size());
    if (!absl::IsNotFound(found.status())) {
      if (!found.ok() && !absl::IsResourceExhausted(found.status())) return found.status();
      return absl::AlreadyExistsError(fmt::format("{}: it exists already", what));
    }
    absl::Status put =
        Send({.method = "PUT", .name = name, .headers = {"If-None-Match: *"}, .body = bytes}, what)
            .status();
    if (absl::IsUnimplemented(put)) {
      put = Send({.method = "PUT", .name = name, .body = bytes}, what).status();
    }
    MUSTER_RETURN_IF_ERROR(put);
    // A service that does not know the condition ignores it or refuses it. In that case, this finds
    // out who was last, unless two processes write within the time of this request.
    MUSTER_ASSIGN_OR_RETURN(const std::string kept, Get(name, kMarkerBytesMax));
    if (kept == bytes) return absl::OkStatus();
    return absl::AlreadyExistsError(fmt::format("{}: another process was faster", what));
  }

  absl::StatusOr<std::string> Get(const std::string& name, uint64_t bytes_max) override {
    MUSTER_ASSIGN_OR_RETURN(
        HttpAnswer answer,
        Send({.method = "GET", .name = name, .body_bytes_max = std::max(bytes_max, kErrorBytes)},
             fmt::format("cannot read {}", Shown(name))));
    if (answer.body.size() > bytes_max) {
      return absl::ResourceExhaustedError(
          fmt::format("{} is larger than the limit of {} bytes", Shown(name), bytes_max));
    }
    return std::move(answer.body);
  }

  absl::StatusOr<LocalFile> Fetch(const std::string& name) override {
    return FetchLarge(name, [](uint64_t) {});
  }

  absl::StatusOr<LocalFile> FetchLarge(const std::string& name, const Moved& moved) override {
    MUSTER_ASSIGN_OR_RETURN(LocalFile file, LocalFile::Nameless());
    const std::string what = fmt::format("cannot read {}", Shown(name));
    PartedRead plan(what, limits_.read_part_bytes, limits_.retries, NewSeed());
    const auto try_part = [&](HttpRequest request) {
      request.url = S3Url(at_, name, {});
      Tried tried = SendOnce(std::move(request), what);
      if (tried.status.ok()) moved(limits_.read_part_bytes);
      return tried;
    };
    MUSTER_RETURN_IF_ERROR(GetInParts(&plan, file.fd(), limits_.parts_at_once, try_part, clock_));
    return file;
  }

  absl::Status Delete(const std::string& name) override {
    const absl::Status status =
        Send({.method = "DELETE", .name = name}, fmt::format("cannot delete {}", Shown(name)))
            .status();
    return absl::IsNotFound(status) ? absl::OkStatus() : status;
  }

  Undeleted DeleteAll(const std::vector<std::string>& names) override {
    Undeleted left;
    for (size_t at = 0; at < names.size(); at += limits_.deletes_at_once) {
      const auto begin = names.begin() + static_cast<std::ptrdiff_t>(at);
      const size_t count = std::min<size_t>(limits_.deletes_at_once, names.size() - at);
      const std::vector<std::string> page(begin, begin + static_cast<std::ptrdiff_t>(count));
      Undeleted of_page{page, left.why};
      if (!absl::IsUnavailable(left.why)) of_page = DeletePage(page);
      std::ranges::move(of_page.names, std::back_inserter(left.names));
      if (!of_page.why.ok()) left.why = of_page.why;
    }
    return left;
  }

  absl::StatusOr<std::vector<std::string>> List(const std::string& prefix) override {
    std::vector<std::string> names;
    std::string next;
    for (int page = 0; page < kPagesMax; ++page) {
      S3Query query{{"list-type", "2"},
                    {"max-keys", std::to_string(limits_.page_keys)},
                    {"prefix", KeyOf(at_, prefix)}};
      if (!next.empty()) query.emplace_back("continuation-token", next);
      const std::string what = fmt::format("cannot list {}", place());
      MUSTER_ASSIGN_OR_RETURN(const HttpAnswer answer,
                              Send({.method = "GET", .query = std::move(query)}, what));
      absl::StatusOr<S3Keys> keys = ParseKeys(answer.body);
      if (!keys.ok()) return Annotate(keys.status(), what);
      for (const std::string& key : keys->keys) {
        const std::string_view name = NameOf(at_, key);
        if (!name.empty()) names.emplace_back(name);
      }
      if (keys->next.empty()) break;
      if (keys->next == next) return GoesInCircles(what);
      next = std::move(keys->next);
    }
    std::ranges::sort(names);
    return names;
  }

  absl::StatusOr<uint64_t> DeleteUnfinished(const NameFilter& may_end) override {
    uint64_t ended = 0;
    std::string next_key;
    std::string next_id;
    for (int page = 0; page < kPagesMax; ++page) {
      const std::string what = fmt::format("cannot list the unfinished uploads of {}", place());
      S3Query query{{"uploads", ""},
                    {"max-uploads", std::to_string(limits_.page_keys)},
                    {"prefix", KeyOf(at_, "")}};
      if (!next_key.empty()) query.emplace_back("key-marker", next_key);
      if (!next_id.empty()) query.emplace_back("upload-id-marker", next_id);
      MUSTER_ASSIGN_OR_RETURN(const HttpAnswer answer,
                              Send({.method = "GET", .query = std::move(query)}, what));
      absl::StatusOr<S3Uploads> found = ParseUploads(answer.body);
      if (!found.ok()) return Annotate(found.status(), what);
      for (const S3Uploads::Upload& upload : found->uploads) {
        const std::string_view name = NameOf(at_, upload.key);
        if (name.empty() || !may_end(std::string(name))) continue;
        MUSTER_RETURN_IF_ERROR(Abort(std::string(name), upload.id));
        ++ended;
      }
      if (!found->truncated) break;
      if (found->next_key == next_key && found->next_id == next_id) return GoesInCircles(what);
      next_key = std::move(found->next_key);
      next_id = std::move(found->next_id);
    }
    return ended;
  }

  absl::Status CheckWritable() override {
    MUSTER_RETURN_IF_ERROR(
        Send({.method = "GET",
              .query = {{"list-type", "2"}, {"max-keys", "1"}, {"prefix", KeyOf(at_, "")}}},
             fmt::format("cannot list {}", place()))
            .status());
    // To begin an upload needs the right to write, and an upload without an end leaves no object.
    MUSTER_ASSIGN_OR_RETURN(const std::string id, BeginUpload("probe"));
    return Abort("probe", id);
  }

 private:
  static constexpr uint64_t kErrorBytes = 64 << 10;
  static constexpr uint64_t kMarkerBytesMax = 64 << 10;
  static constexpr size_t kLongBytes = 64 << 10;

  /// Returns an answer with a status of success. Any other answer is tried again or becomes an
  /// error.
  absl::StatusOr<HttpAnswer> Send(const Call& call, std::string_view what) {
    const HttpRequest request = RequestOf(call);
    Retries retries(limits_.retries, clock_->Now(), NewSeed());
    while (true) {
      Tried tried = SendOnce(request, what);
      if (tried.status.ok()) return std::move(tried.answer);
      if (!absl::IsUnavailable(tried.status)) return tried.status;
      const auto wait =
          retries.After(clock_->Now(), AskedPause(tried.answer.Header(kRetryAfter)), tried.time);
      if (!wait.has_value()) return tried.status;
      SleepFor(*wait);
      retries.Begin(clock_->Now());
    }
  }

  HttpRequest RequestOf(const Call& call) const {
    HttpRequest request{.method = call.method,
                        .url = S3Url(at_, call.name, call.query),
                        .headers = call.headers,
                        .body = call.body,
                        .body_bytes_max = call.body_bytes_max};
    request.times.stall = call.stall_timeout.value_or(limits_.stall_timeout);
    return request;
  }

  /// The seed for the pauses of one transfer.
  uint64_t NewSeed() {
    return HashWords(static_cast<uint64_t>(clock_->Wall().count()),
                     static_cast<uint64_t>(::getpid()), calls_++);
  }

  Tried SendOnce(HttpRequest request, std::string_view what) {
    const absl::StatusOr<S3Credentials> credentials = credentials_.Get();
    if (!credentials.ok()) return {Annotate(credentials.status(), what), {}};
    Sign(*credentials, &request);
    request.peer = at_.options.endpoint;
    request.tls.authority_file = at_.options.ca_file;
    request.times.connect = limits_.connect_timeout;
    absl::StatusOr<HttpAnswer> answer = http_.Do(request);
    const bool waited =
        absl::IsDeadlineExceeded(answer.status()) || !MayHaveArrived(answer.status());
    const TryTime time = IsLong(request) && !waited ? TryTime::kExcused : TryTime::kCounts;
    if (absl::IsDeadlineExceeded(answer.status())) {
      answer = absl::UnavailableError(std::string(Message(answer.status())));
    }
    if (!answer.ok()) return {Annotate(answer.status(), what), {}, time};
    const bool success = answer->IsSuccess();
    const bool error_in_success =
        success && request.method == "POST" && IsErrorDocument(answer->body);
    if (success && !error_in_success) {
      // S3 gives every object an entity tag. Without one, the other end is not S3.
      const bool written = request.method != "PUT" || !answer->Header("ETag").empty();
      if (written) return {absl::OkStatus(), *std::move(answer)};
      return {absl::DataLossError(
                  fmt::format("{}: the answer has no ETag; is the endpoint an S3 server?", what)),
              *std::move(answer)};
    }
    S3Error error = ParseS3Error(error_in_success ? 500 : answer->status, answer->body);
    if (error.region.empty()) error.region = answer->Header("x-amz-bucket-region");
    return {ToStatus(error, what), *std::move(answer), time};
  }

  /// True if the request takes long because it moves many bytes, or because the service must work
  /// on it.
  bool IsLong(const HttpRequest& request) const {
    return request.body.size() >= kLongBytes || request.on_bytes != nullptr ||
           request.times.stall > limits_.stall_timeout;
  }

  /// The server checks the SHA-256 of the body.
  void Sign(const S3Credentials& credentials, HttpRequest* request) const {
    request->signature = {.region = at_.options.region,
                          .access_key = credentials.access_key,
                          .secret_key = credentials.secret_key};
    request->headers.push_back("x-amz-content-sha256: " + Sha256Hex(request->body));
    if (!credentials.session_token.empty()) {
      request->headers.push_back("x-amz-security-token: " + credentials.session_token);
    }
    if (!request->body.empty()) {
      request->headers.emplace_back("Content-Type: application/octet-stream");
    }
  }

  static absl::Status GoesInCircles(std::string_view what) {
    return absl::DataLossError(fmt::format("{}: the listing has no end", what));
  }

  /// Deletes at most limits_.deletes_at_once names.
  Undeleted DeletePage(const std::vector<std::string>& names) {
    if (!lists_deletions_ || names.size() == 1) return ObjectStore::DeleteAll(names);
    absl::StatusOr<Undeleted> left = DeleteList(names);
    if (left.ok()) return *std::move(left);
    if (absl::IsUnavailable(left.status())) return {names, left.status()};
    // Some services do not know this request, or do not accept this checksum. All know how to
    // delete a single object.
    Log(LogLevel::kInfo, "objects are deleted one by one from now on: {}", Message(left.status()));
    lists_deletions_ = false;
    return ObjectStore::DeleteAll(names);
  }

  absl::StatusOr<Undeleted> DeleteList(const std::vector<std::string>& names) {
    std::vector<std::string> keys;
    for (const std::string& name : names) keys.push_back(KeyOf(at_, name));
    const std::string document = DeleteDocument(keys);
    const std::string what = fmt::format("cannot delete {} objects of {}", names.size(), place());
    const std::string md5 = Md5Base64(document);
    if (md5.empty()) return absl::UnimplementedError(fmt::format("{}: MD5 is forbidden", what));
    MUSTER_ASSIGN_OR_RETURN(const HttpAnswer answer, Send({.method = "POST",
                                                           .query = {{"delete", ""}},
                                                           .headers = {"Content-MD5: " + md5},
                                                           .body = document,
                                                           .stall_timeout = limits_.work_timeout},
                                                          what));
    MUSTER_ASSIGN_OR_RETURN(const std::vector<S3Undeleted> undeleted, ParseUndeleted(answer.body));
    Undeleted left;
    for (const S3Undeleted& object : undeleted) {
      if (object.error.code == "NoSuchKey") continue;
      const std::string name(NameOf(at_, object.key));
      if (std::ranges::find(names, name) == names.end()) {
        return absl::DataLossError(fmt::format("{}: the answer names another object", what));
      }
      left.why = ToStatus(object.error, fmt::format("cannot delete {}", Shown(name)));
      left.names.push_back(name);
    }
    return left;
  }

  absl::StatusOr<std::string> BeginUpload(const std::string& name) {
    const std::string what = fmt::format("cannot write {}", Shown(name));
    MUSTER_ASSIGN_OR_RETURN(
        const HttpAnswer answer,
        Send({.method = "POST", .name = name, .query = {{"uploads", ""}}}, what));
    absl::StatusOr<std::string> id = ParseUploadId(answer.body);
    if (!id.ok()) return Annotate(id.status(), what);
    return id;
  }

  absl::Status Abort(const std::string& name, const std::string& id) {
    const absl::Status status =
        Send({.method = "DELETE", .name = name, .query = {{"uploadId", id}}},
             fmt::format("cannot end the upload of {}", Shown(name)))
            .status();
    return absl::IsNotFound(status) ? absl::OkStatus() : status;
  }

  absl::Status PutInParts(const std::string& name, std::string_view bytes, const Moved& moved) {
    MUSTER_ASSIGN_OR_RETURN(const std::string id, BeginUpload(name));
    absl::StatusOr<std::vector<std::string>> etags = PutParts(name, id, bytes, moved);
    absl::Status status = etags.ok() ? Complete(name, id, *etags) : etags.status();
    if (status.ok()) return status;
    const absl::Status aborted = Abort(name, id);
    if (!aborted.ok()) {
      Log(LogLevel::kWarning, "{}; the next run of the job ends it", Message(aborted));
    }
    return status;
  }

  /// Sends the parts, and returns their entity tags in order.
  absl::StatusOr<std::vector<std::string>> PutParts(const std::string& name, const std::string& id,
                                                    std::string_view bytes, const Moved& moved) {
    const uint64_t size = PartBytes(bytes.size(), limits_.part_bytes);
    const size_t count = (bytes.size() + size - 1) / size;
    std::vector<std::string> etags(count);
    PartQueue queue(limits_.retries, NewSeed(), count);
    Mutex mutex;
    const auto next = [&] {
      MutexLock lock(&mutex);
      return queue.Next(clock_->Now());
    };
    const auto work = [&] {
      while (true) {
        const PartTurn turn = next();
        if (turn.wait.has_value()) {
          SleepFor(*turn.wait);
          continue;
        }
        if (!turn.part.has_value()) return;
        const size_t i = *turn.part;
        Tried tried =
            SendOnce(RequestOf({.method = "PUT",
                                .name = name,
                                .query = {{"partNumber", std::to_string(i + 1)}, {"uploadId", id}},
                                .body = bytes.substr(i * size, size)}),
                     fmt::format("cannot write {}, part {} of {}", Shown(name), i + 1, count));
        MutexLock lock(&mutex);
        if (tried.status.ok()) {
          moved(std::min<uint64_t>(size, bytes.size() - i * size));
          etags[i] = tried.answer.Header("ETag");
          queue.Done(i);
        } else {
          queue.Failed(i, tried.status, AskedPause(tried.answer.Header(kRetryAfter)), clock_->Now(),
                       tried.time);
        }
      }
    };
    std::vector<std::thread> threads;
    for (size_t i = 1; i < std::min<size_t>(limits_.parts_at_once, count); ++i) {
      threads.emplace_back(work);
    }
    work();
    for (std::thread& thread : threads) thread.join();
    MUSTER_RETURN_IF_ERROR(queue.failure());
    return etags;
  }

  absl::Status Complete(const std::string& name, const std::string& id,
                        const std::vector<std::string>& etags) {
    const std::string document = CompleteDocument(etags);
    const std::string what = fmt::format("cannot write {}", Shown(name));
    const absl::StatusOr<HttpAnswer> answer = Send({.method = "POST",
                                                    .name = name,
                                                    .query = {{"uploadId", id}},
                                                    .body = document,
                                                    .stall_timeout = limits_.work_timeout},
                                                   what);
    const absl::Status status =
        answer.ok() ? Annotate(CheckCompleted(answer->body), what) : answer.status();
    if (!absl::IsNotFound(status) && !absl::IsDataLoss(status)) return status;
    // An earlier try may have succeeded although its answer was lost.
    absl::StatusOr<std::vector<std::string>> there = List(name);
    const bool done = there.ok() && std::ranges::find(*there, name) != there->end();
    return done ? absl::OkStatus() : absl::UnavailableError(std::string(Message(status)));
  }

  const S3Place at_;
  const S3Limits limits_;
  const Clock* const clock_;
  CredentialsSource credentials_;
  HttpClient http_{HttpProxies::kEnvironment};
  std::atomic<uint64_t> calls_{0};
  /// True while it seems that the service knows lists of objects to delete.
  std::atomic<bool> lists_deletions_{true};
};

}  // namespace

absl::StatusOr<std::unique_ptr<ObjectStore>> OpenS3Store(const S3Place& place,
                                                         const S3Limits& limits,
                                                         const Clock* clock) {
  S3Place complete = place;
  MUSTER_ASSIGN_OR_RETURN(complete.options, CompleteOptions(place.options));
  return std::make_unique<S3Store>(ShownPlace(ToText(place)), std::move(complete), limits, clock);
}

absl::StatusOr<std::unique_ptr<ObjectStore>> OpenStore(const std::string& place) {
  if (!IsS3Place(place)) return OpenDirectoryStore(place);
  static const SystemClock clock;
  MUSTER_ASSIGN_OR_RETURN(const S3Place parsed, ParseS3Place(place));
  return OpenS3Store(parsed, S3Limits(), &clock);
}

}  // namespace muster
