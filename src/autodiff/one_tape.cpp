#include "autodiff/one_tape.hpp"

#include <fmt/format.h>

#include <bit>

namespace lockstep::autodiff {

namespace {

/// A leaf's name, a number, or an operation and the first leaves that it depends on.
std::string describe(const Value& value) {
  const Node& node = value.graph().node(value.id());
  if (node.op == Op::constant) return fmt::format("{}", std::bit_cast<double>(node.imm));
  if (node.op == Op::leaf) return value.graph().leaf_name(uint32_t(node.imm));
  constexpr size_t kMostNames = 3;
  const std::vector<uint32_t> leaves = leaves_of(std::span(&value, 1));
  std::string text = fmt::format("{} of ", name(node.op));
  for (size_t k = 0; k < std::min(kMostNames, leaves.size()); ++k)
    text += (k ? ", " : "") + value.graph().leaf_name(leaves[k]);
  return leaves.size() > kMostNames ? text + " …" : text;
}

}  // namespace

void expect_one_tape(const Owner& owner, std::span<const Value> values, std::string_view what,
                     std::string_view where) {
  for (size_t k = 0; k < values.size(); ++k) {
    if (!values[k].valid())
      throw InputError(fmt::format("{} {} is an empty value", what, k), std::string(where),
                       "a value of a graph");
    if (&values[k].graph() != &owner.value.graph())
      throw InputError(fmt::format("{} {} ({}) is of another graph than {} 0 ({})", what, k,
                                   describe(values[k]), owner.what, describe(owner.value)),
                       std::string(where), "values of one graph");
  }
}

}  // namespace lockstep::autodiff
