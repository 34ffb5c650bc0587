#include "ps/export/export.h"

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "proto/exported/npy.h"
#include "proto/exported/sha256.h"
#include "tests/ps/export/sample_job.h"
#include "tests/support/status_matchers.h"

namespace muster::ps {
namespace {

using ::muster::testing::IsOk;
using ::muster::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

template <typename T>
std::vector<T> ReadArray(const std::string& path, std::vector<uint64_t>* shape) {
  const absl::StatusOr<std::string> file = ReadFile(path, 1 << 20);
  EXPECT_THAT(file, IsOk());
  const absl::StatusOr<NpyArray> array = DecodeNpy(*file);
  EXPECT_THAT(array, IsOk());
  *shape = array->header.shape;
  std::vector<T> values(array->data.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), array->data.data(), array->data.size());
  return values;
}

std::vector<std::string> Names(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    names.push_back(entry.path().filename());
  }
  return names;
}

TEST(ExportTest, HoldsEveryRowAsTheServersServeIt) {
  SampleJob job;
  MUSTER_ASSERT_OK_AND_ASSIGN(const ExportSummary summary, WriteExport(job.options));
  EXPECT_EQ(summary.tables, 2u);
  EXPECT_THAT(summary.warnings, IsEmpty());
  EXPECT_EQ(summary.rows, 62u);  // 60 keys, 2 blocks

  std::vector<uint64_t> shape;
  const auto keys = ReadArray<uint64_t>(job.Output("embedding.keys.npy"), &shape);
  EXPECT_EQ(shape, std::vector<uint64_t>{60});
  EXPECT_TRUE(std::ranges::is_sorted(keys));
  const auto values = ReadArray<float>(job.Output("embedding.values.npy"), &shape);
  EXPECT_EQ(shape, (std::vector<uint64_t>{60, 3}));
  for (size_t i = 0; i < keys.size(); ++i) {
    const std::vector<float> row(values.begin() + static_cast<std::ptrdiff_t>(i * 3),
                                 values.begin() + static_cast<std::ptrdiff_t>(i * 3 + 3));
    EXPECT_EQ(row, job.Row(TableId(1), keys[i], 3)) << "key " << keys[i];
  }

  const auto layer = ReadArray<float>(job.Output("layer.npy"), &shape);
  EXPECT_EQ(shape, (std::vector<uint64_t>{5, 3}));
  ASSERT_EQ(layer.size(), 15u);
  for (uint64_t i = 0; i < layer.size(); ++i) {
    // Blocks 0 and 2 were never pushed: their initial values.
    EXPECT_EQ(layer[i], job.Row(TableId(2), i / 4, 4)[i % 4]) << i;
  }
}

TEST(ExportTest, DescribesItselfAndItsSumsHold) {
  SampleJob job;
  MUSTER_ASSERT_OK_AND_ASSIGN(const ExportSummary summary, WriteExport(job.options));
  EXPECT_THAT(Names(job.options.output_directory),
              UnorderedElementsAre("SHA256SUMS", "export.json", "embedding.keys.npy",
                                   "embedding.values.npy", "layer.npy"));
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::string text, ReadFile(job.Output("SHA256SUMS"), 10000));
  MUSTER_ASSERT_OK_AND_ASSIGN(const Sha256Sums sums, ParseSums(text));
  EXPECT_EQ(sums.size(), 4u);
  uint64_t bytes = 0;
  for (const auto& [name, sum] : sums) {
    MUSTER_ASSERT_OK_AND_ASSIGN(const std::string found, Sha256OfFile(job.Output(name)));
    EXPECT_EQ(found, sum) << name;
    bytes += std::filesystem::file_size(job.Output(name));
  }
  EXPECT_EQ(summary.bytes, bytes);
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::string hash, Sha256OfFile(job.Output("SHA256SUMS")));
  EXPECT_EQ(hash, summary.hash);

  MUSTER_ASSERT_OK_AND_ASSIGN(const std::string json, ReadFile(job.Output("export.json"), 10000));
  const nlohmann::json description = nlohmann::json::parse(json);
  EXPECT_EQ(description["job"], "sample");
  EXPECT_EQ(description["seed"], 7);
  EXPECT_EQ(description["cut"], 10);  // the smallest
  EXPECT_EQ(description["tables"][0]["rows"], 60);
  EXPECT_EQ(description["tables"][1]["shape"], nlohmann::json::array({5, 3}));
}

TEST(ExportTest, WarnsOfRowsThatAreNotFinite) {
  SampleJob job;
  job.Overflow();
  MUSTER_ASSERT_OK_AND_ASSIGN(const ExportSummary summary, WriteExport(job.options));
  EXPECT_THAT(summary.warnings,
              ElementsAre(HasSubstr("table 'layer': 1 row has values that are NaN or infinite, "
                                    "first in block 1")));
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::string json, ReadFile(job.Output("export.json"), 10000));
  const nlohmann::json description = nlohmann::json::parse(json);
  EXPECT_EQ(description["tables"][0]["rows_not_finite"], 0);
  EXPECT_EQ(description["tables"][1]["rows_not_finite"], 1);
}

TEST(ExportTest, WhatExistsIsNotTouchedAndAFailureLeavesNothing) {
  SampleJob job;
  const std::string parent =
      std::filesystem::path(job.options.output_directory).parent_path().string();
  std::filesystem::create_directory(job.options.output_directory);
  ASSERT_THAT(WriteFileAtomically(job.Output("mine"), "x"), IsOk());
  EXPECT_THAT(WriteExport(job.options),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr(job.options.output_directory)));
  EXPECT_THAT(Names(job.options.output_directory), UnorderedElementsAre("mine"));
  std::filesystem::remove_all(job.options.output_directory);

  const std::string damaged =
      job.options.snapshot_directory + "/" + job.options.manifests[4].files[1].name;
  std::filesystem::resize_file(damaged, 10);
  EXPECT_THAT(WriteExport(job.options), StatusIs(absl::StatusCode::kDataLoss, HasSubstr(damaged)));
  EXPECT_THAT(Names(parent), UnorderedElementsAre("snapshots"));
}

TEST(ExportTest, BadOptionsAreExplained) {
  SampleJob job;
  ExportOptions options = job.options;
  options.output_directory += "/missing/out";
  EXPECT_THAT(WriteExport(options),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("missing/out")));
  options = job.options;
  options.tables[0].name = "../embedding";
  EXPECT_THAT(WriteExport(options), StatusIs(absl::StatusCode::kInvalidArgument,
                                             HasSubstr("a file cannot have its name")));
  options = job.options;
  options.tables.pop_back();
  EXPECT_THAT(WriteExport(options), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("'layer'")));
}

TEST(ExportTest, AJobThatNeverTrainedExportsItsInitialState) {
  SampleJob job;
  std::ranges::fill(job.options.manifests, Manifest());
  job.options.output_directory += "/";
  std::filesystem::create_directory(job.options.output_directory);  // empty: taken over
  ASSERT_THAT(WriteExport(job.options), IsOk());
  std::vector<uint64_t> shape;
  ReadArray<uint64_t>(job.Output("embedding.keys.npy"), &shape);
  EXPECT_EQ(shape, std::vector<uint64_t>{0});
  const auto layer = ReadArray<float>(job.Output("layer.npy"), &shape);
  std::vector<float> initial(4);
  InitialRow(job.options.tables[1], SampleJob::kSeed, 3, initial);
  EXPECT_EQ(layer[12], initial[0]);
  EXPECT_EQ(layer[14], initial[2]);
}

}  // namespace
}  // namespace muster::ps
