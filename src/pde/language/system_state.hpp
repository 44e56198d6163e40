// The parts of a System while it is written.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <tuple>

#include "lockstep/error.hpp"
#include "pde/kernels/plan.hpp"

namespace lockstep::pde {

struct System::State {
  Plan plan;
  std::map<std::tuple<int, int, int, int, int>, uint32_t>
      known;  // field, component, level, stencil, axis -> leaf
  std::mutex mutex;
  bool finished = false;  // the plan was given out: nothing changes any more

  void check_open() const {
    if (finished)
      throw InputError("a change of a system that a Loss uses", "pde system",
                       "all fields and residuals before a Loss is made");
  }
  void check_unused(const std::string& name) const {
    for (const auto* list : {&plan.parameters, &plan.profiles})
      if (std::find(list->begin(), list->end(), name) != list->end())
        throw InputError(fmt::format("a second parameter or profile {}", name), "pde system", "another name");
  }
  void check(Field f, int component, int level, int axis) const {
    const bool known_field = f.index >= 0 && f.index < int(plan.fields.size());
    if (!known_field)
      throw InputError("a field of another system", "pde system", "a field made by this system");
    const FieldInfo& info = plan.fields[size_t(f.index)];
    if (component < 0 || component >= info.components)
      throw InputError(fmt::format("component {} of field {}", component, info.name), "pde system",
                       fmt::format("0 to {}", info.components - 1));
    if (level < -1 || level > 1)
      throw InputError(fmt::format("level {} of field {}", level, info.name), "pde system", "-1, 0 or 1");
    if (axis < 0 || axis >= plan.dimensions)
      throw InputError(fmt::format("axis {} of field {}", axis, info.name), "pde system",
                       fmt::format("0 to {}", plan.dimensions - 1));
  }
  Value leaf(const Access& access, std::string name, autodiff::LeafClass kind) {
    const Value v = plan.graph->leaf(std::move(name), kind);
    plan.accesses.push_back(access);
    return v;
  }
  Value access(Field f, int component, int level, Stencil stencil, int axis) {
    check(f, component, level, axis);
    const auto key = std::make_tuple(f.index, component, level, int(stencil), axis);
    if (const auto found = known.find(key); found != known.end())
      return plan.graph->leaf_value(found->second);
    check_open();
    static constexpr const char* kNames[] = {"", "d", "d2", "df", "db"};
    const std::string name =
        stencil == Stencil::point
            ? fmt::format("{}{}[{:+}]", plan.fields[size_t(f.index)].name, component, level)
            : fmt::format("{}{}({}{}[{:+}])", kNames[int(stencil)], char('x' + axis),
                          plan.fields[size_t(f.index)].name, component, level);
    known[key] = plan.graph->leaf_count();
    plan.fields[size_t(f.index)].used[level + 1] = true;
    return leaf({Access::field, f.index, component, level, stencil, axis, 0}, name,
                autodiff::LeafClass::variable);
  }
  Value time(int which) { return plan.graph->leaf_value(uint32_t(which)); }
};

}  // namespace lockstep::pde
