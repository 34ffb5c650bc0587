#include "http/http_client.h"

#include <curl/curl.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <sys/socket.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"

namespace muster {
namespace {

using std::chrono::milliseconds;

constexpr char kUnsent[] = "muster/http-unsent";
constexpr long kStalledBytesPerSecond = 1024;
constexpr size_t kIdleMax = 16;
/// If a connection is idle for longer, a device on the way may have forgotten it.
constexpr long kIdleSeconds = 30;
/// The most bytes that one read of a socket takes, and that libcurl copies at a time from a body to
/// send.
constexpr long kPieceBytes = 256 << 10;
/// How long libcurl waits for the server's "100 Continue" before it sends a large body.
constexpr long kExpectTimeoutMs = 200;
constexpr size_t kHeadBytesMax = 256 << 10;
constexpr long kOk = 200;
/// The longest single wait for the network.
constexpr milliseconds kPollMax{60'000};

struct FreeList {
  void operator()(curl_slist* list) const { ::curl_slist_free_all(list); }
};
using List = std::unique_ptr<curl_slist, FreeList>;

void Append(const std::string& line, List* list) {
  curl_slist* const longer = ::curl_slist_append(list->get(), line.c_str());
  MUSTER_CHECK(longer != nullptr);
  static_cast<void>(list->release());
  list->reset(longer);
}

/// A request of libcurl, and the connection that it keeps after the request.
class Handle {
 public:
  Handle() {
    static const CURLcode initialised = ::curl_global_init(CURL_GLOBAL_DEFAULT);
    MUSTER_CHECK_MSG(initialised == CURLE_OK, "libcurl cannot be initialised");
    multi = ::curl_multi_init();
    easy = ::curl_easy_init();
    MUSTER_CHECK_MSG(multi != nullptr && easy != nullptr, "libcurl has no memory");
  }
  ~Handle() {
    ::curl_easy_cleanup(easy);
    ::curl_multi_cleanup(multi);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  template <typename Value>
  void Set(CURLoption option, Value value) {
    MUSTER_CHECK_MSG(::curl_easy_setopt(easy, option, value) == CURLE_OK,
                     "libcurl refuses an option");
  }
  void SetText(CURLoption option, const std::string& text) {
    if (!text.empty()) Set(option, text.c_str());
  }
  void SetPem(CURLoption option, std::string_view pem) {
    curl_blob blob{const_cast<char*>(pem.data()), pem.size(), CURL_BLOB_COPY};
    if (!pem.empty()) Set(option, &blob);
  }

  CURLM* multi = nullptr;
  CURL* easy = nullptr;
};

curl_socket_t OpenSocket(void*, curlsocktype, curl_sockaddr* address) {
  return ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

absl::Status Unsent(absl::Status status) {
  status.SetPayload(kUnsent, absl::Cord());
  return status;
}

/// One request in progress.
class Exchange {
 public:
  Exchange(const HttpRequest& request, Handle* handle) : request_(request), handle_(handle) {}

  absl::StatusOr<HttpAnswer> Run(HttpProxies proxies) {
    SetUp(proxies);
    SetUpTls();
    SetUpRequest();
    const absl::StatusOr<CURLcode> code = Transfer();
    MUSTER_RETURN_IF_ERROR(code.status());
    MUSTER_RETURN_IF_ERROR(failed_);
    MUSTER_RETURN_IF_ERROR(StatusOf(*code));
    return std::move(answer_);
  }

 private:
  void SetUp(HttpProxies proxies) {
    handle_->Set(CURLOPT_NOSIGNAL, 1L);
    handle_->Set(CURLOPT_PROTOCOLS_STR, "http,https");
    handle_->Set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    handle_->Set(CURLOPT_PATH_AS_IS, 1L);
    handle_->Set(CURLOPT_MAXAGE_CONN, kIdleSeconds);
    handle_->Set(CURLOPT_OPENSOCKETFUNCTION, &OpenSocket);
    handle_->Set(CURLOPT_BUFFERSIZE, kPieceBytes);
    handle_->Set(CURLOPT_UPLOAD_BUFFERSIZE, kPieceBytes);
    if (proxies == HttpProxies::kNone) handle_->Set(CURLOPT_PROXY, "");
    // A header that switches off this wait would be signed but not sent.
    handle_->Set(CURLOPT_EXPECT_100_TIMEOUT_MS, kExpectTimeoutMs);
    handle_->Set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(request_.times.connect.count()));
    handle_->Set(CURLOPT_LOW_SPEED_LIMIT, kStalledBytesPerSecond);
    handle_->Set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(request_.times.stall.count()));
    handle_->Set(CURLOPT_PREREQFUNCTION, &Exchange::OnSend);
    handle_->Set(CURLOPT_PREREQDATA, this);
    handle_->Set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    handle_->Set(CURLOPT_HEADERFUNCTION, &Exchange::OnHead);
    handle_->Set(CURLOPT_HEADERDATA, this);
    handle_->Set(CURLOPT_WRITEFUNCTION, &Exchange::OnBody);
    handle_->Set(CURLOPT_WRITEDATA, this);
    handle_->Set(CURLOPT_ERRORBUFFER, static_cast<char*>(words_));
  }

  void SetUpTls() {
    const HttpTls& tls = request_.tls;
    handle_->Set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
    // No session is resumed, so every handshake checks certificates.
    handle_->Set(CURLOPT_SSL_SESSIONID_CACHE, 0L);
    if (!tls.authority_file.empty() || !tls.authority.empty()) {
      handle_->Set(CURLOPT_CAPATH, static_cast<const char*>(nullptr));
      handle_->Set(CURLOPT_SSL_OPTIONS, static_cast<long>(CURLSSLOPT_NO_PARTIALCHAIN));
    }
    handle_->SetText(CURLOPT_CAINFO, tls.authority_file);
    handle_->SetPem(CURLOPT_CAINFO_BLOB, tls.authority);
    handle_->SetPem(CURLOPT_SSLCERT_BLOB, tls.client_certificate);
    handle_->SetPem(CURLOPT_SSLKEY_BLOB, tls.client_key);
    // The added checks replace the check of the name.
    handle_->Set(CURLOPT_SSL_VERIFYHOST, tls.add_checks ? 0L : 2L);
    handle_->Set(CURLOPT_SSL_CTX_FUNCTION, &Exchange::OnTls);
    handle_->Set(CURLOPT_SSL_CTX_DATA, this);
  }

  void SetUpRequest() {
    handle_->Set(CURLOPT_URL, request_.url.c_str());
    if (!request_.connect_to.empty()) Append("::" + request_.connect_to, &connect_to_);
    handle_->Set(CURLOPT_CONNECT_TO, connect_to_.get());
    for (const std::string& header : request_.headers) Append(header, &headers_);
    handle_->Set(CURLOPT_HTTPHEADER, headers_.get());
    if (request_.signature.has_value()) {
      const AwsSignature& by = *request_.signature;
      handle_->Set(CURLOPT_AWS_SIGV4, fmt::format("aws:amz:{}:s3", by.region).c_str());
      handle_->Set(CURLOPT_USERNAME, by.access_key.c_str());
      handle_->Set(CURLOPT_PASSWORD, by.secret_key.c_str());
    }
    if (!request_.body.empty() || (request_.method != "GET" && request_.method != "DELETE")) {
      // This is not an "upload" in libcurl's sense, because libcurl can sign only a body that is in
      // memory.
      handle_->Set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request_.body.size()));
      handle_->Set(CURLOPT_POSTFIELDS, request_.body.empty() ? "" : request_.body.data());
    }
    handle_->Set(CURLOPT_CUSTOMREQUEST, request_.method.c_str());
  }

