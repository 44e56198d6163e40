#include "compile/passes/expressions/cse.hpp"

#include <unordered_map>

#include "compile/passes/rewrite.hpp"

namespace lockstep::compile {

using namespace ir;

namespace {

/// Instructions with equal keys are equal.
struct Key {
  Op op;
  Type type;
  uint8_t lanes, flags;
  std::array<Id, kMostArgs> args;
  uint64_t imm;
  friend bool operator==(const Key&, const Key&) = default;
};
struct KeyHash {
  size_t operator()(const Key& k) const {
    uint64_t h = uint64_t(k.op) | uint64_t(k.type) << 8 | uint64_t(k.lanes) << 16 | uint64_t(k.flags) << 24;
    const auto mix = [&](uint64_t v) { h = (h ^ v) * 0x9e3779b97f4a7c15ull, h ^= h >> 29; };
    for (Id a : k.args) mix(a);
    mix(k.imm);
    return size_t(h);
  }
};

class ValueNumbering {
 public:
  explicit ValueNumbering(Function& f) : f_(f), replaced_(f.instructions.size()) {}

  void run() {
    block(0);
    f_.blocks[0].insert(f_.blocks[0].begin(), entry_.begin(), entry_.end());
    replaced_.apply(f_);
  }

 private:
  bool mergeable(const Instruction& i) const {
    return is_pure(i.op) || i.op == Op::call ||
           (i.op == Op::load && f_.buffers[i.imm].access == Access::read);
  }

  void block(uint32_t b) {
    std::vector<Key> here;
    Block kept;
    for (Id id : f_.blocks[b]) {
      Instruction& i = f_[id];
      replaced_.apply(i);
      if (!mergeable(i)) {
        kept.push_back(id);
        for (uint32_t inner : i.blocks)
          if (inner != kNoBlock) block(inner);
        continue;
      }
      const Key key{i.op, i.type, i.lanes, uint8_t(i.flags & ~kNoWrap), i.args, i.imm};
      const auto [place, fresh] = first_.try_emplace(key, id);
      if (!fresh) {
        Instruction& same = f_[place->second];
        same.flags = uint8_t((same.flags & ~kNoWrap) | (same.flags & i.flags & kNoWrap));
        replaced_.set(id, place->second);
      } else if (i.args[0] == kNone) {
        entry_.push_back(id);
      } else {
        here.push_back(key);
        kept.push_back(id);
      }
    }
    for (const Key& key : here) first_.erase(key);
    f_.blocks[b] = std::move(kept);
  }

  Function& f_;
  Replacement replaced_;
  std::unordered_map<Key, Id, KeyHash> first_;
  Block entry_;
};

}  // namespace

void cse(Function& f) { ValueNumbering(f).run(); }

}  // namespace lockstep::compile
