// Conditions on every function, checked before a pass, a printer or the interpreter takes it.
#include <fmt/format.h>

#include <algorithm>

#include "ir/divergence.hpp"
#include "lockstep/error.hpp"
#include "lockstep/ir/function.hpp"

namespace lockstep::ir {

namespace {

class Verifier {
 public:
  explicit Verifier(const Function& f)
      : f_(f),
        placed_(f.instructions.size(), false),
        visible_(f.instructions.size(), false),
        used_block_(f.blocks.size(), false),
        for_body_(f.blocks.size(), false) {}

  void run() {
    declarations();
    for (const Function& called : f_.functions) {
      expect(called.domain == Domain::values && called.locals.empty(), "a kernel or arrays in a call",
             "a function of values");
      verify(called);
    }
    if (f_.blocks.empty()) broken("no body", "blocks[0]");
    block(0, "", false);
    if (f_.domain == Domain::values)
      expect(!f_.blocks[0].empty() && result_of(f_).op == Op::result, "a function without a result",
             "`result` at its end");
    barriers();
  }

 private:
  // ── messages ──
  std::string where(Id id) const {
    const bool known = id != kNone && id < f_.instructions.size();
    std::string place = where_of(f_, known ? f_[id].place : f_.place);
    if (id == kNone) return place;
    place += ", body";
    for (const Step& step : path_) place += fmt::format("{}.{}", step.part, step.position);
    return fmt::format("{}: {}", place, print(f_, id));
  }
  [[noreturn]] void broken(std::string_view what, std::string_view expected) const {
    throw InternalError(what, where(at_), expected);
  }
  [[noreturn]] void wrong(std::string_view what, std::string_view expected) const {
    throw InputError(what, where(at_), expected);
  }
  void expect(bool ok, std::string_view what, std::string_view expected) const {
    if (!ok) broken(what, expected);
  }
  void require(bool ok, std::string_view what, std::string_view expected) const {
    if (!ok) wrong(what, expected);
  }

  // ── parameters and arrays ──
  void declarations() const {
    require(f_.rank >= 1 && f_.rank <= 3, fmt::format("domain of rank {}", f_.rank), "rank 1, 2 or 3");
    expect(f_.index_type == Type::i32 || f_.index_type == Type::i64, "index type", "i32 or i64");
    const bool groups = f_.domain == Domain::groups;
    for (int32_t size : f_.group)
      require(size >= (groups ? 1 : 0), fmt::format("group axis of {} lanes", size), "1 or more");
    if (!groups)
      for (int a = f_.rank; a < 3; ++a)
        require(f_.group[a] <= 1, fmt::format("group of {} lanes along axis {}", f_.group[a], a),
                fmt::format("one lane along axes that a domain of rank {} does not have", f_.rank));
    if (groups)
      require(f_.group_lanes() <= 1024, fmt::format("group of {} lanes", f_.group_lanes()), "at most 1024");
    for (const BufferParam& b : f_.buffers) {
      require(b.rank >= 1 && b.rank <= 4, fmt::format("buffer {} of rank {}", b.name, b.rank), "rank 1 to 4");
      if (b.by_point)
        expect(!groups && b.rank >= f_.rank, fmt::format("buffer {} indexed by points", b.name),
               "a points kernel of no higher rank");
      if (b.atomic)
        require(b.access == Access::read_write, fmt::format("atomic operation on buffer {}", b.name),
                "an InOut buffer, since an atomic operation also reads");
    }
    for (const ScalarParam& s : f_.scalars)
      require(s.type != Type::none, fmt::format("parameter {} without a type", s.name), "a value type");
    require(groups || f_.shared.empty(), "shared array in a points kernel",
            "Group<N> as the kernel's first parameter");
    for (const auto* arrays : {&f_.shared, &f_.locals})
      for (const ArrayDecl& a : *arrays) {
        require(a.count > 0, fmt::format("array {} of {} elements", a.name, a.count), "1 or more");
        require(a.storage != Storage::f16 && a.storage != Storage::bf16 && a.storage != Storage::u8,
                fmt::format("array {} of {}", a.name, lockstep::name(a.storage)),
                "f32, f64, i32, u32, i64 or u64 elements");
      }
  }

