// Vectors and complex numbers as elements of buffers and shared arrays.
//
//   const auto place = elements<Vec3<f32>>(places);            // Grid<f32, 2> of shape (n, 3): components in the last axis
//   const Vec3<f32> next = place[at.x(+1)] - place[at];
//   elements<Complex<f32>>(spectrum)(row, k) = a * b;          // Out<f32, 3>; InOut also supports += -= *= /=
//   const SharedElements<Complex<f32>> s(256);
#pragma once

#include "lockstep/kernel/kernel.hpp"
#include "lockstep/kernel/vec.hpp"

namespace lockstep {

/// re + i im.
template <class T>
struct Complex {
  using scalar_type = T;
  static constexpr int kSize = 2;
  Val<T> re, im;

  template <class Make>
  static Complex make(Make make) {
    const Val<T> re = make(0);
    return {re, make(1)};
  }
  const Val<T>& operator[](int k) const { return detail::place_in(2, k) == 0 ? re : im; }

  friend Complex operator-(const Complex& a) { return {-a.re, -a.im}; }
  friend Complex operator+(const Complex& a, const Complex& b) { return {a.re + b.re, a.im + b.im}; }
  friend Complex operator-(const Complex& a, const Complex& b) { return {a.re - b.re, a.im - b.im}; }
  friend Complex operator*(const Complex& a, const Complex& b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
  /// Scaled by the larger part of b (Smith 1962), so that squares neither overflow nor underflow.
  friend Complex operator/(const Complex& a, const Complex& b) {
    const Val<bool> steep = abs(b.re) < abs(b.im);
    const Val<T> large = select(steep, b.im, b.re), ratio = select(steep, b.re, b.im) / large;
    const Val<T> size = fma(select(steep, b.re, b.im), ratio, large), r = select(steep, -ratio, ratio);
    const Complex n = select(steep, -times_i(a), a);
    return {fma(n.im, r, n.re) / size, fma(-n.re, r, n.im) / size};
  }
  friend Complex operator*(const Complex& a, const Val<T>& b) { return {a.re * b, a.im * b}; }
  friend Complex operator*(const Val<T>& a, const Complex& b) { return b * a; }
  friend Complex operator/(const Complex& a, const Val<T>& b) { return {a.re / b, a.im / b}; }
  friend Complex conj(const Complex& a) { return {a.re, -a.im}; }
  /// re² + im², as std::norm.
  friend Val<T> norm(const Complex& a) { return fma(a.im, a.im, a.re * a.re); }
  friend Val<T> abs(const Complex& a) { return hypot(a.re, a.im); }
  /// i a, exactly.
  friend Complex times_i(const Complex& a) { return {-a.im, a.re}; }
  friend Complex select(const Val<bool>& condition, const Complex& yes, const Complex& no) {
    return {select(condition, yes.re, no.re), select(condition, yes.im, no.im)};
  }
};

namespace detail {

/// An element that can be written and consists of V::kSize numbers.
template <class V, class Part>
class Composed {
 public:
  /// Component k is part(k).
  template <class PartOf>
  explicit Composed(PartOf part) : parts_(collect(part, std::make_integer_sequence<int, V::kSize>{})) {}
  operator V() const {
    return V::make([&](int k) { return Val<typename V::scalar_type>(parts_[size_t(k)]); });
  }
  Composed(const Composed&) = default;
  Part operator[](Whole<int> k) && { return parts_[place_in(V::kSize, k)]; }
  Val<typename V::scalar_type> operator[](Whole<int> k) const& { return parts_[place_in(V::kSize, k)]; }
  void operator=(const V& value) && { write(value); }
  void operator=(const Composed& other) && { write(other); }
  void operator=(const V&) const& = delete;         // a name is a value, not a place: write a[i] = v
  void operator=(const Composed&) const& = delete;  // a name is a value, not a place: write a[i] = v
  // clang-format off: one line each is what compilers show
#define LOCKSTEP_COMPOSED(symbol) \
  void operator symbol##=(const V& b) && { write(V(*this) symbol b); } \
  void operator symbol##=(const Val<typename V::scalar_type>& b) && requires requires(V v) { v symbol b; } { \
    write(V(*this) symbol b); \
  } \
  void operator symbol##=(const V&) const& = delete; /* a name is a value, not a place: write a[i] += v */ \
  void operator symbol##=(const Val<typename V::scalar_type>&) const& = delete; /* a name is a value: write a[i] += v */
  // clang-format on
  LOCKSTEP_COMPOSED(+)
  LOCKSTEP_COMPOSED(-)
  LOCKSTEP_COMPOSED(*)
  LOCKSTEP_COMPOSED(/)
#undef LOCKSTEP_COMPOSED

