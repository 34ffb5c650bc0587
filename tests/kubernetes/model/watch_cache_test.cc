#include "kubernetes/model/watch_cache.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "kubernetes/model/api_error.h"
#include "tests/support/status_matchers.h"

namespace muster::kubernetes {
namespace {

using Kind = ObjectChange::Kind;
using ::testing::_;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

nlohmann::json Object(const std::string& name, const std::string& uid, int version) {
  return {
      {"metadata", {{"name", name}, {"uid", uid}, {"resourceVersion", std::to_string(version)}}}};
}

nlohmann::json Event(const std::string& type, nlohmann::json object) {
  return {{"type", type}, {"object", std::move(object)}};
}

/// "+name/uid", "~name/uid", "-name/uid".
std::vector<std::string> Texts(const WatchCache::Changes& changes) {
  std::vector<std::string> texts;
  for (const ObjectChange& change : changes) {
    const char sign = change.kind == Kind::kAdded ? '+' : change.kind == Kind::kDeleted ? '-' : '~';
    texts.push_back(sign + change.name + "/" + change.uid);
  }
  return texts;
}

std::vector<std::string> TextsOf(const absl::StatusOr<WatchCache::Changes>& changes) {
  return changes.ok() ? Texts(*changes)
                      : std::vector<std::string>{std::string(changes.status().message())};
}

TEST(WatchCache, ComparesVersionsAsNumbers) {
  EXPECT_TRUE(IsOlderVersion("9", "10"));
  EXPECT_FALSE(IsOlderVersion("10", "9"));
  EXPECT_FALSE(IsOlderVersion("10", "10"));
  EXPECT_TRUE(IsOlderVersion("0009", "10"));
  EXPECT_TRUE(IsOlderVersion("0", "1"));
  EXPECT_TRUE(IsOlderVersion("99999999999999999999", "100000000000000000000"));
  EXPECT_FALSE(IsOlderVersion("", "1"));
  EXPECT_FALSE(IsOlderVersion("1", "x"));
}

TEST(WatchCache, ListThenEvents) {
  WatchCache cache;
  EXPECT_THAT(Texts(cache.Listed({Object("a", "1", 5)}, "7")), ElementsAre("+a/1"));
  EXPECT_EQ(cache.version(), "7");
  EXPECT_THAT(TextsOf(cache.Received(Event("ADDED", Object("b", "2", 8)))), ElementsAre("+b/2"));
  EXPECT_THAT(TextsOf(cache.Received(Event("MODIFIED", Object("a", "1", 9)))), ElementsAre("~a/1"));
  EXPECT_THAT(TextsOf(cache.Received(Event("BOOKMARK", Object("", "", 12)))), IsEmpty());
  EXPECT_EQ(cache.version(), "12");
  EXPECT_THAT(TextsOf(cache.Received(Event("DELETED", Object("b", "2", 13)))), ElementsAre("-b/2"));
  EXPECT_EQ(cache.objects().size(), 1u);
  EXPECT_EQ(cache.Find("b"), nullptr);
  ASSERT_NE(cache.Find("a"), nullptr);
}

TEST(WatchCache, AnUnchangedListSaysNothing) {
  WatchCache cache;
  cache.Listed({Object("a", "1", 5)}, "7");
  EXPECT_THAT(Texts(cache.Listed({Object("a", "1", 5)}, "9")), IsEmpty());
  EXPECT_EQ(cache.version(), "9");
}

TEST(WatchCache, AListFindsWhatHappenedInAGap) {
  WatchCache cache;
  cache.Listed({Object("a", "1", 1), Object("b", "2", 2), Object("c", "3", 3)}, "7");
  // a is gone, b was deleted and made anew under its name, c has changed, d is new.
  EXPECT_THAT(
      Texts(cache.Listed({Object("b", "4", 10), Object("c", "3", 11), Object("d", "5", 12)}, "20")),
      ElementsAre("-a/1", "-b/2", "+b/4", "~c/3", "+d/5"));
}

TEST(WatchCache, AnOlderVersionReplacesNothing) {
  WatchCache cache;
  cache.Listed({Object("a", "1", 9)}, "9");
  EXPECT_THAT(Texts(cache.Applied(Object("a", "1", 8))), IsEmpty());
  EXPECT_THAT(TextsOf(cache.Received(Event("MODIFIED", Object("a", "1", 8)))), IsEmpty());
  EXPECT_EQ((*cache.Find("a"))["metadata"]["resourceVersion"], "9");
  EXPECT_EQ(cache.version(), "9");
  // A slow answer about the object that had this name before.
  EXPECT_THAT(Texts(cache.Applied(Object("a", "0", 3))), IsEmpty());
  EXPECT_THAT(TextsOf(cache.Received(Event("DELETED", Object("a", "0", 4)))), IsEmpty());
  EXPECT_NE(cache.Find("a"), nullptr);
}

TEST(WatchCache, TheDeadDoNotReturn) {
  WatchCache cache;
  cache.Listed({Object("a", "1", 5)}, "7");
  cache.Received(Event("DELETED", Object("a", "1", 9))).status().IgnoreError();
  EXPECT_THAT(Texts(cache.Applied(Object("a", "1", 8))), IsEmpty());
  EXPECT_THAT(TextsOf(cache.Received(Event("MODIFIED", Object("a", "1", 9)))), IsEmpty());
  // A list that began before the deletion.
  EXPECT_THAT(Texts(cache.Listed({Object("a", "1", 5)}, "8")), IsEmpty());
  EXPECT_THAT(Texts(cache.Listed({}, "12")), IsEmpty());
  EXPECT_THAT(Texts(cache.Applied(Object("a", "1", 8))), IsEmpty());
  // Another object with the name, and one that came back under a watched label, are new.
  EXPECT_THAT(TextsOf(cache.Received(Event("ADDED", Object("a", "2", 13)))), ElementsAre("+a/2"));
  EXPECT_THAT(TextsOf(cache.Received(Event("DELETED", Object("a", "2", 14)))), ElementsAre("-a/2"));
  EXPECT_THAT(TextsOf(cache.Received(Event("ADDED", Object("a", "2", 15)))), ElementsAre("+a/2"));
}

TEST(WatchCache, AListDoesNotDeleteWhatIsNewerThanIt) {
  WatchCache cache;
  cache.Listed({}, "7");
  EXPECT_THAT(Texts(cache.Applied(Object("a", "1", 20))), ElementsAre("+a/1"));
  EXPECT_THAT(Texts(cache.Listed({}, "15")), IsEmpty());
  EXPECT_THAT(Texts(cache.Listed({}, "21")), ElementsAre("-a/1"));
}

TEST(WatchCache, AClusterThatWasPutBackCountsAlone) {
  WatchCache cache;
  cache.Listed({Object("a", "1", 90), Object("b", "2", 91)}, "100");
  EXPECT_THAT(Texts(cache.Listed({Object("a", "1", 40), Object("c", "3", 41)}, "50")),
              ElementsAre("-b/2", "~a/1", "+c/3"));
  EXPECT_EQ(cache.version(), "50");
  EXPECT_THAT(TextsOf(cache.Received(Event("MODIFIED", Object("a", "1", 51)))),
              ElementsAre("~a/1"));
}

TEST(WatchCache, ErrorsOfTheStream) {
  WatchCache cache;
  cache.Listed({Object("a", "1", 5)}, "7");
  const auto gone = cache.Received(Event(
      "ERROR", {{"kind", "Status"}, {"code", 410}, {"reason", "Expired"}, {"message", "too old"}}));
  EXPECT_EQ(KindOf(gone.status()), ApiErrorKind::kGone);
  for (const nlohmann::json& event :
       {nlohmann::json(7), nlohmann::json::object(), Event("ADDED", nullptr),
        Event("ADDED", {{"metadata", {{"name", "x"}}}}), Event("PARTY", Object("x", "1", 9))}) {
    EXPECT_THAT(cache.Received(event), testing::StatusIs(absl::StatusCode::kInvalidArgument, _))
        << event.dump();
  }
  EXPECT_EQ(cache.version(), "7");
}

/// A server's history in random steps; the client sees events, gaps, lists and slow answers. At the
/// end of each gap the cache is what the server has, and the changes tell the same story.
TEST(WatchCache, FollowsRandomHistories) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Rng rng(seed);
    WatchCache cache;
    std::map<std::string, nlohmann::json> server;
    std::vector<nlohmann::json> past;
    std::map<std::string, std::string> told;
    int version = 1;
    const auto tell = [&](const WatchCache::Changes& changes) {
      for (const ObjectChange& change : changes) {
        if (change.kind == Kind::kDeleted) {
          ASSERT_EQ(told[change.name], change.uid) << seed;
          told.erase(change.name);
        } else {
          const bool known = told.contains(change.name);
          ASSERT_EQ(known, change.kind == Kind::kModified) << seed;
          if (known) {
            ASSERT_EQ(told[change.name], change.uid) << seed;
          }
          told[change.name] = change.uid;
        }
      }
    };
    bool connected = false;
    for (int step = 0; step < 100; ++step) {
      const std::string name(1, static_cast<char>('a' + rng.Below(4)));
      ++version;
      std::string type = "ADDED";
      nlohmann::json object = Object(name, "u" + std::to_string(version), version);
      if (server.contains(name)) {
        type = rng.Below(2) == 0 ? "MODIFIED" : "DELETED";
        object["metadata"]["uid"] = server[name]["metadata"]["uid"];
      }
      if (type == "DELETED") {
        server.erase(name);
      } else {
        server[name] = object;
        past.push_back(object);
      }
      if (connected) {
        auto changes = cache.Received(Event(type, object));
        ASSERT_TRUE(changes.ok());
        tell(*changes);
      }
      if (!past.empty() && connected) tell(cache.Applied(past[rng.Below(past.size())]));
      if (rng.Below(8) == 0) connected = false;
      if (rng.Below(4) == 0) {
        std::vector<nlohmann::json> items;
        for (const auto& [_, item] : server) items.push_back(item);
        tell(cache.Listed(std::move(items), std::to_string(version)));
        connected = true;
      }
      if (!connected) continue;
      std::map<std::string, nlohmann::json> held;
      for (const auto& [key, value] : cache.objects()) held[key] = *value;
      ASSERT_EQ(held, server) << "seed " << seed << " step " << step;
      ASSERT_EQ(told.size(), server.size()) << seed;
    }
  }
}

}  // namespace
}  // namespace muster::kubernetes
