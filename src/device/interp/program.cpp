#include "device/interp/program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "device/interp/machine.hpp"
#include "device/interp/promises.hpp"
#include "lockstep/error.hpp"

namespace lockstep::interp {

using ir::Id;
using ir::Instruction;
using ir::kNoBlock;
using ir::kNone;
using ir::Op;

namespace {

class Decoder {
 public:
  explicit Decoder(Program& p) : p_(p), f_(p.function) {
    p_.slot.assign(f_.instructions.size(), 0);
    slots(0);
    for (const auto& a : f_.locals)
      p_.local_offset.push_back(std::exchange(p_.local_elements, p_.local_elements + uint32_t(a.count)));
    for (const auto& a : f_.shared)
      p_.shared_offset.push_back(std::exchange(p_.shared_elements, p_.shared_elements + uint32_t(a.count)));
    together_.assign(f_.blocks.size(), false);
    find_together(0);
    p_.nodes = group_block(0);
  }

 private:
  // ── slots ──
  void slots(uint32_t block) {
    for (Id id : f_.blocks[block]) {
      const Instruction& i = f_[id];
      switch (i.op) {
        case Op::constant:
        case Op::param:
        case Op::shape:
        case Op::stride:
        case Op::extent: p_.constants.push_back(id); break;
        case Op::coord:
        case Op::local_id:
        case Op::lane: p_.positions.push_back(id); break;
        case Op::async_copy:
        case Op::async_commit:
        case Op::async_wait: p_.asynchronous = true; break;
        default: break;
      }
      if (i.op == Op::extract) {
        p_.slot[id] = p_.slot[i.args[0]] + uint32_t(i.imm);
      } else if (i.type != Type::none) {
        p_.slot[id] = p_.slots;
        p_.slots += i.lanes;
      }
      for (uint32_t b : i.blocks)
        if (b != kNoBlock) slots(b);
    }
  }

  // ── what lanes do together ──
  bool find_together(uint32_t block) {
    bool any = false;
    for (Id id : f_.blocks[block]) {
      const Instruction& i = f_[id];
      any |= i.op == Op::barrier || i.op == Op::group_reduce;
      for (uint32_t b : i.blocks)
        if (b != kNoBlock) any |= find_together(b);
    }
    together_[block] = any;
    return any;
  }
  bool together(const Instruction& i) const {
    return (i.blocks[0] != kNoBlock && together_[i.blocks[0]]) ||
           (i.blocks[1] != kNoBlock && together_[i.blocks[1]]);
  }

  std::vector<Node> group_block(uint32_t block) {
    std::vector<Node> nodes;
    const auto lanes = [&]() -> Node& {
      if (nodes.empty() || nodes.back().kind != Node::lanes) {
        nodes.push_back({});
        nodes.back().begin = nodes.back().end = here();
      }
      return nodes.back();
    };
    for (Id id : f_.blocks[block]) {
      const Instruction& i = f_[id];
      Node node;
      node.source = id;
      switch (i.op) {
        case Op::barrier: node.kind = Node::barrier; break;
        case Op::group_reduce: node.kind = Node::reduce; break;
        case Op::if_:
        case Op::for_:
        case Op::loop:
          if (together(i)) {
            node.kind = i.op == Op::if_ ? Node::if_ : i.op == Op::for_ ? Node::for_ : Node::loop;
            if (i.op == Op::for_) turns_.push_back(counter_of(i));
            if (i.op == Op::loop) turns_.push_back(node.turns = p_.slots++);
            node.body = group_block(i.blocks[0]);
            if (i.op != Op::if_) turns_.pop_back();
            if (i.op == Op::if_) node.otherwise = group_block(i.blocks[1]);
            break;
          }
          [[fallthrough]];
        default: {
          Node& segment = lanes();
          statement(id);
          segment.end = here();
          continue;
        }
      }
      nodes.push_back(std::move(node));
    }
    return nodes;
  }

  // ── flat code ──
  uint32_t here() const { return uint32_t(p_.code.size()); }
  Code& emit(Handler run, Id source) {
    p_.code.push_back({});
    p_.code.back().run = run;
    p_.code.back().source = source;
    return p_.code.back();
  }
  uint32_t arg(const Instruction& i, int k) const { return i.args[k] == kNone ? 0 : p_.slot[i.args[k]]; }

