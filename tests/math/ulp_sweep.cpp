// Largest error of every elementary function over sampled operands. Prints one line per function and type.
//   ulp_sweep [--function NAME] [--type f32|f64] [--count N] [--seed N] [--threads N]
// Exit code 1 where a promise of docs/numerics.md is broken.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string_view>
#include <thread>

#include "math/bodies/bodies.hpp"
#include "math/oracle.hpp"
#include "math/reference.hpp"

using namespace lockstep;

namespace {

template <class T>
struct Worst {
  double ulp = -1;
  T a = 0, b = 0, got = 0;
};

template <class T>
Worst<T> sweep(ir::Op op, int64_t count, uint64_t seed) {
  lockstep::testing::Sampler<T> sampler(op, seed);
  Worst<T> worst;
  for (int64_t i = 0; i < count; ++i) {
    T a, b;
    sampler.next(a, b);
    const T got = math::body<math::Host, T>(op, math::Host<T>(a), math::Host<T>(b)).v;
    using W = lockstep::testing::Wider<T>;
    const double error = lockstep::testing::ulp_error<T>(got, lockstep::testing::oracle<W>(op, W(a), W(b)));
    if (error > worst.ulp) worst = {error, a, b, got};
  }
  return worst;
}

template <class T>
bool report(ir::Op op, const char* type, int64_t count, uint64_t seed, int threads) {
  Worst<T> worst;
  std::mutex guard;
  std::vector<std::thread> workers;
  for (int t = 0; t < threads; ++t)
    workers.emplace_back([&, t] {
      const auto mine = sweep<T>(op, count / threads, seed * 1000 + uint64_t(t));
      const std::scoped_lock lock(guard);
      if (mine.ulp > worst.ulp) worst = mine;
    });
  for (auto& w : workers) w.join();
  const double promised = lockstep::testing::promised_ulp(op);
  const bool good = worst.ulp <= promised;
  const auto name = ir::name(op);
  std::printf("%-9.*s %s  %11lld  %.4f  at %a", int(name.size()), name.data(), type,
              static_cast<long long>(count), worst.ulp, double(worst.a));
  if (ir::arity(op) == 2) std::printf(", %a", double(worst.b));
  std::printf(" -> %a%s\n", double(worst.got), good ? "" : "  ABOVE THE PROMISE");
  std::fflush(stdout);
  return good;
}

}  // namespace

int main(int argc, char** argv) {
  std::string_view function, type;
  int64_t count = 1000000;
  uint64_t seed = 1;
  int threads = 1;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view option = argv[i];
    if (option == "--function")
      function = argv[i + 1];
    else if (option == "--type")
      type = argv[i + 1];
    else if (option == "--count")
      count = std::atoll(argv[i + 1]);
    else if (option == "--seed")
      seed = uint64_t(std::atoll(argv[i + 1]));
    else if (option == "--threads")
      threads = std::atoi(argv[i + 1]);
    else {
      std::fprintf(stderr, "unknown option %s\n", argv[i]);
      return 2;
    }
  }
  bool good = true;
  for (const ir::Op op : math::functions()) {
    if (!function.empty() && ir::name(op) != function) continue;
    if (type != "f64") good &= report<float>(op, "f32", count, seed, threads);
    if (type != "f32") good &= report<double>(op, "f64", type == "f64" ? count : count / 50, seed, threads);
  }
  if (function.empty() || function == "powi")
    for (const int exponent : {2, 3, 4, 5, 8, 16, 32, 64, -1, -2, -3, -8, -64}) {
      const double f32 = lockstep::testing::powi_error<float>(exponent, count / 10, seed);
      const double f64 = lockstep::testing::powi_error<double>(exponent, count / 100, seed);
      std::printf("powi %4d  f32 %.4f  f64 %.4f\n", exponent, f32, f64);
      good &= std::max(f32, f64) <= std::abs(exponent);
    }
  return good ? 0 : 1;
}
