#include "autodiff/kernels/plain_form.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "compile/passes/expressions/cse.hpp"
#include "compile/passes/rewrite.hpp"
#include "compile/passes/structure/inline_calls.hpp"
#include "compile/passes/structure/promote.hpp"
#include "lockstep/error.hpp"
#include "lockstep/ir/builder.hpp"

namespace lockstep::gradients {

using namespace ir;

size_t body_start(const Function& f, const Instruction& loop) {
  if (loop.op == Op::for_) return 1;
  const Block& body = f.blocks[loop.blocks[0]];
  size_t k = 0;
  while (f[body[k]].op != Op::if_) ++k;
  return k + 1;
}

namespace {

/// Writes a function again without jumps and accesses of several elements.
class Straightener {
 public:
  explicit Straightener(const Function& from)
      : from_(from), to_(from), b_(to_), value_(from.instructions.size(), kNone) {
    to_.instructions.clear();
    to_.blocks.assign(1, {});
  }

  Function run() {
    if (contains(0, {Op::return_})) scopes_.back().go = b_.variable(b_.boolean(true));
    block(from_.blocks[0], 0);
    return std::move(to_);
  }

 private:
  /// A loop that is open, or the kernel itself: `alive` until it is left, `go` until the pass is.
  struct Scope {
    Id alive = kNone, go = kNone;
  };

  /// Whether a block has one of these jumps for what is around it: loops inside keep their own break_ and continue_.
  bool contains(uint32_t block, std::initializer_list<Op> jumps) const {
    for (Id id : from_.blocks[block]) {
      const Instruction& i = from_[id];
      if (std::find(jumps.begin(), jumps.end(), i.op) != jumps.end()) return true;
      if (leaves(i, jumps)) return true;
    }
    return false;
  }
  bool leaves(const Instruction& i, std::initializer_list<Op> jumps) const {
    const bool loop = i.op == Op::for_ || i.op == Op::loop;
    const bool returns = std::find(jumps.begin(), jumps.end(), Op::return_) != jumps.end();
    if (loop) return returns && contains(i.blocks[0], {Op::return_});
    for (uint32_t inner : i.blocks)
      if (inner != kNoBlock && contains(inner, jumps)) return true;
    return false;
  }

  void block(const Block& list, size_t start) {
    for (size_t k = start; k < list.size(); ++k) {
      const Instruction& i = from_[list[k]];
      b_.at(i.place);
      if (i.op == Op::break_ || i.op == Op::continue_ || i.op == Op::return_) return jump(i.op);
      statement(list[k]);
      if (k + 1 < list.size() && leaves(i, {Op::break_, Op::continue_, Op::return_}))
        return b_.if_(b_.get(scopes_.back().go), [&] { block(list, k + 1); });
    }
  }
  void jump(Op op) {
    const size_t outermost = op == Op::return_ ? 0 : scopes_.size() - 1;
    for (size_t k = outermost; k < scopes_.size(); ++k) {
      b_.set(scopes_[k].go, b_.boolean(false));
      if (op != Op::continue_ && scopes_[k].alive != kNone) b_.set(scopes_[k].alive, b_.boolean(false));
    }
  }

  void statement(Id id) {
    const Instruction& i = from_[id];
    switch (i.op) {
      case Op::if_:
        return b_.if_(
            value_[i.args[0]], [&] { block(from_.blocks[i.blocks[0]], 0); },
            [&] { block(from_.blocks[i.blocks[1]], 0); });
      case Op::for_: return counted_loop(i);
      case Op::loop: return open_loop([&] { block(from_.blocks[i.blocks[0]], 0); }, i.blocks[0]);
      case Op::load:
      case Op::shared_load: return load(id);
      case Op::store:
      case Op::shared_store: return store(i);
      case Op::async_copy: return copy_now(i);
      case Op::async_commit:
      case Op::async_wait: return;
      case Op::extract: value_[id] = parts_[i.args[0]][i.imm]; return;
      default: value_[id] = copy(i);
    }
  }
  Id copy(Instruction i) {
    for (Id& a : i.args)
      if (a != kNone) a = value_[a];
    return b_.append(i);
  }

