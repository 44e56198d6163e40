#include "primitives/sort/radix.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "device/capabilities.hpp"
#include "primitives/flat.hpp"

namespace lockstep::primitives {

namespace {

constexpr int kDigits = 1 << kDigitBits;
/// A group ranks by half a digit at a time: as many counters a lane as fit into shared memory, two in a word.
constexpr int kHalfBits = kDigitBits / 2, kWords = 1 << (kHalfBits - 1);

struct Shares {
  int lanes, per_lane;
  int tile() const { return lanes * per_lane; }
};
Shares shares_of(Radix form) { return form == Radix::wide ? Shares{512, 16} : Shares{256, 8}; }

/// The bits of a key, in the order of the keys: the sign of an i32 is flipped, all bits of a negative f32.
Val<u32> ordered(const AnyVal& key) {
  if (key.type() == Type::u32) return key.as<u32>();
  const Val<u32> bits = key.bitcast(Type::u32).as<u32>();
  if (key.type() == Type::i32) return bits ^ 0x80000000u;
  return bits ^ select(bits >> 31 != 0u, Val<u32>(0xffffffffu), Val<u32>(0x80000000u));
}
AnyVal restored(Type type, const Val<u32>& bits) {
  if (type == Type::u32) return bits;
  if (type == Type::i32) return AnyVal(bits ^ 0x80000000u).bitcast(type);
  return AnyVal(bits ^ select(bits >> 31 != 0u, Val<u32>(0x80000000u), Val<u32>(0xffffffffu))).bitcast(type);
}

/// The numbers of a pass, and the part of the keys that a group has.
struct Pass {
  Val<u32> shift, mask;
  Val<i32> chunk;
  Val<i32> begin, end, digits;
  Pass(const Group<1>& g, Parameters& p, const AnyGrid& keys)
      : shift(p.scalar<u32>("shift")),
        mask(p.scalar<u32>("mask")),
        chunk(p.scalar<i32>("chunk")),
        begin(g.id() * chunk),
        end(min(begin + chunk, keys.size(0))),
        digits(bitcast<i32>(mask) + 1) {}
  Val<u32> digit(const Val<u32>& bits) const { return bits >> shift & mask; }
  Val<i32> digit_at(const AnyGrid& keys, const Val<i32>& at) const {
    return bitcast<i32>(digit(ordered(keys.load({at}))));
  }
};

/// The element of a table of digits and chunks.
Val<i32> of_chunk(const Group<1>& g, const Val<i32>& digit) { return digit * g.count() + g.id(); }

void count_serially(const Group<1>& g, const Pass& pass, const AnyGrid& keys, const Out<u32, 1>& counts) {
  const SharedArray<u32> own(kDigits);
  for_(0, pass.digits, [&](Val<i32> digit) { own[digit] = 0u; });
  for_(pass.begin, pass.end, [&](Val<i32> at) { own[pass.digit_at(keys, at)] += 1u; });
  for_(0, pass.digits, [&](Val<i32> digit) { counts[of_chunk(g, digit)] = own[digit]; });
}

void count_together(const Group<1>& g, const Pass& pass, const AnyGrid& keys, const Out<u32, 1>& counts) {
  const SharedArray<u32> own(kDigits);
  const Val<i32> lane = g.lane();
  for_(lane, pass.digits, g.lanes(), [&](Val<i32> digit) { own[digit] = 0u; });
  barrier();
  for_(pass.begin + lane, pass.end, g.lanes(),
       [&](Val<i32> at) { own.atomic_add(pass.digit_at(keys, at), 1u); });
  barrier();
  for_(lane, pass.digits, g.lanes(), [&](Val<i32> digit) { counts[of_chunk(g, digit)] = own[digit]; });
}

/// Keys with their payload, before and after.
struct Moved {
  AnyGrid keys;
  std::optional<AnyGrid> values;
  AnyGrid to_keys;
  std::optional<AnyGrid> to_values;
  Moved(Parameters& p, Storage key, Payload payload, Storage value)
      : keys(p.read("keys", key, 1)), to_keys(p.write("to_keys", key, 1)) {
    if (payload == Payload::values) values = p.read("values", value, 1);
    if (payload != Payload::none) to_values = p.write("to_values", value, 1);
  }
  AnyVal value(const Val<i32>& at) const {
    return values ? values->load({at}) : AnyVal(at).bitcast(to_values->type());
  }
};

void scatter_serially(const Group<1>& g, const Pass& pass, const Moved& moved, const Grid<u32, 1>& starts) {
  const SharedArray<i32> next(kDigits);
  for_(0, pass.digits, [&](Val<i32> digit) { next[digit] = bitcast<i32>(starts[of_chunk(g, digit)]); });
  for_(pass.begin, pass.end, [&](Val<i32> at) {
    const AnyVal key = moved.keys.load({at});
    const Val<i32> digit = bitcast<i32>(pass.digit(ordered(key)));
    const Val<i32> to = next[digit];
    next[digit] = to + 1;
    moved.to_keys.store({to}, key);
    if (moved.to_values) moved.to_values->store({to}, moved.value(at));
  });
}

/// A tile in shared memory. A lane holds `per_lane` neighbours in registers, since its counters follow their order.
class Tile {
 public:
  explicit Tile(const Group<1>& g, Shares shares)
      : shares_(shares),
        lane_(g.lane()),
        memory_(padded(std::max(shares.tile(), kWords * shares.lanes))),
        ranks_(list()) {}

