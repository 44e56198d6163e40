#include "device/interp/execute.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "device/interp/machine.hpp"

namespace lockstep::interp {

using ir::Id;
using ir::Instruction;
using ir::Op;

void Machine::report(FindingKind kind, Id source) {
  for (Finding& f : found)
    if (f.kind == kind) {
      ++f.count;
      return;
    }
  found.push_back({kind, program->function.name, ir::print(program->function, source), lane_text(), 1,
                   ir::place_text(program->function, program->function[source].place)});
}

std::string Machine::lane_text() const {
  const ir::Function& f = program->function;
  std::string text = f.domain == ir::Domain::points ? "point (" : "group (";
  for (int a = 0; a < f.rank; ++a) text += fmt::format("{}{}", a ? ", " : "", position[a]);
  return text + (f.domain == ir::Domain::points ? ")" : fmt::format("), lane {}", lane));
}

namespace {

class Run {
 public:
  Run(const Program& p, const device::Dispatch& d, std::array<int32_t, 3> group, uint32_t& serial)
      : p_(p), f_(p.function), d_(d), group_(group), serial_(serial) {
    lanes_ = f_.domain == ir::Domain::groups ? f_.group_lanes() : 1;
    m_.program = &p;
    m_.launch = next_serial();
    m_.shared.resize(p.shared_elements);
    m_.shared_stamps.resize(p.shared_elements);
    m_.shared_records.resize(p.shared_elements);
    frames_.resize(size_t(lanes_) * p.slots + 1);
    locals_.resize(size_t(lanes_) * p.local_elements + 1);
    local_stamps_.resize(size_t(lanes_) * p.local_elements + 1);
    states_.resize(size_t(lanes_));
    if (p.asynchronous) {
      m_.pending.resize(size_t(lanes_));
      m_.stages.resize(size_t(lanes_));
    }
    bind();
    for (int lane = 0; lane < lanes_; ++lane) set_constants(frame(lane));
  }

  std::vector<Finding> all() {
    if (f_.domain == ir::Domain::groups)
      groups();
    else
      points();
    return std::move(m_.found);
  }

 private:
  uint64_t* frame(int lane) { return frames_.data() + size_t(lane) * p_.slots; }
  uint32_t next_serial() {
    if (++serial_ == 0) ++serial_;
    return serial_;
  }

  void bind() {
    struct Use {
      int granule = 8;
      bool written = false;
    };
    std::map<InterpMemory*, Use> uses;
    for (size_t k = 0; k < f_.buffers.size(); ++k) {
      Use& use = uses[static_cast<InterpMemory*>(d_.buffers[k].memory)];
      use.granule = std::min(use.granule, size_of(f_.buffers[k].storage));
      use.written |= f_.buffers[k].access != ir::Access::read;
    }
    for (size_t k = 0; k < f_.buffers.size(); ++k) {
      const device::Binding& binding = d_.buffers[k];
      auto* memory = static_cast<InterpMemory*>(binding.memory);
      const Use use = uses[memory];
      const int size = size_of(f_.buffers[k].storage);
      BoundBuffer b;
      b.data = memory->data() + binding.offset_bytes;
      b.initialised = memory->initialised() + binding.offset_bytes;
      b.elements = uint64_t(binding.span_bytes / size);
      b.records = use.written ? memory->records(use.granule) : nullptr;
      b.record_first = uint32_t(binding.offset_bytes / use.granule);
      b.records_per_element = uint32_t(size / use.granule);
      b.shape = binding.shape;
      m_.buffers.push_back(b);
    }
  }

  void set_constants(uint64_t* r) const {
    for (Id id : p_.constants) {
      const Instruction& i = f_[id];
      uint64_t bits = i.imm;
      switch (i.op) {
        case Op::param: bits = d_.scalars[i.imm]; break;
        case Op::shape: bits = uint64_t(d_.buffers[i.imm / 8].shape[i.imm % 8]); break;
        case Op::stride: bits = uint64_t(d_.buffers[i.imm / 8].strides[i.imm % 8]); break;
        case Op::extent: bits = uint64_t(d_.extent[i.imm]); break;
        default: break;
      }
      r[p_.slot[id]] = size_of(i.type) == 4 ? uint32_t(bits) : bits;
    }
  }

