// Buffers and their windows; host and device copies.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "device/launch/overlap.hpp"
#include "device/stages/fault.hpp"
#include "device/state.hpp"

namespace lockstep {

namespace {

std::array<int64_t, 4> contiguous_strides(const Shape& shape) {
  std::array<int64_t, 4> strides{};
  int64_t step = 1;
  for (int a = shape.rank() - 1; a >= 0; --a) {
    strides[a] = step;
    step *= shape[a];
  }
  return strides;
}

[[noreturn]] void refuse(const std::string& what, std::string_view where, const std::string& expected) {
  throw InputError(what, where, expected);
}

bool empty(const Shape& shape) {
  for (int a = 0; a < shape.rank(); ++a)
    if (shape[a] == 0) return true;
  return false;
}

/// Axes as allocations have them.
void check_axes(const Shape& shape, std::string_view where) {
  if (shape.rank() < 1) refuse("shape of rank 0", where, "rank 1 to 4");
  for (int a = 0; a < shape.rank(); ++a)
    if (shape[a] < 0 || shape[a] > INT32_MAX)
      refuse(fmt::format("shape {}", to_string(shape)), where, "axes of 0 to 2^31 - 1");
}

/// Elements of a shape that check_axes takes; nothing where 64 bits do not hold them.
std::optional<int64_t> elements_of(const Shape& shape) {
  if (empty(shape)) return 0;
  int64_t n = 1;
  for (int a = 0; a < shape.rank(); ++a)
    if (__builtin_mul_overflow(n, shape[a], &n)) return {};
  return n;
}

/// Memory of others, and what a buffer of it has: sums of two such sizes fit 64 bits.
constexpr int64_t kMostBytes = (int64_t(1) << 61) - 1;

/// `count` of an axis of `size` from `first` on.
bool inside(int64_t first, int64_t count, int64_t size) {
  return first >= 0 && first <= size && count >= 0 && count <= size - first;
}

/// Whether the backend copies memory onto itself as if through a copy of its own.
bool moves(DeviceKind kind) { return kind == DeviceKind::cpu || kind == DeviceKind::interp; }

/// Calls `visit(element offset, elements)` for each contiguous run of a window, in row-major order.
template <class Visit>
void for_each_run(const Buffer& buffer, Visit visit) {
  const Shape& shape = buffer.shape();
  const auto& strides = buffer.strides();
  int axis = shape.rank() - 1;
  int64_t run = shape[axis];
  while (axis > 0 && (strides[axis - 1] == run || shape[axis - 1] == 1)) run *= shape[--axis];
  int64_t rows = 1;
  for (int a = 0; a < axis; ++a) rows *= shape[a];
  for (int64_t r = 0; r < rows; ++r) {
    int64_t rest = r, offset = 0;
    for (int a = axis - 1; a >= 0; --a) {
      offset += rest % shape[a] * strides[a];
      rest /= shape[a];
    }
    visit(offset, run);
  }
}

}  // namespace

bool Buffer::contiguous() const {
  if (empty(shape_)) return true;
  int64_t step = 1;
  for (int a = shape_.rank() - 1; a >= 0; --a) {
    if (shape_[a] != 1 && strides_[a] != step) return false;
    step *= shape_[a];
  }
  return true;
}

Buffer Buffer::reshape(Shape shape) const {
  check_axes(shape, "Buffer::reshape");
  if (!(elements_of(shape) == elements() && contiguous()))
    refuse(fmt::format("reshape of {} to shape {}", to_string(shape_), to_string(shape)), "Buffer::reshape",
           "a contiguous buffer and as many elements");
  Buffer b = *this;
  b.shape_ = shape;
  b.strides_ = contiguous_strides(shape);
  return b;
}

Buffer Buffer::rows(int64_t first, int64_t count) const {
  if (!inside(first, count, shape_[0]))
    refuse(fmt::format("first {} and count {}", first, count), "Buffer::rows",
           fmt::format("rows from 0 to {}", shape_[0]));
  Buffer b = *this;
  b.shape_[0] = count;
  b.offset_ += first * strides_[0];
  return b;
}

Buffer Buffer::window(const Shape& offset, const Shape& size) const {
  if (!(offset.rank() == shape_.rank() && size.rank() == shape_.rank()))
    refuse(fmt::format("offset {} and size {}", to_string(offset), to_string(size)), "Buffer::window",
           fmt::format("rank {}", shape_.rank()));
  Buffer b = *this;
  b.shape_ = size;
  for (int a = 0; a < shape_.rank(); ++a) {
    if (!inside(offset[a], size[a], shape_[a]))
      refuse(fmt::format("offset {} and size {}", to_string(offset), to_string(size)), "Buffer::window",
             fmt::format("a part of {}", to_string(shape_)));
    b.offset_ += offset[a] * strides_[a];
  }
  return b;
}

Buffer Device::allocate(Storage storage, Shape shape) const {
  if (!(is_device_storage(storage)))
    refuse(fmt::format("elements of {}", name(storage)), "Device::allocate",
           "f32, f64, i32, u32, i64, u64, f16, bf16 or u8 (Array::to converts)");
  check_axes(shape, "Device::allocate");
  const double bytes = double(size_of(storage)) * double(shape[0]) *
                       (shape.rank() > 1 ? double(shape[1]) : 1) * (shape.rank() > 2 ? double(shape[2]) : 1) *
                       (shape.rank() > 3 ? double(shape[3]) : 1);
  opened().check_alive();
  device::check_fault(DeviceFault::allocation);
  const int64_t limit = state_->info.limits.buffer_bytes;
  if (bytes > 9e18 || int64_t(bytes) > limit)
    throw DeviceError(DeviceFault::allocation,
                      fmt::format("buffer of {:.3g} GiB exceeds the device's limit of {:.3g} GiB",
                                  bytes / (1 << 30), double(limit) / (1 << 30)));
  Buffer buffer;
  buffer.storage_ = storage;
  buffer.shape_ = shape;
  buffer.strides_ = contiguous_strides(shape);
  buffer.owner_ = state_;
  buffer.memory_ = state_->pool.allocate(std::max<int64_t>(buffer.bytes(), 16));
  return buffer;
}

Buffer Device::wrap(Storage storage, Shape shape, const Foreign& foreign) const {
  constexpr std::string_view kWhere = "Device::wrap";
  if (!is_device_storage(storage))
    refuse(fmt::format("elements of {}", name(storage)), kWhere,
           "f32, f64, i32, u32, i64, u64, f16, bf16 or u8");
  check_axes(shape, kWhere);
  if (empty(shape)) return allocate(storage, shape);
  if (foreign.address == 0) refuse("a null address", kWhere, "the address of the first element");
  const int64_t size = size_of(storage);
  if (foreign.address % uint64_t(size) != 0)
    refuse(fmt::format("address {:#x}", foreign.address), kWhere,
           fmt::format("a multiple of {} bytes", size));
  if (const auto elements = elements_of(shape); !elements || *elements > kMostBytes / size)
    refuse(fmt::format("shape {}", to_string(shape)), kWhere, "less than 2^61 bytes");
  Buffer buffer;
  buffer.storage_ = storage;
  buffer.shape_ = shape;
  buffer.strides_ = contiguous_strides(shape);
  const bool strided = foreign.strides != std::array<int64_t, 4>{};
  int64_t span = size;
  for (int a = 0; a < shape.rank(); ++a) {
    int64_t& stride = buffer.strides_[size_t(a)];
    if (shape[a] == 1) continue;  // its stride counts for nothing
    if (strided) stride = foreign.strides[size_t(a)];
    if (stride < 0 || (a == shape.rank() - 1 && stride != 1))
      refuse(fmt::format("stride {} of axis {}", stride, a), kWhere,
             "strides of 0 or more, and 1 of the last axis");
    if (stride > (kMostBytes - span) / size / (shape[a] - 1))
      refuse(fmt::format("stride {} of axis {} in shape {}", stride, a, to_string(shape)), kWhere,
             "less than 2^61 bytes from the first to the last element");
    span += (shape[a] - 1) * stride * size;
  }
  if (foreign.address > UINT64_MAX - uint64_t(span))
    refuse(fmt::format("address {:#x} with {} bytes", foreign.address, span), kWhere,
           "an address range within the address space");
  opened().check_alive();
  buffer.owner_ = state_;
  buffer.memory_ = state_->backend->adopt(foreign, span);
  return buffer;
}

uint64_t Buffer::native() const {
  if (!memory_ || memory_->address == 0) return 0;
  return memory_->address + uint64_t(offset_ * size_of(storage_));
}

void Device::begin_after(NativeStream stream) const {
  opened().refuse_recorded("Device::begin_after");
  state_->backend->begin_after(stream);
}
void Device::end_before(NativeStream stream) const {
  opened().refuse_recorded("Device::end_before");
  state_->backend->end_before(stream);
}

void Device::expect_own(const Buffer& buffer, std::string_view where) const {
  if (!(buffer.owner_ && buffer.owner_.get() == &opened()))
    refuse(buffer ? "a buffer of another device" : "an empty buffer", where,
           fmt::format("a buffer of {}", opened().info.name));
}

Buffer Device::upload(const Array& array) const {
  const Array packed = array.packed();
  const Buffer buffer = allocate(packed.storage(), packed.device_shape());
  write(buffer, packed.data(), packed.bytes());
  return buffer;
}

Array Device::download(const Buffer& buffer) const {
  Array array(buffer.storage(), buffer.shape());
  read(buffer, array.mutate_raw().data(), buffer.bytes());
  return array;
}

void Device::check_storage(const Buffer& buffer, Storage storage) {
  if (!(buffer.storage() == storage))
    refuse(fmt::format("buffer of {}", lockstep::name(buffer.storage())), "Device::download",
           std::string(lockstep::name(storage)));
}

void Device::write(const Buffer& buffer, const void* data, int64_t bytes, const Stream& stream) const {
  expect_own(buffer, "Device::write");
  if (!(bytes == buffer.bytes()))
    refuse(fmt::format("{} bytes for a buffer of {}", bytes, buffer.bytes()), "Device::write",
           "as many bytes as the buffer has");
  state_->refuse_recorded("Device::write");
  if (bytes == 0) return;
  if (device::overlaps_itself(buffer.shape_, buffer.strides_))
    refuse(device::layout_text(buffer), "Device::write", "a buffer whose elements do not share memory");
  state_->check_alive();
  device::Queue* const queue = state_->queue_for(stream, "Device::write");
  const int64_t size = size_of(buffer.storage());
  const auto* source = static_cast<const std::byte*>(data);
  for_each_run(buffer, [&](int64_t offset, int64_t count) {
    state_->backend->upload(queue, *buffer.memory_, (buffer.offset_ + offset) * size, source, count * size);
    source += count * size;
  });
  state_->count_copy(bytes, 0);
}

void Device::read(const Buffer& buffer, void* data, int64_t bytes, const Stream& stream) const {
  expect_own(buffer, "Device::read");
  if (!(bytes == buffer.bytes()))
    refuse(fmt::format("{} bytes for a buffer of {}", bytes, buffer.bytes()), "Device::read",
           "as many bytes as the buffer has");
  state_->refuse_recorded("Device::read");
  if (bytes == 0) return;
  state_->check_alive();
  device::Queue* const queue = state_->queue_for(stream, "Device::read");
  Buffer source = buffer;
  int64_t runs = 0;
  for_each_run(buffer, [&](int64_t, int64_t) { ++runs; });
  if (runs > 1 && state_->info.kind != DeviceKind::cpu && state_->info.kind != DeviceKind::interp) {
    // One transfer instead of many: pack on the device first.
    source = allocate(buffer.storage_, buffer.shape_);
    int64_t to = 0;
    const int64_t size = size_of(buffer.storage());
    for_each_run(buffer, [&](int64_t offset, int64_t count) {
      state_->backend->copy(queue, *buffer.memory_, (buffer.offset_ + offset) * size, *source.memory_, to,
                            count * size);
      to += count * size;
    });
  }
  const int64_t size = size_of(source.storage());
  auto* target = static_cast<std::byte*>(data);
  for_each_run(source, [&](int64_t offset, int64_t count) {
    state_->backend->download(queue, *source.memory_, (source.offset_ + offset) * size, target, count * size);
    target += count * size;
  });
  state_->count_copy(0, bytes);
}

void Device::copy(const Buffer& from, const Buffer& to, const Stream& stream) const {
  expect_own(from, "Device::copy");
  expect_own(to, "Device::copy");
  if (!(from.storage() == to.storage() && from.elements() == to.elements() && from.contiguous() &&
        to.contiguous()))
    refuse(fmt::format("copy of {} {} to {} {}", lockstep::name(from.storage()), to_string(from.shape()),
                       lockstep::name(to.storage()), to_string(to.shape())),
           "Device::copy", "contiguous buffers of one storage and as many elements");
  if (from.bytes() == 0) return;
  state_->check_alive();
  device::Queue* const queue = state_->queue_for(stream, "Device::copy");
  if (device::Recording* own = state_->recording())
    own->memory.insert(own->memory.end(), {from.memory_, to.memory_});
  const int64_t bytes = from.bytes(), size = size_of(from.storage());
  const int64_t first = from.offset_ * size, target = to.offset_ * size;
  int64_t apart = target - first;
  if (from.memory_ != to.memory_) apart += int64_t(to.memory_->address - from.memory_->address);
  const bool comparable = from.memory_ == to.memory_ || (from.memory_->address && to.memory_->address);
  const bool shared = comparable && apart < bytes && -apart < bytes;
  if (shared && apart == 0) return;  // onto itself
  if (!shared || moves(state_->info.kind)) {
    state_->backend->copy(queue, *from.memory_, first, *to.memory_, target, bytes);
    return;
  }
  const std::shared_ptr<device::Memory> between = state_->pool.allocate(bytes);
  if (device::Recording* own = state_->recording()) own->memory.push_back(between);
  state_->backend->copy(queue, *from.memory_, first, *between, 0, bytes);
  state_->backend->copy(queue, *between, 0, *to.memory_, target, bytes);
}

void Device::clear(const Buffer& buffer, const Stream& stream) const {
  expect_own(buffer, "Device::clear");
  if (!(buffer.contiguous())) refuse("window that is not contiguous", "Device::clear", "a contiguous buffer");
  if (buffer.bytes() == 0) return;
  state_->check_alive();
  device::Queue* const queue = state_->queue_for(stream, "Device::clear");
  if (device::Recording* own = state_->recording()) own->memory.push_back(buffer.memory_);
  state_->backend->clear(queue, *buffer.memory_, buffer.offset_ * size_of(buffer.storage()), buffer.bytes());
}

}  // namespace lockstep
