// Every input of the corpora, and seeded mutations of it, through its target: what fuzzing has
// found once stays fixed, in every build.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/random.h"
#include "tests/fuzz/targets.h"
#include "tests/support/status_matchers.h"

namespace muster::testing {
namespace {

struct Target {
  const char* name;
  void (*run)(std::string_view);
};

class CorpusTest : public ::testing::TestWithParam<Target> {};

TEST_P(CorpusTest, EveryInputAndItsNeighbours) {
  const std::filesystem::path folder = std::filesystem::path(MUSTER_FUZZ_CORPUS) / GetParam().name;
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  ASSERT_FALSE(paths.empty()) << folder;
  for (const std::string& path : paths) {
    SCOPED_TRACE(path);
    MUSTER_ASSERT_OK_AND_ASSIGN(const std::string input, ReadFile(path, 1 << 20));
    GetParam().run(input);
    Rng rng(input.size());
    for (int i = 0; i < 40 && !input.empty(); ++i) {
      std::string changed = input;
      for (uint64_t flips = rng.Below(4); flips > 0; --flips) {
        changed[rng.Below(changed.size())] ^= static_cast<char>(1 << rng.Below(8));
      }
      if (rng.Below(3) == 0) changed.resize(rng.Below(changed.size()));
      GetParam().run(changed);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Targets, CorpusTest,
    ::testing::Values(Target{"server_frames", FuzzServerFrames},
                      Target{"worker_frames", FuzzWorkerFrames}, Target{"job_file", FuzzJobFile},
                      Target{"lines", FuzzLines}, Target{"snapshot_image", FuzzSnapshotImage},
                      Target{"journal_records", FuzzJournalRecords},
                      Target{"master_requests", FuzzMasterRequests},
                      Target{"master_answers", FuzzMasterAnswers}, Target{"npy", FuzzNpy},
                      Target{"rest_requests", FuzzRestRequests},
                      Target{"scaler_files", FuzzScalerFiles},
                      Target{"kubernetes_answers", FuzzKubernetesAnswers},
                      Target{"group_frames", FuzzGroupFrames}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace muster::testing
