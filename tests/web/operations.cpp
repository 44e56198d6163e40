// Every operation on every type over hostile operands, by lane and as a scalar, against its meaning; and fma in all its
// branches, against the native program's digest.
#include <array>
#include <bit>
#include <cstdio>
#include <string>
#include <vector>

#include "../fuzz/runner.hpp"
#include "checks.hpp"
#include "fma_digest.hpp"
#include "ir/meaning.hpp"
#include "lockstep/ir/builder.hpp"

namespace lockstep::web_tests {

namespace {

using namespace ir;
using fuzz::Contents;
using fuzz::Program;
using fuzz::Runner;

constexpr Type kTypes[] = {Type::i32, Type::u32, Type::i64, Type::u64, Type::f32, Type::f64};

Storage storage_of(Type type) {
  for (int k = 0; k < 6; ++k)
    if (value_type(Storage(k)) == type) return Storage(k);
  return Storage::f32;
}

/// Ends, halves, powers of two, subnormal numbers, infinities and NaN.
std::vector<uint64_t> hostile(Type type) {
  std::vector<uint64_t> all;
  if (type == Type::f32) {
    for (const float x :
         {0.0f, 0.5f, 1.0f, 1.5f, 2.5f, 3.0f, 0x1p-149f, 0x1.fffffcp-127f, 0x1p-126f, 0x1.fffffep127f,
          8388607.5f, 0x1p31f, 0x1p32f, 0x1p63f, 0x1p64f, __builtin_inff(), __builtin_nanf("")})
      for (const float signed_x : {x, -x}) all.push_back(std::bit_cast<uint32_t>(signed_x));
  } else if (type == Type::f64) {
    for (const double x :
         {0.0, 0.5, 1.0, 1.5, 2.5, 3.0, 0x1p-1074, 0x1p-1022, 0x1.fffffffffffffp1023, 0x1.000001p0,
          0x1.000001p-126, 0x1p31, 2147483647.5, 0x1p32, 0x1p63, 0x1p64, __builtin_inf(), __builtin_nan("")})
      for (const double signed_x : {x, -x}) all.push_back(std::bit_cast<uint64_t>(signed_x));
  } else {
    const uint64_t mask = is_wide(type) ? ~uint64_t(0) : 0xffffffffu;
    for (const uint64_t x :
         {0ull, 1ull, 2ull, 7ull, 31ull, 32ull, 33ull, 63ull, 64ull, 1000003ull, 0x7fffffffull, 0x80000000ull,
          0xffffffffull, 0x7fffffffffffffffull, 0x8000000000000000ull})
      for (const uint64_t signed_x : {x, 0 - x, ~x}) all.push_back(signed_x & mask);
  }
  return all;
}

/// One kernel of an operation: its operands from buffers, or the first from a buffer and the others from parameters.
class OneOperation {
 public:
  OneOperation(Op op, Type operand, Type result, int operands, bool uniform)
      : op_(op), operand_(operand), result_(result), operands_(operands), uniform_(uniform) {}

  void run(Runner& cpu) {
    const std::vector<uint64_t> values = hostile(operand_);
    if (uniform_) {
      // A parameter is the same for all lanes: one launch for some of the second operands.
      for (size_t k = 0; k < values.size(); k += 7)
        run(cpu, values, {values[k], values[(k * 7 + 1) % values.size()]});
    } else {
      run(cpu, values, {});
    }
  }

 private:
  void run(Runner& cpu, const std::vector<uint64_t>& values, const std::vector<uint64_t>& parameters) {
    const size_t n = values.size(), all = uniform_ ? n : n * n;
    std::array<std::vector<uint64_t>, 3> x;
    for (size_t e = 0; e < all; ++e) {
      x[0].push_back(values[e % n]);
      x[1].push_back(uniform_ ? parameters[0] : values[e / n]);
      x[2].push_back(uniform_ ? parameters[1] : values[(e * 7 + e / n) % n]);
    }
    Program p = program(x, parameters);
    Contents got;
    try {
      got = cpu.run(p);
    } catch (const std::exception& error) { return check(false, (label() + ": " + error.what()).c_str()); }
    const Storage to = p.function.buffers.back().storage;
    Contents expected(got.size());
    for (size_t k = 0; k + 1 < got.size(); ++k) expected[k] = got[k];
    for (size_t e = 0; e < all; ++e) {
      const uint64_t args[] = {x[0][e], x[1][e], x[2][e]};
      const uint64_t bits = meaning::evaluate(op_, operand_, result_, args);
      for (int byte = 0; byte < size_of(to); ++byte) expected.back().push_back(uint8_t(bits >> (8 * byte)));
    }
    const std::string found = fuzz::difference(p, expected, got);
    check(found.empty(), (label() + ": " + found).c_str());
  }

  std::string label() const {
    return std::string(ir::name(op_)) + " " + std::string(lockstep::name(operand_)) + " " +
           std::string(lockstep::name(result_)) + (uniform_ ? " uniform" : "");
  }

