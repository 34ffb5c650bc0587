#include "cli/verbs/verbs.h"

namespace muster {

void AddVerbs(CLI::App* app, Chosen* chosen) {
  AddRun(app, chosen);
  AddTrain(app, chosen);
  AddPredict(app, chosen);
  AddEvaluate(app, chosen);
  AddJoin(app, chosen);
  AddManifests(app, chosen);
  AddList(app, chosen);
  AddStatus(app, chosen);
  AddNodes(app, chosen);
  AddPartitions(app, chosen);
  AddExport(app, chosen);
  AddTensorboard(app, chosen);
  AddCompare(app, chosen);
  AddShards(app, chosen);
  AddLogs(app, chosen);
  AddStacks(app, chosen);
  AddWait(app, chosen);
  AddEvents(app, chosen);
  AddDrain(app, chosen);
  AddCancel(app, chosen);
  AddSimulate(app, chosen);
  AddExplain(app, chosen);
  AddTop(app, chosen);
  AddDashboard(app, chosen);
  AddOrders(app, chosen);
  AddPolicies(app, chosen);
  AddMaster(app, chosen);
  AddPs(app, chosen);
  AddScaler(app, chosen);
  AddNode(app, chosen);
  AddServeExport(app, chosen);
  AddVerify(app, chosen);
  AddHelp(app, chosen);
  AddVersion(app, chosen);
  AddCompletion(app, chosen);
}

}  // namespace muster