  /// Runs until libcurl has a result, or a limit ends the request. If the answer is left early
  /// without an error, it is CURLE_OK, too.
  absl::StatusOr<CURLcode> Transfer() {
    struct Added {
      explicit Added(Handle* of) : handle(of) {
        MUSTER_CHECK(::curl_multi_add_handle(handle->multi, handle->easy) == CURLM_OK);
      }
      ~Added() { ::curl_multi_remove_handle(handle->multi, handle->easy); }
      Handle* const handle;
    };
    const Added added(handle_);
    const std::stop_callback wake(request_.stop, [this] { ::curl_multi_wakeup(handle_->multi); });
    while (true) {
      int running = 0;
      MUSTER_CHECK(::curl_multi_perform(handle_->multi, &running) == CURLM_OK);
      if (request_.stop.stop_requested()) return absl::CancelledError("stopped");
      if (running == 0) break;
      next_ = kPollMax;
      if (!told_ && request_.on_slow && IsOver(began_, request_.slow_after)) {
        told_ = true;
        request_.on_slow();
      }
      if (!IsStreaming() && IsOver(began_, request_.times.whole)) return TooLate();
      if (IsStreaming() && IsOver(began_, request_.times.length)) return CURLE_OK;
      if (IsStreaming() && IsOver(heard_, request_.times.silence)) return TooLate();
      MUSTER_CHECK(::curl_multi_poll(handle_->multi, nullptr, 0, static_cast<int>(next_.count()),
                                     nullptr) == CURLM_OK);
    }
    int left = 0;
    const CURLMsg* const message = ::curl_multi_info_read(handle_->multi, &left);
    MUSTER_CHECK(message != nullptr && message->msg == CURLMSG_DONE);
    return message->data.result;
  }

