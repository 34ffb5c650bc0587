#include "master/core/table_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TableSpec NamedTable(const std::string& name) {
  TableSpec table;
  table.name = name;
  table.dim = 4;
  return table;
}

std::vector<std::string> NamesOf(const std::vector<TableSpec>& tables) {
  std::vector<std::string> names;
  for (const TableSpec& table : tables) names.push_back(table.name);
  return names;
}

std::vector<std::string> Journaled(TableRegistry* registry) {
  std::vector<Mutation> mutations;
  registry->Collect(&mutations);
  std::vector<std::string> names;
  for (const Mutation& mutation : mutations) names.push_back(std::get<TableSpec>(mutation).name);
  return names;
}

TEST(TableRegistryTest, IdsGoOnAfterThoseOfTheJournal) {
  TableRegistry registry({{TableId(7), NamedTable("old")}});
  EXPECT_THAT(Journaled(&registry), IsEmpty()) << "the journal has it";
  MUSTER_ASSERT_OK_AND_ASSIGN(const TableRegistry::Registered added,
                              registry.Register(NamedTable("new")));
  EXPECT_EQ(added.id, TableId(8));
  EXPECT_THAT(NamesOf(registry.After(TableId())), ElementsAre("old", "new"));
  EXPECT_THAT(NamesOf(registry.After(TableId(7))), ElementsAre("new"));
  EXPECT_THAT(NamesOf(registry.After(TableId(8))), IsEmpty());
}

TEST(TableRegistryTest, OnlyTheFirstOfANameAddsAnything) {
  TableRegistry registry({});
  MUSTER_ASSERT_OK_AND_ASSIGN(const TableRegistry::Registered first,
                              registry.Register(NamedTable("table")));
  EXPECT_TRUE(first.added);
  EXPECT_THAT(Journaled(&registry), ElementsAre("table"));
  MUSTER_ASSERT_OK_AND_ASSIGN(const TableRegistry::Registered again,
                              registry.Register(NamedTable("table")));
  EXPECT_FALSE(again.added);
  EXPECT_EQ(again.id, first.id);
  EXPECT_THAT(Journaled(&registry), IsEmpty());
}

}  // namespace
}  // namespace muster