  std::vector<Var<u32>> list() const {
    std::vector<Var<u32>> values;
    values.reserve(size_t(shares_.per_lane));
    for (int k = 0; k < shares_.per_lane; ++k) values.emplace_back(0u);
    return values;
  }
  /// Loads along the tile, then gives each lane its neighbours; `load` gives the bits at a position of the tile.
  template <class Load>
  void fill(std::vector<Var<u32>>& values, Load load) const {
    for_each_striped([&](const Val<i32>& at) { memory_[place(at)] = load(at); });
    barrier();
    take(values);
  }
  /// Positions of the elements in the order of four bits, of `key >> shift`, by counters of each lane and a scan of these.
  template <class Digit>
  void rank(const std::vector<Var<u32>>& keys, Digit digit) {
    for (int w = 0; w < kWords; ++w) memory_[place(lane_ + w * shares_.lanes)] = 0u;
    for (int k = 0; k < shares_.per_lane; ++k) {
      const Counter c = counter(digit(keys[size_t(k)]));
      const Val<u32> word = memory_[c.at];
      ranks_[size_t(k)] = word >> c.shift & 0xffffu;
      memory_[c.at] = word + (Val<u32>(1u) << c.shift);
    }
    barrier();
    std::vector<Val<u32>> words;
    for (int w = 0; w < kWords; ++w) words.push_back(memory_[place(lane_ * kWords + w)]);
    Val<u32> own = words[0];
    for (int w = 1; w < kWords; ++w) own = own + words[size_t(w)];
    // The digits in the upper halves of the words come after all of the lower halves.
    Val<u32> before = group_scan_sum(own) - own + (group_sum(own) << 16);
    for (int w = 0; w < kWords; ++w) {
      memory_[place(lane_ * kWords + w)] = before;
      before = before + words[size_t(w)];
    }
    barrier();
    for (int k = 0; k < shares_.per_lane; ++k) {
      const Counter c = counter(digit(keys[size_t(k)]));
      ranks_[size_t(k)] += memory_[c.at] >> c.shift & 0xffffu;
    }
    barrier();
  }
  /// Moves the elements to their ranks.
  void exchange(std::vector<Var<u32>>& values) const {
    for (int k = 0; k < shares_.per_lane; ++k)
      memory_[place(bitcast<i32>(Val<u32>(ranks_[size_t(k)])))] = values[size_t(k)];
    barrier();
    take(values);
  }
  /// The elements in shared memory, in their order; then `body(round, position)` for those of the lane, striped.
  template <class Body>
  void spread(const std::vector<Var<u32>>& values, Body body) const {
    for (int k = 0; k < shares_.per_lane; ++k)
      memory_[place(lane_ * shares_.per_lane + k)] = values[size_t(k)];
    barrier();
    for_each_striped(body);
    barrier();
  }
  Val<u32> at(const Val<i32>& position) const { return memory_[place(position)]; }

 private:
  struct Counter {
    Val<i32> at;
    Val<u32> shift;
  };
  Counter counter(const Val<u32>& digit) const {
    return {place(bitcast<i32>(digit & uint32_t(kWords - 1)) * shares_.lanes + lane_),
            digit >> (kHalfBits - 1) << 4};
  }
  /// One word of padding in 32: neighbours of a lane and of the lanes are in different banks.
  static Val<i32> place(const Val<i32>& at) { return at + (at >> 5); }
  static int padded(int count) { return count + count / 32; }
  template <class Body>
  void for_each_striped(Body body) const {
    for (int r = 0; r < shares_.per_lane; ++r) body(lane_ + r * shares_.lanes);
  }
  void take(std::vector<Var<u32>>& values) const {
    for (int k = 0; k < shares_.per_lane; ++k)
      values[size_t(k)] = memory_[place(lane_ * shares_.per_lane + k)];
    barrier();
  }

