#include "worker_sdk/member/stored_stripes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/checksum/crc32c.h"
#include "tests/support/gate.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster::internal {
namespace {

using ::testing::AllOf;
using testing::Gate;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;

class StoredStripesTest : public ::testing::Test {
 protected:
  absl::Status Store(const std::string& object, std::string_view bytes) {
    return StoreStripe(store.get(), object, std::as_bytes(std::span(bytes)), Count());
  }
  /// Into `loaded`, in pieces of at most `piece` bytes.
  absl::Status Load(const StateStripe& stripe, size_t piece = 4) {
    loaded.assign(stripe.bytes, '?');
    std::vector<std::span<std::byte>> pieces;
    std::span<std::byte> left = std::as_writable_bytes(std::span(loaded));
    while (!left.empty()) {
      pieces.push_back(left.first(std::min(piece, left.size())));
      left = left.subspan(pieces.back().size());
    }
    return LoadStripe(store.get(), stripe, pieces, Count());
  }
  static StateStripe StripeOf(const std::string& object, std::string_view bytes) {
    return {0, bytes.size(), Crc32c(bytes), object};
  }
  StripeProgress Count() {
    return [this](size_t bytes) {
      moved += bytes;
      return moved > moved_max ? absl::AbortedError("enough") : absl::OkStatus();
    };
  }
  const testing::TempDir directory;
  const std::unique_ptr<ObjectStore> store = OpenDirectoryStore(directory.path());
  std::string loaded;
  size_t moved = 0, moved_max = size_t{1} << 40;
};

TEST_F(StoredStripesTest, WhatIsStoredIsLoaded) {
  const std::string bytes("a\0bcdefgh", 9);
  ASSERT_THAT(Store("group/r1-s2-a3-0", bytes), IsOk());
  EXPECT_EQ(moved, 9u);
  ASSERT_THAT(Load(StripeOf("group/r1-s2-a3-0", bytes)), IsOk());
  EXPECT_EQ(loaded, bytes);
  EXPECT_EQ(moved, 18u);
  EXPECT_THAT(Load(StripeOf("group/other", bytes)),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(directory.path() + "/group/other")));
}

TEST_F(StoredStripesTest, ALargeStripeIsStoredPieceByPiece) {
  for (const size_t size : {size_t{0}, size_t{8} << 20, (size_t{9} << 20) + 1}) {
    std::string bytes(size, '\0');
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i % 251);
    ASSERT_THAT(Store("group/s", bytes), IsOk());
    ASSERT_THAT(Load(StripeOf("group/s", bytes), size_t{4} << 20), IsOk());
    EXPECT_TRUE(loaded == bytes) << size;
  }
}

TEST_F(StoredStripesTest, WhatIsDamagedIsNamed) {
  const std::string bytes = "abcdef";
  ASSERT_THAT(Store("group/s", bytes), IsOk());
  const auto damaged = [&](const StateStripe& stripe, const std::string& how) {
    EXPECT_THAT(Load(stripe), StatusIs(absl::StatusCode::kDataLoss,
                                       AllOf(HasSubstr(directory.path() + "/group/s is damaged"),
                                             HasSubstr(how))));
  };
  damaged(StripeOf("group/s", "abcdefg"), "6 bytes instead of 7");
  damaged(StripeOf("group/s", "abcde"), "more than 5 bytes");
  damaged(StripeOf("group/s", "abcdeF"), "checksum");
}

TEST_F(StoredStripesTest, AFolderInItsPlaceIsAnError) {
  std::filesystem::create_directories(directory.path() + "/group/s");
  EXPECT_THAT(Load(StripeOf("group/s", "abc")).ToString(),
              HasSubstr(directory.path() + "/group/s: Is a directory"));
}

TEST_F(StoredStripesTest, AnErrorBreaksItOff) {
  const std::string bytes(size_t{12} << 20, 'x');
  moved_max = size_t{5} << 20;
  EXPECT_TRUE(absl::IsAborted(Store("group/s", bytes)));
  EXPECT_EQ(moved, size_t{8} << 20);
  EXPECT_TRUE(absl::IsNotFound(Load(StripeOf("group/s", bytes)))) << "nothing is there";
}

TEST_F(StoredStripesTest, NoNameLeadsOutOfThePlace) {
  for (const char* object : {"", "/etc/passwd", "../secret", "group/../../secret"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Store(object, ""))) << object;
    EXPECT_TRUE(absl::IsInvalidArgument(Load(StripeOf(object, "a")))) << object;
  }
}

