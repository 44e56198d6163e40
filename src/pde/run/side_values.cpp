#include "pde/run/side_values.hpp"

#include <fmt/ranges.h>

namespace lockstep::pde {
namespace {

template <class F>
void for_each_side(const RunOptions& options, F f) {
  const auto all = [&](const BoundaryConditions& b) {
    for (const auto& axis : b.sides)
      for (const Side& side : axis) f(side);
  };
  all(options.boundary);
  for (const auto& [field, boundary] : options.boundaries) all(boundary);
}

}  // namespace

std::set<std::string> side_names(const RunOptions& options) {
  std::set<std::string> names;
  for_each_side(options, [&](const Side& side) {
    if (!side.parameter.empty()) names.insert(side.parameter);
  });
  return names;
}

SideValues::SideValues(const CheckedArrays& arrays, const RunOptions& options, int64_t levels) {
  const std::set<std::string> names = side_names(options);
  for (const auto& [name, value] : options.parameters)
    if (!names.count(name))
      throw InputError(fmt::format("parameter {} that no boundary names", name), options.where,
                       names.empty() ? "a boundary such as x-=dirichlet_face:@" + name
                                     : fmt::format("{}", fmt::join(names, ", ")));
  for (const std::string& name : names) {
    Value value;
    if (const auto number = options.parameters.find(name); number != options.parameters.end()) {
      if (arrays.has(name))
        throw InputError(fmt::format("a parameter and an array {}", name), options.where, "one of the two");
      value.numbers = Array::of(std::vector<double>{number->second}, Sizes{});
    } else {
      const std::string expected =
          fmt::format("the number or profile that a boundary names, or a parameter {}", name);
      value.numbers = arrays.numbers(name, expected);
      const int rank = value.numbers.rank();
      value.in_time = levels > 0 && (rank == 1 || rank == 3);
      value.profile = rank - int(value.in_time) == 2;
      if ((!value.profile && rank != int(value.in_time)) ||
          (value.in_time && value.numbers.size(0) != levels))
        throw InputError(
            fmt::format("array {} of shape {}", name, to_string(value.numbers.shape())), arrays.where(),
            levels ? fmt::format("a number (), one a level ({0},), a profile of two axes, or one a "
                                 "level ({0}, …)",
                                 levels)
                   : std::string("a number () or a profile of two axes"));
    }
    value.gradient.assign(size_t(value.numbers.elements()), 0.0);
    values_.emplace(name, std::move(value));
  }
}

System SideValues::system(const RunOptions& options) const {
  System s = transport(3, options.terms, options.boundaries, options.boundary);
  declare(s);
  return s;
}

System SideValues::minus_laplacian(const RunOptions& options) const {
  System s(3);
  const Field u = transport_velocity(s, options.boundaries, options.boundary);
  for (int c = 0; c < 3; ++c) s.residual("u", -s.laplacian(u, c));
  declare(s);
  return s;
}

void SideValues::declare(System& s) const {
  for (const auto& [name, value] : values_)
    if (value.profile)
      s.profile(name);
    else
      s.parameter(name);
}

void SideValues::set(const Device& device, Inputs& inputs) const { set(device, inputs, 0); }

void SideValues::set(const Device& device, Inputs& inputs, int64_t level) const {
  for (const auto& [name, value] : values_)
    if (value.profile)
      inputs.profiles[name] = device.upload(value.at(level).packed());
    else
      inputs.parameters[name] = number(value.at(level));
}

void SideValues::set(const Device& device, TrajectoryInputs& inputs) const {
  for (const auto& [name, value] : values_) {
    if (!value.in_time) {
      if (value.profile)
        inputs.profiles[name] = device.upload(value.numbers);
      else
        inputs.parameters[name] = number(value.numbers);
      continue;
    }
    for (int64_t n = 0; n < value.numbers.size(0); ++n)
      if (value.profile)
        inputs.profiles_in_time[name].push_back(device.upload(value.at(n).packed()));
      else
        inputs.parameters_in_time[name].push_back(number(value.at(n)));
  }
}

void SideValues::add(const std::vector<Loss::BoundaryGradient>& parts, int64_t level) {
  for (const Loss::BoundaryGradient& part : parts) {
    const auto found = values_.find(part.parameter);
    if (found == values_.end()) continue;
    Value& value = found->second;
    const std::vector<double> one = value.profile ? part.cells : std::vector<double>{part.value};
    const size_t first = value.in_time ? size_t(level) * one.size() : 0;
    for (size_t k = 0; k < one.size(); ++k) value.gradient[first + k] += one[k];
  }
}

void SideValues::take(RunResult& result) const {
  for (const auto& [name, value] : values_) {
    result.gradients.push_back(
        {"d_" + name,
         Array::of(std::vector<double>(value.gradient), value.numbers.shape()).to(value.numbers.storage())});
    if (!value.profile && !value.in_time) result.by_number.push_back({name, value.gradient[0]});
  }
}

}  // namespace lockstep::pde
