// A transform along one axis: what its lines are read from and written to. All forms of the transform share
// these accesses, and thus the arithmetic of packing and unpacking.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "lockstep/device.hpp"
#include "primitives/fft/butterflies.hpp"

namespace lockstep::primitives::fft {

/// Source of element j of a line of n complex values.
enum class Source : uint8_t {
  complex,     // element j; of a truncated spectrum (entries < n), 0 where it was left out
  real,        // a real element
  real_pairs,  // real elements 2 j and 2 j + 1 as real and imaginary part; rows only
  half,        // coefficient j of a half spectrum, or the conjugate of n - j
  half_pairs,  // what paired_coefficient makes of coefficients j and n - j of the half spectrum of 2 n points
};
/// Where element j goes.
enum class Sink : uint8_t {
  complex,     // element j, where the truncated spectrum has it
  half,        // coefficient j of a half spectrum, where it has it
  half_pairs,  // the half spectrum of 2 n real points; j is its coefficient (real_coefficient)
  real,        // the real part
  real_pairs,  // real elements 2 j and 2 j + 1; rows only
};
/// Bluestein's factors on the way in and out: chirp on both, filter in the middle.
enum class Factor : uint8_t { none, chirp, filter };

struct Line {
  int64_t points = 1;  // n of the complex transform
  bool rows = true;    // along the last axis, else along the one before
  Source source = Source::complex;
  int64_t source_entries = 1;  // of the array along the axis; what a spectrum has not is 0
  Sink sink = Sink::complex;
  int64_t sink_entries = 1;
  bool swap_in = false, swap_out = false;  // an inverse transform has both
  bool scaled = false;                     // results times the kernel's number
  Factor factor_in = Factor::none, factor_out = Factor::none;
  int64_t factor_points = 0;  // of the chirp: elements beyond are 0

  bool real_source() const { return source == Source::real || source == Source::real_pairs; }
  bool real_sink() const { return sink == Sink::real || sink == Sink::real_pairs; }
  std::string key() const;
};

/// Reads and writes of a kernel by batch, axis 0 and axis 1, regardless of the rank of its buffers.
template <class T>
struct Memory {
  std::function<Complex<T>(const Val<i32>&, const Val<i32>&, const Val<i32>&)> read_complex;
  std::function<Val<T>(const Val<i32>&, const Val<i32>&, const Val<i32>&)> read_real;
  std::function<Complex<T>(const Val<i32>&, const Val<i32>&, const Val<i32>&)> read_pair;  // x is even
  std::function<void(const Val<i32>&, const Val<i32>&, const Val<i32>&, const Complex<T>&)> write_complex;
  std::function<void(const Val<i32>&, const Val<i32>&, const Val<i32>&, const Val<T>&)> write_real;
  std::function<void(const Val<i32>&, const Val<i32>&, const Val<i32>&, const Complex<T>&)> write_pair;
  std::function<Complex<T>(const Val<i32>&)> root;    // of the table of the line's Stages
  std::function<Complex<T>(const Val<i32>&)> factor;  // chirp or filter
};

/// Range of j that holds for all lanes, to leave out at trace time what is 0 or unwanted.
struct Range {
  int64_t low, high;  // both inclusive
};

/// One line as a lane sees it.
template <class T>
class LineAccess {
 public:
  LineAccess(const Line& line, const Memory<T>& memory, const Val<i32>& batch, const Val<i32>& other,
             int64_t real_at)
      : line_(line), memory_(memory), batch_(batch), other_(other), real_at_(real_at) {}

  Complex<T> load(const Val<i32>& j, Range range) const {
    if (line_.factor_in == Factor::chirp) {
      if (range.low >= line_.factor_points) return zero();
      return where(range.high < line_.factor_points, j < int(line_.factor_points), [&] {
        return multiply<T>(memory_.factor(j), swap_in(source(j, range, line_.factor_points)));
      });
    }
    Complex<T> a = source(j, range, line_.points);
    if (line_.factor_in == Factor::filter) a = multiply<T>(memory_.factor(j), a);
    return swap_in(a);
  }

