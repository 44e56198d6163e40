// The struct that carries a kernel's arguments: which fields, in which order.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "compile/clike/cuda/cuda.hpp"
#include "compile/clike/cuda/cuda_types.hpp"

namespace lockstep::clike {

using ir::Op;

namespace {

using Key = std::tuple<ArgumentKind, int, int>;

std::set<Key> used_fields(const ir::Function& f) {
  std::set<Key> used;
  for (const ir::Block& block : f.blocks)
    for (ir::Id id : block) {
      const ir::Instruction& i = f[id];
      switch (i.op) {
        case Op::load:
        case Op::store: used.emplace(ArgumentKind::buffer, int(i.imm), 0); break;
        case Op::async_copy: used.emplace(ArgumentKind::buffer, int(i.imm & 0xffffffffu), 0); break;
        case Op::atomic:
          if (const auto target = ir::AtomicTarget::from_bits(i.imm); !target.shared)
            used.emplace(ArgumentKind::buffer, int(target.array), 0);
          break;
        case Op::shape: used.emplace(ArgumentKind::shape, int(i.imm / 8), int(i.imm % 8)); break;
        case Op::stride: used.emplace(ArgumentKind::stride, int(i.imm / 8), int(i.imm % 8)); break;
        case Op::extent: used.emplace(ArgumentKind::extent, 0, int(i.imm)); break;
        case Op::coord: used.emplace(ArgumentKind::offset, 0, int(i.imm)); break;
        case Op::param: used.emplace(ArgumentKind::scalar, int(i.imm), 0); break;
        default: break;
      }
    }
  if (f.domain == ir::Domain::points)
    for (int axis = 0; axis < f.rank; ++axis) {
      used.emplace(ArgumentKind::extent, 0, axis);
      used.emplace(ArgumentKind::offset, 0, axis);
    }
  return used;
}

std::set<Key> all_fields(const ir::Function& f) {
  std::set<Key> all;
  for (int b = 0; b < int(f.buffers.size()); ++b) {
    all.emplace(ArgumentKind::buffer, b, 0);
    for (int axis = 0; axis < f.buffers[b].rank; ++axis) {
      all.emplace(ArgumentKind::shape, b, axis);
      if (axis + 1 < f.buffers[b].rank) all.emplace(ArgumentKind::stride, b, axis);
    }
  }
  for (int axis = 0; axis < f.rank; ++axis) {
    all.emplace(ArgumentKind::extent, 0, axis);
    all.emplace(ArgumentKind::offset, 0, axis);
  }
  for (int s = 0; s < int(f.scalars.size()); ++s) all.emplace(ArgumentKind::scalar, s, 0);
  return all;
}

int bytes_of(const ir::Function& f, const Key& key) {
  switch (std::get<0>(key)) {
    case ArgumentKind::buffer: return 8;
    case ArgumentKind::shape:
    case ArgumentKind::stride: return size_of(f.index_type);
    case ArgumentKind::scalar: return std::max(4, size_of(f.scalars[size_t(std::get<1>(key))].type));
    default: return 4;
  }
}

}  // namespace

ArgumentLayout argument_layout(const ir::Function& function, bool all) {
  ArgumentLayout layout;
  const std::set<Key> keys = all ? all_fields(function) : used_fields(function);
  uint32_t at = 0;
  for (int bytes : {8, 4})  // the wide ones first: no gaps
    for (const Key& key : keys) {
      if (bytes_of(function, key) != bytes) continue;
      layout.fields.push_back({std::get<0>(key), uint8_t(std::get<1>(key)), uint8_t(std::get<2>(key)),
                               uint8_t(bytes), uint16_t(at)});
      at += uint32_t(bytes);
    }
  layout.bytes = std::max<uint32_t>(8, (at + 7) / 8 * 8);
  return layout;
}

std::string argument_struct(const ir::Function& function, const ArgumentLayout& layout) {
  const std::string_view index = cuda_type(function.index_type);
  std::string out = "struct __align__(8) Arguments {\n";
  if (layout.fields.empty()) out += "  u64 unused;\n";
  for (const ArgumentField& field : layout.fields) {
    const auto buffer = [&]() -> const ir::BufferParam& { return function.buffers[field.index]; };
    switch (field.kind) {
      case ArgumentKind::buffer:
        out += fmt::format("  {}{}* {};\n", buffer().access == ir::Access::read ? "const " : "",
                           cuda_element(buffer().storage), buffer().name);
        break;
      case ArgumentKind::shape: out += fmt::format("  {} {}_n{};\n", index, buffer().name, field.axis); break;
      case ArgumentKind::stride:
        out += fmt::format("  {} {}_s{};\n", index, buffer().name, field.axis);
        break;
      case ArgumentKind::extent: out += fmt::format("  int extent_{};\n", "xyz"[field.axis]); break;
      case ArgumentKind::offset: out += fmt::format("  int offset_{};\n", "xyz"[field.axis]); break;
      case ArgumentKind::scalar: {
        const ir::ScalarParam& scalar = function.scalars[field.index];
        out += fmt::format("  {} {};\n", scalar.type == Type::boolean ? "u32" : cuda_type(scalar.type),
                           scalar.name);
        break;
      }
    }
  }
  return out + "};\n";
}

}  // namespace lockstep::clike