  // ── the tree of blocks ──
  void block(uint32_t number, std::string_view part, bool in_loop) {
    if (number >= f_.blocks.size())
      broken(fmt::format("block {} does not exist", number), "a block of this function");
    if (used_block_[number]) broken(fmt::format("block {} has two owners", number), "one");
    if (path_.size() > size_t(kDeepestFlow))
      wrong("control flow nested too deeply", fmt::format("at most {} levels", kDeepestFlow));
    used_block_[number] = true;
    const Block& ids = f_.blocks[number];
    path_.push_back({part, 0});
    for (size_t k = 0; k < ids.size(); ++k) {
      const Id id = ids[k];
      at_ = id;
      path_.back().position = k;
      if (id >= f_.instructions.size())
        broken("instruction does not exist", "an instruction of this function");
      if (placed_[id]) broken("instruction is in two blocks", "one");
      placed_[id] = true;
      const Instruction& i = f_[id];
      operands(i);
      check(i, number, k, in_loop);
      visible_[id] = true;
      nested(i, in_loop);
    }
    for (Id id : ids) visible_[id] = false;
    path_.pop_back();
  }

  void nested(const Instruction& i, bool in_loop) {
    if (i.op == Op::if_) {
      block(i.blocks[0], ".then", in_loop);
      block(i.blocks[1], ".else", in_loop);
    } else if (i.blocks[0] != kNoBlock) {
      if (i.op == Op::for_ && i.blocks[0] < for_body_.size()) for_body_[i.blocks[0]] = true;
      block(i.blocks[0], ".body", true);
    }
  }

  void operands(const Instruction& i) const {
    for (int k = 0, n = i.arg_count(); k < n; ++k) {
      const Id a = i.args[k];
      if (a >= f_.instructions.size())
        broken(fmt::format("operand {} does not exist", k), "an instruction of this function");
      if (!visible_[a])
        wrong(placed_[a]
                  ? fmt::format("value `{}` is used outside of the block that defines it", print(f_, a))
                  : fmt::format("value `{}` is used before it is defined", print(f_, a)),
              "a value of this block or of one around it (assign to a Var declared outside)");
      const bool names_variable = f_[a].op == Op::variable,
                 wants = k == 0 && (i.op == Op::get || i.op == Op::set);
      expect(names_variable == wants, "variable as an operand", "variables in get and set only");
      expect(f_[a].type != Type::none, fmt::format("operand {} has no value", k), "a value");
      expect(f_[a].lanes == 1 || i.op == Op::extract, "wide load as an operand", "extract");
    }
    for (int k = i.arg_count(); k < kMostArgs; ++k)
      expect(i.args[k] == kNone, "gap among the operands", "none");
  }

  Type type(const Instruction& i, int k) const { return f_[i.args[k]].type; }
  void args(const Instruction& i, int n) const {
    if (i.arg_count() != n) broken(fmt::format("{} operands", i.arg_count()), fmt::format("{}", n));
  }
  void result(const Instruction& i, Type type) const {
    if (i.type != type)
      broken(fmt::format("result of type {}", lockstep::name(i.type)), lockstep::name(type));
  }
  void operand(const Instruction& i, int k, Type wanted) const {
    if (type(i, k) != wanted)
      broken(fmt::format("operand {} of type {}", k, lockstep::name(type(i, k))), lockstep::name(wanted));
  }
  template <class List>
  const typename List::value_type& member(const List& list, uint64_t index, std::string_view what) const {
    if (index >= list.size())
      broken(fmt::format("{} {} does not exist", what, index),
             fmt::format("0 to {}", int64_t(list.size()) - 1));
    return list[index];
  }
  void in_groups(std::string_view what) const {
    if (f_.domain != Domain::groups)
      wrong(fmt::format("{} in a points kernel", what), "Group<N> as the kernel's first parameter");
  }
  void read_from(const BufferParam& b) const {
    if (b.access == Access::write)
      wrong(fmt::format("buffer {} is read", b.name), "Grid or InOut where a kernel reads");
  }
  void write_to(const BufferParam& b) const {
    if (b.access == Access::read)
      wrong(fmt::format("buffer {} is written", b.name), "Out or InOut where a kernel writes");
  }
  void lanes(const Instruction& i) const {
    expect(i.lanes == 1 || i.lanes == 2 || i.lanes == 4, "lanes", "1, 2 or 4");
  }