  void lane_block(uint32_t block) {
    for (Id id : f_.blocks[block]) statement(id);
  }

  void value(Id id, Handler run) {
    const Instruction& i = f_[id];
    if (!run)
      throw InternalError(fmt::format("`{}` has no interpretation", ir::print(f_, id)),
                          fmt::format("kernel {}", f_.name), "a lowered kernel");
    Code& c = emit(run, id);
    c.dst = p_.slot[id];
    c.a = arg(i, 0);
    c.b = arg(i, 1);
    c.c = arg(i, 2);
    c.imm = i.imm;
  }

  void statement(Id id) {
    operation(id);
    const Instruction& i = f_[id];
    if (i.op != Op::uniform) return;
    Code& check = emit(check_uniform, id);
    check.a = p_.slot[id];
    check.b = uint32_t(p_.turn_slots.size());
    check.c = uint32_t(turns_.size());
    p_.turn_slots.insert(p_.turn_slots.end(), turns_.begin(), turns_.end());
  }

  void operation(Id id) {
    const Instruction& i = f_[id];
    switch (i.op) {
      case Op::constant:
      case Op::param:
      case Op::shape:
      case Op::stride:
      case Op::extent:
      case Op::coord:
      case Op::local_id:
      case Op::lane:
      case Op::extract:
      case Op::loop_index: return;
      case Op::variable:
      case Op::get:
      case Op::uniform:
      case Op::bitcast: return value(id, copy);
      case Op::set: {
        Code& c = emit(copy, id);
        c.dst = p_.slot[i.args[0]];
        c.a = p_.slot[i.args[1]];
        return;
      }
      case Op::select:
        return value(id, [](Machine& m, const Code& c) { m.r[c.dst] = m.r[c.a] ? m.r[c.b] : m.r[c.c]; });
      case Op::convert: return value(id, convert_handler(f_[i.args[0]].type, i.type));
      case Op::clamp_index:
        return value(id, [](Machine& m, const Code& c) {
          const int32_t at = int32_t(m.r[c.a]), n = int32_t(m.r[c.b]);
          m.r[c.dst] = uint32_t(std::max(0, std::min(at, int32_t(uint32_t(n) - 1))));
        });
      case Op::if_: return if_statement(id);
      case Op::for_: return for_statement(id);
      case Op::loop: return loop_statement(id);
      case Op::break_: return jump(loops_.empty() ? nullptr : &loops_.back().breaks, LaneState::broke, id);
      case Op::continue_:
        return jump(loops_.empty() ? nullptr : &loops_.back().continues, LaneState::continued, id);
      case Op::return_: return jump(nullptr, LaneState::returned, id);
      default: break;
    }
    if (is_elementary(i.op)) return value(id, elementary_handler(i.op, f_[i.args[0]].type));
    memory(id);
  }

  void axes(Id id) {
    const Instruction& i = f_[id];
    const std::vector<AxisCheck> checks = axis_checks(p_, i);
    if (checks.empty()) return;
    Code& c = emit(check_axes, id);
    c.a = uint32_t(p_.axis_checks.size());
    c.b = uint32_t(checks.size());
    if (i.op == Op::load) {
      c.dst = p_.slot[id];
      c.more = i.lanes;
    }
    p_.axis_checks.insert(p_.axis_checks.end(), checks.begin(), checks.end());
  }

  void memory(Id id) {
    const Instruction& i = f_[id];
    if (i.op == Op::load || i.op == Op::store || i.op == Op::async_copy) axes(id);
    value(id, memory_handler(f_, i));
    Code& c = p_.code.back();
    switch (i.op) {
      case Op::load: c.more = i.lanes; break;
      case Op::store:
        if (i.lanes == 1) break;
        c.dst = i.lanes;
        c.more = uint32_t(p_.wide_slots.size());
        for (int k = 1; k <= i.lanes; ++k) p_.wide_slots.push_back(p_.slot[i.args[k]]);
        break;
      case Op::shared_load:
      case Op::shared_store:
      case Op::local_load:
      case Op::local_store: {
        const bool shared = i.op == Op::shared_load || i.op == Op::shared_store;
        c.c = arg(i, 1);
        c.more = i.lanes;
        c.b = (shared ? p_.shared_offset : p_.local_offset)[i.imm];
        c.imm = uint64_t((shared ? f_.shared : f_.locals)[i.imm].count);
        break;
      }
      case Op::atomic: c.imm = ir::AtomicTarget::from_bits(i.imm).array; break;
      default: break;
    }
  }

