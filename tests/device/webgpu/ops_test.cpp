// Every elementary operation against its definition, over edge values and random bits.
#include <bit>
#include <cmath>
#include <functional>
#include <random>

#include "adapter.hpp"
#include "ir/meaning.hpp"

namespace lockstep {
namespace {

using ir::Op;

struct Row {
  Op op;
  int arity;
  const char* name;
};
std::vector<Row> rows() {
  return {
#define LOCKSTEP_OP(name, arity, ...) {Op::name, arity, #name},
#include "lockstep/ir/ops.def"
  };
}

template <class V>
uint64_t evaluate(Op op, V a, V b, V c) {
  namespace m = ir::meaning;
  switch (op) {
#define LOCKSTEP_OP(name, ...)                                     \
  case Op::name:                                                   \
    if constexpr (ir::takes(Op::name, lockstep::detail::kType<V>)) \
      return m::to_bits(m::op_##name<V>(a, b, c));                 \
    break;
#include "lockstep/ir/ops.def"
    default: break;
  }
  return 0;
}

std::vector<uint32_t> edges(Type type) {
  std::vector<uint32_t> v;
  if (type == Type::f32) {
    for (float f : {0.0f,      1.0f,
                    0.5f,      1.5f,
                    2.5f,      3.0f,
                    0x1p23f,   0x1.8p23f,
                    0x1p24f,   8388607.5f,
                    0x1p31f,   0x1p32f,
                    0x1p-126f, 0x1.fffffep127f,
                    0x1p-149f, 0x1.fffffcp-127f,
                    0.1f,      1e-20f,
                    1e20f,     4194303.75f,
                    INFINITY,  NAN})
      v.push_back(std::bit_cast<uint32_t>(f)), v.push_back(std::bit_cast<uint32_t>(-f));
    v.push_back(0x7f800001u);
  } else if (type == Type::boolean) {
    v = {0, 1};
  } else {
    for (uint32_t k : {0u, 1u, 2u, 3u, 7u, 31u, 32u, 33u, 255u, 65535u, 65536u, 0x7fffffffu, 0x80000000u,
                       0x80000001u, 0xfffffffeu, 0xffffffffu, 0x12345678u})
      v.push_back(k);
  }
  return v;
}

bool subnormal(uint32_t bits) { return (bits & 0x7f800000u) == 0 && (bits & 0x007fffffu) != 0; }
bool is_nan(uint32_t bits) { return (bits & 0x7fffffffu) > 0x7f800000u; }

/// Inputs: all pairs of edge values, then random bits and random numbers of a moderate size.
std::array<std::vector<uint32_t>, 3> inputs(Type type, int arity) {
  std::array<std::vector<uint32_t>, 3> in;
  std::mt19937 random(7);
  const auto e = edges(type);
  for (uint32_t a : e)
    for (uint32_t b : e) {
      in[0].push_back(a), in[1].push_back(b), in[2].push_back(e[random() % e.size()]);
      if (arity == 3)
        for (int k = 0; k < 6; ++k)
          in[0].push_back(a), in[1].push_back(b), in[2].push_back(e[random() % e.size()]);
    }
  for (int n = 0; n < 20000; ++n)
    for (auto& v : in) {
      uint32_t bits = uint32_t(random());
      if (type == Type::boolean) bits &= 1;
      if (type == Type::f32 && n % 2)
        bits = (bits & 0x80ffffffu) | 0x3c000000u | (uint32_t(random() % 8) << 23);
      if (is_integer(type) && n % 4 == 0) bits &= 0xff;
      v.push_back(bits);
    }
  return in;
}

/// WGSL lets subnormal numbers become zero on the way in and out, and results that round up from there.
bool may_flush_to(uint32_t want, uint32_t got) {
  const bool small = subnormal(want) || (want & 0x7fffffffu) == 0x00800000u;
  return got == want || (is_nan(want) && is_nan(got)) || (small && (got & 0x7fffffffu) == 0);
}
/// Whether `got` is what the operation gives with some of its subnormal operands as zeros. fma in whole numbers may round
/// a subnormal result twice (docs/design/webgpu.md).
bool flushed_result(Op op, const std::array<uint32_t, 3>& operands, int arity, uint32_t got) {
  for (int way = 0; way < 27; ++way) {
    std::array<uint32_t, 3> v = operands;
    int rest = way;
    bool skip = false;
    for (int k = 0; k < 3; ++k, rest /= 3) {
      if (rest % 3 == 0) continue;
      if (k >= arity || !subnormal(v[size_t(k)])) skip = true;
      v[size_t(k)] = rest % 3 == 1 ? 0u : 0x80000000u;
    }
    if (skip) continue;
    namespace m = ir::meaning;
    const auto f = [&](int k) { return m::from_bits<f32>(v[size_t(k)]); };
    const uint32_t want = uint32_t(evaluate<f32>(op, f(0), f(1), f(2)));
    if (may_flush_to(want, got) || (op == Op::fma && subnormal(want) && got - want + 1u <= 2u)) return true;
    // Operands that are compared as zeros may be given back as they are.
    const bool chosen = (op == Op::fmin || op == Op::fmax) && (got == operands[0] || got == operands[1]);
    if (chosen && may_flush_to(got, 0) && (want & 0x7fffffffu) == 0) return true;
  }
  return false;
}

Kernel op_kernel(const Row& row, Type type) {
  return Kernel::trace(std::string("op.") + row.name, ir::Domain::points, 1, {}, [&](ir::Builder& b) {
    ir::Function& f = b.function();
    for (int k = 0; k < 4; ++k)
      f.buffers.push_back(
          {"b" + std::to_string(k), Storage::u32, 1, k < 3 ? ir::Access::read : ir::Access::write, true});
    const ir::Id at = b.emit(Op::coord, Type::i32, {}, 0);
    std::vector<ir::Id> args;
    for (int k = 0; k < row.arity; ++k) {
      const ir::Id bits = b.emit(Op::load, Type::u32, {at}, uint64_t(k));
      args.push_back(type == Type::boolean ? b.op(Op::ine, {bits, b.u32(0)}) : b.bitcast(type, bits));
    }
    const ir::Id r = row.arity == 1   ? b.op(row.op, {args[0]})
                     : row.arity == 2 ? b.op(row.op, {args[0], args[1]})
                                      : b.op(row.op, {args[0], args[1], args[2]});
    const Type rt = b.type(r);
    b.emit(Op::store, Type::none,
           {at, rt == Type::boolean ? b.convert(Type::u32, r) : b.bitcast(Type::u32, r)}, 3);
  });
}

TEST(WebgpuOps, EqualTheirDefinition) {
  LOCKSTEP_OPEN_ADAPTER(device);
  for (const Row& row : rows())
    for (Type type : {Type::f32, Type::i32, Type::u32, Type::boolean}) {
      if (!ir::takes(row.op, type) || (row.op == Op::umulhi && type != Type::u32)) continue;
      SCOPED_TRACE(std::string(row.name) + " " + std::string(name(type)));
      const auto in = inputs(type, row.arity);
      const Shape shape{int64_t(in[0].size())};
      const Buffer a = device.upload(std::span<const uint32_t>(in[0]), shape),
                   b = device.upload(std::span<const uint32_t>(in[1]), shape),
                   c = device.upload(std::span<const uint32_t>(in[2]), shape),
                   out = device.allocate<u32>(shape);
      device.launch(op_kernel(row, type), shape, a, b, c, out);
      const auto result = device.download<uint32_t>(out);
      int wrong = 0, flushed = 0;
      for (size_t i = 0; i < result.size(); ++i) {
        const uint32_t want = uint32_t(ir::meaning::with_type(type, [&](auto v) {
          using V = decltype(v);
          namespace m = ir::meaning;
          if constexpr (sizeof(V) > 4)
            return uint64_t(0);
          else
            return evaluate<V>(row.op, m::from_bits<V>(in[0][i]), m::from_bits<V>(in[1][i]),
                               m::from_bits<V>(in[2][i]));
        }));
        if (want == result[i]) continue;
        const bool gives_f32 = ir::result_type(row.op, type) == Type::f32;
        if (gives_f32 && is_nan(want) && is_nan(result[i])) continue;
        if (type == Type::f32 &&
            flushed_result(row.op, {in[0][i], in[1][i], in[2][i]}, row.arity, result[i])) {
          ++flushed;
          continue;
        }
        if (++wrong <= 5)
          ADD_FAILURE() << std::hex << "(" << in[0][i] << ", " << in[1][i] << ", " << in[2][i] << ") gave "
                        << result[i] << ", expected " << want;
      }
      EXPECT_EQ(wrong, 0) << "of " << result.size();
      if (flushed) RecordProperty(std::string("flushed_") + row.name, flushed);
    }
}

TEST(WebgpuOps, Conversions) {
  LOCKSTEP_OPEN_ADAPTER(device);
  for (Type from : {Type::f32, Type::i32, Type::u32, Type::boolean})
    for (Type to : {Type::f32, Type::i32, Type::u32}) {
      if (from == to) continue;
      SCOPED_TRACE(std::string(name(from)) + " to " + std::string(name(to)));
      const auto in = inputs(from, 1)[0];
      const Shape shape{int64_t(in.size())};
      const Kernel k = Kernel::trace("convert", ir::Domain::points, 1, {}, [&](ir::Builder& b) {
        b.function().buffers = {{"b0", Storage::u32, 1, ir::Access::read, true},
                                {"b1", Storage::u32, 1, ir::Access::write, true}};
        const ir::Id at = b.emit(Op::coord, Type::i32, {}, 0), bits = b.emit(Op::load, Type::u32, {at}, 0);
        const ir::Id r =
            b.convert(to, from == Type::boolean ? b.op(Op::ine, {bits, b.u32(0)}) : b.bitcast(from, bits));
        b.emit(Op::store, Type::none, {at, b.bitcast(Type::u32, r)}, 1);
      });
      const Buffer a = device.upload(std::span<const uint32_t>(in), shape), out = device.allocate<u32>(shape);
      device.launch(k, shape, a, out);
      const auto result = device.download<uint32_t>(out);
      int wrong = 0;
      for (size_t i = 0; i < result.size(); ++i) {
        const uint32_t want = uint32_t(ir::meaning::with_type(from, [&](auto v) {
          return ir::meaning::with_type(to, [&](auto t) {
            return ir::meaning::to_bits(
                ir::meaning::convert<decltype(t)>(ir::meaning::from_bits<decltype(v)>(in[i])));
          });
        }));
        if (want == result[i] || (from == Type::f32 && subnormal(in[i]))) continue;
        if (++wrong <= 5)
          ADD_FAILURE() << std::hex << in[i] << " gave " << result[i] << ", expected " << want;
      }
      EXPECT_EQ(wrong, 0);
    }
}

TEST(WebgpuOps, LiteralsKeepTheirBits) {
  LOCKSTEP_OPEN_ADAPTER(device);
  const auto bits = edges(Type::f32);
  const Kernel k = Kernel::trace("literals", ir::Domain::points, 1, {}, [&](ir::Builder& b) {
    b.function().buffers = {{"b0", Storage::u32, 1, ir::Access::write}};
    for (size_t i = 0; i < bits.size(); ++i)
      b.emit(Op::store, Type::none, {b.i32(int32_t(i)), b.bitcast(Type::u32, b.constant(Type::f32, bits[i]))},
             0);
  });
  const Buffer out = device.allocate<u32>({int64_t(bits.size())});
  device.launch(k, {1}, out);
  const auto result = device.download<uint32_t>(out);
  for (size_t i = 0; i < bits.size(); ++i)
    if (!is_nan(bits[i]))
      EXPECT_EQ(result[i], bits[i]) << std::hex << bits[i];
    else
      EXPECT_TRUE(is_nan(result[i]));
}

/// Lanes whose result differs from the host's.
template <class Host>
int64_t count_wrong(const std::vector<float>& result, Host host) {
  int64_t wrong = 0;
  for (size_t i = 0; i < result.size(); ++i) {
    const float want = host(uint32_t(i));
    wrong += std::bit_cast<uint32_t>(want) != std::bit_cast<uint32_t>(result[i]) &&
             !(std::isnan(want) && std::isnan(result[i]));
  }
  return wrong;
}

TEST(WebgpuOps, RootsAreRoundedToNearest) {
  // All fractions under an even and an odd exponent: the others differ by a power of two only.
  const Kernel k = kernel("roots", [](At<1> at, Out<f32, 1> o) {
    o[at] = sqrt(bitcast<f32>(bitcast<u32>(Val<i32>(at.x)) + 0x3f000000u));
  });
  const int64_t n = 1 << 24;
  for (Numerics numerics : {Numerics::exact, Numerics::fast}) {
    LOCKSTEP_OPEN_ADAPTER(device, {}, numerics);
    const Buffer out = device.allocate<f32>({n});
    device.launch(k, {n}, out);
    const int64_t wrong = count_wrong(device.download<float>(out), [](uint32_t i) {
      return std::sqrt(std::bit_cast<float>(i + 0x3f000000u));
    });
    if (numerics == Numerics::exact)
      EXPECT_EQ(wrong, 0);
    else
      std::printf("square roots of the adapter itself: %lld of %lld not to nearest\n",
                  static_cast<long long>(wrong), static_cast<long long>(n));
  }
}

uint32_t scrambled(uint32_t i, uint32_t salt) {
  uint32_t x = i * 2654435761u + salt;
  x ^= x >> 15, x *= 2246822519u, x ^= x >> 13, x *= 3266489917u, x ^= x >> 16;
  return x;
}

TEST(WebgpuOps, QuotientsAreRoundedToNearest) {
  const int64_t n = 1 << 22;
  std::vector<uint32_t> a(n), b(n);
  for (uint32_t i = 0; i < n; ++i) {
    a[i] = scrambled(i, 1), b[i] = scrambled(i, 2);
    if (i % 4) a[i] = (a[i] & 0x807fffffu) | 0x3f800000u, b[i] = (b[i] & 0x807fffffu) | 0x3f800000u;
    if (i % 4 == 1) b[i] |= 0x007ffff0u;
  }
  const Kernel k = kernel("quotients", [](At<1> at, Grid<u32, 1> x, Grid<u32, 1> y, Out<f32, 1> o) {
    o[at] = bitcast<f32>(x[at]) / bitcast<f32>(y[at]);
  });
  for (Numerics numerics : {Numerics::exact, Numerics::fast}) {
    LOCKSTEP_OPEN_ADAPTER(device, {}, numerics);
    const Buffer out = device.allocate<f32>({n});
    device.launch(k, {n}, device.upload(a), device.upload(b), out);
    auto result = device.download<float>(out);
    for (uint32_t i = 0; i < n; ++i) {
      const uint32_t want = std::bit_cast<uint32_t>(std::bit_cast<float>(a[i]) / std::bit_cast<float>(b[i]));
      // Subnormal numbers may become zero.
      if (subnormal(a[i]) || subnormal(b[i]) || subnormal(want)) result[i] = std::bit_cast<float>(want);
    }
    const int64_t wrong = count_wrong(
        result, [&](uint32_t i) { return std::bit_cast<float>(a[i]) / std::bit_cast<float>(b[i]); });
    if (numerics == Numerics::exact)
      EXPECT_EQ(wrong, 0);
    else
      std::printf("quotients of the adapter itself: %lld of %lld not to nearest\n",
                  static_cast<long long>(wrong), static_cast<long long>(n));
  }
}

}  // namespace
}  // namespace lockstep
