#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <array>
#include <filesystem>
#include <thread>

#include "base/digest/sha256.h"
#include "base/file.h"
#include "cli/export/export_client.h"
#include "cli/export/export_server.h"
#include "cli/export/export_socket.h"
#include "proto/exported/sha256.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster::exporting {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::IsOk;
using testing::StatusIs;

constexpr std::chrono::minutes kPatience{2};

/// A server and a client, connected.
class ExportTransfer : public ::testing::Test {
 protected:
  ExportTransfer() {
    std::filesystem::create_directory(served_);
    Write("a.npy", std::string(3'000'000, 'a'));
    Write("empty.npy", "");
    Write(kSumsName, FormatSums({{"a.npy", Sha256Hex(std::string(3'000'000, 'a'))},
                                 {"empty.npy", Sha256Hex("")}}));
  }
  void Write(const std::string& name, const std::string& text) {
    ASSERT_THAT(WriteFileAtomically(served_ + "/" + name, text), IsOk());
  }
  absl::StatusOr<uint64_t> Fetch(const ExportRequest& request, const MakeExport& make) {
    std::array<int, 2> fds{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()), 0);
    std::jthread server([&] {
      ExportSocket client(OwnedFd(fds[0]), -1, kPatience);
      served_status_ = ServeClient(&client, "secret", make);
    });
    ExportSocket socket(OwnedFd(fds[1]), -1, kPatience);
    EXPECT_EQ(*socket.ReadLine(), kExportHello);
    return FetchExport(&socket, request, output_);
  }
  absl::StatusOr<uint64_t> Fetch(const ExportRequest& request) {
    return Fetch(request, [this](const ExportRequest& asked) -> absl::StatusOr<MadeExport> {
      asked_ = asked;
      return MadeExport{.tables = 2, .folder = served_};
    });
  }
  /// The output or a part of it.
  std::vector<std::string> Left() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      const std::string name = entry.path().filename().string();
      if (name != "served") names.push_back(name);
    }
    return names;
  }

  testing::TempDir folder_;
  const std::string served_ = folder_.path() + "/served";
  const std::string output_ = folder_.path() + "/weights";
  ExportRequest asked_;
  absl::Status served_status_;
};

TEST_F(ExportTransfer, TheFolderArrives) {
  const absl::StatusOr<uint64_t> tables = Fetch({.token = "secret", .epoch = "3"});
  ASSERT_THAT(tables, IsOk());
  EXPECT_EQ(*tables, 2u);
  EXPECT_EQ(asked_.epoch, "3");
  EXPECT_EQ(*ReadFile(output_ + "/a.npy", 1 << 30), std::string(3'000'000, 'a'));
  EXPECT_EQ(*ReadFile(output_ + "/empty.npy", 1), "");
  EXPECT_EQ(Left().size(), 1u);
  EXPECT_THAT(served_status_, IsOk());
}

TEST_F(ExportTransfer, NothingIsMadeWithoutTheToken) {
  bool made = false;
  const auto make = [&](const ExportRequest&) {
    made = true;
    return absl::StatusOr<MadeExport>(MadeExport{});
  };
  EXPECT_THAT(Fetch({.token = "guess1"}, make),
              StatusIs(absl::StatusCode::kPermissionDenied, ::testing::_));
  EXPECT_FALSE(made);
  EXPECT_THAT(Left(), IsEmpty());
}

TEST_F(ExportTransfer, AnErrorOfThePodIsTheAnswer) {
  const auto make = [](const ExportRequest&) -> absl::StatusOr<MadeExport> {
    return absl::DataLossError("a snapshot is gone");
  };
  EXPECT_THAT(Fetch({.token = "secret"}, make),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("a snapshot is gone")));
  EXPECT_THAT(served_status_, StatusIs(absl::StatusCode::kDataLoss, ::testing::_));
}