  static void copy(Machine& m, const Code& c) { m.r[c.dst] = m.r[c.a]; }
  static void go(Machine& m, const Code& c) { m.pc = c.dst; }

  /// A jump to a place that is not known yet (collected in `places`), or out of the lane's code.
  void jump(std::vector<uint32_t>* places, LaneState why, Id source) {
    if (places) {
      places->push_back(here());
      emit(go, source);
    } else {
      emit([](Machine& m, const Code& c) { m.leave(LaneState(c.imm)); }, source).imm = uint64_t(why);
    }
  }

  void if_statement(Id id) {
    const Instruction& i = f_[id];
    const uint32_t test = here();
    emit(
        [](Machine& m, const Code& c) {
          if (!m.r[c.a]) m.pc = c.dst;
        },
        id)
        .a = p_.slot[i.args[0]];
    lane_block(i.blocks[0]);
    if (!f_.blocks[i.blocks[1]].empty()) {
      const uint32_t end = here();
      emit(go, id);
      p_.code[test].dst = here();
      lane_block(i.blocks[1]);
      p_.code[end].dst = here();
    } else {
      p_.code[test].dst = here();
    }
  }

  struct Loop {
    std::vector<uint32_t> breaks, continues;
  };
  void land(const std::vector<uint32_t>& jumps) {
    for (uint32_t at : jumps) p_.code[at].dst = here();
  }

  uint32_t counter_of(const Instruction& loop) const { return p_.slot[f_.blocks[loop.blocks[0]][0]]; }

  void for_statement(Id id) {
    const Instruction& i = f_[id];
    const uint32_t counter = counter_of(i);
    const Type type = f_[i.args[0]].type;
    Code& start = emit(copy, id);
    start.dst = counter;
    start.a = p_.slot[i.args[0]];
    const uint32_t head = here();
    Code& test = emit(loop_test_handler(type, counts_up(f_, i)), id);
    test.a = counter;
    test.b = p_.slot[i.args[1]];
    const Loop loop = body(i.blocks[0], counter);
    land(loop.continues);
    Code& step = emit(loop_step_handler(type), id);
    step.a = counter;
    step.b = p_.slot[i.args[2]];
    emit(go, id).dst = head;
    p_.code[head].dst = here();
    land(loop.breaks);
  }

  Loop body(uint32_t block, uint32_t turns) {
    loops_.push_back({});
    turns_.push_back(turns);
    lane_block(block);
    turns_.pop_back();
    Loop loop = std::move(loops_.back());
    loops_.pop_back();
    return loop;
  }

  void loop_statement(Id id) {
    const uint32_t turns = p_.slots++;
    emit([](Machine& m, const Code& c) { m.r[c.dst] = 0; }, id).dst = turns;
    const uint32_t head = here();
    const Loop loop = body(f_[id].blocks[0], turns);
    land(loop.continues);
    emit([](Machine& m, const Code& c) { ++m.r[c.dst]; }, id).dst = turns;
    emit(go, id).dst = head;
    land(loop.breaks);
  }

  Program& p_;
  const ir::Function& f_;
  std::vector<bool> together_;
  std::vector<Loop> loops_;      // of lane code; empty where the innermost loop is the group's
  std::vector<uint32_t> turns_;  // slots that count the turns of the loops around
};

}  // namespace

bool counts_up(const ir::Function& f, const Instruction& loop) {
  const Instruction& step = f[loop.args[2]];
  return is_wide(step.type) ? int64_t(step.imm) > 0 : int32_t(step.imm) > 0;
}

Program decode(ir::Function function) {
  Program program;
  program.function = std::move(function);
  Decoder decoder(program);
  return program;
}

}  // namespace lockstep::interp
