#pragma once

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace muster::scaler::rest::testing {

inline constexpr char kToken[] = "c0ffee";

/// One answer as it came; status 0: the stream ended before it was whole.
struct Answer {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
};

/// A blocking client that sends what it is told to, well-formed or not.
class HttpClient {
 public:
  /// `receive_buffer`: bytes that the kernel keeps for it; 0: its default.
  explicit HttpClient(uint16_t port, int receive_buffer = 0)
      : port_(port), fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (receive_buffer > 0) {
      ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(receive_buffer));
    }
    const timeval patience{.tv_sec = 60, .tv_usec = 0};  // a failing test ends, too
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) == 0;
  }
  ~HttpClient() { ::close(fd_); }
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  bool connected() const { return connected_; }

  void Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
  }
  void HalfClose() { ::shutdown(fd_, SHUT_WR); }

  /// A head with Host and token, without the empty line at its end.
  std::string Head(const std::string& method, const std::string& target) const {
    return fmt::format("{} {} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: Bearer {}\r\n",
                       method, target, port_, kToken);
  }
  std::string Get(const std::string& target) const { return Head("GET", target) + "\r\n"; }
  std::string Post(const std::string& target, const std::string& body) const {
    return Head("POST", target) +
           fmt::format("Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
                       body.size(), body);
  }

  Answer Ask(std::string_view request, bool head_only = false) {
    Send(request);
    return Receive(head_only);
  }

  /// The next answer with a Content-Length.
  Answer Receive(bool head_only = false) {
    Answer answer = ReceiveHead();
    if (answer.status == 0 || head_only) return answer;
    const auto length = answer.headers.find("content-length");
    const size_t bytes = length == answer.headers.end() ? 0 : std::stoul(length->second);
    while (rest_.size() < bytes) {
      if (!ReceiveSome()) return {};
    }
    answer.body = rest_.substr(0, bytes);
    rest_.erase(0, bytes);
    return answer;
  }

  Answer ReceiveHead() {
    size_t end;
    while ((end = rest_.find("\r\n\r\n")) == std::string::npos) {
      if (!ReceiveSome()) return {};
    }
    Answer answer{.status = std::stoi(rest_.substr(9, 3)), .headers = {}, .body = ""};
    for (size_t at = rest_.find("\r\n") + 2; at < end;) {
      const size_t line_end = rest_.find("\r\n", at);
      const size_t colon = rest_.find(": ", at);
      std::string name = rest_.substr(at, colon - at);
      for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
      answer.headers[name] = rest_.substr(colon + 2, line_end - colon - 2);
      at = line_end + 2;
    }
    rest_.erase(0, end + 4);
    return answer;
  }

  /// Reads until `text` has come; everything up to its end. "" when the stream ends first.
  std::string ReceiveUntil(std::string_view text) {
    size_t at;
    while ((at = rest_.find(text)) == std::string::npos) {
      if (!ReceiveSome()) return "";
    }
    std::string all = rest_.substr(0, at + text.size());
    rest_.erase(0, all.size());
    return all;
  }

  /// Everything up to the end of the stream; `timed_out()` afterwards: it had none.
  std::string ReceiveAll() {
    while (ReceiveSome()) {
    }
    return std::move(rest_);
  }
  bool timed_out() const { return timed_out_; }

 private:
  bool ReceiveSome() {
    char bytes[16384];
    const ssize_t got = ::recv(fd_, bytes, sizeof(bytes), 0);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) timed_out_ = true;
    if (got <= 0) return false;
    rest_.append(bytes, static_cast<size_t>(got));
    return true;
  }

  const uint16_t port_;
  const int fd_;
  bool connected_ = false;
  bool timed_out_ = false;
  std::string rest_;
};

}  // namespace muster::scaler::rest::testing
