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
Shares shares_of(Radix form) { return {256, form == Radix::wide ? 16 : 8}; }

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

using Words = std::vector<Val<u32>>;

/// A tile in shared memory, one word of padding in 32, so that neighbours of a lane are in different banks, as are
/// elements of neighbouring lanes. A lane ranks `per_lane` neighbours, since its counters follow their order, and loads
/// and stores striped elements. Their positions are a base and constants.
class Tile {
 public:
  explicit Tile(const Group<1>& g, Shares shares)
      : shares_(shares),
        lane_(g.lane()),
        striped_(lane_ + (lane_ >> 5)),
        neighbours_(place(lane_ * shares.per_lane)),
        words_(place(lane_ * kWords)),
        memory_(stride(std::max(shares.per_lane, kWords))) {}

  Val<i32> striped(int r) const { return striped_ + stride(r); }
  Val<i32> neighbour(int k) const { return neighbours_ + k; }
  /// The element before the striped one; the first has itself.
  Val<u32> before(int r) const { return memory_[max(striped(r) - 1 - cast<i32>((lane_ & 31) == 0), 0)]; }
  static Val<i32> place(const Val<i32>& at) { return at + (at >> 5); }
  static Val<i32> place(const Val<u32>& at) { return place(bitcast<i32>(at)); }

  template <class At>
  void write(const Words& values, At at) const {
    for (int k = 0; k < shares_.per_lane; ++k) memory_[at(k)] = values[size_t(k)];
    barrier();
  }
  template <class At>
  Words read(At at) const {
    Words values;
    for (int k = 0; k < shares_.per_lane; ++k) values.push_back(memory_[at(k)]);
    barrier();
    return values;
  }
  const SharedArray<u32>& memory() const { return memory_; }

  /// Positions of the keys in the order of a digit of four bits, by counters of each lane and a scan of these.
  template <class Digit>
  Words rank(const Words& keys, Digit digit) const {
    for (int w = 0; w < kWords; ++w) memory_[striped(w)] = 0u;
    Words ranks;
    for (const Val<u32>& key : keys) {
      const Counter c = counter(digit(key));
      const Val<u32> word = memory_[c.at];
      ranks.push_back(word >> c.shift & 0xffffu);
      memory_[c.at] = word + (Val<u32>(1u) << c.shift);
    }
    barrier();
    Words words;
    for (int w = 0; w < kWords; ++w) words.push_back(memory_[words_ + w]);
    Val<u32> own = words[0];
    for (int w = 1; w < kWords; ++w) own = own + words[size_t(w)];
    // The digits in the upper halves of the words come after all of the lower halves.
    Val<u32> first = group_scan_sum(own) - own + (group_sum(own) << 16);
    for (int w = 0; w < kWords; ++w) {
      memory_[words_ + w] = first;
      first = first + words[size_t(w)];
    }
    barrier();
    for (size_t k = 0; k < keys.size(); ++k) {
      const Counter c = counter(digit(keys[k]));
      ranks[k] = ranks[k] + (memory_[c.at] >> c.shift & 0xffffu);
    }
    barrier();
    return ranks;
  }

 private:
  struct Counter {
    Val<i32> at;
    Val<u32> shift;
  };
  Counter counter(const Val<u32>& digit) const {
    return {bitcast<i32>(digit & uint32_t(kWords - 1)) * stride(1) + striped_, digit >> (kHalfBits - 1) << 4};
  }
  /// Words of so many elements of each lane.
  int stride(int each) const { return each * (shares_.lanes + shares_.lanes / 32); }

  Shares shares_;
  Val<i32> lane_, striped_, neighbours_, words_;
  SharedArray<u32> memory_;
};

void scatter_together(const Group<1>& g, const Pass& pass, const Moved& moved, const Grid<u32, 1>& starts,
                      Shares shares) {
  const Tile tile(g, shares);
  const Val<i32> lane = g.lane(), count = pass.end - pass.begin;
  const auto at = [&](int r) { return lane + r * shares.lanes; };
  const auto striped = [&](int r) { return tile.striped(r); };
  const auto neighbours = [&](int k) { return tile.neighbour(k); };
  const auto by = [](const Words& ranks) {
    return [&ranks](int k) { return Tile::place(ranks[size_t(k)]); };
  };

  Words keys;
  for (int r = 0; r < shares.per_lane; ++r) {
    // The last tile ends in keys with the last digit, which stay behind all others.
    Var<u32> key = 0xffffffffu;
    if_(at(r) < count, [&] { key = ordered(moved.keys.load({pass.begin + at(r)})); });
    keys.push_back(key);
  }
  tile.write(keys, striped);
  keys = tile.read(neighbours);
  constexpr uint32_t kHalf = (1u << kHalfBits) - 1;
  Words order = tile.rank(keys, [&](const Val<u32>& key) { return pass.digit(key) & kHalf; });
  tile.write(keys, by(order));
  keys = tile.read(neighbours);
  const Words last = tile.rank(keys, [&](const Val<u32>& key) { return pass.digit(key) >> kHalfBits; });
  if (moved.to_values) {
    // Both orders in one, of the striped elements.
    tile.write(last, neighbours);
    order = tile.read(by(Words(order)));
    tile.write(order, neighbours);
    order = tile.read(striped);
  }

  // Where the keys of a digit go, less their position in the tile.
  const SharedArray<i32> base(kDigits);
  tile.write(keys, by(last));
  for (int r = 0; r < shares.per_lane; ++r) {
    const Val<u32> digit = pass.digit(tile.memory()[striped(r)]), before = pass.digit(tile.before(r));
    if_(at(r) == 0 || before != digit, [&] {
      const Val<i32> own = bitcast<i32>(digit);
      base[own] = bitcast<i32>(starts[of_chunk(g, own)]) - at(r);
    });
  }
  barrier();
  std::vector<Val<i32>> to;
  for (int r = 0; r < shares.per_lane; ++r) {
    const Val<u32> key = tile.memory()[striped(r)];
    to.push_back(base[bitcast<i32>(pass.digit(key))] + at(r));
    if_(at(r) < count, [&] { moved.to_keys.store({to.back()}, restored(moved.keys.type(), key)); });
  }
  if (!moved.to_values) return;
  barrier();
  for (int r = 0; r < shares.per_lane; ++r)
    if_(at(r) < count, [&] {
      const AnyVal value = moved.value(pass.begin + at(r));
      tile.memory()[Tile::place(order[size_t(r)])] = value.bitcast(Type::u32).as<u32>();
    });
  barrier();
  for (int r = 0; r < shares.per_lane; ++r)
    if_(at(r) < count, [&] {
      const Val<u32> word = tile.memory()[striped(r)];
      moved.to_values->store({to[size_t(r)]}, AnyVal(word).bitcast(moved.to_values->type()));
    });
}

constexpr const char* kFormNames[] = {"", ".wide", ".narrow"};

KernelOptions options_of(Radix form) {
  return {{form == Radix::serial ? 1 : shares_of(form).lanes, 1, 1}, form == Radix::wide ? 3 : 0};
}

}  // namespace

Radix radix_form(const Device& device) {
  if (capabilities_of(device).vectors) return Radix::serial;
  return device.info().limits.shared_bytes >= 24 << 10 ? Radix::wide : Radix::narrow;
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
