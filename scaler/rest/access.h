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

/// Decides who may ask for what. Thread-compatible. Pure.
///
/// The token keeps out everyone who cannot read its file. The other checks are against websites
/// that make a browser send requests. Host is checked against DNS rebinding (the name of a page
/// resolves to 127.0.0.1), Sec-Fetch-Site and Origin against other sites. No answer allows another
/// site to read it. Source: OWASP Cheat Sheet Series, "Cross-Site Request Forgery Prevention"
/// (fetch metadata, with Origin where a browser does not send it).
class AccessControl {
 public:
  /// Our names are 127.0.0.1, localhost, [::1] and `hosts`, with this port. With `tls`, our own
  /// pages are at https://, and the three loopback names may have any port, because a tunnel may
  /// have another one.
  explicit AccessControl(uint16_t port, const std::vector<std::string>& hosts = {},
                         bool tls = false);

  /// From now on, `Authorization: Bearer` must carry this token. While the token is empty, as at
  /// the start, no request is let in.
  void SetToken(std::string token) { token_ = std::move(token); }

  /// Checks whether the request is for us at all. This comes before all other checks.
  std::optional<Problem> CheckHost(const Request& request) const;
  /// Checks whether the request may use a route of this kind.
  std::optional<Problem> CheckAccess(const Request& request, RouteKind kind) const;
  /// True if the request carries the token.
  bool HasToken(const Request& request) const;

 private:
  std::optional<Problem> CheckSite(const Request& request) const;
  bool IsOurs(std::string_view host) const;

  std::string_view scheme_;
  std::string token_;
  std::vector<std::string> hosts_;
};

}  // namespace muster::scaler::rest
