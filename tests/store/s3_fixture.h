#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "http/http_client.h"
#include "store/s3_store.h"
#include "tests/support/status_matchers.h"

namespace muster {

inline bool Any(const std::string&) {
  return true;
}

/// Against a real S3 server (with_s3.py), behind a proxy that checks signatures and makes faults.
class S3StoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* const endpoint = std::getenv("MUSTER_TEST_S3");
    ASSERT_NE(endpoint, nullptr) << "run it with with_s3.py";
    place_ = {.bucket = "tests",
              .prefix = ::testing::UnitTest::GetInstance()->current_test_info()->name(),
              .options = {.endpoint = endpoint, .region = "eu-test-1", .path_style = true}};
    limits_.part_bytes = 5 << 20;
    limits_.read_part_bytes = 5 << 20;
    limits_.retries = {.first = std::chrono::milliseconds(1),
                       .longest = std::chrono::milliseconds(10),
                       .total = std::chrono::seconds(20)};
    limits_.stall_timeout = std::chrono::seconds(1);
    store_ = Open();
    Faults("[]");
  }
  void TearDown() override {
    Faults("[]");
    EXPECT_EQ(Seen("bad_signatures"), 0u);
  }

  std::unique_ptr<ObjectStore> Open() {
    auto store = OpenS3Store(place_, limits_, &clock_);
    EXPECT_THAT(store, testing::IsOk());
    return *std::move(store);
  }
  /// Tells the proxy which faults to make (scripts/lib/s3_proxy.py).
  void Faults(const std::string& json) {
    EXPECT_THAT(
        proxy_.Do({.method = "PUT", .url = place_.options.endpoint + "/_faults", .body = json}),
        testing::IsOk());
  }
  uint64_t Seen(const std::string& what) {
    const auto answer = proxy_.Do({.url = place_.options.endpoint + "/_seen"});
    EXPECT_THAT(answer, testing::IsOk());
    const size_t at = answer->body.find("\"" + what + "\": ");
    return at == std::string::npos ? 0 : std::stoull(answer->body.substr(at + what.size() + 4));
  }
  absl::Status Put(const std::string& name, const std::string& bytes) {
    auto staged = store_->Stage(name + ".tmp");
    if (!staged.ok()) return staged.status();
    std::ofstream(staged->path(), std::ios::binary) << bytes;
    return store_->Publish(*std::move(staged), name);
  }
  absl::StatusOr<std::string> Fetched(const std::string& name) {
    auto file = store_->Fetch(name);
    if (!file.ok()) return file.status();
    return ReadFile(file->path(), 1 << 30);
  }
  std::vector<std::string> List(const std::string& prefix = "") {
    const auto names = store_->List(prefix);
    EXPECT_THAT(names, testing::IsOk());
    return names.ok() ? *names : std::vector<std::string>();
  }
  /// As long as `bytes`, and different everywhere.
  static std::string Text(size_t bytes) {
    std::string text;
    for (uint64_t i = 0; text.size() < bytes; ++i) text += std::to_string(i) + ",";
    text.resize(bytes);
    return text;
  }

  const SystemClock clock_;
  S3Place place_;
  S3Limits limits_;
  HttpClient proxy_{HttpProxies::kNone};
  std::unique_ptr<ObjectStore> store_;
};

}  // namespace muster
