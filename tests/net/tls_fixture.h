#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "net/tls_engine.h"
#include "security/certificate_authority.h"
#include "security/tls_context.h"
#include "tests/support/temp_dir.h"

namespace muster::net::tls_test {

/// The certificates of a job, in a folder of their own.
class Certificates {
 public:
  explicit Certificates(std::string job_id = "id-1") : job_id_(std::move(job_id)) {
    EnsureCertificates({.directory = dir_.path(), .job_id = job_id_}, clock_.Wall()).value();
  }

  std::string directory() const { return dir_.path(); }
  CredentialFiles Files(Role role) const { return CredentialFilesOf(dir_.path(), role); }
  std::unique_ptr<TlsContext> ServerContext(std::vector<Role> clients = {Role::kWorker}) const {
    return TlsContext::Make(ServerTls{Files(Role::kServer), job_id_, std::move(clients)}, &clock_)
        .value();
  }
  std::unique_ptr<TlsContext> ClientContext(Role role = Role::kWorker,
                                            Role server = Role::kServer) const {
    return TlsContext::Make(ClientTls{Files(role), job_id_, server}, &clock_).value();
  }
  std::shared_ptr<ssl_ctx_st> Server() const { return SourceOf(ServerContext())(); }
  std::shared_ptr<ssl_ctx_st> Client(Role role = Role::kWorker) const {
    return SourceOf(ClientContext(role))();
  }

 private:
  const SystemClock clock_;
  const std::string job_id_;
  muster::testing::TempDir dir_;
};

}  // namespace muster::net::tls_test
