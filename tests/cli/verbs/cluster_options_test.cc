#include <gtest/gtest.h>

#include "cli/verbs/verbs.h"

namespace muster {
namespace {

/// True if the line is one; nothing is run.
bool IsAccepted(const std::string& line) {
  CLI::App app;
  Chosen chosen;
  AddVerbs(&app, &chosen);
  try {
    app.parse(line);
  } catch (const CLI::ParseError&) {
    return false;
  }
  return static_cast<bool>(chosen);
}

TEST(ClusterOptions, EveryVerbThatTakesAJobHasThem) {
  const std::string on = " --on kubernetes --context c --namespace team --kubeconfig k";
  for (const std::string verb :
       {"status", "nodes", "top", "logs", "events", "explain 12", "scale --workers 2",
        "restart worker-1", "resize ps-0 --cpus 1", "drain", "cancel", "wait", "shards",
        "partitions", "stacks worker-1", "policies", "policies pause worker-count", "dashboard",
        "export --output-dir out"}) {
    EXPECT_TRUE(IsAccepted(verb + on + " --job ads")) << verb;
    EXPECT_TRUE(IsAccepted(verb + on)) << verb;
  }
  EXPECT_TRUE(IsAccepted("list" + on));
  EXPECT_TRUE(IsAccepted("run job.yaml --image i:1 --detach" + on));
}

TEST(ClusterOptions, OnlyWithAClusterThatThereIs) {
  EXPECT_TRUE(IsAccepted("status --on kubernetes"));
  EXPECT_FALSE(IsAccepted("status --on mars"));
  EXPECT_FALSE(IsAccepted("status --namespace team"));
  EXPECT_FALSE(IsAccepted("status --job ads"));
  EXPECT_FALSE(IsAccepted("run job.yaml --image i:1"));
  EXPECT_FALSE(IsAccepted("run job.yaml --detach"));
  EXPECT_FALSE(IsAccepted("status --state-dir d --on kubernetes"));
}

}  // namespace
}  // namespace muster