  void elementary(const Instruction& i) const {
    args(i, arity(i.op));
    const Type t = type(i, 0);
    if (!takes(i.op, t)) broken(fmt::format("operand of type {}", lockstep::name(t)), operand_types(i.op));
    for (int k = 1; k < i.arg_count(); ++k) operand(i, k, t);
    if (i.op == Op::umulhi)
      require(t == Type::u32 || t == Type::u64, fmt::format("umulhi of {}", lockstep::name(t)), "u32 or u64");
    result(i, result_type(i.op, t));
  }

  void constant(const Instruction& i) const {
    args(i, 0);
    expect(i.type != Type::none, "constant without a type", "a value type");
    const uint64_t mask = i.type == Type::boolean ? 1 : is_wide(i.type) ? ~uint64_t(0) : 0xffffffffu;
    expect((i.imm & ~mask) == 0, "constant with bits above its type", "zeros");
  }

  void axis(const Instruction& i, Type t, int64_t bound) const {
    args(i, 0);
    result(i, t);
    if (int64_t(i.imm) >= bound) broken(fmt::format("axis {}", i.imm), fmt::format("0 to {}", bound - 1));
  }

  /// Allowed in a function that kernels call.
  static bool of_values(Op op) {
    if (is_elementary(op) || is_math(op)) return true;
    switch (op) {
      case Op::constant:
      case Op::select:
      case Op::convert:
      case Op::bitcast:
      case Op::uniform:
      case Op::rounded:
      case Op::param:
      case Op::clamp_index:
      case Op::variable:
      case Op::get:
      case Op::set:
      case Op::local_load:
      case Op::local_store:
      case Op::if_:
      case Op::for_:
      case Op::loop:
      case Op::loop_index:
      case Op::break_:
      case Op::continue_:
      case Op::call:
      case Op::extract:
      case Op::result: return true;
      default: return false;
    }
  }

  void call(const Instruction& i) const {
    const Function& called = member(f_.functions, i.imm, "function");
    const Instruction& given = result_of(called);
    args(i, int(called.scalars.size()));
    for (int k = 0; k < i.arg_count(); ++k) operand(i, k, called.scalars[size_t(k)].type);
    expect(i.lanes == given.arg_count(), "results of a call", "those of the function");
    result(i, called[given.args[0]].type);
  }
  void result_statement(const Instruction& i, uint32_t block, size_t position) const {
    expect(f_.domain == Domain::values && block == 0 && position + 1 == f_.blocks[0].size(), "a result",
           "once, at the end of a function");
    const int n = i.arg_count();
    expect(n == 1 || n == 2 || n == 4, "results", "1, 2 or 4");
    for (int k = 1; k < n; ++k) operand(i, k, type(i, 0));
    expect(n == 1 || type(i, 0) != Type::boolean, "several results", "numbers");
    result(i, Type::none);
  }

  void check(const Instruction& i, uint32_t block, size_t position, bool in_loop) const {
    expect(i.op < Op::count_, "unknown operation", "a row of ops.def");
    if (f_.domain == Domain::values && !of_values(i.op))
      wrong(fmt::format("{} in a function", name(i.op)),
            "values that it is given and computes: buffers, arrays, places, barriers and return_if stay in "
            "the kernel");
    const bool if_blocks = i.op == Op::if_, one = i.op == Op::for_ || i.op == Op::loop;
    expect((i.blocks[0] != kNoBlock) == (if_blocks || one) && (i.blocks[1] != kNoBlock) == if_blocks,
           "blocks", "two of if_, one of for_ and loop, none elsewhere");
    if (i.op != Op::load && i.op != Op::store && i.op != Op::async_copy && i.op != Op::shared_load &&
        i.op != Op::call)
      expect(i.lanes == 1, "lanes", "1");
    if (is_elementary(i.op) || is_math(i.op)) return elementary(i);
    switch (i.op) {
      case Op::constant: return constant(i);
      case Op::select:
        args(i, 3);
        operand(i, 0, Type::boolean);
        operand(i, 2, type(i, 1));
        return result(i, type(i, 1));
      case Op::convert:
        args(i, 1);
        expect(i.type != Type::none && i.type != Type::boolean, "conversion to no number", "a number type");
        return;
      case Op::bitcast:
        args(i, 1);
        expect(
            i.type != Type::boolean && type(i, 0) != Type::boolean && size_of(i.type) == size_of(type(i, 0)),
            "bitcast", "numbers of one size");
        return;
      case Op::uniform:
      case Op::rounded: args(i, 1); return result(i, type(i, 0));
      case Op::coord:
      case Op::extent: return axis(i, Type::i32, f_.rank);
      case Op::local_id: in_groups("local_id"); return axis(i, Type::i32, 3);
      case Op::lane: in_groups("lane"); return axis(i, Type::i32, 1);
      case Op::call: return call(i);
      case Op::result: return result_statement(i, block, position);
      case Op::param: args(i, 0); return result(i, member(f_.scalars, i.imm, "parameter").type);
      case Op::shape:
      case Op::stride: {
        const BufferParam& b = member(f_.buffers, i.imm / 8, "buffer");
        args(i, 0);
        result(i, f_.index_type);
        return expect(int(i.imm % 8) < (i.op == Op::shape ? b.rank : b.rank - 1), "axis",
                      "an axis of the buffer; no stride of the last");
      }
      case Op::clamp_index:
        args(i, 2);
        operand(i, 0, Type::i32);
        operand(i, 1, Type::i32);
        return result(i, Type::i32);
      case Op::load:
      case Op::store:
      case Op::extract:
      case Op::shared_load:
      case Op::shared_store:
      case Op::local_load:
      case Op::local_store:
      case Op::atomic:
      case Op::async_copy: return memory(i);
      default: return flow(i, block, position, in_loop);
    }
  }

