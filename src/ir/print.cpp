// Text of the IR. One instruction a line, blocks indented, values numbered in the order of the text.
#include <fmt/format.h>

#include <bit>
#include <iterator>
#include <vector>

#include "core/hash.hpp"
#include "lockstep/ir/function.hpp"

namespace lockstep::ir {

namespace {

constexpr int kMaxPrintedDepth = 256;  // a malformed tree of blocks must not exhaust the stack

std::string_view name(Access access) {
  return access == Access::read ? "read" : access == Access::write ? "write" : "read_write";
}
std::string_view name(Reduction r) {
  return r == Reduction::add ? "add" : r == Reduction::min ? "min" : "max";
}
std::string_view name(AtomicOp op) {
  static constexpr std::string_view kNames[] = {"add", "min", "max",      "and",
                                                "or",  "xor", "exchange", "compare_exchange"};
  return size_t(op) < std::size(kNames) ? kNames[size_t(op)] : "unknown";
}

std::string readable(Type type, uint64_t bits) {
  switch (type) {
    case Type::boolean: return bits ? "true" : "false";
    case Type::i32: return fmt::format("{}", int32_t(bits));
    case Type::u32: return fmt::format("{}", uint32_t(bits));
    case Type::i64: return fmt::format("{}", int64_t(bits));
    case Type::u64: return fmt::format("{}", bits);
    case Type::f32: return fmt::format("{}", std::bit_cast<float>(uint32_t(bits)));
    case Type::f64: return fmt::format("{}", std::bit_cast<double>(bits));
    case Type::none: break;
  }
  return "?";
}

class Printer {
 public:
  explicit Printer(const Function& function) : f_(function), number_(function.instructions.size(), kNone) {
    number(0, 0);
  }

  std::string whole() {
    if (f_.domain == Domain::values)
      out("function {}", f_.name);
    else
      out("kernel {} {} rank {}", f_.name, f_.domain == Domain::points ? "points" : "groups", f_.rank);
    out(" group {}x{}x{} min_blocks {} index {}{}{}\n", f_.group[0], f_.group[1], f_.group[2], f_.min_blocks,
        lockstep::name(f_.index_type), f_.contract ? "" : " contract off", f_.long_axes ? " long axes" : "");
    for (size_t k = 0; k < f_.buffers.size(); ++k) {
      const BufferParam& b = f_.buffers[k];
      out("  buffer {} {}: {} rank {} {}{}{}\n", k, b.name, lockstep::name(b.storage), b.rank, name(b.access),
          b.by_point ? " by_point" : "", b.atomic ? " atomic" : "");
    }
    for (const ShapeRule& rule : f_.shapes)
      out("  buffer {} axis {} is {}\n", rule.buffer, rule.axis,
          rule.size < 0 ? fmt::format("axis {} of buffer {}", rule.other_axis, rule.other)
                        : std::to_string(rule.size));
    for (size_t k = 0; k < f_.scalars.size(); ++k)
      out("  scalar {} {}: {}\n", k, f_.scalars[k].name, lockstep::name(f_.scalars[k].type));
    for (size_t k = 0; k < f_.shared.size(); ++k) declaration("shared", k, f_.shared[k]);
    for (size_t k = 0; k < f_.locals.size(); ++k) declaration("local", k, f_.locals[k]);
    for (size_t k = 0; k < f_.functions.size(); ++k)
      out("called {} = {}", k, Printer(f_.functions[k]).whole());
    out("{{\n");
    block(0, 1);
    out("}}\n");
    return std::move(text_);
  }

  std::string one(Id id) {
    if (id >= f_.instructions.size()) return fmt::format("%?{}", id);
    head(id);
    return std::move(text_);
  }

 private:
  template <class... A>
  void out(fmt::format_string<A...> format, A&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<A>(args)...);
  }

  void number(uint32_t block, int depth) {
    if (block >= f_.blocks.size() || depth > kMaxPrintedDepth) return;
    for (Id id : f_.blocks[block]) {
      if (id >= f_.instructions.size()) continue;
      if (number_[id] == kNone) number_[id] = next_++;
      for (uint32_t inner : f_[id].blocks)
        if (inner != kNoBlock) number(inner, depth + 1);
    }
  }

