#include "device/launch/graph_numbers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "device/launch/numbers.hpp"
#include "lockstep/error.hpp"

namespace lockstep::device {

namespace {

constexpr const char* kWhere = "Device::replay";

std::string names_of(const std::vector<VariableLaunch>& launches) {
  std::set<std::string> names;
  for (const VariableLaunch& launch : launches)
    for (const NamedNumber& number : launch.numbers) names.insert(number.name);
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "a graph that recorded numbers by per_replay" : "one of " + text;
}

void put(const VariableLaunch& launch, const NamedNumber& number, const Argument& value,
         std::vector<uint64_t>& bits) {
  const ir::Function& f = launch.kernel.function();
  if (const auto mismatch = number_bits(f, number.first, value, &bits[number.first]))
    throw InputError(mismatch->what,
                     fmt::format("{}, {} for kernel {}, argument {} ({}){}", kWhere, number.name,
                                 launch.kernel.name(), number.argument + 1, number_name(f, number.first),
                                 near_text(launch.where, ", recorded near ")),
                     mismatch->expected);
}

}  // namespace

void GraphNumbers::set(std::span<const std::pair<std::string, Argument>> values, Backend& backend,
                       RecordedGraph& graph) {
  std::vector<std::vector<uint64_t>> bits;
  for (const VariableLaunch& launch : launches) bits.push_back(launch.bits);
  for (size_t v = 0; v < values.size(); ++v) {
    const auto& [name, value] = values[v];
    const auto same = [&wanted = name](const auto& other) { return other.first == wanted; };
    if (std::any_of(values.begin(), values.begin() + int64_t(v), same))
      throw InputError(fmt::format("two values of {}", name), kWhere, "one");
    bool known = false;
    for (size_t l = 0; l < launches.size(); ++l)
      for (const NamedNumber& number : launches[l].numbers)
        if (number.name == name) {
          put(launches[l], number, value, bits[l]);
          known = true;
        }
    if (!known)
      throw InputError(fmt::format("a value of {}, which no launch of the graph has", name), kWhere,
                       names_of(launches));
  }
  size_t dispatch = 0;
  for (size_t l = 0; l < launches.size(); ++l) {
    for (int64_t d = 0; d < launches[l].dispatches; ++d, ++dispatch)
      if (bits[l] != launches[l].bits) backend.set_scalars(graph, dispatch, bits[l]);
    launches[l].bits = std::move(bits[l]);
  }
}

}  // namespace lockstep::device
