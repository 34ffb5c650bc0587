#pragma once

#include <gmock/gmock.h>

#include <string>

#include "base/file.h"
#include "cli/state/state_directory.h"
#include "job/file/load_job.h"
#include "master/core/master_core.h"
#include "master/journal/rocksdb_journal.h"
#include "master/service/master_main.h"
#include "master/sources/source_catalog.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster::metrics {

/// The state directory of a job named demo that registered a table and was stopped.
class StoppedJob {
 public:
  /// `learning_rate` is in the environment of its workers.
  explicit StoppedJob(const std::string& learning_rate = "0.1", std::string id = "id-1")
      : id_(std::move(id)) {
    const std::string file = fmt::format(R"(apiVersion: muster/v1
kind: TrainingJob
metadata: {{name: demo}}
spec:
  stateDirectory: state
  datasets: [{{name: train, files: [data.csv], minibatchSize: 2, minibatchesPerShard: 1}}]
  replicaSpecs: {{ps: {{replicas: 1}}, worker: {{command: [./t], env: {{LEARNING_RATE: "{}"}}}}}}
)",
                                         learning_rate);
    EXPECT_THAT(WriteFileAtomically(File("job.yaml"), file), testing::IsOk());
    EXPECT_THAT(WriteFileAtomically(File("data.csv"), "1\n2\n3\n4\n"), testing::IsOk());
    Run(file);
  }
  std::string File(const std::string& name) const { return folder_.File(name); }
  std::string state() const { return folder_.File("state"); }

 private:
  void Run(const std::string& file) {
    MUSTER_ASSERT_OK_AND_ASSIGN(const LoadedJob job, LoadJob(File("job.yaml"), ""));
    const StateDirectory state(job.spec.state_directory);
    ASSERT_THAT(state.Create(), testing::IsOk());
    ASSERT_THAT(WriteFileAtomically(state.job_copy(), file), testing::IsOk());
    MUSTER_ASSERT_OK_AND_ASSIGN(const auto catalog, SourceCatalog::Open(job.spec, nullptr));
    MUSTER_ASSERT_OK_AND_ASSIGN(
        const auto journal,
        OpenRocksdbJournal(state.journal(),
                           {job.spec.name, FixedFields(job.spec), catalog->Fingerprint(), id_}));
    const StepTime at{TimePoint(std::chrono::seconds(50)), WallTime(7)};
    MasterCore core(
        CoreOptionsOf({.job = job.spec, .listen_address = "", .run_id = "run-1"}, catalog->Plans()),
        journal->TakeState(), at);
    TableSpec table;
    table.name = "embedding";
    table.dim = 4;
    ASSERT_THAT(core.RegisterTable(table, at).status(), testing::IsOk());
    ASSERT_THAT(journal->Write(core.TakeMutations()), testing::IsOk());
  }

  const std::string id_;
  testing::TempDir folder_;
};

}  // namespace muster::metrics
