#include "store/http_client.h"

#include <curl/curl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <limits>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/digest/sha256.h"
#include "base/mutex.h"
#include "base/status.h"

namespace muster {
namespace {

constexpr long kStalledBytesPerSecond = 1024;
constexpr size_t kIdleMax = 16;
constexpr long kOk = 200;
constexpr long kPartialContent = 206;
/// What one read of a socket takes at most.
constexpr long kReceiveBytes = 256 << 10;
/// What libcurl copies at a time of a body that it sends.
constexpr long kSendBytes = 256 << 10;
/// How long a large body waits for the server's word.
constexpr long kExpectTimeoutMs = 200;

/// libcurl's global state, made once and kept.
void InitCurl() {
  static const CURLcode code = ::curl_global_init(CURL_GLOBAL_DEFAULT);
  MUSTER_CHECK_MSG(code == CURLE_OK, "libcurl cannot be initialised");
}

struct FreeList {
  void operator()(curl_slist* list) const { ::curl_slist_free_all(list); }
};
using List = std::unique_ptr<curl_slist, FreeList>;

List HeadersOf(const HttpRequest& request, const S3Credentials& credentials) {
  curl_slist* list = nullptr;
  const auto add = [&list](const std::string& line) {
    list = ::curl_slist_append(list, line.c_str());
    MUSTER_CHECK(list != nullptr);
  };
  for (const std::string& header : request.headers) add(header);
  if (!credentials.session_token.empty()) {
    add("x-amz-security-token: " + credentials.session_token);
  }
  // libcurl signs it, but, in this version, does not make it.
  add("x-amz-content-sha256: " + Sha256Hex(request.body));
  if (!request.body.empty()) add("Content-Type: application/octet-stream");
  return List(list);
}

/// What the callbacks of one request need.
struct Transfer {
  CURL* handle = nullptr;
  const HttpRequest* request = nullptr;
  HttpAnswer answer;
  absl::Status failed;
  std::optional<uint64_t> sink_bytes_max;  // none: the head has not been judged
};

/// Whether the body goes to the sink; false, too, after a failure.
bool BeginSink(Transfer* transfer) {
  const HttpRequest& request = *transfer->request;
  long status = 0;
  ::curl_easy_getinfo(transfer->handle, CURLINFO_RESPONSE_CODE, &status);
  if (request.sink_fd < 0 || (status != kOk && status != kPartialContent)) return false;
  if (transfer->sink_bytes_max.has_value()) return true;
  transfer->answer.status = static_cast<int>(status);
  absl::StatusOr<uint64_t> most = std::numeric_limits<uint64_t>::max();
  if (request.on_head) most = request.on_head(transfer->answer);
  transfer->failed = most.status();
  if (most.ok()) transfer->sink_bytes_max = *most;
  return most.ok();
}

size_t TakeBody(const char* data, size_t size, size_t count, void* user) {
  auto* const transfer = static_cast<Transfer*>(user);
  const size_t bytes = size * count;
  HttpAnswer& answer = transfer->answer;
  if (!BeginSink(transfer)) {
    if (!transfer->failed.ok()) return 0;
    if (answer.body.size() + bytes > transfer->request->body_bytes_max) {
      transfer->failed = absl::ResourceExhaustedError(
          fmt::format("the answer has more than {} bytes", transfer->request->body_bytes_max));
      return 0;
    }
    answer.body.append(data, bytes);
    return bytes;
  }
  if (answer.sink_bytes + bytes > *transfer->sink_bytes_max) {
    transfer->failed = absl::UnavailableError("the body is longer than its head says");
    return 0;
  }
  for (size_t done = 0; done < bytes;) {
    const ssize_t written =
        ::pwrite(transfer->request->sink_fd, data + done, bytes - done,
                 static_cast<off_t>(transfer->request->sink_offset + answer.sink_bytes));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      transfer->failed = ErrnoStatus(errno, "cannot write the temporary file");
      return 0;
    }
    done += static_cast<size_t>(written);
    answer.sink_bytes += static_cast<uint64_t>(written);
  }
  return bytes;
}

size_t TakeHeader(const char* data, size_t size, size_t count, void* user) {
  HttpAnswer& answer = static_cast<Transfer*>(user)->answer;
  const std::string_view line(data, size * count);
  const size_t colon = line.find(':');
  if (colon != std::string_view::npos) {
    std::string name(line.substr(0, colon));
    std::ranges::transform(name, name.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const size_t begin = line.find_first_not_of(" \t", colon + 1);
    const size_t end = line.find_last_not_of(" \t\r\n");
    std::string value;
    if (begin != std::string_view::npos && end >= begin) {
      value = line.substr(begin, end - begin + 1);
    }
    if (name == "etag") answer.etag = value;
    if (name == "content-range") answer.content_range = value;
    if (name == "retry-after") answer.retry_after = value;
    if (name == "x-amz-bucket-region") answer.bucket_region = value;
  }
  return line.size();
}

absl::Status StatusOf(CURLcode code, const char* words) {
  const std::string text = *words != '\0' ? words : ::curl_easy_strerror(code);
  switch (code) {
    case CURLE_OK:
      return absl::OkStatus();
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      return absl::FailedPreconditionError(text);
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_COULDNT_RESOLVE_HOST:
      return absl::DeadlineExceededError(text);
    default:
      return absl::UnavailableError(text);
  }
}

template <typename Value>
void Set(CURL* handle, CURLoption option, Value value) {
  const CURLcode code = ::curl_easy_setopt(handle, option, value);
  MUSTER_CHECK_MSG(code == CURLE_OK, "libcurl refuses an option");
}

void SetUp(const HttpClient::Options& options, const HttpRequest& request,
           const S3Credentials& credentials, Transfer* transfer) {
  CURL* const handle = transfer->handle;
  Set(handle, CURLOPT_NOSIGNAL, 1L);
  Set(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  Set(handle, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  Set(handle, CURLOPT_URL, request.url.c_str());
  Set(handle, CURLOPT_PATH_AS_IS, 1L);
  Set(handle, CURLOPT_AWS_SIGV4, fmt::format("aws:amz:{}:s3", options.region).c_str());
  Set(handle, CURLOPT_USERNAME, credentials.access_key.c_str());
  Set(handle, CURLOPT_PASSWORD, credentials.secret_key.c_str());
  Set(handle, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options.connect_timeout.count()));
  // A header that switches the wait off would be signed and not sent.
  Set(handle, CURLOPT_EXPECT_100_TIMEOUT_MS, kExpectTimeoutMs);
  Set(handle, CURLOPT_BUFFERSIZE, kReceiveBytes);
  Set(handle, CURLOPT_UPLOAD_BUFFERSIZE, kSendBytes);
  Set(handle, CURLOPT_LOW_SPEED_LIMIT, kStalledBytesPerSecond);
  Set(handle, CURLOPT_LOW_SPEED_TIME,
      static_cast<long>(request.stall_timeout.value_or(options.stall_timeout).count()));
  if (!options.ca_file.empty()) Set(handle, CURLOPT_CAINFO, options.ca_file.c_str());
  if (request.method == "HEAD") {
    Set(handle, CURLOPT_NOBODY, 1L);
  } else {
    if (request.method != "GET" && request.method != "DELETE") {
      // Not an "upload" of libcurl's: it signs only a body that it has in memory.
      Set(handle, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
      Set(handle, CURLOPT_POSTFIELDS, request.body.empty() ? "" : request.body.data());
    }
    Set(handle, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  }
  Set(handle, CURLOPT_WRITEFUNCTION, &TakeBody);
  Set(handle, CURLOPT_WRITEDATA, transfer);
  Set(handle, CURLOPT_HEADERFUNCTION, &TakeHeader);
  Set(handle, CURLOPT_HEADERDATA, transfer);
}

}  // namespace

/// Idle handles; each keeps its connection open.
class HttpClient::Connections {
 public:
  ~Connections() {
    for (CURL* handle : idle_) ::curl_easy_cleanup(handle);
  }
  CURL* Take() {
    {
      MutexLock lock(&mutex_);
      if (!idle_.empty()) {
        CURL* const handle = idle_.back();
        idle_.pop_back();
        return handle;
      }
    }
    InitCurl();
    CURL* const handle = ::curl_easy_init();
    MUSTER_CHECK_MSG(handle != nullptr, "libcurl has no memory");
    return handle;
  }
  void Give(CURL* handle) {
    ::curl_easy_reset(handle);  // keeps its connections
    MutexLock lock(&mutex_);
    if (idle_.size() < kIdleMax) {
      idle_.push_back(handle);
    } else {
      ::curl_easy_cleanup(handle);
    }
  }

 private:
  Mutex mutex_;
  std::vector<CURL*> idle_ MUSTER_GUARDED_BY(mutex_);
};

HttpClient::HttpClient(Options options)
    : options_(std::move(options)), connections_(std::make_unique<Connections>()) {}

HttpClient::~HttpClient() = default;

absl::StatusOr<HttpAnswer> HttpClient::Do(const HttpRequest& request,
                                          const S3Credentials& credentials) {
  Transfer transfer;
  transfer.handle = connections_->Take();
  transfer.request = &request;
  const List headers = HeadersOf(request, credentials);
  char words[CURL_ERROR_SIZE] = "";
  SetUp(options_, request, credentials, &transfer);
  Set(transfer.handle, CURLOPT_HTTPHEADER, headers.get());
  Set(transfer.handle, CURLOPT_ERRORBUFFER, static_cast<char*>(words));
  const CURLcode code = ::curl_easy_perform(transfer.handle);
  long status = 0;
  ::curl_easy_getinfo(transfer.handle, CURLINFO_RESPONSE_CODE, &status);
  if (code == CURLE_OK) BeginSink(&transfer);  // there may be no body
  connections_->Give(transfer.handle);
  MUSTER_RETURN_IF_ERROR(transfer.failed);
  MUSTER_RETURN_IF_ERROR(StatusOf(code, words));
  transfer.answer.status = static_cast<int>(status);
  return std::move(transfer.answer);
}

}  // namespace muster
