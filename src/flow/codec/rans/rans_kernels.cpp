// The coder's kernels. Whole numbers only: every device gives the same bytes.
#include "flow/codec/rans/rans_kernels.hpp"

#include "flow/codec/rans/rans_format.hpp"

namespace lockstep::flow {

namespace {

using Number = Val<u32>;

/// Where a lane's tile lies.
struct LaneTile {
  Val<i32> frame, y0, x0, rows, columns;
  LaneTile(const Val<i32>& lane, const Val<i32>& all_rows, const Val<i32>& all_columns,
           const Val<i32>& tile_rows, const Val<i32>& tile_columns)
      : frame(lane / (tiles(all_rows, tile_rows) * tiles(all_columns, tile_columns))),
        y0(lane / tiles(all_columns, tile_columns) % tiles(all_rows, tile_rows) * tile_rows),
        x0(lane % tiles(all_columns, tile_columns) * tile_columns),
        rows(min(tile_rows, all_rows - y0)),
        columns(min(tile_columns, all_columns - x0)) {}
  static Val<i32> tiles(const Val<i32>& all, const Val<i32>& tile) { return (all + tile - 1) / tile; }
};

/// floor(log2 v), v > 0.
Val<i32> log_of(const Number& v) { return 31 - cast<i32>(clz(v)); }

Number token_of(const Number& v) {
  const Number safe = max(v, 16u);
  const Val<i32> n = log_of(safe);
  const Number half = (safe >> cast<u32>(n - 1)) & 1u;
  return select(v < 16u, v, cast<u32>(n * 2 + 8) + half);
}
/// Bits of a number that its token leaves open.
Val<i32> open_bits(const Val<i32>& token) { return select(token < 16, Val<i32>(0), (token - 16) / 2 + 3); }

/// The table that the neighbours before a number give. `value(dy, dx)` reads one that exists.
template <class Value>
Val<i32> context_of(const Val<bool>& has_left, const Val<bool>& has_above, const Val<bool>& has_right,
                    const Val<i32>& divisor, Value value) {
  const auto size = [&](int dy, int dx) {
    const Number v = value(dy, dx);
    return min((v >> 1u) + (v & 1u), kLargestSize);
  };
  Var<u32> left = 0u, above = 0u, corner = 0u, right = 0u;
  if_(has_left, [&] { left = size(0, -1); });
  if_(
      has_above,
      [&] {
        above = size(-1, 0);
        if_(
            has_left, [&] { corner = size(-1, -1); },
            [&] {
              corner = above;
              left = above;
            });
        if_(has_right, [&] { right = size(-1, 1); }, [&] { right = above; });
      },
      [&] {
        above = left;
        corner = left;
        right = left;
      });
  const Number sum = (left + above) * 2u + corner + right, safe = max(sum, 4u);
  const Val<i32> n = log_of(safe);
  const Val<i32> half = cast<i32>((safe >> cast<u32>(n - 1)) & 1u), level = n * 2 + half;
  return select(sum < 4u, cast<i32>(sum), select(level <= 9, level, level / 2 + 5)) / divisor;
}

}  // namespace

const Kernel& RansKernels::keys() {
  static const Kernel made =
      kernel("flow.rans.keys", [](At<3> at, Grid<u32, 3> numbers, Out<u32, 3> keys, Param<i32> tile_rows,
                                  Param<i32> tile_columns, Param<i32> divisor) {
        const Val<i32> frame = at.z, y = at.y, x = at.x, in_x = x % tile_columns;
        const Val<i32> context =
            context_of(in_x > 0, y % tile_rows > 0, in_x + 1 < tile_columns && x + 1 < numbers.size(2),
                       divisor, [&](int dy, int dx) { return numbers(frame, y + dy, x + dx); });
        keys(frame, y, x) = cast<u32>(context * int(kTokens)) + token_of(numbers(frame, y, x));
      });
  return made;
}

const Kernel& RansKernels::slots() {
  static const Kernel made =
      kernel("flow.rans.slots", [](At<2> at, Grid<u32, 2> first, Grid<u32, 2> frequency, Out<u32, 2> slots) {
        const Val<i32> context = at.y;
        const Number slot = cast<u32>(Val<i32>(at.x));
        Var<i32> low = 0, high = int(kTokens);  // the last token that begins at the slot or before
        while_([&] { return high - low > 1; },
               [&] {
                 const Val<i32> middle = (low + high) / 2;
                 if_(first(context, middle) <= slot, [&] { low = middle; }, [&] { high = middle; });
               });
        const Val<i32> token = low;
        slots(context, at.x) =
            cast<u32>(token) | (first(context, token) << 7u) | (frequency(context, token) << 19u);
      });
  return made;
}

const Kernel& RansKernels::encode() {
  static const Kernel made =
      kernel("flow.rans.encode", [](At<1> at, Grid<u32, 3> numbers, Grid<u32, 3> keys, Grid<u32, 1> table,
                                    Out<u32, 2> words, Out<u32, 1> counts, Out<u32, 1> states,
                                    Param<i32> tile_rows, Param<i32> tile_columns) {
        const Val<i32> lane = at.x;
        const LaneTile tile(lane, numbers.size(1), numbers.size(2), tile_rows, tile_columns);
        Var<u32> state = kRansLow;
        Var<i32> count = 0;
        const auto put = [&](const Number& first, const Number& frequency) {
          if_((state >> (32 - kTableBits)) >= frequency, [&] {
            words(count, lane) = state & 0xFFFFu;
            count += 1;
            state = state >> 16u;
          });
          state = ((state / frequency) << kTableBits) + state % frequency + first;
        };
        const auto put_bits = [&](const Number& bits, const Number& width) {
          put(bits << (kTableBits - width), Val<u32>(kTableSize) >> width);
        };
        for_(tile.rows * tile.columns - 1, Val<i32>(-1), -1, [&](Val<i32> t) {
          const Val<i32> y = tile.y0 + t / tile.columns, x = tile.x0 + t % tile.columns;
          const Number key = keys(tile.frame, y, x), v = numbers(tile.frame, y, x);
          const Val<i32> open = open_bits(cast<i32>(key % kTokens));
          if_(open > 0, [&] {
            const auto part = [&](int from) {
              const Number width = cast<u32>(clamp(open - from, 0, int(kTableBits)));
              return std::pair<Number, Number>{(v >> u32(from)) & ((Val<u32>(1u) << width) - 1u), width};
            };
            for (const int from : {24, 12})
              if_(open > from, [&] {
                const auto [bits, width] = part(from);
                put_bits(bits, width);
              });
            const auto [bits, width] = part(0);
            put_bits(bits, width);
          });
          const Number entry = table[cast<i32>(key)];
          put(entry >> 13u, entry & 0x1FFFu);
        });
        counts[lane] = cast<u32>(Val<i32>(count));
        states[lane] = state;
      });
  return made;
}

const Kernel& RansKernels::pack() {
  static const Kernel made =
      kernel("flow.rans.pack", [](At<1> at, Grid<u32, 2> words, Grid<u32, 1> counts, Grid<u32, 1> offsets,
                                  Out<u32, 1> packed, Param<i32> total) {
        const auto word = [&](const Val<i32>& of) {
          Var<u32> value = 0u;
          if_(of < total, [&] {
            Var<i32> low = 0, high = offsets.size(0);  // the last lane that begins there or before
            while_([&] { return high - low > 1; },
                   [&] {
                     const Val<i32> middle = (low + high) / 2;
                     if_(cast<i32>(offsets[middle]) <= of, [&] { low = middle; }, [&] { high = middle; });
                   });
            const Val<i32> lane = low;
            // The last word written is the first one read.
            value = words(cast<i32>(counts[lane]) - 1 - (of - cast<i32>(offsets[lane])), lane);
          });
          return Number(value);
        };
        packed[at.x] = word(at.x * 2) | (word(at.x * 2 + 1) << 16u);
      });
  return made;
}

const Kernel& RansKernels::decode() {
  static const Kernel made = kernel("flow.rans.decode", [](At<1> at, Grid<u32, 1> packed, Grid<u32, 1> counts,
                                                           Grid<u32, 1> offsets, Grid<u32, 1> states,
                                                           Grid<u32, 2> slots, InOut<u32, 3> numbers,
                                                           Out<u32, 1> status, Param<i32> tile_rows,
                                                           Param<i32> tile_columns, Param<i32> divisor) {
    const Val<i32> lane = at.x;
    const LaneTile tile(lane, numbers.size(1), numbers.size(2), tile_rows, tile_columns);
    Var<u32> state = states[lane];
    Var<i32> next = cast<i32>(offsets[lane]);
    const Val<i32> end = next + cast<i32>(counts[lane]);
    const auto take = [&](const Number& first, const Number& frequency) {
      state = frequency * (state >> kTableBits) + (state & (kTableSize - 1)) - first;
      if_(state < kRansLow, [&] {
        Var<u32> word = 0u;
        // A damaged lane may ask for more than it has.
        if_(next < end, [&] { word = (packed[next / 2] >> cast<u32>(next % 2 * 16)) & 0xFFFFu; });
        next += 1;
        state = (state << 16u) | word;
      });
    };
    for_(0, tile.rows * tile.columns, [&](Val<i32> t) {
      const Val<i32> in_y = t / tile.columns, in_x = t % tile.columns, y = tile.y0 + in_y, x = tile.x0 + in_x;
      const Val<i32> context =
          context_of(in_x > 0, in_y > 0, in_x + 1 < tile.columns, divisor,
                     [&](int dy, int dx) { return Number(numbers(tile.frame, y + dy, x + dx)); });
      const Number entry = slots(context, cast<i32>(state & (kTableSize - 1)));
      const Val<i32> token = cast<i32>(entry & 127u), open = open_bits(token);
      take((entry >> 7u) & 0xFFFu, entry >> 19u);
      Var<u32> value = cast<u32>(token);
      if_(open > 0, [&] {
        value = (Val<u32>(2u) | (cast<u32>(token) & 1u)) << cast<u32>(open);
        for (const int from : {0, 12, 24})
          if_(open > from, [&] {
            const Number width = cast<u32>(min(open - from, int(kTableBits)));
            const Number bits = (state & (kTableSize - 1)) >> (kTableBits - width);
            take(bits << (kTableBits - width), Val<u32>(kTableSize) >> width);
            value |= bits << u32(from);
          });
      });
      numbers(tile.frame, y, x) = value;
    });
    status[lane] = select(state == kRansLow && next == end, Val<u32>(0u), Val<u32>(1u));
  });
  return made;
}

}  // namespace lockstep::flow
