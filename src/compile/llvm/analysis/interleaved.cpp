#include "compile/llvm/analysis/interleaved.hpp"

#include <algorithm>
#include <array>
#include <map>

namespace lockstep::compile::simd {

namespace {

using ir::Function;
using ir::Id;
using ir::Instruction;
using ir::Op;

/// One value or the sum of two.
using Root = std::array<Id, 2>;
struct Place {
  Root root;
  int64_t offset;
};

/// Takes constants off a sum; gives what is left of it.
Id without_constants(const Function& f, Id id, int64_t& offset) {
  for (;;) {
    const Instruction& i = f[id];
    if ((i.op != Op::iadd && i.op != Op::isub) || !is_signed(i.type)) return id;
    const auto constant = [&](int k) { return f[i.args[k]].op == Op::constant; };
    const int which = constant(1) ? 1 : 0;
    if (!constant(which) || (which == 0 && i.op == Op::isub)) return id;
    const uint64_t bits = f[i.args[which]].imm;
    const int64_t value = is_wide(i.type) ? int64_t(bits) : int64_t(int32_t(uint32_t(bits)));
    constexpr int64_t kLargest = int64_t(1) << 20;
    if (value > kLargest || value < -kLargest || std::abs(offset) > kLargest) return id;
    offset += i.op == Op::iadd ? value : -value;
    id = i.args[1 - which];
  }
}

/// The index as a value, or two such as a row's start and a column, plus a constant.
Place place_of(const Function& f, Id index) {
  Place place{{ir::kNone, ir::kNone}, 0};
  place.root[0] = without_constants(f, index, place.offset);
  const Instruction& sum = f[place.root[0]];
  if (sum.op != Op::iadd || !is_signed(sum.type)) return place;
  place.root = {without_constants(f, sum.args[0], place.offset),
                without_constants(f, sum.args[1], place.offset)};
  return place;
}

/// Where an access goes: buffers and shared arrays apart, loads and stores apart.
struct Key {
  bool shared, store;
  uint64_t array;
  Root root;
  friend auto operator<=>(const Key&, const Key&) = default;
};

class SetFinder {
  static constexpr size_t kMostOpen = 64;  // places of a run at a time

 public:
  SetFinder(const Function& f, std::vector<Interleaved>& sets, std::unordered_map<Id, size_t>& set_of)
      : f_(f), sets_(sets), set_of_(set_of) {
    for (const ir::Block& block : f.blocks) {
      for (Id id : block) statement(id);
      close_all();
    }
  }

 private:
  void statement(Id id) {
    const Instruction& i = f_[id];
    switch (i.op) {
      case Op::load:
      case Op::shared_load: access(id, i.op == Op::shared_load, false); break;
      case Op::store:
      case Op::shared_store: access(id, i.op == Op::shared_store, true); break;
      case Op::variable:
      case Op::set:
      case Op::get:
      case Op::local_load:
      case Op::local_store: break;
      default:
        if (!ir::is_elementary(i.op) && !ir::is_pure(i.op)) close_all();
    }
  }

  void access(Id id, bool shared, bool store) {
    const Instruction& i = f_[id];
    const Place place = place_of(f_, i.args[0]);
    const Key key{shared, store, i.imm, place.root};
    // Another access of the array that may meet an element of an open set ends that set.
    for (auto open = open_.begin(); open != open_.end();) {
      const Key& other = open->first;
      const bool same_array = other.shared == shared && other.array == i.imm;
      bool meets = same_array && (store || other.store) &&
                   (other.root != place.root || holds(open->second.members, place.offset, i.lanes));
      // A load that joined would move before the store of its element.
      meets |= other == key && !store && holds(open->second.stored, place.offset, 1);
      if (same_array && store && !other.store)
        for (int k = 0; k < i.lanes; ++k) open->second.stored.push_back({id, place.offset + k});
      open = meets ? close(open) : std::next(open);
    }
    if (i.lanes != 1) return;
    if (open_.size() >= kMostOpen) close_all();
    order_.emplace(id, order_.size());
    open_[key].members.push_back({id, place.offset});
  }

  static bool holds(const std::vector<Interleaved::Member>& members, int64_t offset, int lanes) {
    return std::any_of(members.begin(), members.end(), [&](const Interleaved::Member& m) {
      return m.offset >= offset && m.offset < offset + lanes;
    });
  }

  struct Collected {
    std::vector<Interleaved::Member> members;
    std::vector<Interleaved::Member> stored;  // elements stored since the first load
  };
  using Open = std::map<Key, Collected>;
  /// Cuts what was collected into sets of at most kMost elements.
  Open::iterator close(Open::iterator open) {
    std::vector<Interleaved::Member> members = std::move(open->second.members);
    std::stable_sort(members.begin(), members.end(),
                     [](const auto& a, const auto& b) { return a.offset < b.offset; });
    for (size_t k = 0; k < members.size();) {
      Interleaved set;
      set.first_offset = members[k].offset;
      for (; k < members.size() && members[k].offset < set.first_offset + Interleaved::kMost; ++k) {
        set.width = members[k].offset - set.first_offset + 1;
        set.members.push_back(members[k]);
      }
      if (set.width == 1) continue;
      // Stores of a set write every element of it.
      if (open->first.store && int64_t(set.members.size()) != set.width) continue;
      std::sort(set.members.begin(), set.members.end(),
                [&](const auto& a, const auto& b) { return order_.at(a.access) < order_.at(b.access); });
      for (const Interleaved::Member& m : set.members) set_of_[m.access] = sets_.size();
      sets_.push_back(std::move(set));
    }
    return open_.erase(open);
  }
  void close_all() {
    while (!open_.empty()) close(open_.begin());
  }

  const Function& f_;
  std::vector<Interleaved>& sets_;
  std::unordered_map<Id, size_t>& set_of_;
  Open open_;
  std::unordered_map<Id, size_t> order_;
};

}  // namespace

InterleavedTable::InterleavedTable(const Function& function) { SetFinder(function, sets_, set_of_); }

}  // namespace lockstep::compile::simd
