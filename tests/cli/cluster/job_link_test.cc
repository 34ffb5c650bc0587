#include "cli/cluster/job_link.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <filesystem>

#include "cli/show/output.h"
#include "tests/cli/cluster/fake_cluster.h"
#include "tests/support/status_matchers.h"

namespace muster::cluster {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

json RunningPod() {
  return {{"metadata",
           {{"name", "ads-x"}, {"labels", {{"muster/job", "ads"}, {"muster/role", "master"}}}}},
          {"spec", {{"containers", json::array({{{"name", "muster"}}})}, {"nodeName", "n1"}}},
          {"status",
           {{"phase", "Running"},
            {"containerStatuses",
             json::array({{{"name", "muster"}, {"state", {{"running", json::object()}}}}})}}}};
}

json SomeSecret() {
  return {{"metadata", {{"name", "ads-muster"}}},
          {"data",
           {{"ca.crt", "Y2E="},
            {"operator.crt", "Y2VydA=="},
            {"operator.key", "a2V5"},
            {"token", "dG9rZW4="},
            {"job-id", "am9iLTE="}}}};
}

/// What arrives from a port of this machine.
std::string FirstBytesOf(uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  std::array<char, 1000> bytes{};
  const ssize_t got = ::read(fd, bytes.data(), bytes.size());
  ::close(fd);
  return {bytes.data(), got > 0 ? static_cast<size_t>(got) : 0};
}

struct LinkToFake : ::testing::Test {
  LinkToFake() {
    query.target.cluster = fake.Target();
    query.target.cluster.job = "ads";
    fake.Put("jobs/ads", {{"metadata", {{"name", "ads"}, {"uid", "u"}}}});
    fake.Put("secrets/ads-muster", SomeSecret());
  }
  FakeCluster fake;
  QueryOptions query;
};

TEST_F(LinkToFake, AVerbSeesAStateDirectoryWhosePortsLeadToThePod) {
  fake.Put("pods/ads-x", RunningPod());
  std::string folder;
  const int code = OverLink(&query, WhenPending::kSay, [&] {
    folder = query.target.state_directory;
    EXPECT_FALSE(query.target.cluster.is_set());
    const StateDirectory state(folder);
    const absl::StatusOr<Endpoint> endpoint = state.ReadEndpoint();
    EXPECT_THAT(endpoint, testing::IsOk());
    const auto port =
        static_cast<uint16_t>(std::stoi(endpoint->master.substr(endpoint->master.find(':') + 1)));
    EXPECT_EQ(FirstBytesOf(port), "pods/ads-x/portforward?ports=7171");
    EXPECT_EQ(FirstBytesOf(state.ReadRestAddress()->port), "pods/ads-x/portforward?ports=7172");
    return 17;
  });
  EXPECT_EQ(code, 17);
  EXPECT_FALSE(folder.empty());
  EXPECT_FALSE(std::filesystem::exists(folder));
}

TEST_F(LinkToFake, AJobThatDoesNotRunIsSaid) {
  json pod = RunningPod();
  pod["status"] = {{"phase", "Pending"},
                   {"conditions", json::array({{{"type", "PodScheduled"},
                                                {"status", "False"},
                                                {"reason", "Unschedulable"},
                                                {"message", "0/3 nodes are available"}}})}};
  pod["spec"].erase("nodeName");
  fake.Put("pods/ads-x", pod);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(OverLink(&query, WhenPending::kSay, [] { return 17; }), kExitUnreachable);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("0/3 nodes are available"));
  // A verb that waits goes on.
  EXPECT_EQ(OverLink(&query, WhenPending::kGoOn, [] { return 17; }), 17);
}

TEST_F(LinkToFake, AJobThatIsNotThere) {
  query.target.cluster.job = "other";
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(OverLink(&query, WhenPending::kGoOn, [] { return 17; }), kExitUnreachable);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("no job other in the namespace team"));
}

TEST_F(LinkToFake, WhatTheJobHasLostIsSaid) {
  fake.Put("pods/ads-x", RunningPod());
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(OverLink(&query, WhenPending::kSay, [] { return 17; }), 17);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("the Service ads-master is not there"));
}

TEST_F(LinkToFake, WithoutTheSecretItSaysWhatHelps) {
  fake.Put("pods/ads-x", RunningPod());
  fake.Put("secrets/ads-muster", json());
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(OverLink(&query, WhenPending::kSay, [] { return 17; }), kExitUnreachable);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("`kubectl --namespace team delete job ads`; its state stays"));
}

TEST_F(LinkToFake, AJobWithoutItsAccountSaysWhatHelps) {
  fake.Put("events/e", {{"type", "Warning"},
                        {"reason", "FailedCreate"},
                        {"lastTimestamp", "2026-01-01T00:00:01Z"},
                        {"message",
                         "error looking up service account team/ads-muster: serviceaccount "
                         "\"ads-muster\" not found"},
                        {"involvedObject", {{"uid", "u"}}}});
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(OverLink(&query, WhenPending::kSay, [] { return 17; }), kExitUnreachable);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ::testing::AllOf(HasSubstr("serviceaccount \"ads-muster\" not found"),
                               HasSubstr("puts back")));
}

TEST_F(LinkToFake, OptionsOfOneMachineAreRefused) {
  query.master = "127.0.0.1:1";
  EXPECT_EQ(OverLink(&query, WhenPending::kGoOn, [] { return 17; }), kExitUsage);
}

TEST_F(LinkToFake, TheFolderSaysThatTheJobHasEnded) {
  fake.Put("pods/ads-x", RunningPod());
  const int code = OverLink(&query, WhenPending::kSay, [&] {
    const StateDirectory state(query.target.state_directory);
    EXPECT_TRUE(state.ReadEndpoint().ok());
    fake.Put(
        "jobs/ads",
        {{"metadata", {{"name", "ads"}, {"uid", "u"}}},
         {"status", {{"conditions", json::array({{{"type", "Complete"}, {"status", "True"}}})}}}});
    while (state.ReadEndpoint().ok()) SleepFor(std::chrono::milliseconds(10));
    return 0;
  });
  EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace muster::cluster