  void counted_loop(const Instruction& i) {
    const Block& body = from_.blocks[i.blocks[0]];
    const Id begin = value_[i.args[0]], end = value_[i.args[1]];
    const Type type = b_.type(begin);
    const uint64_t bits = from_[i.args[2]].imm;
    const int64_t step = is_wide(type) || type == kIndexType ? int64_t(bits) : int64_t(int32_t(bits));
    if (!contains(i.blocks[0], {Op::break_, Op::return_})) {
      b_.for_(begin, end, step, [&](Id index) {
        value_[body[0]] = index;
        scopes_.push_back({kNone, go_of(i.blocks[0])});
        block(body, 1);
        scopes_.pop_back();
      });
      return;
    }
    // The same passes as a loop with a counter, which advances only while a further pass is due.
    const Id counter = b_.variable(begin);
    const Id first = step > 0 ? b_.op(Op::ilt, {begin, end}) : b_.op(Op::ilt, {end, begin});
    const Id due = b_.variable(first);
    open_loop(
        [&] {
          const Id index = b_.get(counter);
          value_[body[0]] = index;
          const Id rest = b_.op(Op::isub, step > 0 ? std::initializer_list<Id>{end, index}
                                                   : std::initializer_list<Id>{index, end});
          b_.set(due, less_unsigned(magnitude(type, step), rest));
          b_.set(counter, b_.op(Op::iadd, {index, b_.constant(type, bits)}));
          block(body, 1);
        },
        i.blocks[0], due);
  }
  Id magnitude(Type type, int64_t step) { return b_.number(type, double(step < 0 ? -step : step)); }
  Id less_unsigned(Id a, Id b) {
    const Type type = b_.type(a);
    if (type == Type::i32) return b_.op(Op::ilt, {b_.bitcast(Type::u32, a), b_.bitcast(Type::u32, b)});
    if (type == Type::i64) return b_.op(Op::ilt, {b_.bitcast(Type::u64, a), b_.bitcast(Type::u64, b)});
    return b_.op(Op::ilt, {a, b});
  }

  Id go_of(uint32_t body) {
    const bool jumps = contains(body, {Op::break_, Op::continue_, Op::return_});
    return jumps ? b_.variable(b_.boolean(true)) : kNone;
  }
  /// `due`: the variable that a pass needs true, where there is one already.
  void open_loop(const std::function<void()>& body, uint32_t from, Id due = kNone) {
    const Id alive = due == kNone ? b_.variable(b_.boolean(true)) : due;
    b_.loop([&] {
      b_.if_(b_.op(Op::bnot, {b_.get(alive)}), [&] { b_.emit(Op::break_, Type::none); });
      scopes_.push_back({alive, go_of(from)});
      body();
      scopes_.pop_back();
    });
  }

  Id element(Id offset, int lane) {
    if (lane == 0) return offset;
    return b_.op(Op::iadd, {offset, b_.constant(b_.type(offset), uint64_t(lane))}, kNoWrap);
  }
  void load(Id id) {
    const Instruction& i = from_[id];
    for (int lane = 0; lane < i.lanes; ++lane) {
      Instruction one = i;
      one.lanes = 1;
      one.args[0] = element(value_[i.args[0]], lane);
      parts_[id].push_back(b_.append(one));
    }
    value_[id] = parts_[id][0];
  }
  void store(const Instruction& i) {
    for (int lane = 0; lane < i.lanes; ++lane) {
      Instruction one = i;
      one.lanes = 1;
      one.args = Instruction::operands({element(value_[i.args[0]], lane), value_[i.args[size_t(1 + lane)]]});
      b_.append(one);
    }
  }

  /// Nobody may count on when a copy is made before it is waited for.
  void copy_now(const Instruction& i) {
    const uint64_t array = i.imm >> 32, buffer = i.imm & 0xffffffffu;
    const Type type = value_type(from_.buffers[buffer].storage);
    for (int lane = 0; lane < i.lanes; ++lane) {
      const Id loaded = b_.emit(Op::load, type, {element(value_[i.args[1]], lane)}, buffer);
      b_.emit(Op::shared_store, Type::none, {element(value_[i.args[0]], lane), loaded}, array);
    }
  }

  const Function& from_;
  Function to_;
  Builder b_;
  std::vector<Id> value_;
  std::map<Id, std::vector<Id>> parts_;  // elements of a load
  std::vector<Scope> scopes_{Scope()};
};

bool is_written(const BufferParam& b) { return b.access != Access::read; }

/// Equal instructions give equal values wherever they are in a lane.
bool is_steady(const Function& f, const Instruction& i) {
  return is_pure(i.op) || (i.op == Op::load && f.buffers[i.imm].access == Access::read);
}
bool same_value(const Function& f, Id a, Id b) {
  if (a == b) return true;
  const Instruction &x = f[a], &y = f[b];
  if (x.op != y.op || x.type != y.type || x.imm != y.imm || !is_steady(f, x)) return false;
  for (size_t k = 0; k < kMostArgs; ++k) {
    if ((x.args[k] == kNone) != (y.args[k] == kNone)) return false;
    if (x.args[k] != kNone && !same_value(f, x.args[k], y.args[k])) return false;
  }
  return true;
}
bool is_steady_tree(const Function& f, Id id) {
  if (!is_steady(f, f[id])) return false;
  for (Id a : f[id].args)
    if (a != kNone && !is_steady_tree(f, a)) return false;
  return true;
}

/// Buffers read and written at one offset become variables.
class InPlace {
 public:
  explicit InPlace(Function& f) : f_(f), accesses_(f.buffers.size()) {}

