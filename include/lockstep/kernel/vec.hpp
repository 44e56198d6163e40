// Vectors of 2, 3 or 4 kernel values: component-wise operators, dot, cross, length. A vector costs no more than its
// components.
#pragma once

#include <array>
#include <tuple>
#include <utility>

#include "lockstep/kernel/math.hpp"

namespace lockstep {

namespace detail {
/// Throws InputError for an index `k` that is not below `count`.
[[noreturn]] void refuse_place(int count, int k);
inline size_t place_in(int count, int k) {
  if (k < 0 || k >= count) refuse_place(count, k);
  return size_t(k);
}
}  // namespace detail

/// N kernel values of type T, of one lane.
template <class T, int N>
class Vec {
  static_assert(N >= 2 && N <= 4, "vectors have 2, 3 or 4 components");

 public:
  using scalar_type = T;
  static constexpr int kSize = N;

  /// One value per component: kernel values, variables or C++ numbers.
  template <class... C>
    requires(sizeof...(C) == N && (std::convertible_to<C, Val<T>> && ...))
  Vec(const C&... components) : v_{Val<T>(components)...} {}
  /// All components the same.
  static Vec splat(const Val<T>& value) {
    return make([&](int) { return value; });
  }
  /// Component k is make(k).
  template <class Make>
  static Vec make(Make make) {
    return [&]<int... k>(std::integer_sequence<int, k...>) {
      return Vec(Val<T>(make(k))...);
    }(std::make_integer_sequence<int, N>{});
  }

  /// Throws InputError outside of 0 … N - 1.
  const Val<T>& operator[](detail::Whole<int> k) const { return v_[detail::place_in(N, k)]; }
  const Val<T>& x() const { return v_[0]; }
  const Val<T>& y() const { return v_[1]; }
  const Val<T>& z() const
    requires(N >= 3)
  {
    return v_[2];
  }
  const Val<T>& w() const
    requires(N == 4)
  {
    return v_[3];
  }
  Vec<T, 2> xy() const { return {v_[0], v_[1]}; }
  Vec<T, 3> xyz() const
    requires(N == 4)
  {
    return {v_[0], v_[1], v_[2]};
  }

  friend Vec operator-(const Vec& a) {
    return make([&](int k) { return -a[k]; });
  }
#define LOCKSTEP_VEC(symbol)                                  \
  friend Vec operator symbol(const Vec& a, const Vec& b) {    \
    return make([&](int k) { return a[k] symbol b[k]; });     \
  }                                                           \
  friend Vec operator symbol(const Vec& a, const Val<T>& b) { \
    return make([&](int k) { return a[k] symbol b; });        \
  }                                                           \
  friend Vec operator symbol(const Val<T>& a, const Vec& b) { \
    return make([&](int k) { return a symbol b[k]; });        \
  }
  LOCKSTEP_VEC(+)
  LOCKSTEP_VEC(-)
  LOCKSTEP_VEC(*)
  LOCKSTEP_VEC(/)
#undef LOCKSTEP_VEC

 private:
  std::array<Val<T>, N> v_;
};

template <class T>
using Vec2 = Vec<T, 2>;
template <class T>
using Vec3 = Vec<T, 3>;
template <class T>
using Vec4 = Vec<T, 4>;

/// A mutable vector of one lane.
template <class T, int N>
class VarVec {
 public:
  VarVec(const Vec<T, N>& initial) : v_(start(initial, std::make_integer_sequence<int, N>{})) {}
  VarVec& operator=(const Vec<T, N>& value) {
    for (int k = 0; k < N; ++k) v_[size_t(k)] = value[k];
    return *this;
  }
  VarVec& operator=(const VarVec& other) { return *this = Vec<T, N>(other); }
  VarVec(const VarVec& other) : VarVec(Vec<T, N>(other)) {}
  operator Vec<T, N>() const {
    return Vec<T, N>::make([&](int k) { return Val<T>(v_[size_t(k)]); });
  }
  /// Throws InputError outside of 0 … N - 1.
  Var<T>& operator[](detail::Whole<int> k) { return v_[detail::place_in(N, k)]; }
  const Var<T>& operator[](detail::Whole<int> k) const { return v_[detail::place_in(N, k)]; }

