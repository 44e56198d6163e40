// A transform inside a Group kernel: the lanes of a group hold the values in registers and exchange them
// through shared memory, so that a kernel can work on the values before and after without touching memory.
//
//   const BlockFft fft(1024, 32, {32, 32});              // at trace time
//   FftExchange<f32> exchange(fft, lines);                // declares the shared array
//   exchange.place(line);                                 // which of the group's transforms is this lane's
//   ComplexValues<f32> x;
//   for (int j = 0; j < fft.points(); ++j) x.push_back(load(t + fft.lanes() * j));
//   block_fft(fft, FftDirection::forward, x, t, exchange, memory_roots(table));
//   for (int j = 0; j < fft.points(); ++j) store(t + fft.lanes() * j, x[j]);
//
// Layout, before and after: lane t of the `lanes` that share a transform holds in x[j] the element
// t + lanes * j, in natural order. Unnormalised. All lanes of the group call it, in uniform flow; x is made in
// the block where it is called. Which lanes share a transform is the kernel's choice: lane = t + lanes * line,
// or lane = line + lines * t for accesses to memory that run across lines.
//
// Elements that are 0 for all lanes (a truncated spectrum) may be given as {0, 0, true}: their folds are left
// out. Results that nobody uses cost nothing.
//
// Several sets of values may be transformed at once: they share roots, addresses and barriers, at the price of that much
// more shared memory.
//
// Bits: those of every other form of the transform (twiddles.hpp), regardless of radices and lanes.
#pragma once

#include <map>
#include <optional>
#include <span>

#include "lockstep/fft.hpp"
#include "primitives/fft/butterflies.hpp"

namespace lockstep::primitives::fft {

/// How a group's lanes do a transform of `length` points. `radices`: powers of two (the first at least 4
/// unless the length is 2 times odd), then the odd factors in the order of Stages::odd(); each divides
/// points(). Throws InputError else.
class BlockFft {
 public:
  BlockFft(int length, int lanes, std::vector<int> radices);
  int length() const { return stages_.length(); }
  int lanes() const { return lanes_; }
  int points() const { return length() / lanes_; }
  const std::vector<int>& radices() const { return radices_; }
  const Stages& stages() const { return stages_; }
  /// After so many elements of an exchange array one is left out, against conflicts of its banks; 0: none.
  int pad() const { return pad_; }
  int padded() const { return pad_ ? length() + length() / pad_ : length(); }

 private:
  Stages stages_;
  int lanes_, pad_ = 0;
  std::vector<int> radices_;
};

/// Shared memory through which the lanes exchange values: `lines` transforms at a time, real and imaginary
/// parts apart.
template <class T>
class FftExchange {
 public:
  /// The order of the transforms: one after the other, or element by element interleaved (for lanes that
  /// count across lines).
  enum class Lines : uint8_t { apart, interleaved };
  /// `buffers`: 2 spare one of two barriers of an exchange, for twice the memory. `planes`: 1 halves the
  /// memory for one barrier more (real parts first, then the imaginary ones through the same place).
  /// `sets`: of values that are exchanged at once, at most.
  explicit FftExchange(const BlockFft& fft, int lines = 1, Lines how = Lines::apart, int buffers = 1,
                       int planes = 2, int sets = 1)
      : pad_(fft.pad()),
        padded_(fft.padded()),
        lines_(lines),
        buffers_(buffers),
        planes_(planes),
        sets_(sets),
        how_(how),
        array_(bytes(fft, lines, buffers, planes, sets) / int64_t(sizeof(T))) {}

  static int64_t bytes(const BlockFft& fft, int lines, int buffers = 1, int planes = 2, int sets = 1) {
    return int64_t(fft.padded()) * lines * buffers * planes * sets * int64_t(sizeof(T));
  }

  /// Number of this lane's transform among `lines`.
  void place(const Val<i32>& line) { line_.emplace(line); }
  /// States that lanes may still read what other code put into array(): the next exchange waits first.
  void touched() { ++exchanges_; }
  /// The array itself, for the kernel's own use between transforms. Element i of this lane's transform is
  /// at address(i) (real parts) and address(i) + plane() (imaginary parts).
  const SharedArray<T>& array() const { return array_; }
  Val<i32> address(const Val<i32>& i) const { return spread(pad_ ? i + i / pad_ : i); }
  int plane() const { return padded_ * lines_; }
  int planes() const { return planes_; }

  /// x[m] of each set goes to `to(m)` for all m; then x[m] comes from `from(m)`: addresses by the two functions.
  template <class To, class From>
  void exchange(std::span<ComplexValues<T>* const> sets, To to, From from) {
    const int size = planes_ * plane(), buffer = int(exchanges_) % buffers_ * sets_ * size;
    const int count = int(sets.front()->size());
    const bool in_use = exchanges_ > 0 && buffers_ == 1;
    ++exchanges_;
    if (in_use) barrier();
    if (planes_ == 2) {
      for (int m = 0; m < count; ++m) {
        const Val<i32> at = to(m) + buffer;
        for (int s = 0; s < int(sets.size()); ++s) {
          const Complex<T>& x = (*sets[size_t(s)])[size_t(m)];
          array_[at + s * size] = x.re;
          array_[at + (s * size + plane())] = x.im;
        }
      }
      barrier();
      for (int m = 0; m < count; ++m) {
        const Val<i32> at = from(m) + buffer;
        for (int s = 0; s < int(sets.size()); ++s)
          (*sets[size_t(s)])[size_t(m)] = {array_[at + s * size], array_[at + (s * size + plane())]};
      }
      return;
    }
    for (int s = 0; s < int(sets.size()); ++s) {
      ComplexValues<T>& x = *sets[size_t(s)];
      const int place = buffer + s * size;
      for (int m = 0; m < count; ++m) array_[to(m) + place] = x[size_t(m)].re;
      barrier();
      for (int m = 0; m < count; ++m) x[size_t(m)].re = array_[from(m) + place];
      barrier();
      for (int m = 0; m < count; ++m) array_[to(m) + place] = x[size_t(m)].im;
      barrier();
      for (int m = 0; m < count; ++m) x[size_t(m)] = {x[size_t(m)].re, array_[from(m) + place]};
    }
  }

