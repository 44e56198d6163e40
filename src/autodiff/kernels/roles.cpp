#include "autodiff/kernels/roles.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lockstep/error.hpp"

namespace lockstep::gradients {

using namespace ir;

namespace {

bool is_float(Storage s) { return lockstep::is_float(value_type(s)); }

struct Arguments {
  std::vector<bool>& buffers;
  std::vector<bool>* scalars;  // null: buffers alone
  Access without;              // buffers of this access take no part
};

void choose(const Function& f, const std::vector<std::string>& names, std::string_view what,
            const Arguments& to) {
  std::vector<std::string> known;
  const auto chosen = [&](const std::string& name) {
    known.push_back(name);
    return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
  };
  for (size_t k = 0; k < f.argument_buffers(); ++k)
    if (const BufferParam& b = f.buffers[k]; is_float(b.storage) && b.access != to.without)
      to.buffers[k] = chosen(b.name);
  for (size_t k = 0; to.scalars && k < f.scalars.size(); ++k)
    if (lockstep::is_float(f.scalars[k].type) && !f.struct_at(k))
      (*to.scalars)[k] = chosen(f.scalars[k].name);
  for (const std::string& name : names)
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw InputError(
          fmt::format("{} \"{}\"", what, name), where_of(f, f.place),
          known.empty() ? "a kernel with floats" : fmt::format("one of {}", fmt::join(known, ", ")));
  if (known.empty())
    throw InputError(fmt::format("no {} to differentiate", what), where_of(f, f.place),
                     "a kernel that reads and writes floats");
}

}  // namespace

Roles roles_of(const Function& f, const Differentiation& which) {
  Roles roles;
  roles.input_buffers.assign(f.buffers.size(), false);
  roles.output_buffers.assign(f.buffers.size(), false);
  roles.input_scalars.assign(f.scalars.size(), false);
  choose(f, which.inputs, "input", {roles.input_buffers, &roles.input_scalars, Access::write});
  choose(f, which.outputs, "output", {roles.output_buffers, nullptr, Access::read});
  return roles;
}

std::string tangent_ending(const Function& f) {
  const auto taken = [&](const std::string& ending) {
    const auto ends = [&](const auto& p) { return p.name.ends_with(ending); };
    return std::ranges::any_of(f.buffers, ends) || std::ranges::any_of(f.scalars, ends);
  };
  std::string ending = "_tangent";
  for (int order = 2; taken(ending); ++order) ending = fmt::format("_tangent{}", order);
  return ending;
}

void copy_frame(const Function& from, Function& to) {
  to.scalars = from.scalars;
  to.structs = from.structs;
  to.locals = from.locals;
  to.shared = from.shared;
  to.files = from.files;
  to.place = from.place;
}

}  // namespace lockstep::gradients
