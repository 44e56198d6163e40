// One function body in two languages: C++ on floats, and kernels.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/kernel.hpp"

namespace lockstep::misuse {

/// C++ itself.
struct Host {
  using Value = float;
  using Variable = float;
  using Whole = int;
  using Memory = std::span<float>;
  template <int N>
  using Array = std::array<float, N>;
  template <int N, class Make>
  static Array<N> array(Make make) {
    Array<N> all;
    for (int k = 0; k < N; ++k) all[size_t(k)] = make(k);
    return all;
  }
  static std::vector<float> local(int n) { return std::vector<float>(size_t(n), 0.0f); }
  static std::vector<float> shared(int n) { return local(n); }
  template <class Then>
  static void if_(bool condition, Then then) {
    if (condition) then();
  }
  template <class Then, class Else>
  static void if_(bool condition, Then then, Else otherwise) {
    if (condition)
      then();
    else
      otherwise();
  }
  struct Break {};
  struct Continue {};
  template <class Body>
  static void pass(Body body) {
    try {
      body();
    } catch (Continue) {}
  }
  template <class Body>
  static void for_(int begin, int end, int step, Body body) {
    try {
      for (int i = begin; step > 0 ? i < end : i > end; i += step) pass([&] { body(i); });
    } catch (Break) {}
  }
  template <class Condition, class Body>
  static void while_(Condition condition, Body body) {
    try {
      while (condition()) pass(body);
    } catch (Break) {}
  }
  static void break_if(bool condition) {
    if (condition) throw Break();
  }
  static void continue_if(bool condition) {
    if (condition) throw Continue();
  }
  static float select(bool condition, float yes, float no) { return condition ? yes : no; }
  static float min(float a, float b) { return std::min(a, b); }
  static float max(float a, float b) { return std::max(a, b); }
  static float sqrt(float a) { return std::sqrt(a); }
  static float real(int i) { return float(i); }
  static int whole(float v) { return int(v); }
  template <class A, class Less>
  static void sort(A& array, Less less) {
    std::stable_sort(array.begin(), array.end(), less);
  }
};

/// Some elements of a buffer, from a place on.
struct Row {
  InOut<f32, 1> all;
  int first;
  auto operator[](int k) const { return all[first + k]; }
  auto operator[](const Val<i32>& k) const { return all[k + first]; }
};

/// The kernel language, in a group of one lane.
struct Lane {
  using Value = Val<f32>;
  using Variable = Var<f32>;
  using Whole = Val<i32>;
  using Memory = Row;
  template <int N>
  using Array = VarArray<f32, N>;
  template <int N, class Make>
  static Array<N> array(Make make) {
    return Array<N>([&](int k) { return Val<f32>(make(k)); });
  }
  template <class A>
  static A zeros(int n) {
    const A array(n);
    for (int k = 0; k < n; ++k) array[k] = 0.0f;
    return array;
  }
  static LocalArray<f32> local(int n) { return zeros<LocalArray<f32>>(n); }
  static SharedArray<f32> shared(int n) { return zeros<SharedArray<f32>>(n); }
  template <class... A>
  static void if_(const A&... all) {
    lockstep::if_(all...);
  }
  template <class Body>
  static void for_(int begin, int end, int step, Body body) {
    lockstep::for_(begin, end, step, body);
  }
  template <class Condition, class Body>
  static void while_(Condition condition, Body body) {
    lockstep::while_(condition, body);
  }
  static void break_if(const Val<bool>& condition) { lockstep::break_if(condition); }
  static void continue_if(const Val<bool>& condition) { lockstep::continue_if(condition); }
  template <class C, class A, class B>
  static Value select(const C& condition, const A& yes, const B& no) {
    return lockstep::select(condition, Value(yes), Value(no));
  }
  template <class A, class B>
  static Value min(const A& a, const B& b) {
    return lockstep::min(Value(a), Value(b));
  }
  template <class A, class B>
  static Value max(const A& a, const B& b) {
    return lockstep::max(Value(a), Value(b));
  }
  template <class A>
  static Value sqrt(const A& a) {
    return lockstep::sqrt(a);
  }
  static Value real(const Whole& i) { return cast<f32>(i); }
  template <class A>
  static Whole whole(const A& v) {
    return cast<i32>(v);
  }
  template <class A, class Less>
  static void sort(A& array, Less less) {
    lockstep::sort(array, less);
  }
};

struct Case {
  std::string name;
  void (*host)(Host, Host::Memory&);
  void (*lane)(Lane, Lane::Memory&);
};
inline std::vector<Case>& cases() {
  static std::vector<Case> all;
  return all;
}

}  // namespace lockstep::misuse

// A body that gives `b` the same elements in both languages. In it: `l`, the language; Value, Variable, Whole.
#define SAME(name)                                                               \
  struct name {                                                                  \
    template <class L>                                                           \
    static void run(L l, typename L::Memory& b) {                                \
      body<L, typename L::Value, typename L::Variable, typename L::Whole>(l, b); \
    }                                                                            \
    template <class L, class Value, class Variable, class Whole>                 \
    static void body(L l, typename L::Memory& b);                                \
  };                                                                             \
  [[maybe_unused]] const bool name##_is_listed =                                 \
      (cases().push_back({#name, &name::run<Host>, &name::run<Lane>}), true);    \
  template <class L, class Value, class Variable, class Whole>                   \
  void name::body([[maybe_unused]] L l, typename L::Memory& b)
