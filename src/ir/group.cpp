// Host side of the words of groups, atomic operations and reports.
#include "lockstep/kernel/group.hpp"

#include <fmt/format.h>

#include "lockstep/error.hpp"
#include "lockstep/kernel/report.hpp"
#include "lockstep/kernel/vec.hpp"

namespace lockstep {

namespace detail {

void refuse_place(int count, int k) {
  throw InputError(fmt::format("variable {} of an array of {}", k, count), builder().where(),
                   fmt::format("0 to {}", count - 1));
}

int group_lanes(const char* word) {
  const ir::Function& f = builder().function();
  if (f.domain != ir::Domain::groups)
    throw InputError(fmt::format("{} in a points kernel", word), builder().where(),
                     "Group<N> as the first parameter");
  return f.group_lanes();
}

void refuse_lanes(const char* word, int lanes) {
  throw InputError(fmt::format("{} over {} lanes", word, lanes), builder().where(), "a power of two");
}

uint32_t group_scratch(Storage storage, int64_t count) {
  ir::Function& f = builder().function();
  const std::string name = fmt::format("scratch_{}_{}", lockstep::name(storage), count);
  for (size_t k = 0; k < f.shared.size(); ++k)
    if (f.shared[k].name == name) return uint32_t(k);
  f.shared.push_back({name, storage, count});
  return uint32_t(f.shared.size() - 1);
}

ir::Id atomic(bool shared, uint64_t array, ir::AtomicOp op, ir::Id index, ir::Id value, ir::Id compare) {
  ir::Builder& b = builder();
  if (!shared && array < b.function().buffers.size()) b.function().buffers[array].atomic = true;
  const uint64_t target = ir::AtomicTarget{op, shared, uint32_t(array)}.bits();
  return compare == ir::kNone ? b.emit(ir::Op::atomic, b.type(value), {index, value}, target)
                              : b.emit(ir::Op::atomic, b.type(value), {index, value, compare}, target);
}

namespace {

/// The two words of a value's bits.
std::array<ir::Id, 2> words_of(ir::Builder& b, ir::Id value) {
  const Type type = b.type(value);
  if (type == kIndexType || type == Type::boolean) return {b.convert(Type::u32, value), b.u32(0)};
  if (!is_wide(type)) return {b.bitcast(Type::u32, value), b.u32(0)};
  const ir::Id bits = b.bitcast(Type::u64, value);
  const ir::Id high = b.op(ir::Op::shr, {bits, b.constant(Type::u64, 32)});
  return {b.convert(Type::u32, bits), b.convert(Type::u32, high)};
}

uint64_t report_buffer(ir::Function& f) {
  if (!f.reporting) {
    f.buffers.push_back({"reports", Storage::u32, 1, ir::Access::read_write});
    f.buffers.back().atomic = true;
    f.reporting = true;
  }
  return f.buffers.size() - 1;
}

}  // namespace

void report(ir::Id when, std::string text, bool failure, ir::Id value, const std::source_location& where) {
  ir::Builder& b = builder();
  b.at(where);
  ir::Function& f = b.function();
  const uint64_t buffer = report_buffer(f);
  const auto number = uint32_t(f.reports.size());
  const Type type = value == ir::kNone ? Type::none : b.type(value);
  f.reports.push_back({std::move(text), failure, type == kIndexType ? Type::u32 : type, b.place()});
  b.if_(when, [&] {
    const ir::Id count = atomic(false, buffer, ir::AtomicOp::add, b.number(kIndexType, 0), b.u32(1));
    b.if_(b.op(ir::Op::ilt, {count, b.u32(ir::kReportSlots)}), [&] {
      std::array<ir::Id, ir::kReportWords - 1> words{};
      words.fill(b.u32(0));
      words[0] = b.u32(number);
      for (int a = 0; a < f.rank; ++a)
        words[size_t(1 + a)] = b.bitcast(Type::u32, b.emit(ir::Op::coord, Type::i32, {}, uint64_t(a)));
      if (f.domain == ir::Domain::groups) words[4] = b.bitcast(Type::u32, b.emit(ir::Op::lane, Type::i32));
      if (value != ir::kNone) {
        const auto both = words_of(b, value);
        words[5] = both[0], words[6] = both[1];
      }
      const ir::Id first =
          b.op(ir::Op::iadd, {b.op(ir::Op::imul, {count, b.u32(ir::kReportWords)}), b.u32(1)});
      for (size_t k = 0; k < words.size(); ++k) {
        const ir::Id at = b.op(ir::Op::iadd, {first, b.u32(uint32_t(k))});
        b.emit(ir::Op::store, Type::none, {b.convert(kIndexType, at), words[k]}, buffer);
      }
    });
  });
}

}  // namespace detail

Val<u32> group_ballot(const Val<bool>& condition, std::source_location where) {
  const int lanes = detail::group_lanes("group_ballot");
  const auto words = detail::scratch<u32>((lanes + 31) / 32);
  const Val<i32> lane = detail::own_lane();
  if_(lane < (lanes + 31) / 32, [&] { words[lane].store(0u); }, where);
  barrier(where);
  const Val<u32> bit = select(condition, 1u << cast<u32>(lane & 31), 0u);
  detail::atomic(true, words.id(), ir::AtomicOp::or_, (lane >> 5).id(), bit.id());
  barrier(where);
  const Val<u32> word = words[lane >> 5];
  barrier(where);
  return word;
}

}  // namespace lockstep
