#include <gtest/gtest.h>

#include <map>
#include <random>

#include "lockstep/autodiff.hpp"

namespace lockstep::autodiff {
namespace {

Topology of(const Value& v) { return topology(std::span(&v, 1)); }

TEST(Topology, LeafIdentitiesAndConstantsAreData) {
  Tape g;
  std::vector<Value> x;
  for (int k = 0; k < 6; ++k) x.push_back(g.variable("x" + std::to_string(k)));
  const auto spring = [&](int a, int b, double length) { return sqrt(square(x[a] - x[b]) + 0.5) - length; };
  const Topology first = of(spring(0, 1, 2)), second = of(spring(5, 2, 7));
  EXPECT_EQ(first.bytes, second.bytes);
  EXPECT_EQ(first.hash, second.hash);
  EXPECT_EQ(second.leaves, (std::vector<uint32_t>{5, 2}));
  EXPECT_EQ(first.constants.size(), 2u);
  EXPECT_NE(of(x[0] - x[0] * x[1]).bytes, of(x[0] - x[1] * x[2]).bytes);
  EXPECT_NE(of(x[0] * g.parameter("p")).bytes, of(x[0] * x[1]).bytes);
}

TEST(Topology, CommutedOperandsAreTheSameTopology) {
  Tape g;
  const Value a = g.variable("a"), b = g.variable("b"), c = g.variable("c"), d = g.variable("d");
  EXPECT_EQ(of(sin(a) + b).bytes, of(c + sin(d)).bytes);
  EXPECT_EQ(of(sin(d) + a * b).bytes, of(b * c + sin(a)).bytes);
  EXPECT_NE(of(sin(a) - b).bytes, of(c - sin(d)).bytes);
}

TEST(Topology, InstantiatingGivesTheSameFunction) {
  std::mt19937 random(5);
  std::uniform_real_distribution<double> range(0.2, 2);
  Tape g;
  std::vector<Value> x;
  std::vector<double> at;
  for (int k = 0; k < 4; ++k) x.push_back(g.variable("x" + std::to_string(k))), at.push_back(range(random));
  const std::vector<Value> outputs{pow(x[2], -3) * 1.5 + x[0], select(x[1] < 1, x[3] * 2.5, x[2]), x[3],
                                   sum({x[0], x[1], x[2] * 0.25})};
  const Topology s = topology(outputs);
  Tape h;
  std::vector<Value> leaves, constants;
  std::vector<double> values;
  for (uint32_t leaf : s.leaves) leaves.push_back(h.variable("y")), values.push_back(at[leaf]);
  for (double c : s.constants) constants.push_back(h.constant(c));
  const auto again = evaluate<double>(instantiate(s, h, leaves, constants), values);
  EXPECT_EQ(again, evaluate<double>(outputs, at));
  EXPECT_THROW(instantiate(s, h, std::span<const Value>(), constants), InputError);
}

// The last four bytes are the node of the only output: one that is not there, and every cut, is malformed.
TEST(Topology, MalformedBytesAreRefused) {
  Tape g;
  const Value x = g.variable("x"), y = g.variable("y");
  const Topology whole = topology(std::vector{sin(x * y)});
  Tape h;
  const std::vector<Value> leaves{h.variable("x"), h.variable("y")};
  EXPECT_EQ(instantiate(whole, h, leaves, {}).size(), 1u);
  for (const uint8_t node : {2, 3, 255}) {
    Topology other = whole;
    other.bytes[other.bytes.size() - 4] = node;
    EXPECT_THROW(instantiate(other, h, leaves, {}), InputError) << int(node);
  }
  for (size_t size = 1; size < whole.bytes.size(); ++size) {
    Topology cut = whole;
    cut.bytes.resize(size);
    EXPECT_THROW(instantiate(cut, h, leaves, {}), InputError) << size;
  }
  EXPECT_THROW(instantiate(whole, h, std::span(leaves).first(1), {}), InputError);
}

/// The text of an expression with its leaves numbered in the order of their appearance.
std::string renamed(const Value& v) {
  std::string text = print(v);
  const size_t p = text.find("#p"), q = text.find("#q");
  if (q < p)
    for (size_t at = text.find('#'); at != std::string::npos; at = text.find('#', at + 1))
      text[at + 1] = text[at + 1] == 'p' ? 'q' : 'p';
  return text;
}

// All expressions of unary operations over one and two leaves: no two of different shape may share a
// topology.
TEST(Topology, SmallExpressionsDoNotCollide) {
  Tape g;
  const Value a = g.variable("#p"), b = g.variable("#q");
  using Unary = Value (*)(const Value&);
  const Unary unary[] = {[](const Value& v) { return abs(v); },  [](const Value& v) { return cos(v); },
                         [](const Value& v) { return sin(v); },  [](const Value& v) { return exp(v); },
                         [](const Value& v) { return log(v); },  [](const Value& v) { return square(v); },
                         [](const Value& v) { return tanh(v); }, [](const Value& v) { return sqrt(v); },
                         [](const Value& v) { return -v; }};
  std::vector<Value> level{a, a + b, a - b, a * b, a / b, min(a, b)};
  const size_t base = level.size();
  for (size_t n = 0; n < base; ++n)
    for (Unary u : unary) level.push_back(u(level[n]));
  const size_t second = level.size();
  for (size_t n = base; n < second; ++n)
    for (Unary u : unary) level.push_back(u(level[n]));
  std::map<std::string, uint32_t> seen;
  std::map<uint64_t, uint32_t> hashes;
  std::map<uint32_t, bool> nodes;
  for (const Value& v : level) {
    if (!nodes.emplace(v.id(), true).second) continue;
    const Topology s = of(v);
    const auto [at, added] = seen.emplace(std::string(s.bytes.begin(), s.bytes.end()), v.id());
    // a - b and b - a are one topology with other leaves.
    if (!added) { EXPECT_EQ(renamed(v), renamed(Value(&g, at->second))); }
    if (added) { EXPECT_TRUE(hashes.emplace(s.hash, v.id()).second) << print(v); }
  }
  EXPECT_GT(seen.size(), 400u);
}

}  // namespace
}  // namespace lockstep::autodiff
