#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scaler/rest/http_message.h"
#include "scaler/rest/problem.h"
#include "scaler/rest/router.h"

namespace muster::scaler::rest {

/// Who may ask for what. Thread-compatible. Pure.
///
/// The token keeps out everyone who cannot read its file. The other checks are against browsers
/// that are made to ask: Host against DNS rebinding (a page whose name was made to resolve to
/// 127.0.0.1), Sec-Fetch-Site and Origin against other sites; and no answer allows another site to
/// read it. Source: OWASP Cheat Sheet Series, "Cross-Site Request Forgery Prevention" (fetch
/// metadata, with Origin where a browser does not send it).
class AccessControl {
 public:
  /// Where we listen: 127.0.0.1, localhost, [::1] and `hosts` with this port are our names. With
  /// `tls`, our own pages are at https://, and the three names of loopback may have any port, that
  /// of a tunnel.
  explicit AccessControl(uint16_t port, const std::vector<std::string>& hosts = {},
                         bool tls = false);

  /// From now on, `Authorization: Bearer` must carry this token. If it is empty, as at the start,
  /// no request is let in.
  void SetToken(std::string token) { token_ = std::move(token); }

  /// Before anything else is looked at: whether the request is for us at all.
  std::optional<Problem> CheckHost(const Request& request) const;
  /// Whether it may have a route of that kind.
  std::optional<Problem> CheckAccess(const Request& request, RouteKind kind) const;
  /// Whether it carries the token.
  bool HasToken(const Request& request) const;

 private:
  std::optional<Problem> CheckSite(const Request& request) const;
  bool IsOurs(std::string_view host) const;

  std::string_view scheme_;
  std::string token_;
  std::vector<std::string> hosts_;
};

}  // namespace muster::scaler::rest
