// Host structs as parameters of kernels.
//
//   struct Flow { float dt, viscosity; int steps; std::array<float, 3> wind; };
//   LOCKSTEP_STRUCT(Flow, dt, viscosity, steps, wind)
//
//   const auto step = kernel("step", [](At<1> at, InOut<f32, 1> u, Param<Flow> flow) {
//     u[at] = u[at] + flow.dt * flow.wind[0];
//   });
//   device.launch(step, extent, u, Flow{0.1f, 1e-3f, 4, {1, 0, 0}});
//
// Use the macro outside all namespaces. Fields: bool, f32, f64, i32, u32, i64, u64, registered structs, and
// std::array or C arrays of these.
#pragma once

#include <array>
#include <cstddef>
#include <utility>

#include "lockstep/kernel/value.hpp"

namespace lockstep::detail {

/// Specialised by LOCKSTEP_STRUCT: `Values`, the struct as a kernel sees it, and its fields.
template <class S>
struct StructOf {};
template <class S>
concept Structure = requires { typename StructOf<S>::Values; };

template <class F>
struct FieldOf {
  static_assert(Value<F>, "a field is bool, f32, f64, i32, u32, i64, u64, a registered struct or an array");
  using Values = Val<F>;
  static void list(ir::StructType& type, const std::string& name, size_t offset) {
    type.fields.push_back({name, kType<F>, offset});
  }
  template <class Next>
  static Values bind(Next& next) {
    return Values::from(next(kType<F>));
  }
};
template <Structure F>
struct FieldOf<F> {
  using Values = typename StructOf<F>::Values;
  static void list(ir::StructType& type, const std::string& name, size_t offset) {
    StructOf<F>::fields([&]<class Field>(const char* field, size_t at, std::type_identity<Field>) {
      FieldOf<Field>::list(type, name.empty() ? field : name + "_" + field, offset + at);
    });
  }
  template <class Next>
  static Values bind(Next& next) {
    return StructOf<F>::bind(next);
  }
};
template <class F, size_t N>
struct FieldOf<std::array<F, N>> {
  using Values = std::array<typename FieldOf<F>::Values, N>;
  static void list(ir::StructType& type, const std::string& name, size_t offset) {
    for (size_t k = 0; k < N; ++k)
      FieldOf<F>::list(type, name + "_" + std::to_string(k), offset + k * sizeof(F));
  }
  template <class Next>
  static Values bind(Next& next) {
    return [&]<size_t... k>(std::index_sequence<k...>) {
      return Values{((void)k, FieldOf<F>::bind(next))...};  // braces fix the order
    }(std::make_index_sequence<N>());
  }
};
template <class F, size_t N>
struct FieldOf<F[N]> : FieldOf<std::array<F, N>> {};

/// The description of a struct, one per C++ type and process.
template <Structure S>
const ir::StructType& struct_type() {
  static const ir::StructType type = [] {
    ir::StructType t{StructOf<S>::kName, &typeid(S), {}};
    FieldOf<S>::list(t, "", 0);
    return t;
  }();
  return type;
}

/// Declares the scalars of a struct and returns them as the fields that the kernel uses.
template <Structure S>
typename StructOf<S>::Values bind_struct(ir::Builder& b, const std::string& name) {
  ir::Function& f = b.function();
  const ir::StructType& type = struct_type<S>();
  f.structs.push_back({name, &type, uint32_t(f.scalars.size())});
  size_t field = 0;
  auto next = [&](Type t) {
    f.scalars.push_back({name + "_" + type.fields[field++].name, t, b.place()});
    return b.emit(ir::Op::param, t, {}, f.scalars.size() - 1);
  };
  return StructOf<S>::bind(next);
}

}  // namespace lockstep::detail

#define LOCKSTEP_DETAIL_PARENS ()
#define LOCKSTEP_DETAIL_EXPAND(...) \
  LOCKSTEP_DETAIL_EXPAND3(LOCKSTEP_DETAIL_EXPAND3(LOCKSTEP_DETAIL_EXPAND3(__VA_ARGS__)))
#define LOCKSTEP_DETAIL_EXPAND3(...) \
  LOCKSTEP_DETAIL_EXPAND2(LOCKSTEP_DETAIL_EXPAND2(LOCKSTEP_DETAIL_EXPAND2(__VA_ARGS__)))
#define LOCKSTEP_DETAIL_EXPAND2(...) \
  LOCKSTEP_DETAIL_EXPAND1(LOCKSTEP_DETAIL_EXPAND1(LOCKSTEP_DETAIL_EXPAND1(__VA_ARGS__)))
#define LOCKSTEP_DETAIL_EXPAND1(...) __VA_ARGS__
#define LOCKSTEP_DETAIL_EACH(word, S, ...) \
  __VA_OPT__(LOCKSTEP_DETAIL_EXPAND(LOCKSTEP_DETAIL_STEP(word, S, __VA_ARGS__)))
#define LOCKSTEP_DETAIL_STEP(word, S, field, ...) \
  word(S, field) __VA_OPT__(LOCKSTEP_DETAIL_AGAIN LOCKSTEP_DETAIL_PARENS(word, S, __VA_ARGS__))
#define LOCKSTEP_DETAIL_AGAIN() LOCKSTEP_DETAIL_STEP
#define LOCKSTEP_DETAIL_MEMBER(S, field) lockstep::detail::FieldOf<decltype(S::field)>::Values field;
#define LOCKSTEP_DETAIL_BIND(S, field) lockstep::detail::FieldOf<decltype(S::field)>::bind(next),
#define LOCKSTEP_DETAIL_VISIT(S, field) \
  visit(#field, offsetof(S, field), std::type_identity<decltype(S::field)>());

/// Registers the fields of a struct of standard layout, at most 25 per level. Fields that are not listed are not
/// available in kernels.
#define LOCKSTEP_STRUCT(S, ...)                                                               \
  template <>                                                                                 \
  struct lockstep::detail::StructOf<S> {                                                      \
    static_assert(std::is_standard_layout_v<S>, "parameters are structs of standard layout"); \
    static constexpr const char* kName = #S;                                                  \
    struct Values {                                                                           \
      LOCKSTEP_DETAIL_EACH(LOCKSTEP_DETAIL_MEMBER, S, __VA_ARGS__)                            \
    };                                                                                        \
    template <class Next>                                                                     \
    static Values bind(Next& next) {                                                          \
      return {LOCKSTEP_DETAIL_EACH(LOCKSTEP_DETAIL_BIND, S, __VA_ARGS__)};                    \
    }                                                                                         \
    template <class Visit>                                                                    \
    static void fields(const Visit& visit) {                                                  \
      LOCKSTEP_DETAIL_EACH(LOCKSTEP_DETAIL_VISIT, S, __VA_ARGS__)                             \
    }                                                                                         \
  };