  void run() {
    compile::walk(f_, 0, [&](uint32_t block, size_t, Id id) {
      const Instruction& i = f_[id];
      if ((i.op == Op::load || i.op == Op::store) && is_written(f_.buffers[i.imm]))
        accesses_[i.imm].push_back({id, block == 0});
    });
    for (uint32_t k = 0; k < accesses_.size(); ++k)
      if (has(k, Op::load) && has(k, Op::store)) rewrite(k);
  }

 private:
  struct Found {
    Id id;
    bool always;
  };
  bool has(uint32_t buffer, Op op) const {
    for (const Found& a : accesses_[buffer])
      if (f_[a.id].op == op) return true;
    return false;
  }
  std::string line(Id id) const {
    const std::string text = place_text(f_, f_[id].place);
    return text.empty() ? print(f_, id) : text;
  }
  void rewrite(uint32_t buffer) {
    const std::string& name = f_.buffers[buffer].name;
    const Found& first = accesses_[buffer][0];
    const Id offset = f_[first.id].args[0];
    bool always = f_.buffers[buffer].by_point && is_own_point(f_, offset, buffer);
    for (const Found& other : accesses_[buffer]) {
      always |= other.always;
      if (!same_value(f_, offset, f_[other.id].args[0]))
        throw InputError(fmt::format("buffer {} is read and written at different elements, near {} and {}",
                                     name, line(first.id), line(other.id)),
                         where_of(f_, f_[other.id].place),
                         "one element of each lane, or an input and an output of their own (ping-pong)");
    }
    if (!always || !is_steady_tree(f_, offset))
      throw InputError(
          fmt::format("buffer {} is read and written under conditions, near {}", name, line(first.id)),
          where_of(f_, f_[first.id].place),
          "an access that every lane makes, at an offset known at the start: read the element "
          "into a Var first");
    const Block body = std::move(f_.blocks[0]);
    f_.blocks[0] = {};
    Builder b(f_);
    b.at(f_[first.id].place);
    const Id at = copy_tree(b, offset);
    const Id variable = b.variable(b.emit(Op::load, value_type(f_.buffers[buffer].storage), {at}, buffer));
    f_.blocks[0].insert(f_.blocks[0].end(), body.begin(), body.end());
    b.emit(Op::store, Type::none, {at, b.get(variable)}, buffer);
    for (const Found& access : accesses_[buffer]) {
      Instruction& i = f_[access.id];
      i.imm = 0;
      i.flags = 0;
      i.args[0] = variable;
      i.op = i.op == Op::load ? Op::get : Op::set;
    }
  }
  Id copy_tree(Builder& b, Id id) {
    Instruction i = f_[id];
    for (Id& a : i.args)
      if (a != kNone) a = copy_tree(b, a);
    return b.append(i);
  }

  Function& f_;
  std::vector<std::vector<Found>> accesses_;
};

}  // namespace

std::vector<Id> coordinates_of(const Function& f, Id offset, uint32_t buffer) {
  const int rank = f.buffers[buffer].rank;
  std::vector<Id> terms{offset};
  while (int(terms.size()) < rank && f[terms[0]].op == Op::iadd) {
    const Instruction sum = f[terms[0]];
    terms[0] = sum.args[1];
    terms.insert(terms.begin(), sum.args[0]);
  }
  if (int(terms.size()) != rank) return {};
  for (int axis = 0; axis < rank; ++axis) {
    Id& term = terms[size_t(axis)];
    if (axis < rank - 1) {
      const Instruction& product = f[term];
      if (product.op != Op::imul) return {};
      const Instruction& stride = f[product.args[1]];
      if (stride.op != Op::stride || stride.imm != uint64_t(buffer) * 8 + uint64_t(axis)) return {};
      term = product.args[0];
    }
    if (f[term].op != Op::convert) return {};
    term = f[term].args[0];
    if (f[term].type != Type::i32) return {};
  }
  return terms;
}

bool is_own_point(const Function& f, Id offset, uint32_t buffer) {
  const std::vector<Id> at = coordinates_of(f, offset, buffer);
  if (int(at.size()) != f.rank) return false;
  for (int axis = 0; axis < f.rank; ++axis)
    if (f[at[size_t(axis)]].op != Op::coord || f[at[size_t(axis)]].imm != uint64_t(f.rank - 1 - axis))
      return false;
  return true;
}

bool is_private(const Function& f, Id offset, uint32_t buffer, std::array<int, 3>& axes) {
  const std::vector<Id> at = coordinates_of(f, offset, buffer);
  axes.fill(-1);
  for (size_t axis = 0; axis < at.size(); ++axis)
    if (f[at[axis]].op == Op::coord && axes[f[at[axis]].imm] < 0) axes[f[at[axis]].imm] = int(axis);
  for (int a = 0; a < f.rank; ++a)
    if (axes[size_t(a)] < 0) return false;
  return true;
}

Function plain_form(const Function& traced) {
  Function f = traced;
  compile::inline_all_calls(f);
  f = Straightener(f).run();
  InPlace(f).run();
  compile::promote(f);
  compile::cse(f);
  compile::compact(f);
  return f;
}

}  // namespace lockstep::gradients
