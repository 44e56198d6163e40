// sort_by_key: passes of the radix sort, from the lowest digit to the highest.
#include "primitives/sort/sort.hpp"

#include <fmt/format.h>

#include "primitives/flat.hpp"
#include "primitives/kernels.hpp"

namespace lockstep::primitives {

namespace {

constexpr int64_t kMostKeys = INT32_MAX - (1 << 16);

/// The passes over so many keys, with digits as even as possible.
struct Passes {
  Radix form;
  int64_t keys, chunk, chunks;
  int bits, count;
  Passes(Radix ranked, int64_t number, int key_bits)
      : form(ranked),
        keys(number),
        chunk(radix_chunk(ranked, number)),
        chunks(divide_up(number, chunk)),
        bits(key_bits),
        count((key_bits + kDigitBits - 1) / kDigitBits) {}
  int width(int pass) const { return bits / count + (pass < bits % count ? 1 : 0); }
  int64_t counts(int pass) const { return chunks << width(pass); }
};

Payload payload_of(const Buffer& values, const Buffer& sorted_values) {
  return values ? Payload::values : sorted_values ? Payload::positions : Payload::none;
}

void expect_words(const char* what, Storage storage, bool floats, std::string_view where) {
  if (storage != Storage::u32 && storage != Storage::i32 && !(floats && storage == Storage::f32))
    throw InputError(fmt::format("{} of {}", what, name(storage)), where,
                     floats ? "u32, i32 or f32" : "u32 or i32");
}

void expect_bits(int bits, std::string_view where) {
  if (bits < 1 || bits > 32) throw InputError(fmt::format("{} bits", bits), where, "1 to 32");
}

void expect_sortable(const Buffer& keys, const Buffer& values, const Buffer& sorted_keys,
                     const Buffer& sorted_values, int bits) {
  const auto where = "primitives::sort_by_key";
  expect_flat(keys, where);
  expect_keys(keys, where);
  expect_bits(bits, where);
  if (keys.storage() == Storage::f32 && bits != 32)
    throw InputError(fmt::format("{} bits of f32", bits), where, "all 32: the sign is the highest");
  expect_flat(sorted_keys, keys.storage(), keys.elements(), where);
  if (values || sorted_values) {
    expect_flat(sorted_values, sorted_values.storage(), keys.elements(), where);
    expect_words(values ? "values" : "positions", sorted_values.storage(), bool(values), where);
  }
  if (values) expect_flat(values, sorted_values.storage(), keys.elements(), where);
  expect_apart({sorted_keys, sorted_values}, {keys, values}, where);
}

}  // namespace

void expect_keys(const Buffer& keys, std::string_view where) {
  expect_words("keys", keys.storage(), true, where);
  if (keys.elements() > kMostKeys)
    throw InputError(fmt::format("{} keys", keys.elements()), where, "fewer than 2^31 - 2^16");
}

void radix_sort(const Device& device, Radix form, const Buffer& keys, const Buffer& values,
                const Buffer& sorted_keys, const Buffer& sorted_values, int bits, const Stream& stream) {
  expect_sortable(keys, values, sorted_keys, sorted_values, bits);
  const int64_t count = keys.elements();
  if (count == 0) return;
  const Passes passes(form, count, bits);
  Payload payload = payload_of(values, sorted_values);
  const Storage value = sorted_values.storage();
  const Buffer counts = device.allocate<u32>({passes.counts(0)}),
               starts = device.allocate<u32>({passes.counts(0)});
  Buffer other_keys, other_values;
  if (passes.count > 1) {
    other_keys = device.allocate(keys.storage(), {count});
    if (sorted_values) other_values = device.allocate(value, {count});
  }
  Buffer from_keys = keys, from_values = values;
  int shift = 0;
  for (int pass = 0; pass < passes.count; ++pass) {
    const Buffer own = counts.rows(0, passes.counts(pass)), own_starts = starts.rows(0, passes.counts(pass));
    // The last pass writes the results.
    const bool last = (passes.count - pass) % 2 != 0;
    const Buffer to_keys = last ? sorted_keys : other_keys, to_values = last ? sorted_values : other_values;
    Arguments numbers;
    numbers.set("shift", shift).set("mask", (1 << passes.width(pass)) - 1).set("chunk", passes.chunk);
    device.launch_on(stream, digit_counts_kernel(form, keys.storage()), {passes.chunks},
                     Arguments(numbers).set("keys", from_keys.reshape({count})).set("counts", own));
    exclusive_scan(device, own, own_starts, stream);
    Arguments moved = Arguments(numbers).set("starts", own_starts);
    moved.set("keys", from_keys.reshape({count})).set("to_keys", to_keys.reshape({count}));
    if (payload == Payload::values) moved.set("values", from_values.reshape({count}));
    if (payload != Payload::none) moved.set("to_values", to_values.reshape({count}));
    device.launch_on(stream, digit_scatter_kernel(form, keys.storage(), payload, value), {passes.chunks},
                     moved);
    if (payload == Payload::positions) payload = Payload::values;
    from_keys = to_keys, from_values = to_values;
    shift += passes.width(pass);
  }
}

void sort_by_key(const Device& device, const Buffer& keys, const Buffer& values, const Buffer& sorted_keys,
                 const Buffer& sorted_values, int bits, const Stream& stream) {
  radix_sort(device, radix_form(device), keys, values, sorted_keys, sorted_values, bits, stream);
}

int64_t sort_bytes(const Device& device, int64_t count, bool payload, int bits) {
  const auto where = "primitives::sort_bytes";
  expect_bits(bits, where);
  if (count < 0 || count > kMostKeys)
    throw InputError(fmt::format("{} keys", count), where, "0 to 2^31 - 2^16 - 1");
  if (count == 0) return 0;
  const Passes passes(radix_form(device), count, bits);
  const int64_t copies = passes.count > 1 ? (payload ? 2 : 1) : 0;
  return 4 * copies * count + 8 * passes.counts(0) + scan_bytes(Storage::u32, passes.counts(0));
}

}  // namespace lockstep::primitives