  Program program(const std::array<std::vector<uint64_t>, 3>& x,
                  const std::vector<uint64_t>& parameters) const {
    Program p;
    Function& f = p.function;
    f.name = "operation";
    Builder b(f);
    const Storage from = storage_of(operand_),
                  to = storage_of(result_ == Type::boolean ? Type::u32 : result_);
    const int buffers = uniform_ ? 1 : operands_;
    for (int k = 0; k < buffers; ++k) f.buffers.push_back({"x" + std::to_string(k), from, 1, Access::read});
    f.buffers.push_back({"y", to, 1, Access::write});
    const Id at = b.emit(Op::coord, Type::i32, {}, 0);
    std::vector<Id> args;
    for (int k = 0; k < operands_; ++k) {
      if (k < buffers) {
        args.push_back(b.emit(Op::load, operand_, {at}, uint64_t(k)));
        continue;
      }
      f.scalars.push_back({"p" + std::to_string(k), operand_});
      p.scalars.push_back(parameters[size_t(k - 1)]);
      args.push_back(b.emit(Op::param, operand_, {}, uint64_t(k - 1)));
    }
    Instruction i{op_};
    i.type = result_;
    for (size_t k = 0; k < args.size(); ++k) i.args[k] = args[k];
    Id value = b.append(i);
    if (result_ == Type::boolean) value = b.emit(Op::convert, Type::u32, {value});
    b.emit(Op::store, Type::none, {at, value}, uint64_t(buffers));
    p.extent[0] = int64_t(x[0].size());
    for (int k = 0; k <= buffers; ++k) {
      std::vector<uint8_t> bytes;
      const int size = size_of(f.buffers[size_t(k)].storage);
      for (uint64_t bits : x[size_t(k) % 3])
        for (int byte = 0; byte < size; ++byte) bytes.push_back(uint8_t(bits >> (8 * byte)));
      p.buffers.push_back(bytes);
    }
    return p;
  }

  const Op op_;
  const Type operand_, result_;
  const int operands_;
  const bool uniform_;
};

void elementary(Runner& cpu) {
  int kernels = 0;
  const auto both = [&](Op op, Type operand, Type result, int operands) {
    for (const bool uniform : {false, true}) {
      if (uniform && operands == 1) continue;
      OneOperation(op, operand, result, operands, uniform).run(cpu);
      ++kernels;
    }
  };
  for (int number = 0; number < int(Op::count_); ++number) {
    const Op op = Op(number);
    if (!is_elementary(op)) continue;
    for (Type type : kTypes)
      if (takes(op, type) && (op != Op::umulhi || type == Type::u32 || type == Type::u64))
        both(op, type, result_type(op, type), arity(op));
  }
  for (Type from : kTypes)
    for (Type to : kTypes)
      if (from != to) both(Op::convert, from, to, 1);
  std::printf("%d kernels of one operation\n", kernels);
}

/// std::fma, which the interpreter uses, over the triples of the digest.
template <class T>
void fused_on_host(uint64_t expected) {
  HostileTriples<T> triples;
  Digest digest;
  for (int64_t k = 0; k < kTriples; ++k) {
    const std::array<T, 3> x = triples.next();
    digest.add(std::fma(x[0], x[1], x[2]));
  }
  check(digest.value == expected, "std::fma has the native program's bits");
}

/// fma on the CPU device over the triples of the digest.
template <class T>
void fused(Runner& cpu, uint64_t expected) {
  constexpr Type kType = sizeof(T) == 4 ? Type::f32 : Type::f64;
  Program p;
  p.function.name = "fma";
  Builder b(p.function);
  for (int k = 0; k < 4; ++k)
    p.function.buffers.push_back(
        {"x" + std::to_string(k), storage_of(kType), 1, k == 3 ? Access::write : Access::read});
  const Id at = b.emit(Op::coord, Type::i32, {}, 0);
  std::vector<Id> args;
  for (uint64_t k = 0; k < 3; ++k) args.push_back(b.emit(Op::load, kType, {at}, k));
  b.emit(Op::store, Type::none, {at, b.op(Op::fma, {args[0], args[1], args[2]})}, 3);
  Digest digest;
  constexpr int kChunk = 1 << 18;
  HostileTriples<T> triples;
  p.extent[0] = kChunk;
  for (int64_t done = 0; done < kTriples; done += kChunk) {
    p.buffers.assign(4, std::vector<uint8_t>(kChunk * sizeof(T)));
    for (int e = 0; e < kChunk; ++e) {
      const std::array<T, 3> x = triples.next();
      for (size_t k = 0; k < 3; ++k)
        std::memcpy(p.buffers[k].data() + size_t(e) * sizeof(T), &x[k], sizeof(T));
    }
    const Contents got = cpu.run(p);
    for (int e = 0; e < kChunk; ++e) {
      T y;
      std::memcpy(&y, got[3].data() + size_t(e) * sizeof(T), sizeof(T));
      digest.add(y);
    }
  }
  std::printf("%lld fma of %d bytes: digest %016llx\n", static_cast<long long>(kTriples), int(sizeof(T)),
              static_cast<unsigned long long>(digest.value));
  check(digest.value == expected, "fma has the native program's bits");
}

}  // namespace

void operations() {
  Runner cpu("cpu");
  elementary(cpu);
  fused_on_host<float>(kFma32Digest);
  fused_on_host<double>(kFma64Digest);
  fused<float>(cpu, kFma32Digest);
  fused<double>(cpu, kFma64Digest);
}

}  // namespace lockstep::web_tests
