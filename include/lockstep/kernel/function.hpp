// Functions that are not inlined. A kernel traces such a function once for all calls, whereas it traces a C++ function
// of Vals at each call. Functions that declare a LocalArray are traced at each call, too.
//
//   const auto soft = function("soft", [](Val<f32> x, Val<f32> width) { return x / (abs(x) + width); });
//   const Kernel k = kernel("k", [&](At<1> at, Grid<f32, 1> a, Out<f32, 1> out) {
//     out[at] = soft(soft(a[at], 1), 2);
//   });
#pragma once

#include <functional>
#include <span>
#include <string>
#include <tuple>
#include <typeindex>
#include <utility>
#include <vector>

#include "lockstep/kernel/vec.hpp"

namespace lockstep {

namespace detail {

/// The numbers that a C++ type of the language consists of.
template <class P>
struct Parts;
template <Value T>
struct Parts<Val<T>> {
  using Scalar = T;
  static constexpr int kCount = 1;
  static void split(const Val<T>& v, std::vector<ir::Id>& ids) { ids.push_back(v.id()); }
  static Val<T> join(const ir::Id* ids) { return Val<T>::from(ids[0]); }
};
template <Value T, int N>
struct Parts<Vec<T, N>> {
  using Scalar = T;
  static constexpr int kCount = N;
  static void split(const Vec<T, N>& v, std::vector<ir::Id>& ids) {
    for (int k = 0; k < N; ++k) ids.push_back(v[k].id());
  }
  static Vec<T, N> join(const ir::Id* ids) {
    return Vec<T, N>::make([&](int k) { return Val<T>::from(ids[k]); });
  }
};

template <class P>
concept OfParts = requires { Parts<P>::kCount; };

/// The value type of an argument of a generic function, which may be a variable, an element or a number.
template <class A>
struct Given {
  using type = A;
};
template <HasValue A>
struct Given<A> {
  using type = Val<expr_t<A>>;
};
template <class A>
  requires std::is_arithmetic_v<A>
struct Given<A> {
  using type = Val<A>;
};
template <class T, int N>
struct Given<Vec<T, N>> {
  using type = Vec<T, N>;
};
template <class T, int N>
struct Given<VarVec<T, N>> {
  using type = Vec<T, N>;
};

/// Parameters of a lambda as declared. For a generic lambda, they follow from the arguments of the call.
template <class L, class... A>
struct Taken {
  using type = std::tuple<typename Given<A>::type...>;
};
template <class M>
struct Declared;
template <class C, class R, class... P>
struct Declared<R (C::*)(P...) const> {
  using type = std::tuple<std::remove_cvref_t<P>...>;
};
template <class L, class... A>
  requires requires { &L::operator(); }
struct Taken<L, A...> {
  using type = typename Declared<decltype(&L::operator())>::type;
};

uint64_t new_function_identity();
/// A function to be traced: `body` returns the ids of its results for the ids of its parameters.
struct FunctionTrace {
  uint64_t identity;
  std::type_index types;
  const std::string& name;
  std::span<const Type> parameters;
  std::function<std::vector<ir::Id>(std::span<const ir::Id>)> body;
};
/// Calls the function with these values and returns the ids of its `count` results. The body is traced if the current
/// kernel does not contain it yet.
std::vector<ir::Id> call_function(const FunctionTrace& function, std::span<const ir::Id> values, int count);

}  // namespace detail

/// A function of values that kernels call. Copies are the same function.
template <class L>
class KernelFunction {
 public:
  KernelFunction(std::string name, L body)
      : name_(std::move(name)), body_(std::move(body)), identity_(detail::new_function_identity()) {}

  /// The result of the body for these values. The body is traced when a kernel first calls it with these types.
  template <class... A>
  auto operator()(const A&... arguments) const {
    using P = typename detail::Taken<L, A...>::type;
    static_assert(std::tuple_size_v<P> == sizeof...(A), "as many arguments as the function has parameters");
    if constexpr (std::tuple_size_v<P> == sizeof...(A)) return call(static_cast<P*>(nullptr), arguments...);
  }

 private:
  template <class... P, class... A>
  auto call(std::tuple<P...>*, const A&... arguments) const {
    constexpr bool kOfNumbers = (detail::OfParts<P> && ...);
    static_assert(
        kOfNumbers,
        "a function takes Val<T> and Vec<T, N>; a plain C++ function or lambda may take an array by "
        "reference, and is inlined");
    if constexpr (kOfNumbers) return call_with<P...>(arguments...);
  }
  template <class... P, class... A>
  auto call_with(const A&... arguments) const {
    constexpr int kNumbers = (0 + ... + detail::Parts<P>::kCount);
    static_assert(kNumbers <= ir::kMostArgs, "a function takes at most 8 numbers");
    using R = typename detail::Given<std::remove_cvref_t<std::invoke_result_t<const L&, P...>>>::type;
    std::vector<ir::Id> values;
    (detail::Parts<P>::split(P(arguments), values), ...);
    std::vector<Type> types;
    (types.insert(types.end(), detail::Parts<P>::kCount, detail::kType<typename detail::Parts<P>::Scalar>),
     ...);
    const auto body = [&](std::span<const ir::Id> taken) {
      size_t next = 0;
      // Braces fix the order of evaluation.
      std::tuple<P...> parameters{
          detail::Parts<P>::join(taken.data() + std::exchange(next, next + detail::Parts<P>::kCount))...};
      std::vector<ir::Id> given;
      detail::Parts<R>::split(R(std::apply(body_, parameters)), given);
      return given;
    };
    const auto results = detail::call_function({identity_, typeid(std::tuple<P...>), name_, types, body},
                                               values, detail::Parts<R>::kCount);
    return detail::Parts<R>::join(results.data());
  }

  std::string name_;
  L body_;
  uint64_t identity_;
};

/// A function of values and vectors, up to 8 numbers in all, that returns a value or a vector. It may declare a
/// LocalArray. It cannot use buffers, arrays, positions or barriers of the kernel; pass it their values. Products and
/// sums are contracted to fma inside the function, but not across a call.
template <class L>
KernelFunction<L> function(std::string name, L body) {
  return KernelFunction<L>(std::move(name), std::move(body));
}

}  // namespace lockstep