  // With a vector, or one number for all components.
#define LOCKSTEP_VEC(symbol)                                                                   \
  VarVec& operator symbol##=(const Vec<T, N>& b) { return *this = Vec<T, N>(*this) symbol b; } \
  VarVec& operator symbol##=(const Val<T>& b) { return *this = Vec<T, N>(*this) symbol b; }
  LOCKSTEP_VEC(+)
  LOCKSTEP_VEC(-)
  LOCKSTEP_VEC(*)
  LOCKSTEP_VEC(/)
#undef LOCKSTEP_VEC

 private:
  template <int... k>
  static std::array<Var<T>, N> start(const Vec<T, N>& v, std::integer_sequence<int, k...>) {
    return {Var<T>(v[k])...};
  }
  std::array<Var<T>, N> v_;
};

/// N mutable variables of one lane, kept in registers and indexed by C++ numbers during tracing:
/// `VarArray<f32, 8> sum(0.0f); sum[k] += x;` with a C++ number k. Use a LocalArray for indices that are values.
template <class T, int N>
class VarArray {
 public:
  using value_type = T;
  static constexpr int kSize = N;
  /// All the same.
  explicit VarArray(const Val<T>& initial, std::source_location where = std::source_location::current())
      : VarArray([&](int) { return initial; }, where) {}
  /// Variable k begins as make(k).
  template <class Make>
    requires std::invocable<Make, int>
  explicit VarArray(Make make, std::source_location where = std::source_location::current())
      : v_(start(make, where, std::make_integer_sequence<int, N>{})) {}

  static constexpr int size() { return N; }
  /// Throws InputError outside of 0 … N - 1.
  Var<T>& operator[](detail::Whole<int> k) { return v_[detail::place_in(N, k)]; }
  const Var<T>& operator[](detail::Whole<int> k) const { return v_[detail::place_in(N, k)]; }
  auto begin() { return v_.begin(); }
  auto end() { return v_.end(); }
  auto begin() const { return v_.begin(); }
  auto end() const { return v_.end(); }