/// A folder whose objects wait at a gate, or fail, before they are there.
class SlowStore final : public ObjectStore {
 public:
  explicit SlowStore(const std::string& place)
      : ObjectStore(place), store_(OpenDirectoryStore(place)) {}
  absl::StatusOr<LocalFile> Stage(const std::string& label) override {
    MutexLock lock(&mutex_);
    if (std::exchange(fails_, false)) return absl::ResourceExhaustedError("no space");
    return store_->Stage(label);
  }
  absl::Status Publish(LocalFile staged, const std::string& name) override {
    {
      MutexLock lock(&mutex_);
      if (fails_written_ > 0 && fails_written_-- > 0) return absl::UnavailableError("away");
    }
    if (name == "slow") {
      reached.Open();
      go_on.Wait();
    }
    return store_->Publish(std::move(staged), name);
  }
  absl::Status PutNew(const std::string&, std::string_view) override { return {}; }
  absl::StatusOr<std::string> Get(const std::string& name, uint64_t bytes_max) override {
    return store_->Get(name, bytes_max);
  }
  absl::StatusOr<LocalFile> Fetch(const std::string& name) override { return store_->Fetch(name); }
  absl::Status Delete(const std::string&) override { return {}; }
  absl::StatusOr<std::vector<std::string>> List(const std::string& prefix) override {
    return store_->List(prefix);
  }
  absl::StatusOr<uint64_t> DeleteUnfinished(const NameFilter&) override { return 0; }
  absl::Status CheckWritable() override { return {}; }
  void FailOnce() {
    MutexLock lock(&mutex_);
    fails_ = true;
  }

  /// The next so many tries.
  void FailAfterWriting(int times) {
    MutexLock lock(&mutex_);
    fails_written_ = times;
  }

  Gate reached, go_on;

 private:
  const std::unique_ptr<ObjectStore> store_;
  Mutex mutex_;
  bool fails_ MUSTER_GUARDED_BY(mutex_) = false;
  int fails_written_ MUSTER_GUARDED_BY(mutex_) = 0;
};

class StripeStorerTest : public ::testing::Test {
 protected:
  /// What `done` was told, by object.
  StripeStorer::Done Told(const std::string& object, Gate* gate = nullptr) {
    return [this, object, gate](const absl::Status& status) {
      MutexLock lock(&mutex);
      told.push_back(object + (status.ok() ? "" : ": " + std::string(status.message())));
      if (gate != nullptr && status.ok()) gate->Open();
      return true;
    };
  }
  collectives::LentBytes Bytes(size_t size) {
    const auto bytes = std::make_shared<std::vector<std::byte>>(size);
    owner = bytes;
    return {bytes, *bytes};
  }
  testing::TempDir directory;
  SlowStore store{directory.path()};
  std::weak_ptr<const void> owner;
  Mutex mutex;
  std::vector<std::string> told;
  Gate stored;
};

TEST_F(StripeStorerTest, NobodyWaitsForASlowStore) {
  StripeStorer storer(&store);
  storer.Store("slow", Bytes(3), Told("slow", &stored));
  store.reached.Wait();
  EXPECT_EQ(storer.written(), 3u);
  EXPECT_FALSE(owner.expired());
  store.go_on.Open();
  stored.Wait();
  EXPECT_EQ(store.Get("slow", 10).value(), std::string(3, '\0'));
}

TEST_F(StripeStorerTest, AnErrorIsToldAndTheNextTryComes) {
  StripeStorer storer(&store, std::chrono::milliseconds(1));
  store.FailOnce();
  storer.Store("a", Bytes(3), Told("a", &stored));
  stored.Wait();
  MutexLock lock(&mutex);
  EXPECT_THAT(told, ::testing::ElementsAre("a: no space", "a"));
}

TEST_F(StripeStorerTest, ATryThatComesNoFurtherIsNoProgress) {
  StripeStorer storer(&store, std::chrono::milliseconds(1));
  store.FailAfterWriting(2);
  storer.Store("a", Bytes(3), Told("a", &stored));
  stored.Wait();
  EXPECT_EQ(told.size(), 3u);
  EXPECT_EQ(storer.written(), 3u);
}

TEST_F(StripeStorerTest, ANewPieceEndsTheOneBeforeIt) {
  StripeStorer storer(&store);
  storer.Store("slow", Bytes(3), Told("slow"));
  store.reached.Wait();
  storer.Store("b", Bytes(3), Told("b"));
  storer.Store("c", Bytes(3), Told("c", &stored));
  store.go_on.Open();
  stored.Wait();
  MutexLock lock(&mutex);
  EXPECT_THAT(told, ::testing::ElementsAre("c"));
}

TEST_F(StripeStorerTest, APieceThatIsDroppedIsNotTold) {
  {
    StripeStorer storer(&store);
    storer.Store("slow", Bytes(3), Told("slow"));
    store.reached.Wait();
    storer.Drop();
    store.go_on.Open();
  }
  EXPECT_THAT(told, ::testing::IsEmpty());
  EXPECT_TRUE(owner.expired());
}

}  // namespace
}  // namespace muster::internal