  void store(const Val<i32>& j, Range range, Complex<T> a, const Val<T>& scale) const {
    if (line_.factor_out == Factor::none) return finish_store(j, range, a, scale);
    if (range.low >= line_.factor_points) return;
    const auto rest = [&] {
      // The middle transform is an inverse one; then the line's own direction.
      Complex<T> b = multiply<T>(memory_.factor(j), swapped(a));
      finish_store(j, {range.low, std::min(range.high, line_.factor_points - 1)}, b, scale);
    };
    if (range.high < line_.factor_points)
      rest();
    else
      if_(j < int(line_.factor_points), rest);
  }

  /// Coefficient k of the half spectrum from Z[k] and Z[n - k] (Sink::half_pairs).
  void store_pair(const Val<i32>& k, const Complex<T>& a, const Complex<T>& b) const {
    memory_.write_complex(batch_, at0(k), at1(k), real_coefficient<T>(a, b, memory_.root(k + int(real_at_))));
  }

 private:
  static Complex<T> zero() { return {Val<T>(T(0)), Val<T>(T(0))}; }
  const Val<i32>& at0(const Val<i32>& j) const { return line_.rows ? other_ : j; }
  const Val<i32>& at1(const Val<i32>& j) const { return line_.rows ? j : other_; }
  Complex<T> read(const Val<i32>& j) const { return memory_.read_complex(batch_, at0(j), at1(j)); }
  Complex<T> swap_in(const Complex<T>& a) const { return line_.swap_in ? swapped(a) : a; }

  /// value() where `inside`, else 0; `known` at trace time.
  template <class Value>
  static Complex<T> where(bool known, const Val<bool>& inside, Value value) {
    if (known) return value();
    Var<T> re = Val<T>(T(0)), im = Val<T>(T(0));
    if_(inside, [&] {
      const Complex<T> a = value();
      re = a.re;
      im = a.im;
    });
    return {Val<T>(re), Val<T>(im)};
  }

  Complex<T> source(const Val<i32>& j, Range range, int64_t n) const {
    switch (line_.source) {
      case Source::complex: return truncated(j, range, n);
      case Source::real: return {memory_.read_real(batch_, at0(j), at1(j)), Val<T>(T(0))};
      case Source::real_pairs: return memory_.read_pair(batch_, other_, j * 2);
      case Source::half: {
        const int half = int(n / 2);
        const Val<bool> mirrored = j > half;
        const Complex<T> a = coefficient(select(mirrored, int(n) - j, j), {0, half}, n);
        return {a.re, select(mirrored, -a.im, a.im)};
      }
      case Source::half_pairs: {
        const Complex<T> a = coefficient(j, range, 2 * n),
                         b = coefficient(int(n) - j, {n - range.high, n - range.low}, 2 * n);
        return paired_coefficient<T>(a, b, memory_.root(j + int(real_at_)));
      }
    }
    return zero();
  }

  /// Coefficient k of a half spectrum of n real points: 0 beyond its entries; k = 0 and n / 2 are real.
  Complex<T> coefficient(const Val<i32>& k, Range range, int64_t n) const {
    const int64_t entries = line_.source_entries;
    if (range.low >= entries) return zero();
    const Complex<T> a = where(range.high < entries, k < int(entries), [&] { return read(k); });
    Val<bool> is_real = k == 0;
    if (n % 2 == 0) is_real = is_real || k == int(n / 2);
    const bool never = range.low > 0 && (n % 2 != 0 || range.high < n / 2);
    return never ? a : Complex<T>{a.re, select(is_real, T(0), a.im)};
  }

  /// Element j of a spectrum that has the entries j <= kept and j >= n - kept.
  Complex<T> truncated(const Val<i32>& j, Range range, int64_t n) const {
    const int64_t entries = line_.source_entries, kept = entries / 2, gap = n - entries;
    if (gap == 0) return read(j);
    if (range.high <= kept) return read(j);
    if (range.low >= n - kept) return read(j - int(gap));
    if (range.low > kept && range.high < n - kept) return zero();
    return where(false, j <= int(kept) || j >= int(n - kept),
                 [&] { return read(select(j <= int(kept), j, j - int(gap))); });
  }