 private:
  void write(const V& value) const {
    for (int k = 0; k < V::kSize; ++k) Part(parts_[size_t(k)]).store(value[k]);
  }
  template <class PartOf, int... k>
  static std::array<Part, V::kSize> collect(PartOf& part, std::integer_sequence<int, k...>) {
    return {part(k)...};
  }
  std::array<Part, V::kSize> parts_;
};

}  // namespace detail

/// A buffer of rank R, seen as a buffer of rank R - 1 whose elements are vectors, as returned by elements<V>(buffer).
template <class V, class G>
class Elements : private G {
  static constexpr int kPlaces = G::kRank - 1;
  static constexpr bool kReads = G::kAccess == ir::Access::read;
  static_assert(kPlaces >= 1, "the last axis holds the components: rank 2 or more");
  static_assert(std::same_as<typename G::T, typename V::scalar_type>, "components have the elements' type");

 public:
  explicit Elements(const G& buffer) : G(buffer) { buffer.require(kPlaces, V::kSize); }

  /// The element at explicit coordinates, slowest first, by the boundary rule of the buffer, if any.
  template <class... I>
    requires(sizeof...(I) == kPlaces && (detail::Coordinate<I> && ...))
  auto operator()(const I&... i) const {
    return at(static_cast<const G&>(*this), Val<i32>(i)...);
  }
  auto operator[](detail::Coord i) const
    requires(kPlaces == 1)
  {
    return at(static_cast<const G&>(*this), Val<i32>::from(i.id()));
  }
  /// The element at a point of the domain. Reads beyond the boundary use the nearest cell unless the buffer has another
  /// rule.
  auto operator[](const Position<kPlaces>& p) const {
    const auto& buffer = static_cast<const G&>(*this);
    if constexpr (kReads) {
      bool shifted = false;
      for (int axis = 0; axis < kPlaces; ++axis) shifted |= p.offset(axis) != 0;
      return at_point(shifted && !this->ruled_ ? buffer.with(this->boundary_) : buffer, p);
    } else {
      return at_point(buffer, p);
    }
  }

 private:
  template <class... I>
  static auto at(const G& buffer, const I&... i) {
    const auto part = [&](int k) { return buffer(i..., k); };
    if constexpr (kReads)
      return V::make(part);
    else
      return detail::Composed<V, decltype(part(0))>(part);
  }
  static auto at_point(const G& buffer, const Position<kPlaces>& p) {
    const Val<i32> x = p.x;
    if constexpr (kPlaces == 1)
      return at(buffer, x);
    else if constexpr (kPlaces == 2)
      return at(buffer, Val<i32>(p.y), x);
    else
      return at(buffer, Val<i32>(p.z), Val<i32>(p.y), x);
  }
};

template <class V, class G>
Elements<V, G> elements(const G& buffer) {
  return Elements<V, G>(buffer);
}

/// An array of vectors or complex numbers shared by the lanes of a group. All first components are stored first, then
/// all second ones and so on, so that neighbouring lanes access neighbouring numbers.
template <class V>
class SharedElements {
 public:
  explicit SharedElements(detail::Whole<int64_t> count)
      : numbers_(int64_t(count) * V::kSize), count_(int(int64_t(count))) {}
  auto operator[](detail::Coord index) const {
    const auto i = Val<i32>::from(index.id());
    const auto part = [&](int k) { return numbers_[i + k * count_]; };
    return detail::Composed<V, decltype(part(0))>(part);
  }

 private:
  SharedArray<typename V::scalar_type> numbers_;
  int count_;
};

}  // namespace lockstep
