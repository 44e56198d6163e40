// The coder on a device: buffers and launches.
#include "flow/codec/rans/rans.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "flow/codec/rans/rans_kernels.hpp"
#include "lockstep/error.hpp"
#include "lockstep/primitives.hpp"

namespace lockstep::flow {

namespace {

RansShape shape_of_numbers(const Buffer& numbers) {
  if (numbers.storage() != Storage::u32 || numbers.shape().rank() != 3 || numbers.elements() == 0)
    throw InputError(fmt::format("{} of shape {}", name(numbers.storage()), to_string(numbers.shape())),
                     "flow codec", "u32 of shape (frames, rows, columns)");
  return {numbers.shape()[0], numbers.shape()[1], numbers.shape()[2]};
}

}  // namespace

RansCoder::RansCoder(const Device& device, const RansShape& shape) : device_(device), shape_(shape) {
  const int64_t lanes = shape.lanes(), contexts = shape.contexts();
  cumulative_ = device.allocate<u32>({contexts, int64_t(kTokens)});
  counts_ = device.allocate<u32>({contexts, int64_t(kTokens)});
  table_ = device.allocate<u32>({contexts, int64_t(kTokens)});
  lane_words_ = device.allocate<u32>({lanes});
  states_ = device.allocate<u32>({lanes});
  offsets_ = device.allocate<u32>({lanes});
}

void RansCoder::count(const Buffer& numbers) {
  if (!keys_) keys_ = device_.allocate<u32>({shape_.frames, shape_.rows, shape_.columns});
  device_.launch(RansKernels::keys(), {shape_.frames, shape_.rows, shape_.columns}, numbers, keys_,
                 shape_.tile_rows(), shape_.tile_columns(), shape_.divisor());
  const Buffer flat = counts_.reshape({counts_.elements()});
  primitives::histogram(device_, keys_.reshape({shape_.numbers()}), flat);
  set_tables(rans_frequencies(device_.download<u32>(flat), shape_.contexts()));
}

void RansCoder::set_tables(std::vector<uint32_t> frequencies) {
  frequencies_ = std::move(frequencies);
  std::vector<uint32_t> cumulative, table;
  for (size_t k = 0; k < frequencies_.size(); ++k) {
    cumulative.push_back(k % kTokens == 0 ? 0 : cumulative.back() + frequencies_[k - 1]);
    table.push_back(cumulative.back() << 13 | frequencies_[k]);
  }
  device_.write(cumulative_, cumulative.data(), cumulative_.bytes());
  device_.write(table_, table.data(), table_.bytes());
}

void RansCoder::encode(const Buffer& numbers) {
  if (!words_) words_ = device_.allocate<u32>({kMostWords, shape_.lanes()});
  device_.launch(RansKernels::encode(), {shape_.lanes()}, numbers, keys_, table_.reshape({table_.elements()}),
                 words_, lane_words_, states_, shape_.tile_rows(), shape_.tile_columns());
  primitives::exclusive_scan(device_, lane_words_, offsets_);
}

RansStream RansCoder::stream() const {
  RansStream s;
  s.shape = shape_;
  s.frequencies = frequencies_;
  s.counts = device_.download<u32>(lane_words_);
  s.states = device_.download<u32>(states_);
  for (const uint32_t n : s.counts) s.word_count += n;
  const Buffer packed = device_.allocate<u32>({s.word_count / 2 + 1});
  device_.launch(RansKernels::pack(), {packed.elements()}, words_, lane_words_, offsets_, packed,
                 s.word_count);
  s.words = device_.download<u32>(packed);
  return s;
}

void RansCoder::load(const RansStream& s) {
  set_tables(s.frequencies);
  std::vector<uint32_t> offsets{0};
  for (const uint32_t n : s.counts) offsets.push_back(offsets.back() + n);
  offsets.pop_back();
  device_.write(lane_words_, s.counts.data(), lane_words_.bytes());
  device_.write(states_, s.states.data(), states_.bytes());
  device_.write(offsets_, offsets.data(), offsets_.bytes());
  packed_ = device_.upload(s.words);
}

void RansCoder::decode(const Buffer& numbers) {
  const int64_t contexts = shape_.contexts();
  if (!slots_) slots_ = device_.allocate<u32>({contexts, int64_t(kTableSize)});
  if (!status_) status_ = device_.allocate<u32>({shape_.lanes()});
  device_.write(counts_, frequencies_.data(), counts_.bytes());
  device_.launch(RansKernels::slots(), {contexts, int64_t(kTableSize)}, cumulative_, counts_, slots_);
  device_.launch(RansKernels::decode(), {shape_.lanes()}, packed_, lane_words_, offsets_, states_, slots_,
                 numbers, status_, shape_.tile_rows(), shape_.tile_columns(), shape_.divisor());
}

bool RansCoder::sound() const { return primitives::max<u32>(device_, status_) == 0; }

std::vector<uint8_t> rans_encode(const Device& device, const Buffer& numbers) {
  RansCoder coder(device, shape_of_numbers(numbers));
  coder.count(numbers);
  coder.encode(numbers);
  return pack_stream(coder.stream());
}

void rans_decode(const Device& device, std::span<const uint8_t> bytes, const Buffer& numbers,
                 std::string_view where) {
  const RansShape shape = shape_of_numbers(numbers);
  RansCoder coder(device, shape);
  coder.load(parse_stream(bytes, shape, where));
  coder.decode(numbers);
  if (!coder.sound())
    throw InputError("coded data of the wrong length", where, "an undamaged file of flow encode");
}

std::vector<Kernel> rans_kernels() {
  return {RansKernels::keys(), RansKernels::slots(), RansKernels::encode(), RansKernels::pack(),
          RansKernels::decode()};
}

}  // namespace lockstep::flow