  /// True if `length` has passed since `since`. Otherwise, the next wait ends when it has.
  bool IsOver(TimePoint since, milliseconds length) {
    if (length == HttpTimes::kNever) return false;
    const auto left = std::chrono::ceil<milliseconds>(since + length - clock_.Now());
    if (left <= milliseconds(0)) return true;
    next_ = std::min(next_, left);
    return false;
  }

  /// True if the head of an answer that goes to `on_bytes` has arrived.
  bool IsStreaming() const { return begun_ && request_.on_bytes && answer_.IsSuccess(); }

  /// Takes a line of the head. An empty line ends the head.
  absl::Status TakeLine(std::string_view line) {
    head_bytes_ += line.size();
    if (head_bytes_ > kHeadBytesMax) {
      return absl::ResourceExhaustedError(
          fmt::format("the head of {}'s answer is too long", request_.peer));
    }
    long status = 0;
    ::curl_easy_getinfo(handle_->easy, CURLINFO_RESPONSE_CODE, &status);
    // The server may first send a head that only says "continue".
    if (begun_ || status < kOk || (line != "\r\n" && line != "\n")) return absl::OkStatus();
    begun_ = true;
    heard_ = clock_.Now();
    answer_.status = static_cast<int>(status);
    for (curl_header* at = nullptr;
         (at = ::curl_easy_nextheader(handle_->easy, CURLH_HEADER, -1, at)) != nullptr;) {
      answer_.headers.emplace_back(at->name, at->value);
    }
    return IsStreaming() && request_.on_head ? request_.on_head(answer_) : absl::OkStatus();
  }

  absl::Status TakePiece(std::string_view bytes) {
    heard_ = clock_.Now();
    if (IsStreaming()) return request_.on_bytes(bytes);
    if (answer_.body.size() + bytes.size() > request_.body_bytes_max) {
      return absl::ResourceExhaustedError(fmt::format("the answer of {} has more than {} bytes",
                                                      request_.peer, request_.body_bytes_max));
    }
    answer_.body += bytes;
    return absl::OkStatus();
  }

  static CURLcode OnTls(CURL*, void* context, void* user) {
    auto* const self = static_cast<Exchange*>(user);
    auto* const ssl = static_cast<SSL_CTX*>(context);
    // libcurl reports the first error of OpenSSL's queue, which may be of any library.
    ::SSL_CTX_set_cert_verify_callback(ssl, &Exchange::OnCertificate, self);
    if (self->request_.tls.add_checks) self->request_.tls.add_checks(ssl);
    return CURLE_OK;
  }

  static int OnCertificate(X509_STORE_CTX* chain, void* user) {
    const int accepted = ::X509_verify_cert(chain);
    if (accepted != 1) {
      static_cast<Exchange*>(user)->refusal_ =
          ::X509_verify_cert_error_string(::X509_STORE_CTX_get_error(chain));
    }
    return accepted;
  }

  static size_t OnHead(const char* data, size_t size, size_t count, void* user) {
    auto* const self = static_cast<Exchange*>(user);
    self->failed_ = self->TakeLine({data, size * count});
    return self->failed_.ok() ? size * count : 0;
  }

  static size_t OnBody(const char* data, size_t size, size_t count, void* user) {
    auto* const self = static_cast<Exchange*>(user);
    self->failed_ = self->TakePiece({data, size * count});
    return self->failed_.ok() ? size * count : 0;
  }

  /// Called before each sending. If a waiting connection turns out to be closed, libcurl sends
  /// again.
  static int OnSend(void* user, char*, char*, int, int) {
    auto* const self = static_cast<Exchange*>(user);
    if (self->sent_ && !self->request_.may_repeat) return CURL_PREREQFUNC_ABORT;
    self->sent_ = true;
    return CURL_PREREQFUNC_OK;
  }