  void declaration(std::string_view what, size_t k, const ArrayDecl& a) {
    out("  {} {} {}: {} x {}\n", what, k, a.name, lockstep::name(a.storage), a.count);
  }

  void block(uint32_t b, int depth) {
    if (b >= f_.blocks.size() || depth > kMaxPrintedDepth) {
      out("{:{}}block {} does not exist\n", "", 2 * depth, b);
      return;
    }
    for (Id id : f_.blocks[b]) {
      out("{:{}}", "", 2 * depth);
      if (id >= f_.instructions.size()) {
        out("%?{}\n", id);
        continue;
      }
      head(id);
      const Instruction& i = f_[id];
      if (i.blocks[0] != kNoBlock) {
        out(" {{\n");
        block(i.blocks[0], depth + 1);
        if (i.blocks[1] != kNoBlock && (i.blocks[1] >= f_.blocks.size() || !f_.blocks[i.blocks[1]].empty())) {
          out("{:{}}}} else {{\n", "", 2 * depth);
          block(i.blocks[1], depth + 1);
        }
        out("{:{}}}}", "", 2 * depth);
      }
      out("\n");
    }
  }

  void value(Id id) {
    if (id < number_.size() && number_[id] != kNone)
      out("%{}", number_[id]);
    else
      out("%?{}", id);  // is in no block
  }

  /// Number and name: the number keeps the text, and so the fingerprint, distinct where two names are alike.
  template <class List>
  std::string name_in(const List& list, uint64_t index) {
    return fmt::format("{}:{}", index, index < list.size() ? std::string_view(list[index].name) : "missing");
  }

  void head(Id id) {
    const Instruction& i = f_[id];
    if (i.type != Type::none) {
      value(id);
      out(" = ");
    }
    out("{}", ir::name(i.op));
    switch (i.op) {
      case Op::constant: out(" {:#x}", i.imm); break;
      case Op::coord:
      case Op::extent:
      case Op::local_id:
      case Op::extract:
      case Op::async_wait: out(" {}", i.imm); break;
      case Op::param: out(" {}", i.imm); break;
      case Op::shape:
      case Op::stride: out(" {} axis {}", name_in(f_.buffers, i.imm / 8), i.imm % 8); break;
      case Op::call: out(" {}", name_in(f_.functions, i.imm)); break;
      case Op::load:
      case Op::store: out(" {}", name_in(f_.buffers, i.imm)); break;
      case Op::shared_load:
      case Op::shared_store: out(" {}", name_in(f_.shared, i.imm)); break;
      case Op::local_load:
      case Op::local_store: out(" {}", name_in(f_.locals, i.imm)); break;
      case Op::atomic: {
        const auto target = AtomicTarget::from_bits(i.imm);
        out(" {} {}", name(target.op),
            target.shared ? name_in(f_.shared, target.array) : name_in(f_.buffers, target.array));
        break;
      }
      case Op::group_reduce: out(" {}", name(Reduction(i.imm))); break;
      case Op::async_copy:
        out(" {} from {}", name_in(f_.shared, i.imm >> 32), name_in(f_.buffers, i.imm & 0xffffffffu));
        break;
      default:
        if (i.imm) out(" imm {}", i.imm);
    }
    const int n = i.arg_count();
    for (int k = 0; k < n; ++k) {
      text_ += k ? ", " : " ";
      value(i.args[k]);
    }
    if (i.type != Type::none) out(" : {}", lockstep::name(i.type));
    if (i.lanes != 1) out(" lanes {}", i.lanes);
    if (i.flags & kStreaming) out(" streaming");
    if (i.flags & kNoWrap) out(" no_wrap");
    if (i.op == Op::constant) out("  ; {}", readable(i.type, i.imm));
    if (i.op == Op::param) out("  ; {}", name_in(f_.scalars, i.imm));
  }

  const Function& f_;
  std::vector<uint32_t> number_;
  uint32_t next_ = 0;
  std::string text_;
};

}  // namespace

std::string print(const Function& function) { return Printer(function).whole(); }
std::string print(const Function& function, Id id) { return Printer(function).one(id); }
std::string fingerprint(const Function& function) { return to_hex(hash128(print(function))); }

}  // namespace lockstep::ir
