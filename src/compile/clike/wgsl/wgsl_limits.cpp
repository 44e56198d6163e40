// Functions that WGSL cannot express, and the groups and workgroup memory of the others.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "compile/clike/cuda/cuda_points.hpp"
#include "compile/clike/wgsl/wgsl.hpp"

namespace lockstep::clike {

using ir::Id;
using ir::Op;

namespace {
std::optional<ir::Place> first_deeper(int most, const ir::Function& f, uint32_t block) {
  for (Id id : f.blocks[block]) {
    const ir::Instruction& i = f[id];
    if (i.op == Op::call && ir::depth_of(f.functions[i.imm]) > most) return i.place;
    for (uint32_t inner : i.blocks) {
      if (inner == ir::kNoBlock) continue;
      if (most == 0) return i.place;
      if (const auto found = first_deeper(most - 1, f, inner)) return found;
    }
  }
  return {};
}
}  // namespace

std::string deeper_than(int most, const ir::Function& f) {
  const auto found = first_deeper(most, f, 0);
  if (!found) return {};
  const std::string place = ir::place_text(f, *found);
  return fmt::format("control flow of {} levels{}{}: {} are possible", ir::depth_of(f),
                     place.empty() ? "" : ", too many near ", place, most);
}

std::string wgsl_refusal(const ir::Function& f) {
  if (f.index_type == Type::i64) return "a buffer has 2^31 elements or more: WGSL has 32-bit indices only";
  for (Type type : {Type::f64, Type::i64, Type::u64})
    if (f.uses(type)) return fmt::format("WGSL has no {}", name(type));
  for (const ir::BufferParam& b : f.buffers)
    if (size_of(b.storage) == 8) return fmt::format("buffer {}: WGSL has no {}", b.name, name(b.storage));
  for (const auto* arrays : {&f.shared, &f.locals})
    for (const ir::ArrayDecl& a : *arrays)
      if (size_of(a.storage) == 8) return fmt::format("array {}: WGSL has no {}", a.name, name(a.storage));
  for (const ir::ScalarParam& s : f.scalars)
    if (is_wide(s.type)) return fmt::format("parameter {}: WGSL has no {}", s.name, name(s.type));
  return deeper_than(kWgslLevels, f);
}

PointsPlan wgsl_points(const ir::Function& f) { return choose_points(f); }

std::array<int32_t, 3> wgsl_group(const ir::Function& f, int64_t group_lanes) {
  if (f.group[0] > 0) return {f.group[0], std::max(f.group[1], 1), std::max(f.group[2], 1)};
  std::array<int32_t, 3> group{256, 1, 1};
  if (f.rank == 2) group = wgsl_points(f) == PointsPlan{0, 4} ? std::array{64, 4, 1} : std::array{32, 8, 1};
  if (f.rank == 3) group = {32, 4, 2};
  for (int a = 2; int64_t(group[0]) * group[1] * group[2] > group_lanes && group[0] > 1;) {
    if (group[size_t(a)] > 1)
      group[size_t(a)] /= 2;
    else
      --a;
  }
  return group;
}

int64_t wgsl_shared_bytes(const ir::Function& f, int64_t group_lanes) {
  int64_t bytes = 0;
  for (const ir::ArrayDecl& a : f.shared) bytes += (a.count * 4 + 15) & ~int64_t(15);
  std::set<Type> trees;
  for (const ir::Block& block : f.blocks)
    for (Id id : block)
      if (f[id].op == Op::group_reduce) trees.insert(f[id].type);
  const auto group = wgsl_group(f, group_lanes);
  return bytes + int64_t(trees.size()) * group[0] * group[1] * group[2] * 4;
}

}  // namespace lockstep::clike
