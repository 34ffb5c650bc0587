#include "job/in_cluster.h"

#include <gmock/gmock.h>

#include "job/security.h"

namespace muster {
namespace {

JobSpec Flights() {
  JobSpec job;
  job.name = "flights";
  job.base_directory = "/etc/muster/job";
  job.state_directory = "/etc/muster/job/state";
  job.snapshot_directory = "/etc/muster/job/state/snapshots";
  return job;
}

TEST(InClusterTest, OthersReachTheJobsPodByItsService) {
  JobSpec job = Flights();
  PutInCluster("team", "10.1.2.3", &job);
  EXPECT_EQ(job.master_address, "0.0.0.0:7171");
  EXPECT_EQ(job.master_advertise, "flights-master.team.svc");
  EXPECT_EQ(job.scaler.advertise, "flights-master.team.svc");
  EXPECT_EQ(job.server_listen.address, "10.1.2.3");
  EXPECT_TRUE(UsesTls(job));
}

TEST(InClusterTest, TheRestInterfaceHasTheNamesOfItsCertificate) {
  EXPECT_THAT(
      InClusterRestNames("flights", "team"),
      ::testing::ElementsAre("flights-master.team.svc", "flights-master.team.svc.cluster.local"));
}

TEST(InClusterTest, OthersReachAPodThatHasIpv6Only) {
  JobSpec job = Flights();
  PutInCluster("team", "10.1.2.3", &job);
  EXPECT_EQ(job.scaler.host, "0.0.0.0");
  PutInCluster("team", "fd00::1", &job);
  EXPECT_EQ(job.master_address, "[::]:7171");
  EXPECT_EQ(job.scaler.host, "::");
  EXPECT_EQ(job.server_listen.address, "fd00::1");
}

TEST(InClusterTest, PathsAreThoseOfTheVolumes) {
  JobSpec job = Flights();
  PutInCluster("team", "", &job);
  EXPECT_EQ(job.state_directory, "/var/lib/muster/flights");
  EXPECT_EQ(job.snapshot_directory, "/var/lib/muster-snapshots/flights");
}

TEST(InClusterTest, SnapshotsStayWhereTheUserPutsThem) {
  for (const char* place : {"/mnt/fast", "s3://bucket/flights"}) {
    JobSpec job = Flights();
    job.snapshot_directory = place;
    PutInCluster("team", "", &job);
    EXPECT_EQ(job.snapshot_directory, place);
  }
}

// An `insecure` of the job file is about addresses that do not count here.
TEST(InClusterTest, PlainTextIsNotPossible) {
  JobSpec job = Flights();
  job.security.insecure = true;
  PutInCluster("team", "", &job);
  EXPECT_EQ(TransportOf(job), Transport::kTls);
}

}  // namespace
}  // namespace muster
