// The device that an object of a page computes on, and what the page shows of it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "calls.hpp"
#include "lockstep/context.hpp"

namespace lockstep::web {

/// A device that did not open.
struct RefusedDevice {
  std::string name, reason;
};

/// Gives `open` the names of a comma-separated list until one opens; those that did not. Throws the error of the last one.
std::vector<RefusedDevice> open_first(const std::string& names,
                                      const std::function<void(const std::string&)>& open);

/// The first of the request's devices that works. Named ones that do not, and stages that fall back, are noted and counted.
struct PageContext {
  explicit PageContext(const Json& request);
  PageContext(const PageContext&) = delete;
  PageContext& operator=(const PageContext&) = delete;

  Context& operator*() const { return *context; }
  Context* operator->() const { return context.get(); }
  /// The members `device`, `fallbacks` and `notes`; a note is given once.
  Json status();

  std::vector<std::string> notes;
  std::vector<RefusedDevice> refused;
  std::unique_ptr<Context> context;
};

}  // namespace lockstep::web