  /// address(first + offset), where the padding of `offset` is known while tracing if it is a multiple of the
  /// pad or `first` is one and the offset is below it.
  Val<i32> address(const Val<i32>& first, int offset, bool first_is_multiple) const {
    if (pad_ == 0) return spread(first + offset);
    if (offset % pad_ == 0 || (first_is_multiple && offset < pad_))
      return spread(first + first / pad_ + (offset + offset / pad_));
    return address(first + offset);
  }

 private:
  Val<i32> spread(const Val<i32>& i) const {
    if (lines_ == 1) return i;
    return how_ == Lines::interleaved ? i * lines_ + *line_ : i + *line_ * padded_;
  }

  int pad_, padded_, lines_, buffers_, planes_, sets_;
  Lines how_;
  SharedArray<T> array_;
  std::optional<Val<i32>> line_;
  int64_t exchanges_ = 0;
};

/// Roots out of a table in memory (Stages::table), `table` of shape (entries, 2). `first` is the entry where
/// the table begins.
template <class T>
auto memory_roots(const Grid<T, 2>& table, int first = 0) {
  return [table, first](const Val<i32>& at) {
    const auto w = table.template wide<2>(at + first, 0);
    return Complex<T>{w[0], w[1]};
  };
}
/// Roots out of a shared array that holds the table's real and imaginary parts in turn.
template <class T>
auto shared_roots(const SharedArray<T>& table) {
  return [table](const Val<i32>& at) { return Complex<T>{table[at * 2], table[at * 2 + 1]}; };
}

/// Transforms each set; `root` gives an entry of the table by its number (memory_roots, shared_roots).
template <class T, class Roots>
void block_fft(const BlockFft& fft, FftDirection direction, std::span<ComplexValues<T>* const> sets,
               const Val<i32>& t, FftExchange<T>& exchange, Roots root) {
  const int lanes = fft.lanes(), points = fft.points(), power = int(fft.stages().power_of_two());
  const auto swap_parts = [&] {
    if (direction == FftDirection::inverse)
      for (ComplexValues<T>* x : sets)
        for (Complex<T>& v : *x) v = swapped(v);
  };
  swap_parts();
  int before = 1, odd = 0;  // points of the transforms done; odd stages done
  for (size_t pass = 0; pass < fft.radices().size(); ++pass) {
    const int radix = fft.radices()[pass], each = points / radix;
    for (int m = 0; m < each; ++m) {  // butterfly t + lanes * m
      const Val<i32> k0 = before == 1 ? Val<i32>(0) : (t + lanes * m) % before;
      std::map<int, Complex<T>> roots;  // of this butterfly, by their place in the table
      const auto root_at = [&](int place) {
        const auto found = roots.find(place);
        return found != roots.end() ? found->second : roots.emplace(place, root(k0 + place)).first->second;
      };
      for (ComplexValues<T>* x : sets) {
        ComplexValues<T> y;
        for (int q = 0; q < radix; ++q) y.push_back((*x)[size_t(m + each * q)]);
        if (before < power)
          power_of_two_stages<T>(y, before == 1,
                                 [&](int at, int of) { return root_at(of * before / 2 + at * before); });
        else
          odd_stage<T>(y, before == 1,
                       [&](int q) { return root_at(int(fft.stages().odd_at(odd)) + (q - 1) * before); });
        for (int q = 0; q < radix; ++q) (*x)[size_t(m + each * q)] = y[size_t(q)];
      }
    }
    if (before >= power) ++odd;
    if (pass + 1 < fft.radices().size())
      exchange.exchange(
          sets,
          [&](int place) {
            const int m = place % each, q = place / each;
            const Val<i32> butterfly = t + lanes * m;
            if (before == 1)
              return exchange.address(butterfly * radix, q, fft.pad() && radix % fft.pad() == 0);
            const Val<i32> k0 = butterfly % before;
            return exchange.address((butterfly - k0) * radix + k0, q * before, false);
          },
          [&](int j) { return exchange.address(t, lanes * j, false); });
    before *= radix;
  }
  swap_parts();
}
template <class T, class Roots>
void block_fft(const BlockFft& fft, FftDirection direction, ComplexValues<T>& x, const Val<i32>& t,
               FftExchange<T>& exchange, Roots root) {
  ComplexValues<T>* const set = &x;
  block_fft<T>(fft, direction, std::span<ComplexValues<T>* const>(&set, 1), t, exchange, root);
}

}  // namespace lockstep::primitives::fft