  void memory(const Instruction& i) const {
    const auto element = [&](const ArrayDecl& a, bool store) {
      args(i, store ? 2 : 1);
      operand(i, 0, Type::i32);
      const Type t = value_type(a.storage);
      if (store) operand(i, 1, t);
      result(i, store ? Type::none : t);
    };
    switch (i.op) {
      case Op::load: {
        const BufferParam& b = member(f_.buffers, i.imm, "buffer");
        read_from(b);
        lanes(i);
        args(i, 1);
        operand(i, 0, f_.index_type);
        return result(i, value_type(b.storage));
      }
      case Op::store: {
        const BufferParam& b = member(f_.buffers, i.imm, "buffer");
        write_to(b);
        lanes(i);
        args(i, 1 + i.lanes);
        operand(i, 0, f_.index_type);
        for (int k = 1; k <= i.lanes; ++k) operand(i, k, value_type(b.storage));
        return result(i, Type::none);
      }
      case Op::extract:
        args(i, 1);
        expect((f_[i.args[0]].op == Op::load || f_[i.args[0]].op == Op::shared_load ||
                f_[i.args[0]].op == Op::call) &&
                   i.imm < f_[i.args[0]].lanes,
               "extract", "a component of a wide load");
        return result(i, type(i, 0));
      case Op::shared_load: lanes(i); return element(member(f_.shared, i.imm, "shared array"), false);
      case Op::shared_store: return element(member(f_.shared, i.imm, "shared array"), true);
      case Op::local_load: return element(member(f_.locals, i.imm, "local array"), false);
      case Op::local_store: return element(member(f_.locals, i.imm, "local array"), true);
      case Op::atomic: return atomic(i);
      default: break;
    }
    in_groups("async_copy");
    const ArrayDecl& a = member(f_.shared, i.imm >> 32, "shared array");
    const BufferParam& b = member(f_.buffers, i.imm & 0xffffffffu, "buffer");
    read_from(b);
    lanes(i);
    args(i, 2);
    operand(i, 0, Type::i32);
    operand(i, 1, f_.index_type);
    result(i, Type::none);
    require(
        a.storage == b.storage,
        fmt::format("copy of {} into an array of {}", lockstep::name(b.storage), lockstep::name(a.storage)),
        "one element type");
    const int bytes = i.lanes * size_of(a.storage);
    require(bytes == 4 || bytes == 8 || bytes == 16, fmt::format("asynchronous copy of {} bytes", bytes),
            "4, 8 or 16");
  }

  void atomic(const Instruction& i) const {
    const auto target = AtomicTarget::from_bits(i.imm);
    expect(target.op <= AtomicOp::compare_exchange, "atomic operation", "a member of AtomicOp");
    Storage storage;
    if (target.shared) {
      storage = member(f_.shared, target.array, "shared array").storage;
    } else {
      const BufferParam& b = member(f_.buffers, target.array, "buffer");
      expect(b.atomic, fmt::format("atomic operation on buffer {}, which is not marked atomic", b.name),
             "BufferParam::atomic");
      storage = b.storage;
    }
    const Type t = value_type(storage);
    if (storage == Storage::f32 || storage == Storage::f64)
      require(target.op == AtomicOp::add, fmt::format("this atomic operation on {}", lockstep::name(storage)),
              "i32, u32, i64 or u64");
    else
      require(is_integer(t) && storage != Storage::u8,
              fmt::format("atomic operation on {}", lockstep::name(storage)),
              "i32, u32, i64 or u64; addition also of f32 and f64");
    const int n = target.op == AtomicOp::compare_exchange ? 3 : 2;
    args(i, n);
    operand(i, 0, target.shared ? Type::i32 : f_.index_type);
    for (int k = 1; k < n; ++k) operand(i, k, t);
    result(i, t);
  }