  absl::Status TooLate() const {
    if (sent_) {
      return absl::DeadlineExceededError(
          fmt::format("no whole answer from {} in time", request_.peer));
    }
    return Unsent(
        absl::DeadlineExceededError(fmt::format("nothing answers at {} in time", request_.peer)));
  }

  absl::Status NotTrusted(std::string_view why) const {
    return Unsent(absl::FailedPreconditionError(
        fmt::format("the certificate of {} is not trusted ({}): does another server answer there?",
                    request_.peer, why)));
  }

  absl::Status StatusOf(CURLcode code) const {
    const std::string words = *words_ != '\0' ? words_ : ::curl_easy_strerror(code);
    // libcurl also accepts a head that ends in its middle, so this checks that the head was
    // complete.
    if (code == CURLE_OK && begun_) return absl::OkStatus();
    if (code == CURLE_OPERATION_TIMEDOUT) return TooLate();
    if (!refusal_.empty()) return NotTrusted(refusal_);
    if (sent_) {
      return absl::UnavailableError(fmt::format(
          "{} {} ({})", IsStreaming() ? "the stream broke from" : "no whole answer from",
          request_.peer, words));
    }
    switch (code) {
      case CURLE_PEER_FAILED_VERIFICATION:
        return NotTrusted(words);
      case CURLE_SSL_CERTPROBLEM:
      case CURLE_SSL_CACERT_BADFILE:
        return Unsent(absl::FailedPreconditionError(
            fmt::format("a certificate or key for {} cannot be used ({})", request_.peer, words)));
      case CURLE_URL_MALFORMAT:
      case CURLE_UNSUPPORTED_PROTOCOL:
        return Unsent(absl::FailedPreconditionError(
            fmt::format("{} cannot be asked ({})", request_.peer, words)));
      case CURLE_COULDNT_RESOLVE_HOST:
        return Unsent(absl::UnavailableError(
            fmt::format("the name is not known of {} ({})", request_.peer, words)));
      default:
        return Unsent(absl::UnavailableError(
            fmt::format("nothing answers at {} ({})", request_.peer, words)));
    }
  }

  const HttpRequest& request_;
  Handle* const handle_;
  const SystemClock clock_;
  const TimePoint began_ = clock_.Now();
  List headers_;
  List connect_to_;
  char words_[CURL_ERROR_SIZE] = "";
  HttpAnswer answer_;
  absl::Status failed_;
  std::string refusal_;       // why the server's certificate was refused
  TimePoint heard_ = began_;  // when the newest byte of a body came
  milliseconds next_{0};      // how long the next wait is
  size_t head_bytes_ = 0;
  bool sent_ = false;
  bool begun_ = false;
  bool told_ = false;
};

}  // namespace

std::string_view HttpAnswer::Header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (absl::EqualsIgnoreCase({key.data(), key.size()}, {name.data(), name.size()})) return value;
  }
  return "";
}

bool MayHaveArrived(const absl::Status& status) {
  return !status.GetPayload(kUnsent).has_value();
}

/// The idle handles.
class HttpClient::Handles {
 public:
  std::unique_ptr<Handle> Take() {
    const MutexLock lock(&mutex_);
    if (idle_.empty()) return std::make_unique<Handle>();
    std::unique_ptr<Handle> handle = std::move(idle_.back());
    idle_.pop_back();
    return handle;
  }
  void Give(std::unique_ptr<Handle> handle) {
    ::curl_easy_reset(handle->easy);
    const MutexLock lock(&mutex_);
    if (idle_.size() < kIdleMax) idle_.push_back(std::move(handle));
  }

 private:
  Mutex mutex_;
  std::vector<std::unique_ptr<Handle>> idle_ MUSTER_GUARDED_BY(mutex_);
};

HttpClient::HttpClient(HttpProxies proxies)
    : proxies_(proxies), handles_(std::make_unique<Handles>()) {}

HttpClient::~HttpClient() = default;

absl::StatusOr<HttpAnswer> HttpClient::Do(const HttpRequest& request) {
  std::unique_ptr<Handle> handle = handles_->Take();
  absl::StatusOr<HttpAnswer> answer = Exchange(request, handle.get()).Run(proxies_);
  // After an error, the handle is not used again, because libcurl may keep a buffer that must not
  // be in use at the next set-up.
  if (answer.ok()) handles_->Give(std::move(handle));
  return answer;
}

}  // namespace muster
