#include "kubernetes/manifests/kustomize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::kubernetes {
namespace {

TEST(KustomizeTest, AFileForEachObjectAndTheirListFirst) {
  const auto files =
      KustomizeBase({{{"kind", "ConfigMap"}, {"metadata", {{"name", "a-muster"}}}},
                     {{"kind", "PersistentVolumeClaim"}, {"metadata", {{"name", "a-state"}}}}});
  ASSERT_EQ(files.size(), 3u);
  EXPECT_EQ(files[0].name, "kustomization.yaml");
  EXPECT_EQ(files[0].text,
            "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"
            "resources: [configmap.yaml, persistentvolumeclaim-a-state.yaml]\n");
  EXPECT_EQ(files[1].name, "configmap.yaml");
  EXPECT_EQ(files[1].text, "kind: ConfigMap\nmetadata:\n  name: a-muster\n");
  EXPECT_EQ(files[2].name, "persistentvolumeclaim-a-state.yaml");
}

}  // namespace
}  // namespace muster::kubernetes