  Shares shares_;
  Val<i32> lane_;
  SharedArray<u32> memory_;
  std::vector<Var<u32>> ranks_;
};

void scatter_together(const Group<1>& g, const Pass& pass, const Moved& moved, const Grid<u32, 1>& starts,
                      Shares shares) {
  Tile tile(g, shares);
  auto keys = tile.list(), values = moved.to_values ? tile.list() : std::vector<Var<u32>>();
  const auto load = [&](std::vector<Var<u32>>& to, auto element) {
    tile.fill(to, [&](const Val<i32>& at) {
      // The last tile ends in elements with the last digit, which stay behind all others.
      Var<u32> bits = 0xffffffffu;
      if_(pass.begin + at < pass.end, [&] { bits = element(pass.begin + at); });
      return Val<u32>(bits);
    });
  };
  load(keys, [&](const Val<i32>& at) { return ordered(moved.keys.load({at})); });
  if (moved.to_values)
    load(values, [&](const Val<i32>& at) { return moved.value(at).bitcast(Type::u32).as<u32>(); });
  const auto order = [&](auto digit) {
    tile.rank(keys, digit);
    tile.exchange(keys);
    if (moved.to_values) tile.exchange(values);
  };
  constexpr uint32_t kHalf = (1u << kHalfBits) - 1;
  order([&](const Val<u32>& key) { return pass.digit(key) & kHalf; });
  if_(uniform(pass.mask > kHalf),
      [&] { order([&](const Val<u32>& key) { return pass.digit(key) >> kHalfBits; }); });

  // Where the elements of a digit go, less their position in the tile.
  const SharedArray<i32> base(kDigits);
  std::vector<Val<u32>> sorted;
  tile.spread(keys, [&](const Val<i32>& at) {
    sorted.push_back(tile.at(at));
    const Val<i32> digit = bitcast<i32>(pass.digit(sorted.back()));
    const Val<u32> before = pass.digit(tile.at(max(at - 1, 0)));
    if_(at == 0 || bitcast<i32>(before) != digit,
        [&] { base[digit] = bitcast<i32>(starts[of_chunk(g, digit)]) - at; });
  });
  std::vector<Val<i32>> to;
  const Val<i32> count = pass.end - pass.begin;
  for (int r = 0; r < shares.per_lane; ++r) {
    const Val<i32> at = g.lane() + r * shares.lanes;
    to.push_back(base[bitcast<i32>(pass.digit(sorted[size_t(r)]))] + at);
    if_(at < count,
        [&] { moved.to_keys.store({to.back()}, restored(moved.keys.type(), sorted[size_t(r)])); });
  }
  if (!moved.to_values) return;
  size_t r = 0;
  tile.spread(values, [&](const Val<i32>& at) {
    const Val<i32> there = to[r++];
    const Val<u32> bits = tile.at(at);
    if_(at < count, [&] { moved.to_values->store({there}, AnyVal(bits).bitcast(moved.to_values->type())); });
  });
}

constexpr const char* kFormNames[] = {"", ".wide", ".narrow"};

KernelOptions options_of(Radix form) {
  return {{form == Radix::serial ? 1 : shares_of(form).lanes, 1, 1}, 0};
}

}  // namespace

Radix radix_form(const Device& device) {
  if (capabilities_of(device).vectors) return Radix::serial;
  const Shares wide = shares_of(Radix::wide);
  const Limits& limits = device.info().limits;
  const bool fits = limits.group_lanes >= wide.lanes && limits.shared_bytes >= 40 << 10;
  return fits ? Radix::wide : Radix::narrow;
}

int64_t radix_chunk(Radix form, int64_t count) {
  if (form != Radix::serial) return shares_of(form).tile();
  // Enough chunks for the threads, few enough that their counts are few.
  return std::clamp<int64_t>(divide_up(count, 256), 8192, 1 << 20);
}

Kernel digit_counts_kernel(Radix form, Storage keys) {
  static Memo<std::tuple<Radix, Storage>, Kernel> kernels;
  return kernels.get({form, keys}, [&] {
    return kernel(
        fmt::format("primitives.sort.counts{}.{}", kFormNames[int(form)], name(keys)),
        [=](Group<1> g, Parameters& p) {
          const AnyGrid from = p.read("keys", keys, 1);
          const auto counts = p.write<u32, 1>("counts");
          const Pass pass(g, p, from);
          form == Radix::serial ? count_serially(g, pass, from, counts)
                                : count_together(g, pass, from, counts);
        },
        options_of(form));
  });
}

Kernel digit_scatter_kernel(Radix form, Storage keys, Payload payload, Storage values) {
  static Memo<std::tuple<Radix, Storage, Payload, Storage>, Kernel> kernels;
  return kernels.get({form, keys, payload, values}, [&] {
    const std::string moved = payload == Payload::none        ? "keys"
                              : payload == Payload::positions ? "positions"
                                                              : std::string(name(values));
    return kernel(
        fmt::format("primitives.sort.scatter{}.{}.{}", kFormNames[int(form)], name(keys), moved),
        [=](Group<1> g, Parameters& p) {
          const Moved data(p, keys, payload, values);
          const auto starts = p.read<u32, 1>("starts");
          const Pass pass(g, p, data.keys);
          form == Radix::serial ? scatter_serially(g, pass, data, starts)
                                : scatter_together(g, pass, data, starts, shares_of(form));
        },
        options_of(form));
  });
}

}  // namespace lockstep::primitives