  void set_positions(uint64_t* r, int lane) const {
    for (Id id : p_.positions) {
      const Instruction& i = f_[id];
      int64_t v = lane;
      if (i.op == Op::coord) v = m_.position[i.imm];
      if (i.op == Op::local_id)
        v = i.imm == 0   ? lane % group_[0]
            : i.imm == 1 ? lane / group_[0] % group_[1]
                         : lane / (group_[0] * group_[1]);
      r[p_.slot[id]] = uint32_t(v);
    }
  }

  void enter_lane(int lane) {
    m_.lane = uint16_t(lane);
    m_.r = frame(lane);
    m_.locals = locals_.data() + size_t(lane) * p_.local_elements;
    m_.local_stamps = local_stamps_.data() + size_t(lane) * p_.local_elements;
    m_.state = states_[lane];
  }

  // ── points: each a group of one lane ──
  void points() {
    std::array<int64_t, 3> first{}, last{};
    for (int a = 0; a < 3; ++a) {
      first[a] = d_.offset[a];
      last[a] = std::min(d_.extent[a], d_.offset[a] + d_.count[a] * group_[a]);
    }
    const uint32_t end = uint32_t(p_.code.size());
    enter_lane(0);
    for (int64_t z = first[2]; z < last[2]; ++z)
      for (int64_t y = first[1]; y < last[1]; ++y)
        for (int64_t x = first[0]; x < last[0]; ++x) {
          m_.position = {x, y, z};
          ++m_.group;
          m_.serial = next_serial();
          set_positions(m_.r, 0);
          m_.run(0, end);
        }
  }

  // ── groups ──
  void groups() {
    for (int64_t z = 0; z < d_.count[2]; ++z)
      for (int64_t y = 0; y < d_.count[1]; ++y)
        for (int64_t x = 0; x < d_.count[0]; ++x) {
          m_.position = {d_.offset[0] + x, d_.offset[1] + y, d_.offset[2] + z};
          ++m_.group;
          m_.serial = next_serial();
          m_.epoch = 0;
          m_.agreed.clear();
          for (auto& pending : m_.pending) pending.clear();
          std::fill(m_.stages.begin(), m_.stages.end(), 0u);
          std::fill(states_.begin(), states_.end(), LaneState::run);
          for (int lane = 0; lane < lanes_; ++lane) set_positions(frame(lane), lane);
          nodes(p_.nodes);
        }
  }

  void nodes(const std::vector<Node>& list) {
    for (const Node& node : list) switch (node.kind) {
        case Node::lanes:
          for (int lane = 0; lane < lanes_; ++lane) {
            if (states_[lane] != LaneState::run) continue;
            enter_lane(lane);
            m_.run(node.begin, node.end);
            states_[lane] = m_.state;
          }
          break;
        case Node::barrier: meet(node); break;
        case Node::reduce: reduce(node); break;
        case Node::if_: branch(node); break;
        case Node::for_:
        case Node::loop: repeat(node); break;
      }
  }

  /// All lanes meet; gives whether there is any.
  bool meet(const Node& node) {
    int running = 0;
    for (LaneState s : states_) running += s == LaneState::run;
    if (running != 0 && running != lanes_) {
      enter_lane(
          int(std::find_if(states_.begin(), states_.end(), [](LaneState s) { return s != LaneState::run; }) -
              states_.begin()));
      m_.report(FindingKind::divergence, node.source);
    }
    ++m_.epoch;
    return running != 0;
  }