  void finish_store(const Val<i32>& j, Range range, Complex<T> a, const Val<T>& scale) const {
    if (line_.swap_out) a = swapped(a);
    if (line_.scaled) a = {a.re * scale, a.im * scale};
    const int64_t n = line_.factor_out == Factor::none ? line_.points : line_.factor_points;
    switch (line_.sink) {
      case Sink::real: return memory_.write_real(batch_, at0(j), at1(j), a.re);
      case Sink::real_pairs: return memory_.write_pair(batch_, other_, j * 2, a);
      case Sink::half: return within(range, line_.sink_entries - 1, j, a);
      default: break;
    }
    const int64_t entries = line_.sink_entries, kept = entries / 2, gap = n - entries;
    if (gap == 0) return memory_.write_complex(batch_, at0(j), at1(j), a);
    within(range, kept, j, a);
    if (range.high < n - kept) return;
    const auto write = [&] {
      const Val<i32> to = j - int(gap);
      memory_.write_complex(batch_, at0(to), at1(to), a);
    };
    if (range.low >= n - kept)
      write();
    else
      if_(j >= int(n - kept), write);
  }
  void within(Range range, int64_t last, const Val<i32>& j, const Complex<T>& a) const {
    const auto write = [&] { memory_.write_complex(batch_, at0(j), at1(j), a); };
    if (range.high <= last)
      write();
    else if (range.low <= last)
      if_(j <= int(last), write);
  }

  Line line_;
  Memory<T> memory_;
  Val<i32> batch_, other_;
  int64_t real_at_;
};

/// How a line kernel's buffers lie: with a batch axis before the two others or without, and whether pairs of
/// elements are aligned.
struct Layout {
  bool batched = true;
  bool pairs_in = true, pairs_out = true;
  std::string key() const;
};

/// The body of a line kernel: place, memory, scale and number of the step's part.
template <class T, class Place>
using LineBody = std::function<void(const Place&, const Memory<T>&, const Val<T>&, const Val<i32>&)>;
/// A kernel with the parameters from, to, table, factors, scale, number, traced when it is first requested by
/// its name, line, layout and group.
template <class T, class Place>
Kernel line_kernel(const std::string& name, const Line& line, const Layout& layout,
                   const LineBody<T, Place>& body, const KernelOptions& options = {});

/// One kernel of a plan, from an array to another. Shapes are (batch, n0, n1) of elements, without the axis
/// of parts.
struct Step {
  /// A launch: its domain, and a number that the form knows the meaning of.
  struct Part {
    Shape extent;
    int64_t number = 0;
  };
  std::function<Kernel(const Layout&)> kernel;
  std::vector<Part> parts;
  Shape from, to;
  bool real_from = false, real_to = false;
  int axis = 0;  // 0 or 1 of the transform: whose table
  Factor factor = Factor::none;
};
/// The lines of one axis of an array (batch, n0, n1); n0 or n1 is what the line has along its axis.
struct Lines {
  Line line;
  int64_t batch = 1, others = 1;  // lines of one batch
  int axis = 0;
  Shape shape(int64_t entries) const {
    return line.rows ? Shape{batch, others, entries} : Shape{batch, entries, others};
  }
};

/// Passes over memory, one for each radix: any length, any device.
template <class T>
std::vector<Step> pass_steps(const Lines& lines);
/// A line in each lane, `width` neighbouring lines a vector: for CPUs. None where the length is not served.
template <class T>
std::vector<Step> lane_steps(const Lines& lines, int width);
/// Lines in groups of lanes: for GPUs. None where the length is not served within the limits.
template <class T>
std::vector<Step> block_steps(const Lines& lines, const Limits& limits);

}  // namespace lockstep::primitives::fft