  void flow(const Instruction& i, uint32_t block, size_t position, bool in_loop) const {
    if (i.op != Op::variable && i.op != Op::get && i.op != Op::loop_index && i.op != Op::group_reduce)
      result(i, Type::none);
    switch (i.op) {
      case Op::barrier: in_groups("barrier"); return args(i, 0);
      case Op::async_commit:
      case Op::async_wait: in_groups("asynchronous copy"); return args(i, 0);
      case Op::group_reduce: {
        in_groups("group reduction");
        args(i, 1);
        result(i, type(i, 0));
        expect(i.type != Type::boolean && i.imm <= uint64_t(Reduction::max), "group reduction",
               "numbers; add, min or max");
        const int n = f_.group_lanes();
        return require((n & (n - 1)) == 0, fmt::format("group reduction over {} lanes", n), "a power of two");
      }
      case Op::variable: args(i, 1); return result(i, type(i, 0));
      case Op::get: args(i, 1); return result(i, type(i, 0));
      case Op::set: args(i, 2); return operand(i, 1, type(i, 0));
      case Op::if_: args(i, 1); return operand(i, 0, Type::boolean);
      case Op::for_: {
        args(i, 3);
        const Type t = type(i, 0);
        expect(is_integer(t), "loop bounds", "integers");
        operand(i, 1, t);
        operand(i, 2, t);
        const Instruction& step = f_[i.args[2]];
        expect(step.op == Op::constant && step.imm != 0, "step", "a constant other than 0");
        expect(i.blocks[0] < f_.blocks.size() && !f_.blocks[i.blocks[0]].empty(), "loop without a counter",
               "loop_index first in the body");
        const Id first = f_.blocks[i.blocks[0]][0];
        expect(first < f_.instructions.size() && f_[first].op == Op::loop_index && f_[first].type == t,
               "loop without a counter", "loop_index of the bounds' type first in the body");
        return;
      }
      case Op::loop: return args(i, 0);
      case Op::loop_index: {
        args(i, 0);
        return expect(position == 0 && for_body_[block], "loop_index", "the first place in a for_'s body");
      }
      case Op::break_:
      case Op::continue_:
        require(in_loop, fmt::format("{} outside of a loop", name(i.op)), "for_, while_ or loop_ around it");
        return args(i, 0);
      case Op::return_: return args(i, 0);
      default: broken("unknown operation", "a row of ops.def");
    }
  }

  // ── barriers ──
  void barriers() {
    if (f_.domain != Domain::groups || !f_.has_barriers()) return;
    const Divergence divergence(f_, LaneScope::group);
    path_.clear();
    find_barriers(0, "", divergence);
  }
  void find_barriers(uint32_t number, std::string_view part, const Divergence& divergence) {
    path_.push_back({part, 0});
    for (Id id : f_.blocks[number]) {
      const Instruction& i = f_[id];
      at_ = id;
      if ((i.op == Op::barrier || i.op == Op::group_reduce) && divergence.in_divergent_flow(id))
        wrong(fmt::format("{} in divergent flow: some lanes of the group may not come here", name(i.op)),
              "conditions and loop bounds around it, and jumps before it, that are the same for all lanes "
              "(state it by "
              "uniform())");
      if (i.blocks[0] != kNoBlock)
        find_barriers(i.blocks[0], i.op == Op::if_ ? ".then" : ".body", divergence);
      if (i.blocks[1] != kNoBlock) find_barriers(i.blocks[1], ".else", divergence);
      ++path_.back().position;
    }
    path_.pop_back();
  }

  const Function& f_;
  std::vector<bool> placed_, visible_, used_block_, for_body_;
  Id at_ = kNone;
  struct Step {
    std::string_view part;
    size_t position;
  };
  std::vector<Step> path_;
};

}  // namespace

void verify(const Function& function) { Verifier(function).run(); }

}  // namespace lockstep::ir
