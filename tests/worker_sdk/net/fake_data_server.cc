#include "tests/worker_sdk/net/fake_data_server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/check.h"

namespace muster::sdk {
namespace {

bool ReadAll(int fd, void* into, size_t bytes) {
  char* at = static_cast<char*>(into);
  while (bytes > 0) {
    ssize_t n = ::recv(fd, at, bytes, 0);
    if (n <= 0) return false;
    at += n;
    bytes -= static_cast<size_t>(n);
  }
  return true;
}

bool WriteAll(int fd, const std::string& bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    ssize_t n = ::send(fd, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
    if (n <= 0) return false;
    done += static_cast<size_t>(n);
  }
  return true;
}

}  // namespace

std::string AnswerFrame(wire::Header header, const std::string& directory,
                        std::string_view values) {
  header.directory_bytes = static_cast<uint32_t>(directory.size());
  header.value_bytes = values.size();
  header.keys = 0;
  header.checksum_kind = wire::Checksum::kXxh3;
  header.checksum = wire::ChecksumOf(directory, {}, values);
  std::array<std::byte, wire::kHeaderBytes> bytes;
  wire::EncodeHeader(header, bytes);
  std::string frame(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  frame += directory;
  frame += values;
  return frame;
}

FakeDataServer::FakeDataServer(Options options) : options_(std::move(options)) {
  if (!options_.unix_path.empty()) {
    listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un self{};
    self.sun_family = AF_UNIX;
    std::strncpy(self.sun_path, options_.unix_path.c_str(), sizeof(self.sun_path) - 1);
    ::unlink(self.sun_path);
    MUSTER_CHECK(::bind(listener_, reinterpret_cast<sockaddr*>(&self), sizeof(self)) == 0);
    address_ = "unix:" + options_.unix_path;
  } else {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in self{};
    self.sin_family = AF_INET;
    self.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(self);
    MUSTER_CHECK(::bind(listener_, reinterpret_cast<sockaddr*>(&self), size) == 0);
    MUSTER_CHECK(::getsockname(listener_, reinterpret_cast<sockaddr*>(&self), &size) == 0);
    address_ = "127.0.0.1:" + std::to_string(ntohs(self.sin_port));
  }
  MUSTER_CHECK(::listen(listener_, 16) == 0);
  acceptor_ = std::thread([this] { Accept(); });
}

FakeDataServer::~FakeDataServer() {
  Kill();
}

void FakeDataServer::Kill() {
  if (stopped_.exchange(true)) return;
  ::shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  ::close(listener_);
  if (!options_.unix_path.empty()) ::unlink(options_.unix_path.c_str());
  std::vector<std::thread> threads;
  {
    MutexLock lock(&mutex_);
    for (int fd : fds_) ::shutdown(fd, SHUT_RDWR);
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
}

void FakeDataServer::Accept() {
  while (true) {
    int fd = ::accept(listener_, nullptr, nullptr);
    if (fd < 0 && (errno == EMFILE || errno == ECONNABORTED) && !stopped_) {
      std::this_thread::yield();
      continue;
    }
    if (fd < 0) return;
    int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    ++connections_;
    MutexLock lock(&mutex_);
    fds_.push_back(fd);
    threads_.emplace_back([this, fd] { Serve(fd); });
  }
}

void FakeDataServer::Serve(int fd) {
  while (ServeFrame(fd)) {
  }
  MutexLock lock(&mutex_);
  std::erase(fds_, fd);
  ::close(fd);
}

bool FakeDataServer::ServeFrame(int fd) {
  std::array<std::byte, wire::kHeaderBytes> bytes;
  if (!ReadAll(fd, bytes.data(), bytes.size())) return false;
  absl::StatusOr<wire::Header> header = wire::DecodeHeader(bytes);
  MUSTER_CHECK_MSG(header.ok(), header.status().ToString());
  std::string directory(header->directory_bytes, '\0');
  std::vector<uint64_t> keys(header->keys);
  std::vector<std::byte> encoded(header->value_bytes);
  if (!ReadAll(fd, directory.data(), directory.size())) return false;
  if (!ReadAll(fd, keys.data(), keys.size() * sizeof(uint64_t))) return false;
  if (!ReadAll(fd, encoded.data(), encoded.size())) return false;
  MUSTER_CHECK(header->checksum_kind == wire::Checksum::kXxh3);
  MUSTER_CHECK(header->checksum ==
               wire::ChecksumOf(directory, keys,
                                {reinterpret_cast<const char*>(encoded.data()), encoded.size()}));
  if (header->kind == wire::Kind::kHello) {
    absl::StatusOr<wire::Hello> hello = wire::DecodeHello(directory);
    wire::Header reply;
    if (!hello.ok() || hello->job_id != options_.job_id) {
      reply.kind = wire::Kind::kError;
      WriteAll(
          fd, AnswerFrame(
                  reply, wire::EncodeError("this server works for job id " + options_.job_id), ""));
      return false;
    }
    reply.kind = wire::Kind::kHelloReply;
    return WriteAll(
        fd,
        AnswerFrame(reply,
                    wire::EncodeHelloReply({options_.incarnation, options_.partition_count, 0, 1}),
                    ""));
  }
  if (before_answer && !before_answer(*header)) return false;
  std::vector<float> values(encoded.size() / wire::BytesPerValue(header->encoding));
  wire::DecodeValues(encoded, header->encoding, values);
  std::string answer = header->kind == wire::Kind::kPull
                           ? AnswerPull(*header, directory, keys)
                           : AnswerPush(*header, directory, keys, values);
  if (damage) damage(&answer);
  return WriteAll(fd, answer);
}

std::string FakeDataServer::AnswerPull(const wire::Header& header, const std::string& directory,
                                       const std::vector<uint64_t>& keys) {
  wire::Parts parts;
  const absl::Status decoded = wire::DecodePull(header, directory, &parts);
  MUSTER_CHECK_MSG(decoded.ok(), decoded.ToString());
  std::vector<wire::PartReply> replies;
  std::vector<uint64_t> versions;
  std::vector<float> out;
  size_t key = 0;
  MutexLock lock(&mutex_);
  for (const wire::Part& part : parts) {
    wire::PartCode code = refuse ? refuse(part.partition) : wire::PartCode::kOk;
    replies.push_back({part.partition, code, false});
    for (const wire::Group& group : part.groups) {
      uint64_t version = wire::kNoVersion;
      if (code == wire::PartCode::kOk) version = 1 + versions_[{part.partition, group.table}];
      if (group.versioned()) versions.push_back(version);
      for (uint32_t k = 0; k < group.keys; ++k, ++key) {
        if (code != wire::PartCode::kOk || group.Unchanged(version)) continue;
        ++rows_sent_;
        auto it = rows_.find({group.table, keys[key]});
        std::vector<float> row = it == rows_.end() ? std::vector<float>(options_.dim) : it->second;
        out.insert(out.end(), row.begin(), row.end());
      }
    }
  }
  std::vector<std::byte> values(out.size() * wire::BytesPerValue(header.encoding));
  wire::EncodeValues(out, header.encoding, values);
  wire::Header reply = header;
  reply.kind = wire::Kind::kPullReply;
  reply.parts = static_cast<uint32_t>(replies.size());
  reply.versions = static_cast<uint32_t>(versions.size());
  return AnswerFrame(reply, wire::EncodeReply(replies, "", versions),
                     {reinterpret_cast<const char*>(values.data()), values.size()});
}

std::string FakeDataServer::AnswerPush(const wire::Header& header, const std::string& directory,
                                       const std::vector<uint64_t>& keys,
                                       const std::vector<float>& values) {
  wire::PushIdentity push;
  wire::Parts parts;
  const absl::Status decoded = wire::DecodePush(header, directory, &push, &parts);
  MUSTER_CHECK_MSG(decoded.ok(), decoded.ToString());
  std::vector<wire::PartReply> replies;
  size_t key = 0;
  MutexLock lock(&mutex_);
  for (const wire::Part& part : parts) {
    wire::PartCode code = refuse ? refuse(part.partition) : wire::PartCode::kOk;
    const std::tuple name(push.dataset, push.epoch, push.shard_index, push.minibatch,
                          part.partition);
    if (part.groups.empty()) {  // a question
      const bool in_rows = window_.contains(name);
      if (code == wire::PartCode::kOk && !in_rows) code = wire::PartCode::kMissing;
      replies.push_back({part.partition, code, code == wire::PartCode::kOk});
      continue;
    }
    bool skipped = code == wire::PartCode::kOk && !window_.insert(name).second;
    if (code == wire::PartCode::kOk) ++(skipped ? skipped_ : applied_);
    replies.push_back({part.partition, code, skipped});
    for (const wire::Group& group : part.groups) {
      if (code == wire::PartCode::kOk && !skipped) ++versions_[{part.partition, group.table}];
      for (uint32_t k = 0; k < group.keys; ++k, ++key) {
        if (code != wire::PartCode::kOk || skipped) continue;
        std::vector<float>& row = rows_[{group.table, keys[key]}];
        row.resize(options_.dim);
        for (uint32_t c = 0; c < options_.dim; ++c) row[c] += values[key * options_.dim + c];
      }
    }
  }
  wire::Header reply = header;
  reply.kind = wire::Kind::kPushReply;
  reply.encoding = wire::Encoding::kFloat32;
  reply.parts = static_cast<uint32_t>(replies.size());
  return AnswerFrame(reply, wire::EncodeReply(replies, "why"), "");
}

std::vector<float> FakeDataServer::Row(uint32_t table, uint64_t key) const {
  MutexLock lock(&mutex_);
  auto it = rows_.find({table, key});
  return it == rows_.end() ? std::vector<float>() : it->second;
}

size_t FakeDataServer::rows() const {
  MutexLock lock(&mutex_);
  return rows_.size();
}

}  // namespace muster::sdk
