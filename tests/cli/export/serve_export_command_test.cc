#include "cli/export/serve_export_command.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <filesystem>
#include <thread>

#include "base/file.h"
#include "cli/export/export_client.h"
#include "cli/show/output.h"
#include "proto/admin.pb.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster::exporting {
namespace {

using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;

constexpr std::chrono::minutes kAnswerPatience{2};

/// A port of 127.0.0.1 that nobody has.
uint16_t UnusedPort() {
  const OwnedFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
  EXPECT_EQ(::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
  return ntohs(address.sin_port);
}

class ServeExport : public ::testing::Test {
 protected:
  ServeExport() {
    std::filesystem::create_directory(folder_.path() + "/job");
    options_ = {.job_file = Write("job/job.yaml",
                                  "apiVersion: muster/v1\nkind: TrainingJob\n"
                                  "metadata: {name: ads}\nspec:\n  partitions: 4\n"
                                  "  datasets: [{name: train, files: [/data/a]}]\n"
                                  "  replicaSpecs: {worker: {command: [trainer]}}\n"),
                .state_directory = folder_.path() + "/state",
                .token_file = Write("token", "secret\n"),
                .folder = folder_.path(),
                .port = UnusedPort()};
  }
  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = folder_.path() + "/" + name;
    EXPECT_THAT(WriteFileAtomically(path, text), IsOk());
    return path;
  }
  /// Asks on a connection of its own, as soon as the port is there.
  absl::StatusOr<uint64_t> Fetch(const ExportRequest& request) {
    while (true) {
      absl::StatusOr<ExportSocket> socket =
          ExportSocket::Connect(options_.port, -1, kAnswerPatience);
      if (!socket.ok()) continue;
      EXPECT_EQ(*socket->ReadLine(), kExportHello);
      return FetchExport(&*socket, request, folder_.path() + "/out");
    }
  }

  testing::TempDir folder_;
  ServeExportOptions options_;
};

TEST_F(ServeExport, ServesUntilAClientHasAnExport) {
  int code = -1;
  std::jthread server([&] { code = ServeExportCommand(options_); });
  EXPECT_THAT(Fetch({.token = "guess"}),
              StatusIs(absl::StatusCode::kPermissionDenied, ::testing::_));
  EXPECT_THAT(Fetch({.token = "secret"}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no job ever ran")));
  EXPECT_THAT(Fetch({.token = "secret", .epoch = "zero"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--epoch")));
  EXPECT_THAT(Fetch({.token = "secret", .manifest = "\xff"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("manifest")));
  v1::GetManifestResponse manifest;
  manifest.set_snapshot_directory(folder_.path() + "/job");
  v1::Table* const table = manifest.add_tables();
  table->set_id(1);
  table->set_name("weights");
  table->set_dim(2);
  const absl::StatusOr<uint64_t> tables =
      Fetch({.token = "secret", .manifest = manifest.SerializeAsString()});
  ASSERT_THAT(tables, IsOk());
  EXPECT_EQ(*tables, 1u);
  server.join();
  EXPECT_EQ(code, kExitSucceeded);
  EXPECT_TRUE(std::filesystem::exists(folder_.path() + "/out/weights.keys.npy"));
}

TEST_F(ServeExport, WithoutATokenNothingIsServed) {
  options_.token_file = folder_.path() + "/none";
  EXPECT_EQ(ServeExportCommand(options_), kExitUsage);
}

}  // namespace
}  // namespace muster::exporting
