// The value of one chunk of the tree that primitives.hpp describes, as kernels compute it: by a group, or by one lane.
#pragma once

#include <limits>
#include <vector>

#include "lockstep/kernel/kernel.hpp"
#include "primitives/sums/tree.hpp"

namespace lockstep::primitives {

/// Whether NaN is tracked separately: min and max of floats drop it, one instruction each.
template <class T>
constexpr bool watches_nan(Chunk how) {
  return std::is_floating_point_v<T> && (how == Chunk::min || how == Chunk::max);
}

template <class T>
Val<T> combine(Chunk how, Val<T> a, Val<T> b) {
  return how == Chunk::min ? min(a, b) : how == Chunk::max ? max(a, b) : a + b;
}

/// The tree over the lanes; `nan` is true if the lane has met one.
template <class T>
Val<T> over_lanes(Chunk how, Val<T> v, Val<bool> nan) {
  const Val<T> value = how == Chunk::min ? group_min(v) : how == Chunk::max ? group_max(v) : group_sum(v);
  if constexpr (std::is_floating_point_v<T>)
    if (watches_nan<T>(how))
      return select(group_max(cast<u32>(nan)) != 0u, Val<T>(std::numeric_limits<T>::quiet_NaN()), value);
  return value;
}

/// The part of a lane in the reduction of a chunk of a row of x (and y, for dot).
template <class T>
class ChunkLane {
 public:
  ChunkLane(Chunk how, bool wide, const Grid<T, 2>& x, const Grid<T, 2>& y, const Val<i32>& row,
            const Val<i32>& begin, const Val<i32>& lane)
      : how_(how),
        wide_(wide),
        x_(x),
        y_(y),
        row_(row),
        a_(values(neutral<T>(how))),
        nan_(Val<bool>(false)),
        begin_(begin),
        own_(begin + lane * kWide) {}

  /// A whole chunk. All loads first, so that they overlap.
  void full() {
    std::vector<Wide<T, kWide>> u, v;
    for (int r = 0; r < kReduceRounds; ++r) {
      u.push_back(read(x_, own_ + r * kRound));
      if (how_ == Chunk::dot) v.push_back(read(y_, own_ + r * kRound));
    }
    for (int r = 0; r < kReduceRounds; ++r)
      for (int j = 0; j < kWide; ++j)
        take(j, u[size_t(r)][j], how_ == Chunk::dot ? v[size_t(r)][j] : u[size_t(r)][j]);
  }
  /// The same, looking for NaN. 0 times the elements is NaN where one is NaN or infinite: only then are they
  /// looked at singly. Each element is used twice; a loop keeps the registers few.
  void full_with_nan() {
    if constexpr (std::is_floating_point_v<T>) {
      std::vector<Var<T>> zero = values(T(0));
      for_(0, kReduceRounds, [&](Val<i32> r) {
        const auto four = read(x_, own_ + r * kRound);
        for (int j = 0; j < kWide; ++j) {
          take(j, four[j], four[j]);
          zero[size_t(j)] = fma(four[j], T(0), zero[size_t(j)]);
        }
      });
      if_(isnan((zero[0] + zero[1]) + (zero[2] + zero[3])), [&] {
        for_(0, kReduceRounds, [&](Val<i32> r) {
          for (int j = 0; j < kWide; ++j) nan_ = Val<bool>(nan_) || isnan(x_(row_, own_ + r * kRound + j));
        });
      });
    }
  }
  /// The last chunk of a row: the rounds that it has. Loads do not wait for the comparisons.
  void partial(const Val<i32>& columns) {
    for_(0, (columns - begin_ + (kRound - 1)) / kRound, [&](Val<i32> r) {
      std::vector<Val<T>> u, v;
      for (int j = 0; j < kWide; ++j) {
        const Val<i32> at = min(own_ + r * kRound + j, columns - 1);
        u.push_back(x_(row_, at));
        if (how_ == Chunk::dot) v.push_back(y_(row_, at));
      }
      for (int j = 0; j < kWide; ++j)
        if_(own_ + r * kRound + j < columns, [&] {
          take(j, u[size_t(j)], how_ == Chunk::dot ? v[size_t(j)] : u[size_t(j)]);
          if constexpr (std::is_floating_point_v<T>)
            if (watches_nan<T>(how_)) nan_ = Val<bool>(nan_) || isnan(u[size_t(j)]);
        });
    });
  }
  /// The group's value.
  Val<T> result() {
    const Val<T> low = combine<T>(how_, a_[0], a_[1]), high = combine<T>(how_, a_[2], a_[3]);
    return over_lanes<T>(how_, combine<T>(how_, low, high), nan_);
  }