  void reduce(const Node& node) {
    if (!meet(node)) return;
    const Instruction& i = f_[node.source];
    const uint32_t from = p_.slot[i.args[0]], to = p_.slot[node.source];
    std::vector<uint64_t> tree(static_cast<size_t>(lanes_));
    for (int lane = 0; lane < lanes_; ++lane) tree[lane] = frame(lane)[from];
    for (int s = lanes_ / 2; s > 0; s /= 2)
      for (int k = 0; k < s; ++k) tree[k] = combine(ir::Reduction(i.imm), i.type, tree[k], tree[k + s]);
    for (int lane = 0; lane < lanes_; ++lane) frame(lane)[to] = tree[0];
    ++m_.epoch;
  }

  template <class Pick>
  void only(const std::vector<Node>& body, Pick pick) {
    std::vector<int> waiting;
    bool any = false;
    for (int lane = 0; lane < lanes_; ++lane) {
      if (states_[lane] != LaneState::run) continue;
      if (pick(lane)) {
        any = true;
      } else {
        states_[lane] = LaneState::waits;
        waiting.push_back(lane);
      }
    }
    if (any) nodes(body);
    for (int lane : waiting) states_[lane] = LaneState::run;
  }

  void branch(const Node& node) {
    const uint32_t condition = p_.slot[f_[node.source].args[0]];
    std::vector<bool> yes(static_cast<size_t>(lanes_));
    for (int lane = 0; lane < lanes_; ++lane) yes[lane] = frame(lane)[condition] != 0;
    std::vector<bool> before(static_cast<size_t>(lanes_));
    for (int lane = 0; lane < lanes_; ++lane) before[lane] = states_[lane] == LaneState::run;
    only(node.body, [&](int lane) { return yes[lane]; });
    only(node.otherwise, [&](int lane) { return before[lane] && !yes[lane]; });
  }

  void repeat(const Node& node) {
    const Instruction& i = f_[node.source];
    const bool counted = node.kind == Node::for_;
    const uint32_t counter = counted ? p_.slot[f_.blocks[i.blocks[0]][0]] : node.turns;
    const Type type = counted ? f_[i.args[0]].type : Type::none;
    Code test, step;
    if (counted) {
      test.run = loop_test_handler(type, counts_up(f_, i));
      test.a = step.a = counter;
      test.b = p_.slot[i.args[1]];
      step.run = loop_step_handler(type);
      step.b = p_.slot[i.args[2]];
      test.dst = ~uint32_t(0);
    }
    std::vector<int> members;
    for (int lane = 0; lane < lanes_; ++lane) {
      if (states_[lane] != LaneState::run) continue;
      members.push_back(lane);
      frame(lane)[counter] = counted ? frame(lane)[p_.slot[i.args[0]]] : 0;
    }
    for (;;) {
      bool any = false;
      for (int lane : members) {
        if (states_[lane] != LaneState::run) continue;
        if (counted) {
          enter_lane(lane);
          m_.pc = 0;
          test.run(m_, test);
          if (m_.pc != 0) {
            states_[lane] = LaneState::broke;
            continue;
          }
        }
        any = true;
      }
      if (!any) break;
      nodes(node.body);
      for (int lane : members) {
        if (states_[lane] == LaneState::continued) states_[lane] = LaneState::run;
        if (states_[lane] != LaneState::run) continue;
        enter_lane(lane);
        if (counted)
          step.run(m_, step);
        else
          ++m_.r[counter];
      }
    }
    for (int lane : members)
      if (states_[lane] == LaneState::broke) states_[lane] = LaneState::run;
  }

  const Program& p_;
  const ir::Function& f_;
  const device::Dispatch& d_;
  std::array<int32_t, 3> group_;
  uint32_t& serial_;
  int lanes_ = 1;
  Machine m_;
  std::vector<uint64_t> frames_, locals_;
  std::vector<uint32_t> local_stamps_;
  std::vector<LaneState> states_;
};

}  // namespace

std::vector<Finding> execute(const Program& program, const device::Dispatch& dispatch,
                             std::array<int32_t, 3> group, uint32_t& serial) {
  return Run(program, dispatch, group, serial).all();
}

}  // namespace lockstep::interp
