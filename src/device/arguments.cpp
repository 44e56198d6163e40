// Launches by the names of parameters.
#include <fmt/format.h>

#include <utility>

#include "lockstep/device.hpp"

namespace lockstep {

namespace {

std::string text(const Argument& argument) {
  return std::visit(
      []<class V>(const V& v) -> std::string {
        if constexpr (std::is_same_v<V, Buffer>)
          return v ? fmt::format("a buffer of {} {}", name(v.storage()), to_string(v.shape()))
                   : std::string("an empty buffer");
        else
          return fmt::format("the number {}", v);
      },
      argument);
}

std::string text(const KernelParameter& p) {
  return p.buffer ? fmt::format("a buffer of {} of rank {}", name(p.storage), p.rank)
                  : fmt::format("a number of type {}", name(p.type));
}

[[noreturn]] void fail(const Kernel& kernel, const std::string& parameter, const std::string& what,
                       const std::string& expected) {
  throw InputError(what, fmt::format("kernel {}, parameter {}", kernel.name(), parameter), expected);
}

/// From buffers, then scalars, to the order of a launch.
std::vector<Argument> in_launch_order(const ir::Function& f, std::vector<Argument> given) {
  std::vector<Argument> ordered;
  const size_t buffers = f.argument_buffers();
  size_t b = 0, s = buffers;
  while (ordered.size() < given.size()) {
    const int position = b < buffers ? f.buffers[b].position : -1;
    const bool buffer = b < buffers && (position <= int(ordered.size()) || s == given.size());
    ordered.push_back(std::move(given[buffer ? b++ : s++]));
  }
  return ordered;
}

/// Fills the arguments of a kernel's parameters. Gives a name that no parameter has, if any.
const std::string* fill(const Kernel& kernel, const std::vector<std::pair<std::string, Argument>>& list,
                        std::vector<Argument>& arguments) {
  const ir::Function& f = kernel.function();
  const size_t buffers = f.argument_buffers(), all = buffers + f.scalars.size();
  const auto name_of = [&](size_t k) -> const std::string& {
    return k < buffers ? f.buffers[k].name : f.scalars[k - buffers].name;
  };
  const auto fits = [&](size_t k, const Argument& argument) {
    const Buffer* buffer = std::get_if<Buffer>(&argument);
    if (k >= buffers) return !buffer;
    return buffer && *buffer && buffer->storage() == f.buffers[k].storage &&
           buffer->shape().rank() == f.buffers[k].rank;
  };
  const std::string* unknown = nullptr;
  std::vector<bool> given(all, false);
  arguments.assign(all, Argument(false));
  for (const auto& [wanted, value] : list) {
    size_t k = 0;
    while (k < all && name_of(k) != wanted) ++k;
    if (k == all) {
      if (!unknown) unknown = &wanted;
      continue;
    }
    if (given[k]) fail(kernel, wanted, fmt::format("a second argument, {}", text(value)), "one");
    if (!fits(k, value)) fail(kernel, wanted, text(value), text(kernel.parameters()[k]));
    given[k] = true;
    arguments[k] = value;
  }
  for (size_t k = 0; k < all; ++k)
    if (!given[k]) fail(kernel, name_of(k), "no argument", text(kernel.parameters()[k]));
  arguments = in_launch_order(f, std::move(arguments));
  return unknown;
}

}  // namespace

std::vector<Argument> Arguments::bind(const Kernel& kernel) const {
  std::vector<Argument> arguments;
  if (const std::string* unknown = fill(kernel, list_, arguments)) {
    std::string known;
    for (const KernelParameter& p : kernel.parameters()) known += (known.empty() ? "" : ", ") + p.name;
    fail(kernel, *unknown, "an argument without a parameter", "one of " + known);
  }
  return arguments;
}

std::vector<Argument> Arguments::bind_known(const Kernel& kernel) const {
  std::vector<Argument> arguments;
  fill(kernel, list_, arguments);
  return arguments;
}

}  // namespace lockstep