 private:
  static std::vector<Var<T>> values(T start) {
    std::vector<Var<T>> list;
    list.reserve(kWide);
    for (int j = 0; j < kWide; ++j) list.emplace_back(start);
    return list;
  }
  void take(int j, const Val<T>& u, const Val<T>& v) {
    Var<T>& sum = a_[size_t(j)];
    sum = how_ == Chunk::dot ? multiply_add(u, v, Val<T>(sum)) : combine<T>(how_, sum, u);
  }
  Wide<T, kWide> read(const Grid<T, 2>& from, const Val<i32>& at) const {
    const auto once = from.streaming();
    if (wide_) return once.template wide<kWide>(row_, at);
    return Wide<T, kWide>{{once(row_, at), once(row_, at + 1), once(row_, at + 2), once(row_, at + 3)}};
  }

  Chunk how_;
  bool wide_;
  const Grid<T, 2>&x_, &y_;
  Val<i32> row_;
  std::vector<Var<T>> a_;
  Var<bool> nan_;
  Val<i32> begin_, own_;  // the chunk's first column, the lane's
};

/// The value of a chunk of a row, [begin, end) of at most kReduceChunk columns, by a group of kLanes. All lanes get it.
template <class T>
Val<T> chunk_value(Chunk how, bool wide, const Grid<T, 2>& x, const Grid<T, 2>& y, const Val<i32>& row,
                   const Val<i32>& begin, const Val<i32>& end, const Val<i32>& lane) {
  ChunkLane<T> own(how, wide, x, y, row, begin, lane);
  const Val<bool> whole = uniform(begin <= end - int(kReduceChunk));
  const auto partial = [&] { own.partial(end); };
  if (watches_nan<T>(how))
    if_(whole, [&] { own.full_with_nan(); }, partial);
  else
    if_(whole, [&] { own.full(); }, partial);
  return own.result();
}

/// The same of up to kShort values by one lane, `load(k)` each: the lanes past the end are neutral, so the tree is small.
inline constexpr int kShort = 32;
template <class T, class Load>
Val<T> short_value(Chunk how, const Val<i32>& count, Load load) {
  std::vector<Var<T>> lanes;
  lanes.reserve(kShort / kWide);
  for (int l = 0; l < kShort / kWide; ++l) lanes.emplace_back(neutral<T>(how));
  Var<bool> nan = false;
  for (int l = 0; l < kShort / kWide; ++l)
    if_(count > l * kWide, [&] {
      std::vector<Val<T>> v;
      for (int j = 0; j < kWide; ++j) {
        const int k = l * kWide + j;
        v.push_back(load(min(Val<i32>(k), count - 1)));
        if constexpr (std::is_floating_point_v<T>)
          if (watches_nan<T>(how)) nan = Val<bool>(nan) || isnan(v.back());
        if (j > 0) v.back() = select(count > k, v.back(), Val<T>(neutral<T>(how)));
      }
      lanes[size_t(l)] = combine<T>(how, combine<T>(how, v[0], v[1]), combine<T>(how, v[2], v[3]));
    });
  std::vector<Val<T>> v(lanes.begin(), lanes.end());
  for (size_t s = v.size() / 2; s > 0; s /= 2)
    for (size_t l = 0; l < s; ++l) v[l] = combine<T>(how, v[l], v[l + s]);
  if constexpr (std::is_floating_point_v<T>)
    if (watches_nan<T>(how)) return select(nan, Val<T>(std::numeric_limits<T>::quiet_NaN()), v[0]);
  return v[0];
}

}  // namespace lockstep::primitives
