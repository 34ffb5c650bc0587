#include "scaler/dashboard/dashboard_files.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <string>

#include "base/file.h"
#include "tests/support/status_matchers.h"

namespace muster::scaler::dashboard {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kBytesMax = 1 << 20;

std::set<std::string> Paths() {
  std::set<std::string> paths;
  for (const rest::StaticFile& file : DashboardFiles()) paths.emplace(file.path);
  return paths;
}

std::set<std::string> Matches(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  std::set<std::string> found;
  for (std::sregex_iterator at(text.begin(), text.end(), regex), end; at != end; ++at) {
    found.insert((*at)[1]);
  }
  return found;
}

TEST(DashboardFilesTest, AreWhatTheSourcesAre) {
  size_t compared = 0;
  for (const rest::StaticFile& file : DashboardFiles()) {
    const std::string name =
        file.path == "/" ? "index.html" : std::string(file.path.substr(file.path.rfind('/') + 1));
    const std::string path = std::string(MUSTER_DASHBOARD_PAGE) + "/" + name;
    if (!std::filesystem::exists(path)) {
      EXPECT_EQ(name, "chart.min.js") << "is of no file in " << MUSTER_DASHBOARD_PAGE;
      EXPECT_THAT(file.bytes, HasSubstr("Released under the MIT License"));
      continue;
    }
    MUSTER_ASSERT_OK_AND_ASSIGN(const std::string bytes, ReadFile(path, kBytesMax));
    EXPECT_EQ(file.bytes, bytes) << path;
    ++compared;
  }
  const auto sources = std::distance(std::filesystem::directory_iterator(MUSTER_DASHBOARD_PAGE),
                                     std::filesystem::directory_iterator());
  EXPECT_EQ(compared, static_cast<size_t>(sources)) << "CMakeLists.txt does not name all";
}

TEST(DashboardFilesTest, NameOnlyWhatIsServed) {
  const std::set<std::string> paths = Paths();
  EXPECT_THAT(paths, Contains("/"));
  for (const rest::StaticFile& file : DashboardFiles()) {
    if (file.path == "/dashboard/chart.min.js" || file.path == "/dashboard/licenses.txt") continue;
    const std::string text(file.bytes);
    for (const std::string& path : Matches(text, "(?:src|href)=\"(/[^\"]*)\"")) {
      EXPECT_THAT(paths, Contains(path)) << file.path;
    }
    for (const std::string& name : Matches(text, "from \"\\./([^\"]*)\"")) {
      EXPECT_THAT(paths, Contains("/dashboard/" + name)) << file.path;
    }
  }
}

/// The page must work under the Content-Security-Policy of rest::SecurityHeaders().
TEST(DashboardFilesTest, NothingOfElsewhereAndNoDataAsHtml) {
  for (const rest::StaticFile& file : DashboardFiles()) {
    if (file.path == "/dashboard/chart.min.js" || file.path == "/dashboard/licenses.txt") continue;
    const std::string text = std::regex_replace(std::string(file.bytes),
                                                std::regex("http://www\\.w3\\.org/2000/svg"), "");
    EXPECT_THAT(text, AllOf(Not(HasSubstr("http://")), Not(HasSubstr("https://")),
                            Not(HasSubstr("innerHTML")), Not(HasSubstr("outerHTML")),
                            Not(HasSubstr("insertAdjacentHTML")), Not(HasSubstr("eval("))))
        << file.path;
    EXPECT_THAT(text, AllOf(Not(HasSubstr(" style=")), Not(HasSubstr(" onclick=")))) << file.path;
  }
}

TEST(DashboardFilesTest, ModulesStaySmall) {
  for (const rest::StaticFile& file : DashboardFiles()) {
    if (file.path == "/dashboard/chart.min.js") continue;
    EXPECT_LE(std::ranges::count(file.bytes, '\n'), 300) << file.path;
  }
}

TEST(DashboardFilesTest, HaveContentTypes) {
  std::map<std::string_view, std::string_view> types;
  for (const rest::StaticFile& file : DashboardFiles()) types[file.path] = file.content_type;
  EXPECT_EQ(types["/"], "text/html; charset=utf-8");
  EXPECT_EQ(types["/dashboard/app.js"], "text/javascript; charset=utf-8");
  EXPECT_EQ(types["/dashboard/chart.min.js"], "text/javascript; charset=utf-8");
  EXPECT_EQ(types["/dashboard/theme.css"], "text/css; charset=utf-8");
  EXPECT_EQ(types["/dashboard/favicon.svg"], "image/svg+xml");
}

}  // namespace
}  // namespace muster::scaler::dashboard
