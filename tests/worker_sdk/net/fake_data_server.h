#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <vector>

#include "base/mutex.h"
#include "proto/wire/frame.h"

namespace muster::sdk {

/// The bytes of an answer without keys; sizes and checksum are put into `header`.
std::string AnswerFrame(wire::Header header, const std::string& directory, std::string_view values);

/// A parameter server for tests: one lane, blocking sockets, a thread per connection. Rows are sums
/// of what was pushed; a part counts once per (shard, minibatch, partition). Every table has `dim`
/// columns.
class FakeDataServer {
 public:
  struct Options {
    uint64_t incarnation = 1;
    uint32_t partition_count = 8;
    uint32_t dim = 2;
    std::string unix_path;  // empty: TCP on a free port
    std::string job_id = "id-1";
    wire::Encoding encoding = wire::Encoding::kFloat32;
  };
  explicit FakeDataServer(Options options);
  ~FakeDataServer();

  const std::string& address() const { return address_; }
  /// Closes every socket at once, as a kill does.
  void Kill();

  /// The answer to a part instead of serving it; kOk: serve it. Called on connections' threads.
  std::function<wire::PartCode(uint32_t partition)> refuse;
  /// Called before a request is answered; false: the connection is closed instead.
  std::function<bool(const wire::Header&)> before_answer;
  /// Changes the bytes of an answer before they are sent.
  std::function<void(std::string* frame)> damage;

  std::vector<float> Row(uint32_t table, uint64_t key) const;
  size_t rows() const;
  int connections() const { return connections_; }
  int parts_applied() const { return applied_; }
  int parts_skipped() const { return skipped_; }
  /// Rows that went out with pulls.
  int rows_sent() const { return rows_sent_; }

 private:
  void Accept();
  void Serve(int fd);
  bool ServeFrame(int fd);
  std::string AnswerPull(const wire::Header& header, const std::string& directory,
                         const std::vector<uint64_t>& keys);
  std::string AnswerPush(const wire::Header& header, const std::string& directory,
                         const std::vector<uint64_t>& keys, const std::vector<float>& values);

  Options options_;
  std::string address_;
  int listener_ = -1;
  std::atomic<bool> stopped_ = false;
  std::atomic<int> connections_ = 0, applied_ = 0, skipped_ = 0, rows_sent_ = 0;
  std::thread acceptor_;
  mutable Mutex mutex_;
  std::vector<int> fds_ MUSTER_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ MUSTER_GUARDED_BY(mutex_);
  std::map<std::pair<uint32_t, uint64_t>, std::vector<float>> rows_ MUSTER_GUARDED_BY(mutex_);
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> versions_  // by partition and table
      MUSTER_GUARDED_BY(mutex_);
  std::set<std::tuple<uint32_t, uint32_t, uint64_t, uint32_t, uint32_t>> window_
      MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::sdk