TEST_F(ExportTransfer, WhatWentToABucketIsNotSent) {
  const auto make = [](const ExportRequest&) {
    return absl::StatusOr<MadeExport>(MadeExport{.tables = 5});
  };
  const absl::StatusOr<uint64_t> tables =
      Fetch({.token = "secret", .output = "s3://bucket/prefix"}, make);
  ASSERT_THAT(tables, IsOk());
  EXPECT_EQ(*tables, 5u);
  EXPECT_THAT(Left(), IsEmpty());
}

TEST_F(ExportTransfer, ADamagedExportLeavesNothing) {
  Write("a.npy", std::string(3'000'000, 'b'));
  EXPECT_THAT(Fetch({.token = "secret"}),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("a.npy was damaged")));
  EXPECT_THAT(Left(), IsEmpty());
  // The pod does not count it as handed out.
  EXPECT_THAT(served_status_, StatusIs(absl::StatusCode::kUnavailable, ::testing::_));
}

TEST_F(ExportTransfer, AFileThatIsMissingOrTooMuchIsSeen) {
  Write("b.npy", "b");
  EXPECT_THAT(Fetch({.token = "secret"}), StatusIs(absl::StatusCode::kDataLoss, ::testing::_));
  RemoveFile(served_ + "/b.npy");
  RemoveFile(served_ + "/empty.npy");
  EXPECT_THAT(Fetch({.token = "secret"}), StatusIs(absl::StatusCode::kDataLoss, ::testing::_));
  RemoveFile(served_ + "/" + kSumsName);
  EXPECT_THAT(Fetch({.token = "secret"}), StatusIs(absl::StatusCode::kDataLoss, ::testing::_));
  EXPECT_THAT(Left(), IsEmpty());
}

TEST_F(ExportTransfer, AConnectionThatEndsLeavesNothing) {
  std::array<int, 2> fds{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()), 0);
  std::jthread server([&] {
    ExportSocket client(OwnedFd(fds[0]), -1, kPatience);
    EXPECT_THAT(client.ReadLine(), IsOk());
    const ExportReply reply{.files = {{"a.npy", 100}, {kSumsName, 10}}};
    EXPECT_THAT(client.Send(TextOf(reply) + "\nfew bytes"), IsOk());
  });
  ExportSocket socket(OwnedFd(fds[1]), -1, kPatience);
  EXPECT_THAT(FetchExport(&socket, {}, output_),
              StatusIs(absl::StatusCode::kUnavailable, ::testing::_));
  EXPECT_THAT(Left(), IsEmpty());
}

TEST_F(ExportTransfer, ASignalEndsIt) {
  std::array<int, 2> fds{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()), 0);
  const OwnedFd other(fds[0]);
  const OwnedFd signal(::eventfd(1, EFD_CLOEXEC));
  ExportSocket socket(OwnedFd(fds[1]), signal.get(), kPatience);
  EXPECT_THAT(socket.ReadLine(), StatusIs(absl::StatusCode::kCancelled, ::testing::_));
}

TEST_F(ExportTransfer, OnlyAnEmptyFolderIsAnOutput) {
  EXPECT_THAT(CheckOutputFolder(output_), IsOk());
  std::filesystem::create_directory(output_);
  EXPECT_THAT(CheckOutputFolder(output_ + "/"), IsOk());
  EXPECT_THAT(Fetch({.token = "secret"}), IsOk());
  EXPECT_THAT(CheckOutputFolder(output_), StatusIs(absl::StatusCode::kAlreadyExists, ::testing::_));
  EXPECT_THAT(CheckOutputFolder(output_ + "/a.npy"),
              StatusIs(absl::StatusCode::kAlreadyExists, ::testing::_));
  EXPECT_THAT(CheckOutputFolder(folder_.path() + "/absent/x"),
              StatusIs(absl::StatusCode::kNotFound, ::testing::_));
}

}  // namespace
}  // namespace muster::exporting
