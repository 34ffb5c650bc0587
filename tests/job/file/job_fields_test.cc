#include "job/file/job_fields.h"

#include <set>
#include <string>

#include "base/file.h"
#include "job/file/job_file.h"
#include "tests/support/status_matchers.h"

namespace muster::job_file {
namespace {

using ::muster::testing::IsOk;
using ::testing::HasSubstr;

absl::StatusOr<std::string> Documentation() {
  return ReadFile(MUSTER_SOURCE_DIR "/docs/job-file.md", 1 << 20);
}

const Field& Find(const std::string& path) {
  for (const Field& field : JobFields()) {
    if (field.path == path) return field;
  }
  ADD_FAILURE() << "no field " << path;
  return JobFields().front();
}

TEST(FieldsTest, TheReferenceInTheDocumentationIsTheTable) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::string text, Documentation());
  const std::string begin = "<!-- fields: begin -->\n";
  const size_t from = text.find(begin);
  const size_t to = text.find("<!-- fields: end -->");
  ASSERT_NE(from, std::string::npos);
  ASSERT_NE(to, std::string::npos);
  const std::string documented = text.substr(from + begin.size(), to - from - begin.size());
  EXPECT_EQ(documented, FieldTableMarkdown())
      << "docs/job-file.md is out of date; put this between its two markers:\n"
      << FieldTableMarkdown();
}

TEST(FieldsTest, TheExampleInTheDocumentationIsAJob) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::string text, Documentation());
  const std::string begin = "```yaml\n";
  const size_t from = text.find(begin);
  ASSERT_NE(from, std::string::npos);
  const size_t to = text.find("```", from + begin.size());
  const std::string example = text.substr(from + begin.size(), to - from - begin.size());
  EXPECT_THAT(ParseJobFile(example, "example", "/jobs"), IsOk());
}

TEST(FieldsTest, TheExampleForKubernetesIsAJob) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::string text,
                              ReadFile(MUSTER_SOURCE_DIR "/docs/kubernetes.md", 1 << 20));
  const std::string begin = "```yaml\nspec:\n";
  const size_t from = text.find(begin);
  ASSERT_NE(from, std::string::npos);
  const size_t to = text.find("```", from + begin.size());
  EXPECT_THAT(ParseJobFile("apiVersion: muster/v1\nkind: TrainingJob\nmetadata: {name: a}\nspec:\n"
                           "  datasets: [{name: train, files: [/data/a]}]\n"
                           "  replicaSpecs: {worker: {command: [a]}}\n" +
                               text.substr(from + begin.size(), to - from - begin.size()),
                           "example", "/jobs"),
              IsOk());
}

TEST(FieldsTest, DefaultsAreThoseOfAFreshJob) {
  EXPECT_EQ(DefaultText(Find("spec.partitions")), "64");
  EXPECT_EQ(DefaultText(Find("spec.leases.duration")), "10s");
  EXPECT_EQ(DefaultText(Find("spec.datasets[].mode")), "train");
  EXPECT_EQ(DefaultText(Find("spec.datasets[].name")), "required");
  EXPECT_EQ(DefaultText(Find("spec.replicaSpecs.ps.resources.limits.memory")), "none");
}

TEST(FieldsTest, EveryDefaultIsWithinItsBounds) {
  JobSpec job;
  DatasetDraft dataset;
  std::string unused;
  for (const Field& field : JobFields()) {
    const Target target = field.target({.job = &job, .dataset = &dataset, .unused = &unused});
    if (field.default_text == "none") continue;
    uint64_t value = field.min;
    if (auto* const* whole = std::get_if<uint32_t*>(&target)) value = **whole;
    if (auto* const* large = std::get_if<uint64_t*>(&target)) value = **large;
    if (auto* const* duration = std::get_if<std::chrono::milliseconds*>(&target)) {
      value = static_cast<uint64_t>((*duration)->count());
    }
    if (auto* const* seconds = std::get_if<std::chrono::seconds*>(&target)) {
      value = static_cast<uint64_t>(std::chrono::milliseconds(**seconds).count());
    }
    if (auto* const* number = std::get_if<double*>(&target)) {
      value = static_cast<uint64_t>(**number * 1000 + 0.5);
    }
    EXPECT_GE(value, field.min) << field.path;
    EXPECT_LE(value, field.max) << field.path;
  }
}

TEST(FieldsTest, PathsAreUniqueAndFixedFieldsAreMarkedFixed) {
  std::set<std::string> paths;
  for (const Field& field : JobFields()) {
    EXPECT_TRUE(paths.insert(field.path).second) << field.path;
    EXPECT_FALSE(field.text.empty()) << field.path;
  }
  // FixedFields compares exactly the fields that the table calls fixed.
  JobSpec job;
  job.datasets.emplace_back().name = "d";
  for (const auto& [name, value] : FixedFields(job)) {
    if (name == "spec.datasets") continue;  // the names, in order
    std::string path = name;
    if (const size_t at = path.find("[d]"); at != std::string::npos) path.replace(at, 3, "[]");
    EXPECT_EQ(Find(path).on_resume, OnResume::kFixed) << path;
  }
}

}  // namespace
}  // namespace muster::job_file