 private:
  template <class Make, int... k>
  static std::array<Var<T>, N> start(Make& make, const std::source_location& where,
                                     std::integer_sequence<int, k...>) {
    return {Var<T>(Val<T>(make(k)), where)...};
  }
  std::array<Var<T>, N> v_;
};

/// a b + c for each component, with one rounding.
template <class T, int N>
Vec<T, N> fma(const Vec<T, N>& a, const Vec<T, N>& b, const Vec<T, N>& c) {
  return Vec<T, N>::make([&](int k) { return fma(a[k], b[k], c[k]); });
}
template <class T, int N>
Vec<T, N> min(const Vec<T, N>& a, const Vec<T, N>& b) {
  return Vec<T, N>::make([&](int k) { return min(a[k], b[k]); });
}
template <class T, int N>
Vec<T, N> max(const Vec<T, N>& a, const Vec<T, N>& b) {
  return Vec<T, N>::make([&](int k) { return max(a[k], b[k]); });
}
template <class T, int N>
Vec<T, N> abs(const Vec<T, N>& a) {
  return Vec<T, N>::make([&](int k) { return abs(a[k]); });
}
template <class T, int N>
Vec<T, N> select(const Val<bool>& condition, const Vec<T, N>& yes, const Vec<T, N>& no) {
  return Vec<T, N>::make([&](int k) { return select(condition, yes[k], no[k]); });
}
/// With one number for all components: select(inside, v, 0.0f).
template <class T, int N, class B>
  requires(std::is_arithmetic_v<B> || detail::HasValue<B>)
Vec<T, N> select(const Val<bool>& condition, const Vec<T, N>& yes, const B& no) {
  return select(condition, yes, Vec<T, N>::splat(no));
}
template <class T, int N, class A>
  requires(std::is_arithmetic_v<A> || detail::HasValue<A>)
Vec<T, N> select(const Val<bool>& condition, const A& yes, const Vec<T, N>& no) {
  return select(condition, Vec<T, N>::splat(yes), no);
}

/// a0 b0 + a1 b1 + …, added in this order; floats by fma.
template <class T, int N>
Val<T> dot(const Vec<T, N>& a, const Vec<T, N>& b) {
  Val<T> sum = a[0] * b[0];
  for (int k = 1; k < N; ++k) {
    if constexpr (std::is_floating_point_v<T>)
      sum = fma(a[k], b[k], sum);
    else
      sum = sum + a[k] * b[k];
  }
  return sum;
}
template <class T>
Vec<T, 3> cross(const Vec<T, 3>& a, const Vec<T, 3>& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}
/// Square root of dot(a, a); overflows if a square exceeds the range of the type.
template <class T, int N>
Val<T> length(const Vec<T, N>& a) {
  return sqrt(dot(a, a));
}
/// a / length(a); NaN for the null vector.
template <class T, int N>
Vec<T, N> normalize(const Vec<T, N>& a) {
  return a / length(a);
}

/// Sorts ascending, or by a comparator of two values that returns Val<bool>. The method is an odd-even transposition
/// sort: N passes that compare adjacent elements, so it suits small N. Stable if the comparator is strict.
template <class T, int N, class Less>
void sort(VarArray<T, N>& array, Less less) {
  for (int pass = 0; pass < N; ++pass)
    for (int k = pass % 2; k + 1 < N; k += 2) {
      const Val<T> a = array[k], b = array[k + 1];
      const Val<bool> turned = less(b, a);
      array[k] = select(turned, b, a);
      array[k + 1] = select(turned, a, b);
    }
}
template <class T, int N>
void sort(VarArray<T, N>& array) {
  sort(array, [](const Val<T>& a, const Val<T>& b) { return a < b; });
}

namespace detail {
template <class A>
inline constexpr bool kVariables = false;
template <class T, int N>
inline constexpr bool kVariables<VarVec<T, N>> = true;
template <class T, int N>
inline constexpr bool kVariables<VarArray<T, N>> = true;
}  // namespace detail

/// For structured bindings: `auto [x, y, z] = v` of a Vec; of a VarVec or VarArray also `auto& [x, y] = v`.
template <size_t k, class T, int N>
Val<T> get(const Vec<T, N>& v) {
  return v[int(k)];
}
template <size_t k, class A>
  requires detail::kVariables<std::remove_cvref_t<A>>
decltype(auto) get(A&& v) {
  if constexpr (std::is_lvalue_reference_v<A>)
    return v[int(k)];
  else
    return std::move(v[int(k)]);
}

}  // namespace lockstep

template <class T, int N>
struct std::tuple_size<lockstep::Vec<T, N>> : std::integral_constant<size_t, N> {};
template <class T, int N>
struct std::tuple_size<lockstep::VarVec<T, N>> : std::integral_constant<size_t, N> {};
template <class T, int N>
struct std::tuple_size<lockstep::VarArray<T, N>> : std::integral_constant<size_t, N> {};
template <size_t k, class T, int N>
struct std::tuple_element<k, lockstep::Vec<T, N>> {
  using type = lockstep::Val<T>;
};
template <size_t k, class T, int N>
struct std::tuple_element<k, lockstep::VarVec<T, N>> {
  using type = lockstep::Var<T>;
};
template <size_t k, class T, int N>
struct std::tuple_element<k, lockstep::VarArray<T, N>> {
  using type = lockstep::Var<T>;
};
